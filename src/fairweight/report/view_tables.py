"""The tables of the page: cells as people read them, beside the value by which they are sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from fairweight.auditing.result import Scope, at_task, records, select
from fairweight.base.wording import NOTHING, missing, real, shown, text
from fairweight.report.finding import Blind, Finding, Payer, Small, Verdict
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import (
    count,
    is_share,
    number,
    p_value,
    percent,
    points,
    points_interval,
    shift_of,
    size_in_points,
    value_interval,
    value_of,
)
from fairweight.report.sentences import SIDES

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


# Tables of the finding: who loses, who loses more than the rest, who has too few examples.

RESULTS = "tables/results.csv"


def payer_table(finding: Finding, what: Literal["loses", "pays more"]) -> PageTable | None:
    """Who loses, or loses more than the rest, in every scope in which it can be told.

    By the limits of their family, not by those of the lead: more may stand here than the lead
    names. Whoever does so in one scope stands here with the numbers of both; those that say it
    are strong.
    """
    sides = [_Side(verdict, what, finding.members.kind) for verdict in finding.families]
    listed = {payer.key: payer for side in reversed(sides) for payer in side.told}
    order = dict.fromkeys(payer.key for side in sides for payer in side.told)
    payers = [listed[key] for key in order]
    if not payers:
        return None
    tasks = any(payer.task is not None for payer in payers)
    # The noise floor is one of shifts; beside an excess it would be read as one of excesses.
    floors = what == "loses" and any(not missing(p.context.noise_floor) for p in payers)
    rows = [
        (
            _who(payer),
            *([name_cell(payer.task)] if tasks else []),
            Cell(payer.metric, payer.metric),
            Cell(count(payer.n), payer.n),
            Cell(_before_after(payer), finite(payer.compressed)),
            Cell(NOTHING if missing(payer.churn) else percent(payer.churn), finite(payer.churn)),
            *(cell for side in sides for cell in side.cells(payer)),
            *([_floor_of_payer(payer)] if floors else []),
        )
        for payer in payers[:LIMIT]
    ]
    limits = "simultaneous limits"
    quantity = "excess over the rest in points" if what == "pays more" else "shift in points"
    several = len(sides) > 1
    headings = (
        "who",
        *(["task"] if tasks else []),
        "metric",
        "n",
        "baseline → compressed",
        "churn",
        *(
            heading
            for side in sides
            for heading in (
                f"{quantity}{', ' + side.name if several else ''} [{limits}]",
                f"p{', ' + side.name if several else ''}",
            )
        ),
        *([worded("retraining alone, up to", finding.members.kind)] if floors else []),
    )
    return PageTable(
        "", what, headings, tuple(rows), len(payers), RESULTS, "with the largest shift"
    )


class _Side:
    """The rows of one scope, found by whom they speak of."""

    def __init__(self, verdict: Verdict, what: Literal["loses", "pays more"], members: str) -> None:
        self.name = worded(SIDES[verdict.scope], members).lower()
        self.told = verdict.loses if what == "loses" else verdict.pays_more
        every = verdict.shifts if what == "loses" else verdict.excesses
        self._rows = {payer.key: payer for payer in every}
        self._strong = {payer.key for payer in self.told}

    def cells(self, payer: Payer) -> tuple[Cell, Cell]:
        own = self._rows.get(payer.key)
        if own is None:
            why = "cannot be estimated in this scope"
            return Cell(NOTHING, None, why), Cell(NOTHING, None, why)
        strong = payer.key in self._strong
        said = points_interval(own.shift, own.low, own.high).replace(" points", "")
        p = Cell(p_value(own.p, bare=True), finite(own.p))
        return Cell(said, finite(own.shift), strong=strong), p


def _who(item: Payer | Blind | Small) -> Cell:
    return name_cell("class " + item.name if item.kind == "class" else item.name)


def _before_after(payer: Payer) -> str:
    return f"{percent(payer.baseline).removesuffix(' %')} → {percent(payer.compressed)}"


def _floor_of_payer(payer: Payer) -> Cell:
    floor = payer.context.noise_floor
    return Cell(NOTHING if missing(floor) else size_in_points(floor), finite(floor))


def blind_table(blind: Sequence[Blind]) -> PageTable | None:
    """Who has too few examples to find a loss of the size that matters."""
    if not blind:
        return None
    tasks = any(b.task is not None for b in blind)
    rows = [
        (
            _who(b),
            *([name_cell(b.task)] if tasks else []),
            Cell(count(b.n), b.n),
            Cell(
                NOTHING if missing(b.detectable) else size_in_points(b.detectable),
                finite(b.detectable),
                "no loss would be found reliably at this n" if missing(b.detectable) else None,
            ),
            Cell(count(b.n_needed), finite(b.n_needed)),
        )
        for b in blind[:LIMIT]
    ]
    reference = f"n needed for {100 * blind[0].reference:g} points"
    headings = (
        "who",
        *(["task"] if tasks else []),
        "n",
        "least loss found with 80 % power",
        reference,
    )
    title, order = "too few examples", "with the smallest n"
    return PageTable("", title, headings, tuple(rows), len(blind), "tables/power.csv", order)


def small_table(small: Sequence[Small]) -> PageTable | None:
    """Classes and groups that were not tested."""
    if not small:
        return None
    rows = [
        (_who(s), Cell(count(s.n), s.n), Cell(shown(s.reason), shown(s.reason)))
        for s in small[:LIMIT]
    ]
    headings = ("who", "n", "why")
    title, order = "not tested", "that come first"
    return PageTable("", title, headings, tuple(rows), len(small), RESULTS, order)


# The dense and the compressed numbers side by side: two short tables per variant.

# What a reader looks for first; every other number is in the tables at the end.
_OVERALL = (
    "accuracy", "balanced_accuracy", "recall", "precision", "fpr", "fnr", "kappa", "auc",
    "ece_top_label", "calibration_gap", "calibration_error_sq", "class_gap",
)  # fmt: skip
_GROUPING = ("worst_group", "group_gap")


def before_after(result: AuditResult, finding: Finding) -> PageTable | None:
    """Headline metrics of baseline and variant with their shift in every scope."""
    sides = [verdict.scope for verdict in finding.families]
    shifts = {side: _shifts(result, finding.variant, side) for side in sides}
    rows = _rows(result, finding.variant, "model")
    if not rows:
        return None
    groups = any(not missing(row["group"]) for row in rows)
    floors = any(not missing(row["noise_floor"]) for row in rows)
    several = len(sides) > 1
    members = finding.members.kind
    names = [worded(SIDES[side], members).lower() for side in sides]
    headings = (
        "metric",
        *(["of"] if groups else []),
        shown(result.baseline),
        shown(finding.variant),
        *(f"shift{', ' + name if several else ''} [interval]" for name in names),
        *([worded("retraining alone, up to", members)] if floors else []),
    )
    cells = tuple(
        (
            name_cell(row["metric"]),
            *([name_cell(row["group"])] if groups else []),
            _value_before_after(row, "baseline"),
            _value_before_after(row, "compressed"),
            *(shifts[side].get(_key(row), Cell(NOTHING)) for side in sides),
            *([_floor_of_row(row)] if floors else []),
        )
        for row in rows
    )
    return PageTable("", "before and after", headings, cells, len(cells), "tables/results.csv")


def calibration(result: AuditResult, finding: Finding) -> PageTable | None:
    """Calibration error beside that of a calibrated model, and the gap, by group."""
    from fairweight.auditing.compare.reliability import if_calibrated

    expected = if_calibrated(result.reliability)
    baseline, variant = result.baseline, finding.variant
    cells: list[tuple[Cell, ...]] = []
    for definition, by in product(("ece", "ece_top_label"), ("overall", "group")):
        if cells and by == "overall":
            break  # binary labels: the probability of the positive class says it all
        gaps = {
            (text(row["task"]), text(row["group"])): row
            for row in records(select(result, variant, "calibration_gap", by))
        }
        for row in records(select(result, variant, definition, by)):
            key = text(row["task"]), text(row["group"])
            names = [(side, key[0], definition, key[1]) for side in (baseline, variant)]
            if missing(row["baseline"]) or not all(name in expected for name in names):
                continue
            gap = gaps.get(key, {})
            shift, low, high = (real(gap.get(name)) for name in ("shift", "ci_low", "ci_high"))
            status = text(gap.get("status"))
            cells.append(
                (
                    *([name_cell(key[0])] if result.tasks else []),
                    name_cell(key[1] or "everyone"),
                    Cell(count(row["n"]), finite(row["n"])),
                    *(
                        cell
                        for side, name in zip(("baseline", "compressed"), names, strict=True)
                        for cell in (_value_before_after(row, side), _percent(expected[name]))
                    ),
                    *(_percent(real(gap.get(side))) for side in ("baseline", "compressed")),
                    Cell(
                        shift_of("calibration_gap", shift, low, high),
                        finite(shift),
                        status if missing(low) and status != "ok" else None,
                    ),
                )
            )
    if not cells:
        return None
    headings = (
        *(["task"] if result.tasks else []),
        "of",
        "n",
        *(
            heading
            for side in (shown(baseline), shown(variant))
            for heading in (f"ECE, {side}", "if calibrated")
        ),
        f"gap, {shown(baseline)}",
        f"gap, {shown(variant)}",
        "shift of the gap [interval]",
    )
    return PageTable("", "calibration", headings, tuple(cells), len(cells), "tables/results.csv")


def _percent(value: float) -> Cell:
    return Cell(value_of("calibration_gap", value), finite(value))


def _rows(result: AuditResult, variant: str, scope: Scope) -> list[dict[str, Any]]:
    import fairweight.auditing.metrics as registered

    found: list[dict[str, Any]] = []
    more = tuple(entry.name for entry in registered.metrics() if entry.headline)
    for metrics, by in (((*_OVERALL, *more), "overall"), ((*_GROUPING, *more), "grouping")):
        rows = at_task(select(result, variant, metrics, by, scope), result, None)
        known = records(rows[rows["baseline"].notna()])
        found += sorted(known, key=lambda row: metrics.index(row["metric"]))
    return found


def _key(row: dict[str, Any]) -> tuple[str, str | None]:
    return str(row["metric"]), text(row["group"])


def _shifts(result: AuditResult, variant: str, scope: Scope) -> dict[Any, Cell]:
    found = {}
    for row in _rows(result, variant, scope):
        shift, low, high = (real(row[name]) for name in ("shift", "ci_low", "ci_high"))
        status = text(row["status"])
        why = status if missing(low) and status != "ok" else None
        said = shift_of(str(row["metric"]), shift, low, high)
        found[_key(row)] = Cell(said, finite(shift), why)
    return found


def _value_before_after(row: dict[str, Any], key: str) -> Cell:
    said = value_of(str(row["metric"]), real(row[key]), real(row["shift"]))
    return Cell(said, finite(row[key]))


def _floor_of_row(row: dict[str, Any]) -> Cell:
    floor = real(row["noise_floor"])
    if missing(floor):
        return Cell(NOTHING)
    said = size_in_points(floor) if is_share(str(row["metric"])) else number(floor)
    return Cell(said, finite(floor))
