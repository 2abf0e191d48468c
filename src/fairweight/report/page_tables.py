"""The tables of the page: cells as people read them, beside the value by which they are sorted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.report.members import members_of, worded
from fairweight.report.numbers import (
    NOTHING,
    count,
    is_share,
    missing,
    number,
    p_value,
    percent,
    points,
    real,
    shift_of,
    shown,
    size_in_points,
    text,
    value_interval,
    value_of,
)
from fairweight.report.rows import records

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

LIMIT = 200


@dataclass(frozen=True)
class Cell:
    """What is shown, what it is sorted by, and (for a dash) why there is nothing."""

    shown: str
    sort: float | str | None = None
    why: str | None = None
    strong: bool = False  # what makes the row stand in its table

    @property
    def numeric(self) -> bool:
        return not isinstance(self.sort, str)


@dataclass(frozen=True)
class PageTable:
    """A table of the page; `total` rows exist, the first of them are shown."""

    anchor: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    file: str  # where all rows are
    order: str = "with the largest n"

    @property
    def cut(self) -> str | None:
        """What the page says when it does not show every row."""
        if len(self.rows) >= self.total:
            return None
        where = f"all {count(self.total)} rows are in {self.file}"
        return f"The {count(len(self.rows))} rows {self.order} are shown; {where}."


def detail_tables(result: AuditResult) -> list[PageTable]:
    """All numbers, by level; only tables that have rows."""
    frame = result.results
    compares = (frame["by"] == "overall") & frame["baseline"].isna() & frame["shift"].isna()
    parts = (
        ("overall", "Overall", (frame["by"] == "overall") & ~compares),
        ("comparisons", "Comparisons of compressed and baseline", compares),
        ("by-group", "By group", frame["by"] == "group"),
        ("by-class", "By class", frame["by"] == "class"),
        ("by-group-and-class", "By group and class", frame["by"] == "group*class"),
        ("groupings", "Group columns as a whole", frame["by"] == "grouping"),
    )
    members = members_of(result)
    tables = [results_table(anchor, title, frame[keep], members) for anchor, title, keep in parts]
    if (frame["n_seeds_baseline"].fillna(1) > 1).any() or (frame["n_seeds_compressed"] > 1).any():
        tables.append(_members(result.per_seed))
    tables += [_plain(result, name, *how) for name, how in _PLAIN.items()]
    return [table for table in tables if table.total]


def name_cell(value: Any) -> Cell:
    """A name that came from a file."""
    return Cell(shown(value), "" if missing(value) else shown(value))


def finite(value: Any) -> float | None:
    """A number by which rows can be sorted."""
    found = real(value)
    return found if math.isfinite(found) else None


def largest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the largest n, in their own order, if there are too many."""
    if len(frame) <= LIMIT:
        return frame
    if "n" not in frame.columns:
        return frame.head(LIMIT)
    # Places, not labels: the labels of a frame need not be unique.
    order = frame["n"].astype("float64").fillna(-1.0).to_numpy().argsort(kind="stable")[::-1]
    return frame.iloc[sorted(order[:LIMIT])]


_Show = Callable[[dict[str, Any], str], Cell]


def _value(row: dict[str, Any], key: str) -> Cell:
    said = value_of(str(row["metric"]), real(row[key]), real(row.get("shift")))
    return Cell(said, finite(row[key]), _why(row, key))


def _compressed(row: dict[str, Any], key: str) -> Cell:
    """The compressed variant's value; a comparison has no shift, its interval belongs here."""
    metric, found = str(row["metric"]), real(row[key])
    low, high = real(row["ci_low"]), real(row["ci_high"])
    if missing(found) or not missing(row["shift"]) or (missing(low) and missing(high)):
        return _value(row, key)
    return Cell(value_interval(metric, found, low, high), finite(found))


def _why(row: dict[str, Any], key: str) -> str | None:
    status = text(row["status"]) or "ok"
    return status if missing(row[key]) and status != "ok" else None


def _span(low: str, high: str) -> _Show:
    def show(row: dict[str, Any], key: str) -> Cell:
        metric = str(row["metric"])
        said = shift_of(metric, real(row[key]), real(row[low]), real(row[high]))
        return Cell(said, finite(row[key]), _why(row, key))

    return show


def _limits(row: dict[str, Any], key: str) -> Cell:
    """Simultaneous limits without the shift, or excess, that stands beside them."""
    low, high = real(row[key]), real(row[key.replace("_low", "_high")])
    if missing(low) and missing(high):
        return Cell(NOTHING, None)
    said = shift_of(str(row["metric"]), low, low, high)
    return Cell(said[said.index("[") :], finite(high))


def _yes(row: dict[str, Any], key: str) -> Cell:
    """Whether something is shown; what is not shown is open."""
    said = NOTHING if missing(row[key]) else "yes" if row[key] else "open"
    return Cell(said, said)


def _share(row: dict[str, Any], key: str) -> Cell:
    value = real(row[key])
    return Cell(NOTHING if missing(value) else percent(value), finite(value))


def _p(row: dict[str, Any], key: str) -> Cell:
    return Cell(p_value(real(row[key]), bare=True), finite(row[key]))


def _shift_size(row: dict[str, Any], key: str) -> Cell:
    value = real(row[key])
    if missing(value):
        return Cell(NOTHING, None)
    said = size_in_points(value) if is_share(str(row["metric"])) else number(value)
    return Cell(said, finite(value))


def _text_cell(row: dict[str, Any], key: str) -> Cell:
    return name_cell(row[key])


def _count_cell(row: dict[str, Any], key: str) -> Cell:
    return Cell(count(row[key]), finite(row[key]))


# Column of the frame, heading, how to show it. Columns without a single value are left out.
_RESULTS: tuple[tuple[str, str, _Show], ...] = (
    ("variant", "variant", _text_cell),
    ("task", "task", _text_cell),
    ("scope", "scope", _text_cell),
    ("group", "group", _text_cell),
    ("level", "level", _text_cell),
    ("class", "class", _text_cell),
    ("metric", "metric", _text_cell),
    ("n", "n", _count_cell),
    ("n_clusters", "clusters", _count_cell),
    ("baseline", "baseline", _value),
    ("compressed", "compressed", _compressed),
    ("shift", "shift [interval]", _span("ci_low", "ci_high")),
    ("sim_low", "simultaneous limits", _limits),
    ("p_value", "p", _p),
    ("p_adjusted", "p, corrected", _p),
    ("loss_ruled_out", "loss that matters ruled out", _yes),
    ("excess_shift", "excess over the others", _span("excess_low", "excess_high")),
    ("excess_sim_low", "simultaneous limits of the excess", _limits),
    ("excess_p", "p of the excess", _p),
    ("excess_p_adjusted", "p of the excess, corrected", _p),
    ("churn", "churn", _share),
    ("debiased", "corrected for noise", _value),
    ("matched", "retraining with compression", _shift_size),
    ("noise_floor", "retraining alone, up to", _shift_size),
    ("p_retraining", "p against retraining", _p),
    ("status", "status", _text_cell),
)


def results_table(anchor: str, title: str, frame: pd.DataFrame, members: str) -> PageTable:
    columns = tuple((key, worded(heading, members), show) for key, heading, show in _RESULTS)
    if frame["scope"].nunique() < 2:
        columns = tuple(c for c in columns if c[0] != "scope")
    return _shown(anchor, title, frame, columns, "tables/results.csv")


def _shown(
    anchor: str,
    title: str,
    frame: pd.DataFrame,
    columns: tuple[tuple[str, str, _Show], ...],
    file: str,
) -> PageTable:
    kept = [c for c in columns if frame[c[0]].notna().any()]
    rows = tuple(tuple(show(row, key) for key, _, show in kept) for row in records(largest(frame)))
    headings = tuple(heading for _, heading, _ in kept)
    return PageTable(anchor, title, headings, rows, len(frame), file)


_MEMBERS: tuple[tuple[str, str, _Show], ...] = (
    ("variant", "variant", _text_cell),
    ("seed", "member", _text_cell),
    ("task", "task", _text_cell),
    ("group", "group", _text_cell),
    ("class", "class", _text_cell),
    ("metric", "metric", _text_cell),
    ("n", "n", _count_cell),
    ("value", "value", lambda row, key: _value({**row, "status": None}, key)),
)


def _members(frame: pd.DataFrame) -> PageTable:
    """What every single member of a population does."""
    return _shown("members", "Every member", frame, _MEMBERS, "tables/per_seed.csv")


# Frames without metrics of their own: which columns are shares of something.
_PLAIN: dict[str, tuple[str, frozenset[str]]] = {
    "concentration": (
        "Concentration of lost and gained answers",
        frozenset(
            ("share_examples", "share_lost", "share_gained", "share_lost_poisson")
        ),
    ),
    "group_error": ("Excess allowing for wrong group labels", frozenset()),
    "power": ("What could have been found", frozenset(("discordance",))),
    "data": ("Data", frozenset(("share",))),
}  # fmt: skip
# Sizes of losses, without a sign.
_LOSSES = frozenset(("min_detectable_shift", "reference_shift", "largest_loss"))
_POINTS = frozenset(("excess_shift", "corrected_low", "corrected_high"))


def _plain(result: AuditResult, name: str, title: str, shares: frozenset[str]) -> PageTable:
    frame: pd.DataFrame = getattr(result, name)
    kept = [str(c) for c in frame.columns if frame[c].notna().any()]

    def cell(column: str, value: Any) -> Cell:
        if isinstance(value, str) or missing(value):
            return name_cell(value)
        if column in shares:
            return Cell(percent(float(value)), float(value))
        if column in _LOSSES:
            return Cell(size_in_points(float(value)), abs(float(value)))
        if column in _POINTS:
            return Cell(points(float(value)), float(value))
        whole = column.startswith("n") or float(value).is_integer()
        return Cell(count(value) if whole else number(float(value)), finite(value))

    rows = tuple(
        tuple(cell(column, row[column]) for column in kept) for row in records(largest(frame))
    )
    headings = tuple(column.replace("_", " ") for column in kept)
    return PageTable(name, title, headings, rows, len(frame), f"tables/{name}.csv")
