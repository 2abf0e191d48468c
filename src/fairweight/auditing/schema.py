"""Every table: its columns, their types and what they mean; and the status of a row.

`auditing/columns.py` lists them. Empty frames, the order and types of columns, the checks of what
is read, and docs/reference/results.md come from that list.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.columns import LISTED, Kind, Table
from fairweight.base.wording import missing, shown
from fairweight.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

# The status of a row: how far it may be leaned on.

OK, NOT_ESTIMABLE, SMALL_GROUP = "ok", "not_estimable", "small_group"
SUPPRESSED, BOUND, UNKNOWN = "suppressed", "bound", "cannot tell"


@dataclass(frozen=True)
class Status:
    """A kind and the reason behind it; the column `status` holds its text.

    >>> Status.of("small_group: n < 10"), str(Status("not_estimable", "no scores"))
    (Status(kind='small_group', reason='n < 10'), 'not_estimable: no scores')
    >>> Status.of(None).ok, Status.of("ok; one root alone").reason
    (True, 'one root alone')
    """

    kind: str
    reason: str = ""

    @classmethod
    def of(cls, cell: Any) -> Status:
        """The status that a cell holds; a cell that holds nothing is `ok`."""
        if missing(cell) or cell == OK:
            return cls(OK)
        kind, *reason = re.split("[:;] ", str(cell), maxsplit=1)
        return cls(kind, *reason)

    @property
    def ok(self) -> bool:
        return self.kind == OK

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def of_kind(cells: NDArray[Any], kind: str) -> NDArray[np.bool_]:
    """Which cells of a column of statuses are of a kind."""
    import numpy as np

    return np.array([str(cell).startswith(kind) for cell in cells.tolist()], dtype=bool)


# Tables and their columns.

TABLES: dict[str, Table] = {table.name: table for table in LISTED}
AUDIT_TABLES = tuple(table.name for table in LISTED if table.of == "audit")
EXPLANATIONS = tuple(table.name for table in LISTED if table.of == "explanation")
# What they are called where a column holds something else.
FORMS: dict[Kind, str] = {
    "text": "text",
    "number": "numbers",
    "whole": "whole numbers",
    "truth": "true or false",
    "mixed": "text or numbers",
}
LARGEST, LARGEST_WHOLE = 1e100, 2**63 - 1  # no number of an audit comes near
_LEVELS = frozenset(("overall", "class", "group", "intersection", "grouping", "group*class"))
# What a text column of an audit's own tables may hold; others may hold any text.
WORDS: dict[str, frozenset[str]] = {
    "by": _LEVELS,
    "scope": frozenset(("model", "method")),
    "quantity": frozenset(("shift", "excess", "value")),
    "split": frozenset(("test", "train")),
}


def column_names(table: str) -> tuple[str, ...]:
    """The columns of a table, in their order."""
    return TABLES[table].names


def frame(table: str, rows: Any = (), *, more: Iterable[str] = ()) -> pd.DataFrame:
    """Rows (dictionaries, or cells in order) or columns of values as a frame, with its types.

    >>> frame("group_error").dtypes["error"].name, len(frame("group_error").columns)
    ('float64', 7)
    """
    import pandas as pd

    kinds = TABLES[table].kinds
    names = [*kinds, *more]
    if isinstance(rows, Mapping):
        size = max((len(values) for values in rows.values()), default=0)
        columns = {name: rows.get(name, [None] * size) for name in names}
    else:
        held = [
            row if isinstance(row, Mapping) else dict(zip(names, row, strict=True)) for row in rows
        ]
        columns = {name: [row.get(name) for row in held] for name in names}
    made = {name: _array(columns[name], kinds.get(name, "mixed")) for name in names}
    return pd.DataFrame(made, copy=False)


def text(parts: Sequence[NDArray[np.object_]]) -> pa.Array:
    """Pieces of a column of text as one column, for `frame`.

    A piece that repeats one text (`np.broadcast_to`) is not read cell by cell, and a piece that
    stands in several places is read once.

    >>> import numpy as np
    >>> names = np.array(["a", None], dtype=object)
    >>> text([names, np.broadcast_to(np.array("b", dtype=object), 2), names]).to_pylist()
    ['a', None, 'b', 'b', 'a', None]
    """
    import pyarrow as pa

    kind = pa.large_string()
    made = {}
    for values in parts:
        if id(values) in made:
            continue
        if len(values) and values.strides == (0,):
            made[id(values)] = pa.repeat(pa.scalar(values[0], kind), len(values))
        else:
            made[id(values)] = pa.array(values, kind, from_pandas=True)
    return pa.concat_arrays([made[id(values)] for values in parts])


def typed(table: str | None, held: pd.DataFrame) -> pd.DataFrame:
    """The frame with every column of the table, each of its type; `None`: of no known table.

    Text is `str`, numbers are `float64`, whole numbers `Int64` (`float64` where some have a
    fraction), truth values `boolean`. Columns that the table does not name have the type of what
    they hold.
    """
    import pandas as pd

    kinds = {} if table is None or table not in TABLES else TABLES[table].kinds
    changed = {}
    for name, dtype in zip(held.columns, held.dtypes.array, strict=True):
        kind = kinds.get(str(name), "mixed")
        if str(dtype) != TYPES.get(kind):
            column = held[name]
            made = _typed(column, kind)
            if made is not column:
                changed[name] = made
    changed |= {
        name: _array([None] * len(held), kind)
        for name, kind in kinds.items()
        if name not in held.columns
    }
    if changed:
        held = held.assign(**changed)
    if not isinstance(held.index, pd.RangeIndex) or held.index.start or held.index.step != 1:
        held = held.reset_index(drop=True)
    return held


TYPES: dict[Kind, str] = {"text": "str", "number": "float64", "whole": "Int64", "truth": "boolean"}


def _array(values: Any, kind: Kind) -> Any:
    """Values as an array, or a column, of the type of their kind."""
    import numpy as np
    import pandas as pd

    if kind == "text":
        return pd.array(values, dtype=pd.StringDtype(na_value=np.nan))
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        known = ~np.isnan(values)
        if kind == "whole" and (values[known] == np.floor(values[known])).all():
            return pd.arrays.IntegerArray(np.where(known, values, 0.0).astype(np.int64), ~known)
        return pd.arrays.BooleanArray(values > 0, ~known) if kind == "truth" else values
    return _typed(pd.Series(values), kind)


def _typed(column: pd.Series, kind: Kind) -> pd.Series:
    """The column with the type of its kind; itself where it has it."""
    if kind == "mixed":
        kind = _own_kind(column)
        full = {"whole": "int64", "truth": "bool"} if not column.isna().any() else {}
        wanted: Any = full.get(kind, TYPES[kind])
    else:
        wanted = TYPES[kind]
    if str(column.dtype) == wanted:
        return column
    if wanted == "Int64":
        try:
            return column.astype("Int64")
        except (OverflowError, TypeError, ValueError):
            return column.astype("float64")  # a weighted count has a fraction
    made: pd.Series = column.astype(wanted)
    return made


def _own_kind(column: pd.Series) -> Kind:
    """What a column holds; mixtures, dates and lists count as text."""
    code = column.dtype.kind
    if code != "O" or str(column.dtype) == "str":
        found: dict[str, Kind] = {"b": "truth", "i": "whole", "u": "whole", "f": "number"}
        return found.get(code, "text")
    kinds = {type(value) for value in column if not missing(value)}
    if kinds and all(issubclass(one, bool) or one.__name__ == "bool" for one in kinds):
        return "truth"
    if kinds and all(issubclass(one, numbers.Integral) for one in kinds):
        return "whole"
    return "number" if kinds and all(issubclass(one, numbers.Real) for one in kinds) else "text"


def check(
    table: str, held: pd.DataFrame, known: Mapping[str, Iterable[str]], place: str | None = None
) -> None:
    """Raise where a typed frame holds what the table cannot, naming table, column and row.

    Parameters
    ----------
    known
        What the columns `variant` and `task` of an audit's own tables may hold.
    place
        How the table is called in the sentence.
    """
    import numpy as np

    place = place or table
    entry = TABLES.get(table)
    own = entry is not None and entry.of == "audit"
    required = {c.name for c in entry.columns if c.required} if own and entry else set()
    words: dict[str, Iterable[str]] = {**WORDS, **known} if own else {}
    for name in map(str, held.columns):
        column = held[name]
        if name in required:
            refuse(column.isna().to_numpy(dtype=bool), f"{place}.{name}", "is empty")
        if name in words:
            strange = (column.notna() & ~column.isin(list(words[name]))).to_numpy(dtype=bool)
            if strange.any():
                word = shown(column[strange].iloc[0], 60)
                refuse(strange, f"{place}.{name}", f"holds '{word}', which the audit does not have")
        if column.dtype.kind in "if":
            values = column.to_numpy(dtype=float, na_value=np.nan)
            with np.errstate(invalid="ignore"):
                beyond = np.isfinite(values) & (np.abs(values) > LARGEST)
                if own and entry is not None and entry.kinds.get(name) == "whole":
                    beyond |= values < 0
            if beyond.any():
                large = f"{values[beyond][0]:.3g}"
                refuse(beyond, f"{place}.{name}", f"holds {large}, which no audit has,")
    if table == "results" and {"n", "status"} <= set(held.columns):
        estimated = held["status"].isna() | (held["status"] == OK)
        uncounted = (estimated & held["n"].isna()).to_numpy(dtype=bool)
        refuse(uncounted, f"{place}.n", "is empty beside an estimate")


def refuse(rows: Sequence[bool] | Any, place: str, problem: str) -> None:
    """Raise an error that names the first of these rows; nothing where there is none."""
    import numpy as np

    where = np.flatnonzero(np.asarray(rows))
    if len(where):
        raise other_form(place, f"{problem} in row {where[0] + 1:,}")


REMEDY = "give the audit.json that fairweight wrote"


def other_form(name: str, problem: str) -> InputError:
    """The error for a field of a stored audit that has another form than it should."""
    return InputError(f"In the audit, '{shown(name, 80)}' {problem}; {REMEDY}.")
