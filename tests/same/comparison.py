"""Every number of some frames as one long table, and what differs between two such tables.

The stored tables are in `values/`, one file per audit, and any tool reads them:

    duckdb -c "SELECT * FROM 'tests/same/values/pair.parquet' WHERE column = 'shift'"
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Frames = Mapping[str, pd.DataFrame]

VALUES = Path(__file__).with_name("values")
RELATIVE = 1e-12
# Found by a search on numerical derivatives, which the last bits of another processor lead
# elsewhere: up to 2e-8 was measured with other kernels of numpy and OpenBLAS.
LOOSER = {"individuals": 1e-6}
# What rounding leaves of the difference of two equal numbers of order one, on another processor.
ROUNDING = 1e-15

# Columns that say which row it is, wherever they occur; all other columns are compared.
KEYS = (
    "split", "variant", "against", "seed", "task", "metric", "by", "kind", "quantity", "definition",
    "group", "class", "column", "part", "scope", "aggregation", "percentile", "first", "second",
    "example_id", "bin", "fit", "term", "property", "individual", "side", "slice", "source",
    "budget", "requirement", "criterion", "measure", "block", "row",
)  # fmt: skip
# The same names are compared in other frames.
MORE_KEYS: dict[str, tuple[str, ...]] = {
    "confusion": ("label", "prediction"),
    "cascade_curve": ("threshold",),
    "risk": ("score",),
    "preflight": ("score",),
}
PLACE = ["frame", "row", "column"]
CELL = [*PLACE, "number", "text"]


def cells(frames: Frames) -> pd.DataFrame:
    """One row per cell: frame, row (its key), column, and a number or a text (or neither)."""
    made: list[tuple[str, str, str, float, str | None]] = []
    for name, frame in frames.items():
        if not len(frame):  # nothing else would say that it was there
            made.append((name, "", "(no rows)", np.nan, ", ".join(map(str, frame.columns))))
        more = MORE_KEYS.get(name.rpartition("/")[2], ())
        keys = [key for key in (*KEYS, *more) if key in frame.columns]
        rows = _row_names(frame, keys)
        compared = {str(column): frame[column] for column in frame.columns.drop(keys)}
        for column, values in (compared or {"(row)": rows}).items():
            made += [
                (name, row, column, *_cell(value)) for row, value in zip(rows, values, strict=True)
            ]
    return pd.DataFrame(made, columns=CELL).astype(
        {"frame": "str", "row": "str", "column": "str", "number": float, "text": "str"}
    )


def _row_names(frame: pd.DataFrame, keys: list[str]) -> list[str]:
    """`int8, accuracy, group, sex=F`; further rows of the same name are numbered in their order."""
    columns = [[_cell(value) for value in frame[key]] for key in keys]
    names, seen = [], dict[str, int]()
    for parts in zip(*columns, strict=True) if keys else [()] * len(frame):
        said = [f"{number:.9g}" if text is None else text for number, text in parts]
        name = ", ".join("-" if part == "nan" else part for part in said)
        seen[name] = seen.get(name, 0) + 1
        names.append(name if keys and seen[name] == 1 else f"{name} #{seen[name]}".lstrip())
    return names


def _cell(value: Any) -> tuple[float, str | None]:
    """A number, or a text; NaN, None and NA are neither."""
    if isinstance(value, str):
        return np.nan, value
    if isinstance(value, bool | np.bool_):
        return np.nan, str(bool(value))
    if value is None or value is pd.NA or value is pd.NaT:
        return np.nan, None
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value), None
    return np.nan, str(value.tolist() if isinstance(value, np.ndarray) else value)


def flat(document: Any) -> pd.DataFrame:
    """A JSON document as a frame: `part` is a path (`members.0.threshold`), `value` what it holds.

    >>> flat({"kind": "cascade", "at": [0.5]}).to_dict("split")["data"]
    [['kind', 'cascade'], ['at.0', 0.5]]
    """
    return pd.DataFrame(list(_leaves(document, "")), columns=["part", "value"], dtype=object)


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(node, dict | list):
        yield path, node
        return
    for name, inner in node.items() if isinstance(node, dict) else enumerate(node):
        yield from _leaves(inner, f"{path}.{name}" if path else str(name))


def frames_in(folder: Path) -> dict[str, pd.DataFrame]:
    """Every table that lies in a folder: Parquet where there is one, else CSV."""
    made = {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}
    made |= {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
    return made


def within(name: str, frames: Frames) -> dict[str, pd.DataFrame]:
    """The frames under names that say where they belong."""
    return {f"{name}/{key}": frame for key, frame in frames.items()}


def differences(stored: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The cells that differ, those of `stored` first and in its order.

    `which` is "changed", "missing" (in the new ones) or "added".
    """
    both = stored.merge(
        new, on=PLACE, how="outer", suffixes=("_stored", "_new"), indicator="which", sort=False
    )
    order = pd.concat([stored, new])[PLACE].drop_duplicates(ignore_index=True).reset_index()
    both = both.merge(order, on=PLACE).sort_values("index", ignore_index=True)
    before, after = both["number_stored"].to_numpy(), both["number_new"].to_numpy()
    relative = both["frame"].str.rpartition("/")[2].map(LOOSER).fillna(RELATIVE).to_numpy()
    same_number = (before == after) | (np.isnan(before) & np.isnan(after))
    finite = np.isfinite(before) & np.isfinite(after)
    apart = np.abs(before[finite] - after[finite])
    larger = np.maximum(np.abs(before[finite]), np.abs(after[finite]))
    same_number[finite] = apart <= np.maximum(ROUNDING, relative[finite] * larger)
    same_text = both["text_stored"].fillna("\0") == both["text_new"].fillna("\0")
    both["which"] = both["which"].map(
        {"both": "changed", "left_only": "missing", "right_only": "added"}
    )
    wrong = (both["which"] != "changed") | ~same_number | ~same_text
    return both[wrong].drop(columns="index").reset_index(drop=True)


def first_of(found: pd.DataFrame) -> str:
    """The first difference in a line."""
    at = found.iloc[0]
    row = f", row '{at['row']}'" if at["row"] else ""
    place = f"{at['frame']}{row}, column {at['column']}"
    before = "not stored" if at["which"] == "added" else f"stored {_shown(at, 'stored')}"
    after = "missing" if at["which"] == "missing" else _shown(at, "new")
    return f"{place}: {before}, now {after}"


def _shown(at: pd.Series, side: str) -> str:
    text, number = at[f"text_{side}"], at[f"number_{side}"]
    return f"'{text}'" if isinstance(text, str) else str(number)


def by_column(found: Iterable[pd.DataFrame]) -> list[str]:
    """How many cells of each column differ, a line per frame: `results, changed: shift 3`."""
    table = pd.concat(list(found))
    frames = table["frame"].str.rpartition("/")[2]
    return [
        f"{frame}, {which}: "
        + ", ".join(f"{column} {n:,}" for column, n in part.value_counts(sort=False).items())
        for (frame, which), part in table.groupby([frames, "which"], sort=False)["column"]
    ]


def stored_file(name: str) -> Path:
    """Where the values of an audit are."""
    return VALUES / f"{name}.parquet"


def read(name: str) -> pd.DataFrame | None:
    """The stored values of an audit; None where there are none."""
    path = stored_file(name)
    return pd.read_parquet(path) if path.is_file() else None


def store(name: str, new: pd.DataFrame) -> None:
    """Write the values of an audit."""
    VALUES.mkdir(exist_ok=True)
    new.to_parquet(stored_file(name), index=False, compression="zstd", compression_level=19)


@dataclass(frozen=True)
class Made:
    """What became of one audit: its values and those that differ, or why it could not be made."""

    name: str
    values: pd.DataFrame | None = None
    differing: pd.DataFrame | None = None
    error: str = ""


def made_again(name: str, function: Callable[[Path], Frames]) -> Made:
    """Make one audit in an empty folder, and compare it with what is stored."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            new = cells(function(Path(folder)))
        stored = read(name)
        return Made(name, new, differences(new[:0] if stored is None else stored, new))
    except Exception:
        return Made(name, error=traceback.format_exc())
