"""Stored audits: a small audit.json, the tables and the cube as Parquet, and their one reader.

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
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from fairweight.auditing.columns import DIVISORS
from fairweight.auditing.document import (
    COMPUTED,
    CUBE,
    SCHEMA,
    STORED,
    VARIANTS,
    Fields,
    StoredTables,
    families_of,
    outcome_of,
    pairing_of,
    parsed,
    provenance_of,
)
from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import AUDIT_TABLES, TABLES, other_form
from fairweight.auditing.table_files import (
    plain,
    plain_records,
    write_csv,
    write_parquet,
)
from fairweight.base.files import settle
from fairweight.base.trust import inside
from fairweight.base.wording import shown
from fairweight.errors import FairweightError, InputError, OutputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.counts.cube import Cube

AUDIT = "audit.json"
MOST_ROWS = 2_000  # of one table in audit.json
MOST_CELLS = 1_000_000  # of a cube: with more it is nearly the table itself
HERE = ("overall", "group", "class")  # by what: rows of audit.json


# The tables of an audit as Parquet files, and as CSV where that is asked for.

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


def write_tables(
    result: AuditResult, directory: str | os.PathLike[str], *, csv: bool = False
) -> tuple[Path, ...]:
    """Every frame as Parquet, and the cube; with `csv` those of every audit as CSV too.

    Returns the paths written. Frames without rows are written too, so that a script finds the same
    files after every audit. Names are exact in Parquet and JSON. In CSV, text that a spreadsheet
    would run as a formula (`=…`, `+…`, `-…`, `@…`, but not a plain number such as `-1`) gets a
    leading apostrophe.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    held = _tables(result)
    held["bounds"] = without_repeated_levels(held["bounds"])
    written = [write_parquet(frame, folder / f"{name}.parquet") for name, frame in held.items()]
    if csv:
        import duckdb

        text = {name: held[name] for name in (*AUDIT_TABLES, VARIANTS) if name in held}
        text |= {name: result.results[keep(result.results)] for name, keep in _VIEWS.items()}
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

        try:
            write_cube(
                result.cube,
                place,
                groupings=result.groupings,
                baseline=result.baseline,
                units="numbers",
            )
        except OutputError as error:  # of a hidden file: the folder is what the user has named
            raise error.__cause__ or error from None
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


# Limits at some of the gate's levels alone: columns that repeat the next wider ones.


def without_repeated_levels(bounds: pd.DataFrame) -> pd.DataFrame:
    """The limits with columns empty that are, in every row, the next wider ones."""
    import numpy as np

    empty = {
        f"{end}_{level}": np.nan
        for level, wider in pairwise(DIVISORS)
        for end in ("low", "high")
        if bounds[f"{end}_{level}"].equals(bounds[f"{end}_{wider}"])
    }
    return bounds.assign(**empty) if empty else bounds


def with_repeated_levels(bounds: pd.DataFrame) -> pd.DataFrame:
    """The limits with empty columns filled from the next wider ones."""
    filled: dict[str, Any] = {}
    for level, wider in reversed([*pairwise(DIVISORS)]):
        for end in ("low", "high"):
            name, source = f"{end}_{level}", f"{end}_{wider}"
            if bounds[name].isna().all():
                filled[name] = filled.get(source, bounds[source])
    return bounds.assign(**filled) if filled else bounds


# audit.json: what there is, and the rows that are read most.


def to_json(result: AuditResult, finding: Mapping[str, Any] | None = None) -> str:
    """The whole audit as one JSON document, every row of every table in it.

    What is undefined (or infinite) is null, integers stay integers.
    """
    why = "one document has no tables/ beside it"
    return _document(result, _tables(result), finding, why_no_cube=why)


def write(
    result: AuditResult,
    directory: str | os.PathLike[str],
    finding: Mapping[str, Any] | None = None,
    *,
    computed: Collection[tuple[str, str]] = (),
    csv: bool = False,
) -> None:
    """Write tables/ and then audit.json.

    Parameters
    ----------
    finding
        What the audit found, in words.
    computed
        Families (metric, by) whose rows are left to the cube. Not those of scores, which the cube
        does not hold, and none where there is a training table.
    csv
        Write the tables as CSV too.
    """
    from fairweight.auditing.metrics import metrics

    folder = Path(directory)
    needs = {entry.name: entry.needs for entry in metrics()}
    for metric, by in computed:
        if needs.get(metric, {"score"}) & {"score", "label_rank"}:
            raise ValueError(f"{metric} by {by} cannot be computed from a cube")
    if computed and (_why_no_cube(result) or (result.data["split"] == "train").any()):
        raise ValueError("rows cannot be left to a cube that is not stored, or not all of it")
    stored = result
    if computed:
        away = _of_families(result.results, computed)
        stored = replace(result, results=result.results[~away])
    write_tables(stored, folder / "tables", csv=csv)
    here, why = _small(result, stored.results), _why_no_cube(result)
    text = _document(result, here, finding, computed, why_no_cube=why)
    (folder / AUDIT).write_text(text, encoding="utf-8")


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


def _places(frame: pd.DataFrame) -> dict[tuple[str, str], Any]:
    """Positions of the rows by metric and level, in the order in which these first appear."""
    found: dict[Any, Any] = frame.groupby(["metric", "by"], sort=False).indices
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def _small(result: AuditResult, stored: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of audit.json: of confirmatory metrics overall, by group and by class.

    `stored` are the results that are not left to the cube.
    """
    import numpy as np

    from fairweight.auditing.metrics import confirmatory

    # Those of every audit, and those that a policy names.
    metrics = {metric for metric, _ in confirmatory()}
    metrics |= {metric for metric, _ in result.provenance.options.get("confirmatory", ())}
    named = result.results["family"].dropna().unique().tolist()
    families = [name for name in named if name.startswith("confirmatory")]
    metrics |= {*result.results.loc[result.results["family"].isin(families), "metric"].unique()}
    # Of hundreds of thousands of rows only those that are written are copied.
    chosen = stored["metric"].isin(metrics)
    rows = np.concatenate([np.flatnonzero(chosen & (stored["by"] == by)) for by in HERE])
    limits: list[int] = []
    families_of_limits = _places(result.bounds).items()
    for by in HERE:
        for (metric, own), at in families_of_limits:
            # A gate needs all limits of a family or none of them.
            if own == by and metric in metrics and len(limits) + len(at) <= MOST_ROWS:
                limits += [*at]
    made = {
        "results": stored.take(np.sort(rows[:MOST_ROWS])),
        "bounds": without_repeated_levels(result.bounds.take(sorted(limits))),
    }
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
) -> str:
    """The text of audit.json; `here` are the rows that stand in it."""
    origin = asdict(result.provenance)
    request = origin.pop("request")

    rows, limits, rows_here, limits_here = (
        Counter({key: len(at) for key, at in _places(frame).items()})
        for frame in (result.results, result.bounds, here["results"], here["bounds"])
    )
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": result.provenance.version,
        "baseline": result.baseline,
        "variants": list(result.variants),
        "classes": list(result.classes),
        "outcome": None if result.outcome is None else result.outcome.to_json(),
        "largest_losses": result.largest_losses,
        "labelled": result.labelled,
        "only_task": result.only_task,
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
        "families": [
            {
                "metric": key[0],
                "by": key[1],
                "rows": rows[key],
                "held": COMPUTED if key in computed else STORED,
                "here": rows_here[key],
                "limits": limits[key],
                "limits_here": limits_here[key],
            }
            for key in rows
        ],
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
    explained = {name: plain_records(here[name]) for name in result.explanations if name in here}
    if explained:
        document["explanations"] = explained
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- reading -------------------------------------------------------------------------------------


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
    return _read(parsed(text), place, lone)


def from_json(text: str) -> AuditResult:
    """The audit that `to_json` wrote; an error names the first field that has another form."""
    return _read(parsed(text), None, False)


def _read(document: Mapping[str, Any], place: Path | None, lone: bool) -> AuditResult:
    """The audit of a document, with the tables beside it."""
    field = Fields(document, "")
    variants, tasks = field.texts("variants"), field.texts("tasks")
    baseline = field.text("baseline")
    if not variants or baseline in variants:
        raise other_form("variants", "should name the compressed models, without the baseline")
    reader = StoredTables(
        field, place, lone, {"variant": {baseline, *variants}, "task": set(tasks)}
    )
    frames = {name: reader.frame(name, field, TABLES[name].later) for name in AUDIT_TABLES}
    families = families_of(field)
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
        pairing=pairing_of(field),
        notes=field.texts("notes", several=True),
        provenance=provenance_of(field),
        variants_table=reader.variants(),
        explanations=reader.explanations(),
        cube=cube,
        outcome=outcome_of(field),
        largest_losses={
            name: float(loss)
            for name, loss in field.object("largest_losses", later=True).items()
            if type(loss) in (int, float)
        },
        only_task=field.text("only_task", empty=True, later=True),
        labelled=field.take("labelled", (bool, NoneType), "true or false", later=True) is not False,
        absent=frozenset(
            (one["metric"], one["by"])
            for one in families
            if reader.partial and (one["limits_here"] < one["limits"] or one["here"] < one["rows"])
        ),
        results=frames["results"],
        per_seed=frames["per_seed"],
        confusion=frames["confusion"],
        reliability=frames["reliability"],
        data=frames["data"],
        power=frames["power"],
        concentration=frames["concentration"],
        group_error=frames["group_error"],
        bounds=with_repeated_levels(frames["bounds"]),
        lead=frames["lead"],
        left_out=frames["left_out"],
    )
    away = {(one["metric"], one["by"]): one["rows"] for one in families if one["held"] == COMPUTED}
    return _completed(result, away) if away and not reader.partial else result


# Rows that are computed on request: the audit of the stored cube, of which some families are taken.


def _completed(result: AuditResult, away: Mapping[tuple[str, str], int]) -> AuditResult:
    """The audit with the rows that were left to its cube, behind those that were stored.

    The cube is audited with the stored options and random state.
    """
    import pandas as pd

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
        names_task=bool(result.tasks),
    )
    try:
        made = run(cube, request, variants_table=result.variants_table)
    except FairweightError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            "The rows that audit.json leaves to its cube cannot be computed from it: the two are "
            "not of one audit; make it again."
        ) from error
    rows = made.results[_of_families(made.results, away)]
    for (metric, by), number in away.items():
        found = int(_of_families(rows, [(metric, by)]).sum())
        if found != number:
            raise InputError(
                f"The cube of the audit gives {found:,} rows of {shown(metric, 60)} by {by}, and "
                f"audit.json says {number:,}: they are not of one audit; make it again."
            )
    return replace(result, results=pd.concat([result.results, rows], ignore_index=True))


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
