"""An audit on disk: a small audit.json, its tables and its cube as Parquet; and one reader of it.

audit.json (schema 2) holds the finding, the request, what there is in which family of rows and, of
the confirmatory metrics, the rows overall, by group and by class: what a gate mostly asks for. All
rows are in tables/NAME.parquet. Of a family (a metric, by what) it says whether its rows are
`stored` or `computed`: then the reader makes them again from tables/cube.parquet, with the stored
options and random state. Schema 1, which held every row in audit.json, is still read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.columns import Kind
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.auditing.schema import AUDIT_TABLES, LARGEST_WHOLE, REMEDY, TABLES, other_form
from fairweight.auditing.table_files import (
    plain,
    plain_records,
    read_parquet,
    write_csv,
    write_parquet,
)
from fairweight.base.files import settle
from fairweight.base.trust import inside
from fairweight.base.wording import shown
from fairweight.errors import FairweightError, InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.counts.cube import Cube

SCHEMA = 2
AUDIT = "audit.json"
CUBE, VARIANTS = "cube", "variants"
STORED, COMPUTED = "stored", "computed"
MOST_ROWS = 2_000  # of one table in audit.json
MOST_CELLS = 1_000_000  # of a cube: with more it is nearly the table itself
HERE = ("overall", "group", "class")  # by what: rows of audit.json


# The tables of an audit as CSV and Parquet files.

_VIEWS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "overall": lambda f: f["by"] == "overall",
    "by_class": lambda f: f["by"] == "class",
    "by_group": lambda f: f["by"].isin(["group", "group*class"]),
    "groupings": lambda f: f["by"] == "grouping",
}


def file_names() -> tuple[str, ...]:
    """The files of every audit's folder, but for its page."""
    text = (f"tables/{name}.csv" for name in (*AUDIT_TABLES, *_VIEWS))
    return (AUDIT, *text, *(f"tables/{name}.parquet" for name in AUDIT_TABLES))


def write_tables(result: AuditResult, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Every frame as Parquet, those of every audit as CSV too, and the cube; the paths written.

    Frames without rows are written too, so that a script finds the same files after every audit.
    Names are exact in Parquet and JSON. In CSV, text that a spreadsheet would run as a formula
    (`=…`, `+…`, `-…`, `@…`, but not a plain number such as `-1`) gets a leading apostrophe.
    """
    import duckdb

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    held = _tables(result)
    text = {name: held[name] for name in (*AUDIT_TABLES, VARIANTS) if name in held}
    text |= {name: result.results[keep(result.results)] for name, keep in _VIEWS.items()}
    written = [write_parquet(frame, folder / f"{name}.parquet") for name, frame in held.items()]
    with duckdb.connect() as connection:
        written += [
            write_csv(connection, frame, folder / f"{name}.csv") for name, frame in text.items()
        ]
    place = folder / f"{CUBE}.parquet"
    if isinstance(result.cube, Path):
        shutil.copyfile(result.cube, place)
        written.append(place)
    elif result.cube is not None and result.cube.n_cells <= MOST_CELLS:
        from fairweight.auditing.counts.cube_file import write_cube

        write_cube(
            result.cube,
            place,
            groupings=result.groupings,
            baseline=result.baseline,
            units="numbers",
        )
        written.append(place)
    return tuple(written)


def _tables(result: AuditResult) -> dict[str, pd.DataFrame]:
    """All frames by the names of their files."""
    if result.absent:
        raise InputError(
            "This audit was read from an audit.json without its tables, so it cannot be written "
            "again; give the folder that fairweight audit wrote."
        )
    own = {name: getattr(result, name) for name in AUDIT_TABLES}
    if result.variants_table is not None:
        own[VARIANTS] = result.variants_table
    for name in result.explanations:
        if name in own or name in (CUBE, VARIANTS):
            raise ValueError(f"an explanation cannot be called {name!r}: the audit has that table")
    return own | dict(result.explanations)


# audit.json: what there is, and the rows that are read most.


def to_json(result: AuditResult, finding: Mapping[str, Any] | None = None) -> str:
    """The whole audit as one JSON document, every row of every table in it.

    What is undefined (or infinite) is null, integers stay integers.
    """
    return _dumped(_document(result, _tables(result), finding, why_no_cube=_ONE_DOCUMENT))


def write(
    result: AuditResult,
    directory: str | os.PathLike[str],
    finding: Mapping[str, Any] | None = None,
    *,
    computed: Collection[tuple[str, str]] = (),
) -> None:
    """Write tables/ and then audit.json.

    Parameters
    ----------
    finding
        What the audit found, in words.
    computed
        Families (metric, by) whose rows are left to the cube. Not those of scores, which the cube
        does not hold, and none where there is a training table.
    """
    folder = Path(directory)
    _check_computed(result, computed)
    away = _of_families(result.results, computed)
    write_tables(replace(result, results=result.results[~away]), folder / "tables")
    here, why = _small(result, away), _why_no_cube(result)
    text = _dumped(_document(result, here, finding, computed, why_no_cube=why))
    (folder / AUDIT).write_text(text, encoding="utf-8")


def _check_computed(result: AuditResult, computed: Collection[tuple[str, str]]) -> None:
    from fairweight.auditing.metrics import metrics

    needs = {entry.name: entry.needs for entry in metrics()}
    for metric, by in computed:
        if needs.get(metric, {"score"}) & {"score", "label_rank"}:
            raise ValueError(f"{metric} by {by} cannot be computed from a cube")
    if computed and (_why_no_cube(result) or (result.data["split"] == "train").any()):
        raise ValueError("rows cannot be left to a cube that is not stored, or not all of it")


_ONE_DOCUMENT = "one document has no tables/ beside it"


def _why_no_cube(result: AuditResult) -> str | None:
    """Why the cube is not stored; None where it is."""
    if result.cube is None:
        return "nothing was counted, or small cells would show in it"
    if not isinstance(result.cube, Path) and result.cube.n_cells > MOST_CELLS:
        return f"it has {result.cube.n_cells:,} cells, nearly one per row of the table"
    return None


def _of_families(frame: pd.DataFrame, families: Collection[tuple[str, str]]) -> Any:
    """Which rows belong to some families."""
    import numpy as np

    found = np.zeros(len(frame), dtype=bool)
    for metric, by in families:
        found |= ((frame["metric"] == metric) & (frame["by"] == by)).to_numpy(dtype=bool)
    return found


def _small(result: AuditResult, away: Any) -> dict[str, pd.DataFrame]:
    """The rows of audit.json: of confirmatory metrics overall, by group and by class."""
    import pandas as pd

    from fairweight.auditing.metrics import confirmatory

    told = result.results["family"].fillna("").str.startswith("confirmatory")
    # Those of every audit, and those that a policy names.
    metrics = {metric for metric, _ in confirmatory()} | {*result.results.loc[told, "metric"]}
    metrics |= {metric for metric, _ in result.provenance.options.get("confirmatory", ())}
    chosen = result.results[~away]
    chosen = chosen[chosen["metric"].isin(metrics)]
    rows = pd.concat([chosen[chosen["by"] == by] for by in HERE]).head(MOST_ROWS).sort_index()
    # A gate needs all limits of a family or none of them.
    limits = [result.bounds.iloc[:0]]
    of_metrics = result.bounds[result.bounds["metric"].isin(metrics)]
    for by in HERE:
        for _, family in of_metrics[of_metrics["by"] == by].groupby("metric", sort=False):
            if sum(map(len, limits)) + len(family) <= MOST_ROWS:
                limits.append(family)
    made = {"results": rows, "bounds": pd.concat(limits).sort_index()}
    if len(result.left_out) <= MOST_ROWS:
        made["left_out"] = result.left_out
    return made


def _document(
    result: AuditResult,
    here: Mapping[str, pd.DataFrame],
    finding: Mapping[str, Any] | None,
    computed: Collection[tuple[str, str]] = (),
    *,
    why_no_cube: str | None,
) -> dict[str, Any]:
    origin = asdict(result.provenance)
    request = origin.pop("request")
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": result.provenance.version,
        "baseline": result.baseline,
        "variants": list(result.variants),
        "classes": list(result.classes),
        "positive": result.positive,
        "tasks": list(result.tasks),
        "groupings": list(result.groupings),
        "single_columns": list(result.single_columns),
        "n_examples": result.n_examples,
        "test_set": result.test_set,
        "pairing": result.pairing,
        "notes": list(result.notes),
        "provenance": origin,
        "request": request or None,
        "finding": finding,
        "cube": {"why_not": why_no_cube},
        "families": _families(result, here, computed),
        "tables": {
            name: {"rows": len(frame), "here": len(here.get(name, ()))}
            for name, frame in _tables(result).items()
        },
    }
    document = plain(document)
    for name in AUDIT_TABLES:
        if name in here:
            document[name] = plain_records(here[name])
    if VARIANTS in here:
        document["variants_table"] = plain_records(here[VARIANTS])
    told = {name: plain_records(here[name]) for name in result.explanations if name in here}
    if told:
        document["explanations"] = told
    return document


def _families(
    result: AuditResult,
    here: Mapping[str, pd.DataFrame],
    computed: Collection[tuple[str, str]],
) -> list[dict[str, Any]]:
    """Of every metric and kind of place: how many rows and limits, and where they are."""

    def counted(frame: pd.DataFrame) -> dict[tuple[str, str], int]:
        return dict(Counter(zip(frame["metric"], frame["by"], strict=True)))

    limits, rows_here = counted(result.bounds), counted(here["results"])
    limits_here = counted(here["bounds"])
    keys = result.results[["metric", "by"]].drop_duplicates().itertuples(index=False, name=None)
    rows = counted(result.results)
    return [
        {
            "metric": key[0],
            "by": key[1],
            "rows": rows[key],
            "held": COMPUTED if key in computed else STORED,
            "here": rows_here.get(key, 0),
            "limits": limits.get(key, 0),
            "limits_here": limits_here.get(key, 0),
        }
        for key in keys
    ]


def _dumped(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


# --- reading: every field is checked here, so that nobody after it meets another form ----------

_PLAIN = (str, bool, int, float)
_TABLE_NAME = re.compile("[a-z][a-z0-9_]*")
_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "alpha": float, "margin": float, "group_error": (int, float), "reference_shift": float,
    "n_boot": int, "min_group": int, "random_state": int, "exact": bool, "filters": bool,
    "members": str, "correction": str, "zero_baseline": str, "confirmatory": list,
    "positive": (str, NoneType), "fixed_side": (str, NoneType),
}  # fmt: skip


def stored_at(path: str | Path) -> Path | None:
    """The audit.json that a path names, itself or by its folder; None for anything else.

    A file of another name is one if it begins as our audits do: tables may be JSON as well.
    """
    place = Path(path)
    if (place / AUDIT).is_file():
        return place / AUDIT
    if place.name == AUDIT:
        return place
    if place.suffix != ".json" or not place.is_file():
        return None
    with place.open("rb") as file:
        begins = re.match(rb'\s*\{\s*"schema"\s*:', file.read(200))
    return place if begins else None


def head(path: Path) -> Mapping[str, Any]:
    """The document without its tables being read or checked; {} where it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def load(path: str | Path, *, lone: bool = False) -> AuditResult:
    """The audit of a folder, of one that holds it under the name `audit`, or of an audit.json.

    Parameters
    ----------
    lone
        Take an audit.json without its tables as well. The result then holds the rows that are in
        it, and `absent` names the families whose rows are not.
    """
    place = Path(path)
    settle(place)
    if place.is_dir():
        places = (place / AUDIT, place / "audit" / AUDIT)
        found = next((one for one in places if one.is_file()), None)
        if found is None:
            raise InputError(
                f"'{path}' holds no audit.json; give the folder that fairweight audit wrote "
                "(--out), or the audit.json itself."
            )
        place = found
    try:
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"'{path}' does not exist; fairweight audit FILE... --out DIR writes one."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"'{place.name}' is not UTF-8 text; give an audit.json.") from None
    return _read(_parsed(text), place, lone)


def from_json(text: str) -> AuditResult:
    """The audit that `to_json` wrote; an error names the first field that has another form."""
    return _read(_parsed(text), None, False)


def _parsed(text: str) -> dict[str, Any]:
    def no_number(name: str) -> Any:
        raise InputError(f"The audit holds {name}, which is no number of JSON; {REMEDY}.")

    try:
        document = json.loads(text, parse_constant=no_number)
        if "\\ud" in text.lower():  # half a character, which no file can hold
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(
            f"The audit is not valid JSON (line {error.lineno}, column {error.colno}); {REMEDY}."
        ) from None
    except UnicodeEncodeError:
        raise InputError(f"The audit holds text that is no UTF-8; {REMEDY}.") from None
    except InputError:
        raise
    except (RecursionError, ValueError):
        raise InputError(
            f"The audit is not valid JSON (nested too deep, or too long a number); {REMEDY}."
        ) from None
    number = document.get("schema") if isinstance(document, dict) else None
    if type(number) is not int or not 1 <= number <= SCHEMA:
        raise InputError(
            f"The audit has the schema {shown(repr(number), 60)}, this version reads schemas 1 to "
            f"{SCHEMA}; make the audit again, or read it with the version of fairweight that wrote "
            "it."
        )
    return dict(document)


def _read(document: Mapping[str, Any], place: Path | None, lone: bool) -> AuditResult:
    """The audit of a document, with the tables beside it."""
    field = _Fields(document, "")
    variants, tasks = field.texts("variants"), field.texts("tasks")
    baseline = field.text("baseline")
    if not variants or baseline in variants:
        raise other_form("variants", "should name the compressed models, without the baseline")
    reader = _Tables(field, place, lone, {"variant": {baseline, *variants}, "task": set(tasks)})
    frames = {name: reader.frame(name, field, TABLES[name].later) for name in AUDIT_TABLES}
    families = _read_families(field)
    cube = None
    if place is not None and (place.parent / "tables" / f"{CUBE}.parquet").is_file():
        cube = inside(place.parent, f"tables/{CUBE}.parquet", links=True)
    result = AuditResult(
        baseline=baseline,
        variants=variants,
        classes=field.texts("classes"),
        positive=field.text("positive", empty=True),
        tasks=tasks,
        groupings=field.texts("groupings"),
        single_columns=field.texts("single_columns"),
        n_examples=field.whole("n_examples"),
        test_set=field.text("test_set", empty=True, later=True),
        pairing=_pairing(field),
        notes=field.texts("notes", several=True),
        provenance=_provenance(field),
        variants_table=reader.variants(),
        explanations=reader.explanations(),
        cube=cube,
        absent=frozenset(
            (one["metric"], one["by"])
            for one in families
            if reader.partial and (one["limits_here"] < one["limits"] or one["here"] < one["rows"])
        ),
        **frames,
    )
    away = {(one["metric"], one["by"]): one["rows"] for one in families if one["held"] == COMPUTED}
    return _completed(result, away) if away and not reader.partial else result


@dataclass(frozen=True)
class _Fields:
    """The fields of an object; each is given in the form that was asked for."""

    held: Mapping[str, Any]
    inside: str  # "provenance." for the fields of that object

    def take(self, name: str, kind: type | tuple[type, ...], form: str, later: bool = False) -> Any:
        if name not in self.held:
            if later:
                return None
            raise other_form(self.inside + name, "is missing")
        value = self.held[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float)):
            raise other_form(self.inside + name, f"should be {form}")
        return value

    def text(self, name: str, *, empty: bool = False, later: bool = False) -> Any:
        kinds, form = ((str, NoneType), "text or null") if empty else (str, "text")
        return self.take(name, kinds, form, later)

    def texts(self, name: str, *, several: bool = False) -> tuple[str, ...]:
        """A list of texts; of names, each once, unless `several` may be alike."""
        found = self.take(name, list, "a list of texts")
        if not all(isinstance(item, str) for item in found):
            raise other_form(self.inside + name, "should be a list of texts")
        if not several and len(set(found)) < len(found):
            raise other_form(self.inside + name, "should hold every name once")
        return tuple(found)

    def whole(self, name: str) -> int:
        found: int = self.take(name, int, "a whole number")
        if not 0 <= found <= LARGEST_WHOLE:
            raise other_form(self.inside + name, "should be a whole number of at least 0")
        return found

    def object(self, name: str, later: bool = False) -> Mapping[str, Any]:
        return self.take(name, dict, "an object", later) or {}

    def rows(self, name: str, later: bool = False) -> list[dict[str, Any]]:
        found = self.take(name, list, "a list of rows", later) or []
        if not all(isinstance(row, dict) for row in found):
            raise other_form(self.inside + name, "should be a list of rows")
        return found


class _Tables:
    """The tables of a stored audit: from the files beside it, or from the document itself."""

    def __init__(
        self,
        field: _Fields,
        place: Path | None,
        lone: bool,
        known: Mapping[str, Collection[str]],
    ) -> None:
        self.field, self.known = field, known
        self.folder = None if place is None else place.parent
        self.lone = lone
        self.partial = False  # whether some rows are not here
        self.sizes: dict[str, tuple[int, int]] = {}  # rows, and how many are in the document
        if field.held["schema"] == 1:
            return
        listed = _Fields(field.object("tables"), "tables.")
        for name in listed.held:
            if not _TABLE_NAME.fullmatch(name) or name == CUBE:  # it becomes the name of a file
                raise InputError(f"The audit has a table called '{shown(name, 60)}'; {REMEDY}.")
            size = _Fields(listed.object(name), f"tables.{name}.")
            self.sizes[name] = size.whole("rows"), size.whole("here")
        if absent := [name for name in AUDIT_TABLES if name not in listed.held]:
            raise other_form(f"tables.{absent[0]}", "is missing")

    def frame(self, name: str, where: _Fields, later: bool = False) -> pd.DataFrame:
        """One table, checked; `where` has its rows if the document has them."""
        place = f"{where.inside}{name}"
        rows, here = self.sizes.get(name, (None, 0))
        if rows is not None and self.folder is not None and self._file(name).is_file():
            away = self._left_to_the_cube() if name == "results" else 0
            held = read_parquet(self.folder, f"tables/{name}.parquet", name, rows - away)
        else:
            if rows is not None and here < rows:
                self._refuse_or_note(name)
            found = where.rows(name, later=later or rows is not None)
            if rows is not None and len(found) != here:
                raise other_form(place, f"has {len(found):,} rows in place of {here:,}")
            held = _from_rows(name, found, place)
        schema.check(name, held, self.known, place)
        return held

    def variants(self) -> pd.DataFrame | None:
        """The table of models that was given."""
        if not self.sizes:
            kinds = (list, NoneType)
            if self.field.take("variants_table", kinds, "a list of rows or null") is None:
                return None
        elif VARIANTS not in self.sizes:
            return None
        held = {**self.field.held, VARIANTS: self.field.held.get("variants_table", [])}
        found = self.frame(VARIANTS, _Fields(held, ""))
        names = found.get("variant")
        if len(found) and (names is None or names.dtype != "str" or names.isna().any()):
            raise other_form("variants_table.variant", "should be text in every row")
        return found

    def explanations(self) -> dict[str, pd.DataFrame]:
        """Tables of exemplars and explanations."""
        told = _Fields(self.field.object("explanations", later=True), "explanations.")
        names = [name for name in self.sizes if name not in (*AUDIT_TABLES, VARIANTS)]
        if not self.sizes:
            names = list(told.held)
        for name in names:
            if not _TABLE_NAME.fullmatch(name):
                raise InputError(
                    f"The audit has an explanation called '{shown(name, 60)}'; {REMEDY}."
                )
        return {name: self.frame(name, told) for name in names}

    def _file(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / "tables" / f"{name}.parquet"

    def _left_to_the_cube(self) -> int:
        return sum(one["rows"] for one in _read_families(self.field) if one["held"] == COMPUTED)

    def _refuse_or_note(self, name: str) -> None:
        if not self.lone:
            raise InputError(
                f"audit.json stands without its folder tables/ (tables/{name}.parquet); give the "
                "folder that fairweight audit wrote. Alone it serves fairweight gate, as far as "
                "its rows reach."
            )
        self.partial = True


def _from_rows(table: str, rows: list[dict[str, Any]], place: str) -> pd.DataFrame:
    """Rows of JSON as a frame; all have the same columns, each of one kind (or null)."""
    import pandas as pd

    if rows:
        keys = rows[0].keys()
        schema.refuse(
            [row.keys() != keys for row in rows], place, "should have the same columns as before"
        )
    entry = TABLES.get(table)
    kinds: dict[str, Any] = {} if entry is None else entry.kinds
    known = entry.names if entry is not None else ()
    # Columns that an earlier version did not have are empty.
    own = list(rows[0]) if rows else []
    audit = entry is not None and entry.of == "audit"
    names = dict.fromkeys((*known, *own) if audit else (*own, *known))
    made = {}
    for name in names:
        values = [row.get(name) for row in rows]
        _check_cells(f"{place}.{name}", values, kinds.get(name))
        made[name] = pd.Series(values, dtype=object)
    return schema.typed(table, pd.DataFrame(made, columns=list(names)))


_ALLOWED: dict[Any, tuple[type, ...]] = {
    "text": (str,), "number": (int, float), "whole": (int, float), "truth": (bool,),
    "mixed": _PLAIN, None: _PLAIN,
}  # fmt: skip


def _check_cells(place: str, values: list[Any], kind: Kind | None) -> None:
    """Raise where a cell of JSON is not of the column's kind; without a kind, all are alike."""
    kinds = {type(value) for value in values} - {NoneType}
    allowed = set(_ALLOWED[kind])
    if not kinds <= allowed:
        form = "texts, or numbers," if kind in (None, "mixed") else schema.FORMS[kind]
        strange = [value is not None and type(value) not in allowed for value in values]
        schema.refuse(strange, place, f"should be {form} or null")
    if kind is None and len(kinds) > 1 and kinds != {int, float}:
        raise other_form(place, "should be texts, or numbers, or null")
    if int in kinds:
        large = [type(value) is int and abs(value) > LARGEST_WHOLE for value in values]
        schema.refuse(large, place, "holds a number that no audit has")


def _pairing(field: _Fields) -> dict[str, str]:
    found = dict(field.object("pairing"))
    if not all(isinstance(kind, str) for kind in found.values()):
        raise other_form("pairing", "should name a way of pairing for every variant")
    return found


def _provenance(field: _Fields) -> Provenance:
    origin = _Fields(field.object("provenance"), "provenance.")
    options = _Fields(origin.object("options"), "provenance.options.")
    for name, kind in _OPTIONS.items():
        options.take(name, kind, f"of the kind {getattr(kind, '__name__', 'number')}", later=True)
    for name in ("alpha", "margin"):
        if not 0 < options.held.get(name, 0.5) < 1:
            raise other_form(f"provenance.options.{name}", "should lie between 0 and 1")
    inputs = origin.rows("inputs")
    for number, one in enumerate(inputs):
        given = _Fields(one, f"provenance.inputs.{number}.")
        given.text("name"), given.text("sha256", empty=True), given.whole("rows")
    return Provenance(
        version=origin.text("version"),
        command=origin.text("command", empty=True),
        created=origin.text("created"),
        inputs=tuple(inputs),
        options=dict(options.held),
        request=_request(field, origin),
    )


# Options of the audit of version 0.1.0 that take no value and say nothing about tables.
_SWITCHES = ("--exact", "--no-filters", "--suppress-small", "--overwrite", "--quiet", "-q")


def tables_of(request: Any, command: Any = None) -> TableSpec | None:
    """The tables of a stored request; None where it names none that can be read.

    Audits of schema 1 have the command alone; it is read here and nowhere else.
    """
    try:
        if isinstance(request, Mapping) and request:
            return TableSpec.from_json(request["tables"])
        words = shlex.split(command or "")
        if words[:2] == ["fairweight", "audit"]:
            return TableSpec.from_words(words[2:], _SWITCHES)
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        pass  # not written by us
    return None


def _request(field: _Fields, origin: _Fields) -> dict[str, Any]:
    held = field.take("request", (dict, NoneType), "an object or null", later=True)
    if held is not None:
        return dict(held)
    command = origin.text("command", empty=True)
    tables = tables_of(None, command)
    if tables is None:
        return {}
    words = shlex.split(command)
    out = {"out": words[words.index("--out") + 1]} if "--out" in words[:-1] else {}
    return {"tables": tables.to_json(), **out}


def _read_families(field: _Fields) -> list[dict[str, Any]]:
    """What the document says of every family; [] of schema 1, which has all rows."""
    if field.held["schema"] == 1:
        return []
    found = field.rows("families")
    for number, one in enumerate(found):
        of = _Fields(one, f"families.{number}.")
        of.text("metric")
        if of.text("by") not in schema.WORDS["by"] or of.text("held") not in (STORED, COMPUTED):
            raise other_form(f"families.{number}", "is none that an audit has")
        for name in ("rows", "here", "limits", "limits_here"):
            of.whole(name)
    return found


# Rows that are computed on request: the audit of the stored cube, of which some families are taken.


def _completed(result: AuditResult, away: Mapping[tuple[str, str], int]) -> AuditResult:
    """The audit with the rows that were left to its cube, behind those that were stored."""
    import pandas as pd

    made = _counted_again(result)
    rows = made.results[_of_families(made.results, away)]
    for (metric, by), number in away.items():
        found = int(_of_families(rows, [(metric, by)]).sum())
        if found != number:
            raise InputError(
                f"The cube of the audit gives {found:,} rows of {shown(metric, 60)} by {by}, and "
                f"audit.json says {number:,}: they are not of one audit; make it again."
            )
    return replace(result, results=pd.concat([result.results, rows], ignore_index=True))


def _counted_again(result: AuditResult) -> AuditResult:
    """The audit of the stored cube, with the stored options and random state."""
    from fairweight.auditing.pipeline import AuditRequest, run

    cube = stored_cube(result)
    if cube is None:
        raise InputError(
            "Some rows of the audit are to be computed from tables/cube.parquet, which is not "
            "there; give the folder as fairweight audit wrote it."
        )
    held = result.provenance.options
    request = AuditRequest(
        TableSpec((), positive=held.get("positive"), force=True),
        AuditOptions.from_json(held),
        baseline=result.baseline,
        variants=result.variants,
        groupings=result.groupings,
    )
    try:
        return run(cube, request, variants_table=result.variants_table)
    except FairweightError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            "The rows that audit.json leaves to its cube cannot be computed from it: the two are "
            "not of one audit; make it again."
        ) from error


def stored_cube(result: AuditResult) -> Cube | None:
    """The cube of an audit, read where it is on disk."""
    if not isinstance(result.cube, Path):
        return result.cube
    from fairweight.auditing.counts.cube_file import read_cubes

    cube, baseline, _ = read_cubes([result.cube])
    names = {member.variant for member in cube.members}
    if baseline != result.baseline or not names >= {*result.variants, baseline}:
        raise InputError(
            "tables/cube.parquet is of other models than audit.json; give the folder as "
            "fairweight audit wrote it."
        )
    return cube
