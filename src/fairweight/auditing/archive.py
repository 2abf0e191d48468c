"""The audit for programs: JSON that reads back into the same audit; its tables as files."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import AuditResult, Provenance
from fairweight.auditing.schema import BOOLEAN, COLUMNS, FRAMES, INTEGER, LATER, MIXED, TEXT
from fairweight.auditing.schema import EXPLANATION_TEXT as TEXT_OF_EXPLANATIONS
from fairweight.base.wording import missing, shown
from fairweight.errors import InputError
from fairweight.tables.spec import TableSpec

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from fairweight.auditing.result import AuditResult


# The tables of an audit as CSV and Parquet files.

_VIEWS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "overall": lambda f: f["by"] == "overall",
    "by_class": lambda f: f["by"] == "class",
    "by_group": lambda f: f["by"].isin(["group", "group*class"]),
    "groupings": lambda f: f["by"] == "grouping",
}
TABLES = (*FRAMES, *_VIEWS)  # of every audit


def write_tables(result: AuditResult, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Every frame as CSV; results, bounds and explanations as Parquet; the paths written.

    Frames without rows are written too, so that a script finds the same files after every audit.
    Names are exact in Parquet and JSON. In CSV, text that a spreadsheet would run as a formula
    (`=…`, `+…`, `-…`, `@…`, but not a plain number such as `-1`) gets a leading apostrophe.
    """
    import duckdb

    folder = Path(directory)
    frames = {name: getattr(result, name) for name in FRAMES}
    frames |= {name: result.results[keep(result.results)] for name, keep in _VIEWS.items()}
    if result.variants_table is not None:
        frames["variants"] = result.variants_table
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        written = [
            _copy(connection, _guarded(frame), folder / f"{name}.csv", "FORMAT csv, HEADER")
            for name, frame in frames.items()
        ]
        written += [
            _copy(connection, frames[name], folder / f"{name}.parquet", "FORMAT parquet")
            for name in ("results", "bounds")
        ]
        written += [
            _copy(connection, frame, folder / f"{name}.parquet", "FORMAT parquet")
            for name, frame in result.explanations.items()
            if len(frame.columns)
        ]
    return tuple(written)


def write_frames(
    frames: Mapping[str, pd.DataFrame], directory: str | os.PathLike[str]
) -> tuple[Path, ...]:
    """Every frame as CSV and as Parquet under its name; the paths written."""
    import duckdb

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            csv, parquet = folder / f"{name}.csv", folder / f"{name}.parquet"
            written.append(_copy(connection, _guarded(frame), csv, "FORMAT csv, HEADER"))
            written.append(_copy(connection, frame, parquet, "FORMAT parquet"))
    return tuple(written)


def _copy(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, path: Path, how: str) -> Path:
    """Write a frame by DuckDB, which is fast and writes numbers so that they read back exactly."""
    import duckdb

    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        connection.register("frame", _typed(frame))
        columns = ", ".join(_column(str(name), str(frame[name].dtype)) for name in frame.columns)
        connection.execute(f"COPY (SELECT {columns} FROM frame) TO ? ({how})", [str(temporary)])
        os.replace(temporary, path)
    except duckdb.IOException as error:
        # DuckDB says only in words what the system answered; whoever writes the folder needs both.
        code = errno.ENOSPC if "No space left" in str(error) else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return path


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of text typed as text: DuckDB would have to guess the type of objects."""
    return frame.astype({name: "str" for name in frame.columns if frame[name].dtype == object})


def _column(name: str, dtype: str) -> str:
    """A column in SQL; NaN is null."""
    quoted = '"' + name.replace('"', '""') + '"'
    if dtype.startswith("float"):
        return f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END AS {quoted}"
    return quoted


_FORMULA = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")  # the last four are full width
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell_text(text: str) -> str:
    """Text that a spreadsheet shows and does not run; different names stay different.

    >>> [cell_text(t) for t in ("=1+1", "-1", "+1.5e3", "-a", "'=x", "a=b")]
    ["'=1+1", '-1', '+1.5e3', "'-a", "''=x", 'a=b']
    """
    if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text):
        return "'" + text
    return text


def _guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every text cell safe for a spreadsheet."""
    changed = {}
    for name in frame.columns:
        if frame[name].dtype.kind not in "OUSTV":
            continue
        cells = {v: cell_text(v) for v in frame[name].unique() if isinstance(v, str)}
        if any(before != after for before, after in cells.items()):
            changed[name] = frame[name].astype(object).map(lambda v, c=cells: c.get(v, v))
    return frame.assign(**changed)


__all__ = ["FRAMES", "SCHEMA", "from_json", "plain_records", "to_json", "write_tables"]

SCHEMA = 1


def to_json(result: AuditResult) -> str:
    """The whole audit as JSON; what is undefined (or infinite) is null, integers stay integers."""
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
        "provenance": asdict(result.provenance),
    }
    document = _plain(document)
    for name in FRAMES:
        document[name] = plain_records(getattr(result, name))
    table = result.variants_table
    document["variants_table"] = None if table is None else plain_records(table)
    if result.explanations:
        document["explanations"] = {
            name: plain_records(frame) for name, frame in result.explanations.items()
        }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries of plain values."""
    names = [str(name) for name in frame.columns]
    columns = [_cells(frame[name]) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cells(column: pd.Series) -> list[Any]:
    """The values of a column as JSON has them."""
    if column.dtype.kind == "f":  # most columns of a large audit: masked in one step
        import numpy as np

        values = column.to_numpy(dtype=float)
        plain = values.astype(object)
        plain[~np.isfinite(values)] = None
        return plain.tolist()
    # Text repeats: each distinct value is looked at once.
    known: dict[Any, Any] = {}
    cells = []
    for value in column.tolist():
        if isinstance(value, str):
            cells.append(value)
            continue
        try:
            key = (type(value), value)  # 1, 1.0 and True are equal, and not the same in JSON
            if key not in known:
                known[key] = _cell(value)
            cells.append(known[key])
        except TypeError:  # a list or another value that cannot be a key
            cells.append(_cell(value))
    return cells


def _cell(value: Any) -> Any:
    """One value of a frame as JSON has it.

    >>> [_cell(v) for v in (1, 2.0, 0.5, float("nan"), float("inf"), "x", None)]
    [1, 2.0, 0.5, None, None, 'x', None]
    """
    if isinstance(value, str | int):  # bool is an int
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if missing(value) else _plain(value)


def _plain(value: Any) -> Any:
    """Containers and foreign scalars as JSON has them; a path or a date becomes its text."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        inner = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(item) for item in inner]
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return plain_records(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return _plain(value.tolist())
    return str(value)


# --- reading: every field is checked here, so that nobody after it meets another form ----------

REMEDY = "give the audit.json that fairweight wrote"
LARGEST, LARGEST_WHOLE = 1e100, 2**63 - 1  # no number of an audit comes near
_PLAIN = (str, bool, int, float)
_TABLE_NAME = re.compile("[a-z][a-z0-9_]*")
_LEVELS = frozenset(("overall", "class", "group", "intersection", "grouping", "group*class"))
# What a text column may hold; columns that are not here may hold any text.
_WORDS: dict[str, frozenset[str]] = {
    "by": _LEVELS,
    "scope": frozenset(("model", "method")),
    "quantity": frozenset(("shift", "excess", "value")),
    "split": frozenset(("test", "train")),
}
_NEVER_EMPTY = frozenset(("variant", "metric", "by", "quantity", "split", "part", "label", "seed"))
_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "alpha": float, "margin": float, "group_error": (int, float), "reference_shift": float,
    "n_boot": int, "min_group": int, "random_state": int, "exact": bool,
    "members": str, "correction": str, "zero_baseline": str, "confirmatory": list,
}  # fmt: skip


def from_json(text: str) -> AuditResult:
    """The audit that `to_json` wrote; an error names the first field that has another form."""
    document = _document(text)
    field = _Fields(document, "")
    variants, tasks = field.texts("variants"), field.texts("tasks")
    baseline = field.text("baseline")
    if not variants or baseline in variants:
        raise _other_form("variants", "should name the compressed models, without the baseline")
    known = {"variant": {baseline, *variants}, "task": set(tasks)}
    tables = {
        name: _frame(name, field.rows(name, later=name in LATER), columns, known)
        for name, columns in FRAMES.items()
    }
    return AuditResult(
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
        variants_table=_variants_table(field),
        explanations=_explanations(field),
        **tables,
    )


def _other_form(name: str, problem: str) -> InputError:
    return InputError(f"In the audit, '{shown(name, 80)}' {problem}; {REMEDY}.")


def _document(text: str) -> dict[str, Any]:
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
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(document, dict) or schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"The audit has the schema {shown(repr(schema), 60)}, this version reads schema "
            f"{SCHEMA}; make the audit again, or read it with the version of fairweight that wrote "
            "it."
        )
    return document


@dataclass(frozen=True)
class _Fields:
    """The fields of an object; each is given in the form that was asked for."""

    held: Mapping[str, Any]
    inside: str  # "provenance." for the fields of that object

    def take(self, name: str, kind: type | tuple[type, ...], form: str, later: bool = False) -> Any:
        if name not in self.held:
            if later:
                return None
            raise _other_form(self.inside + name, "is missing")
        value = self.held[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float)):
            raise _other_form(self.inside + name, f"should be {form}")
        return value

    def text(self, name: str, *, empty: bool = False, later: bool = False) -> Any:
        kinds, form = ((str, NoneType), "text or null") if empty else (str, "text")
        return self.take(name, kinds, form, later)

    def texts(self, name: str, *, several: bool = False) -> tuple[str, ...]:
        """A list of texts; of names, each once, unless `several` may be alike."""
        found = self.take(name, list, "a list of texts")
        if not all(isinstance(item, str) for item in found):
            raise _other_form(self.inside + name, "should be a list of texts")
        if not several and len(set(found)) < len(found):
            raise _other_form(self.inside + name, "should hold every name once")
        return tuple(found)

    def whole(self, name: str) -> int:
        found: int = self.take(name, int, "a whole number")
        if not 0 <= found <= LARGEST_WHOLE:
            raise _other_form(self.inside + name, "should be a whole number of at least 0")
        return found

    def object(self, name: str, later: bool = False) -> Mapping[str, Any]:
        return self.take(name, dict, "an object", later) or {}

    def rows(self, name: str, later: bool = False) -> list[dict[str, Any]]:
        found = self.take(name, list, "a list of rows", later) or []
        if not all(isinstance(row, dict) for row in found):
            raise _other_form(self.inside + name, "should be a list of rows")
        return found


def _pairing(field: _Fields) -> dict[str, str]:
    found = dict(field.object("pairing"))
    if not all(isinstance(kind, str) for kind in found.values()):
        raise _other_form("pairing", "should name a way of pairing for every variant")
    return found


def _provenance(field: _Fields) -> Provenance:
    origin = _Fields(field.object("provenance"), "provenance.")
    options = _Fields(origin.object("options"), "provenance.options.")
    for name, kind in _OPTIONS.items():
        options.take(name, kind, f"of the kind {getattr(kind, '__name__', 'number')}", later=True)
    for name in ("alpha", "margin"):
        if not 0 < options.held.get(name, 0.5) < 1:
            raise _other_form(f"provenance.options.{name}", "should lie between 0 and 1")
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
        request=_request(origin),
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


def _request(origin: _Fields) -> dict[str, Any]:
    held = origin.object("request", later=True)
    command = origin.text("command", empty=True)
    tables = None if "request" in origin.held else tables_of(None, command)
    if tables is None:
        return dict(held)
    words = shlex.split(command)
    out = {"out": words[words.index("--out") + 1]} if "--out" in words[:-1] else {}
    return {"tables": tables.to_json(), **out}


def _variants_table(field: _Fields) -> pd.DataFrame | None:
    import pandas as pd

    if field.take("variants_table", (list, NoneType), "a list of rows or null") is None:
        return None
    rows = field.rows("variants_table")
    cells = _cells_of("variants_table", rows, list(rows[0]) if rows else [])
    if rows and not all(isinstance(name, str) for name in cells.get("variant", [None])):
        raise _other_form("variants_table.variant", "should be text in every row")
    return pd.DataFrame(rows)


def _cells_of(
    table: str, rows: list[dict[str, Any]], columns: Sequence[str], mixed: Collection[str] = ()
) -> dict[str, list[Any]]:
    """The columns of rows that all have the same ones, each of one kind (or null)."""
    if any(row.keys() != rows[0].keys() for row in rows):
        raise _other_form(table, "should have the same columns in every row")
    cells = {column: [row.get(column) for row in rows] for column in columns}
    for column, values in cells.items():
        kinds = {type(value) for value in values} - {NoneType}
        if not kinds <= {*_PLAIN} or (
            column not in mixed and len(kinds) > 1 and kinds != {int, float}
        ):
            raise _other_form(f"{table}.{column}", "should be texts, or numbers, or null")
        if kinds & {int, float}:
            _check_size(f"{table}.{column}", values)
    return cells


def _check_size(name: str, values: list[Any], least: float = -LARGEST) -> None:
    for value in values:
        if isinstance(value, int | float):
            largest = LARGEST_WHOLE if isinstance(value, int) else LARGEST
            if not max(least, -largest) <= value <= largest:
                raise _other_form(name, f"holds {value:.3g}, which no audit has")


def _frame(
    table: str,
    rows: list[dict[str, Any]],
    columns: tuple[str, ...],
    known: Mapping[str, set[str]],
) -> pd.DataFrame:
    """Rows as a frame with the types of the contract."""
    import pandas as pd

    # Columns that an earlier version did not have are empty.
    extra = [name for name in rows[0] if name not in columns] if rows else []
    names = [*columns, *extra]
    made = {}
    for name, values in _cells_of(table, rows, names).items():
        _check_column(f"{table}.{name}", name, values, known)
        made[name] = pd.Series(values, dtype=_dtype(name, values))
    return pd.DataFrame(made, columns=names)


def _check_column(place: str, name: str, values: list[Any], known: Mapping[str, set[str]]) -> None:
    """Raise where a column of the contract holds what it cannot."""
    kinds = {type(value) for value in values}
    if name in _NEVER_EMPTY and NoneType in kinds:
        raise _other_form(place, "is empty in some row")
    kinds.discard(NoneType)
    text = name in TEXT
    allowed: set[type] = {str} if text else {bool} if name in BOOLEAN else {int, float}
    if not kinds <= allowed:
        form = "text" if text else "true or false" if name in BOOLEAN else "numbers"
        raise _other_form(place, f"should be {form} or null")
    words = known.get(name) or _WORDS.get(name)
    if name == "task" and not known["task"]:
        words = set()
    if words is not None and (strange := set(values) - {None} - words):
        raise _other_form(
            place, f"holds '{shown(min(strange), 60)}', which the audit does not have"
        )
    if name in INTEGER:
        _check_size(place, values, least=0)


def _explanations(field: _Fields) -> dict[str, pd.DataFrame]:
    """Tables of exemplars and explanations; columns have the types of what was written."""
    import pandas as pd

    tables = _Fields(field.object("explanations", later=True), "explanations.")
    made = {}
    for name in tables.held:
        if not _TABLE_NAME.fullmatch(name):  # it becomes the name of a file
            raise InputError(f"The audit has an explanation called '{shown(name, 60)}'; {REMEDY}.")
        rows = tables.rows(name)
        declared = COLUMNS.get(name, ())
        # Columns that an earlier version did not have are empty.
        columns = list(dict.fromkeys((*(rows[0] if rows else ()), *declared)))
        cells = _cells_of(f"explanations.{name}", rows, columns, mixed=MIXED)
        for column in declared:
            kinds = {type(value) for value in cells[column]} - {NoneType}
            text = column in TEXT_OF_EXPLANATIONS
            if column not in MIXED and kinds and (str in kinds) != text:
                raise _other_form(
                    f"explanations.{name}.{column}",
                    f"should be {'text' if text else 'numbers'} or null",
                )
        made[name] = pd.DataFrame(
            {column: pd.Series(held, dtype=_written(held)) for column, held in cells.items()},
            columns=columns,
        )
    return made


def _written(values: list[Any]) -> str:
    """The type of a column by what is in it.

    >>> _written(["a", None]), _written([1, None]), _written([1.5, None]), _written([True, False])
    ('object', 'Int64', 'float64', 'bool')
    """
    kinds = {type(value) for value in values if value is not None}
    whole = None not in values
    if kinds == {bool}:
        return "bool" if whole else "boolean"
    if kinds == {int}:
        return "int64" if whole else "Int64"
    return "float64" if kinds and kinds <= {int, float} else "object"


def _dtype(name: str, values: list[Any]) -> str:
    """Text by name, numbers by what was written: a weighted count has a fraction.

    >>> _dtype("n", [1, None]), _dtype("n", [1.5]), _dtype("count", [2]), _dtype("shift", [None])
    ('Int64', 'float64', 'int64', 'float64')
    """
    if name in TEXT:
        return "str"
    if name in BOOLEAN:
        return "boolean"
    whole = not any(isinstance(value, float) for value in values)
    if whole and name in INTEGER:
        return "Int64"
    return "int64" if whole and values and None not in values else "float64"
