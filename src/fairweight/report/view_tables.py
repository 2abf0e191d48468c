"""Tables as every output has them: cells as people read them, with the value behind each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairweight.auditing.metrics import metrics
from fairweight.auditing.metrics.outcomes import OUTCOMES
from fairweight.auditing.result import Scope, at_task, records, select
from fairweight.auditing.schema import Status
from fairweight.base.wording import NOTHING, missing, real, shown, text
from fairweight.report.finding import Blind, Change, Finding, Small
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import (
    count,
    is_share,
    level,
    loss_that_matters,
    number,
    p_value,
    percent,
    points,
    points_interval,
    shift_of,
    size_in_points,
    unit,
    value_interval,
    value_of,
)
from fairweight.report.sentences import MOST_COLUMNS, NAME, SIDES, name_of

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

LIMIT = 200
RESULTS = "tables/results.parquet"
IN_FAMILY = (
    "Limits and p-values hold for all classes, or all groups, of this variant at once; the "
    "finding above holds for everything at once and may name fewer."
)
CHURN = "Churn: the share of predictions that became wrong or right."


@dataclass(frozen=True)
class Cell:
    """What is read, the value behind it (none for a dash, and `why`), and where it leads."""

    shown: str
    value: float | str | None = None
    why: str | None = None
    strong: bool = False  # what makes the row stand in its table
    link: str | None = None

    @property
    def numeric(self) -> bool:
        return not isinstance(self.value, str)


@dataclass(frozen=True)
class ShownTable:
    """Rows under headings, of `total` that exist; `cut` says so where not every row is here."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    cut: str | None = None
    note: str | None = None


Link: TypeAlias = Callable[[str, str, str | None], str]  # kind, name, task → address
RowLink: TypeAlias = Callable[[dict[str, Any], str], str | None]  # row, column → address


def cut_of(kept: int, total: int, file: str, order: str = "with the largest n") -> str | None:
    """What is said where not every row is shown.

    >>> cut_of(200, 1234, "tables/power.parquet")
    'The 200 rows with the largest n are shown; all 1,234 rows are in tables/power.parquet.'
    """
    if kept >= total:
        return None
    return f"The {count(kept)} rows {order} are shown; all {count(total)} rows are in {file}."


def detail_tables(result: AuditResult) -> dict[str, ShownTable]:
    """All numbers, by level, under the anchors of the page; only tables that have rows."""
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
    tables = {
        anchor: results_table(title, frame, members, rows=rows) for anchor, title, rows in parts
    }
    if (frame["n_seeds_baseline"].fillna(1) > 1).any() or (frame["n_seeds_compressed"] > 1).any():
        file = "tables/per_seed.parquet"
        shown = [(key, title, partial(_result_cell, kind)) for key, title, kind in _MEMBERS]
        tables["members"] = frame_table("Every member", result.per_seed, shown, file)
    for name, title in _PLAIN.items():
        frame = getattr(result, name)
        columns = [(str(c), str(c).replace("_", " "), _plain) for c in frame.columns]
        tables[name] = frame_table(title, frame, columns, f"tables/{name}.parquet")
    return {anchor: table for anchor, table in tables.items() if table.total}


def name_cell(value: Any) -> Cell:
    """A name that came from a file."""
    return Cell(shown(value), "" if missing(value) else shown(value))


def finite(value: Any) -> float | None:
    """A number by which rows can be sorted."""
    found = real(value)
    return found if math.isfinite(found) else None


Show: TypeAlias = Callable[[dict[str, Any], str], Cell]


def _why(row: dict[str, Any], key: str) -> str | None:
    status = Status.of(row.get("status"))
    return None if status.ok or not missing(row[key]) else str(status)


def _result_cell(kind: str, row: dict[str, Any], key: str) -> Cell:
    """A value of the results, by its kind, in the unit of the row's metric."""
    if kind == "text":
        return name_cell(row[key])
    if kind == "count":
        return Cell(count(row[key]), finite(row[key]))
    if kind == "yes":  # what is not shown is open
        said = NOTHING if missing(row[key]) else "yes" if row[key] else "open"
        return Cell(said, said)
    found = real(row[key])
    if kind == "p":
        return Cell(p_value(found, bare=True), finite(found))
    if kind == "share":
        return Cell(percent(found), finite(found))
    metric = str(row["metric"])
    if kind == "size":
        return size_cell(found) if is_share(metric) else Cell(number(found), finite(found))
    if kind == "limits":  # without the shift, or excess, that stands beside them
        high = real(row[key.replace("_low", "_high")])
        if missing(found) and missing(high):
            return Cell(NOTHING)
        said = shift_of(metric, high if missing(found) else found, found, high)
        return Cell(said[said.index("[") :], finite(high))
    why = _why(row, key)
    if kind == "shift":
        low, high = (real(row[end]) for end in _ENDS[key])
        return Cell(shift_of(metric, found, low, high), finite(found), why)
    if kind == "compressed" and not missing(found) and missing(row["shift"]):
        # A comparison has no shift: its interval belongs here.
        low, high = real(row["ci_low"]), real(row["ci_high"])
        if not (missing(low) and missing(high)):
            return Cell(value_interval(metric, found, low, high), finite(found))
    return Cell(value_of(metric, found, real(row.get("shift"))), finite(found), why)


_ENDS = {"shift": ("ci_low", "ci_high"), "excess_shift": ("excess_low", "excess_high")}
# Column of the frame, heading, kind of value. Columns without a single value are left out.
_RESULTS = (
    ("variant", "variant", "text"),
    ("task", "task", "text"),
    ("scope", "scope", "text"),
    ("group", "group", "text"),
    ("level", "level", "text"),
    ("class", "class", "text"),
    ("metric", "metric", "text"),
    ("n", "n", "count"),
    ("n_clusters", "clusters", "count"),
    ("baseline", "baseline", "value"),
    ("compressed", "compressed", "compressed"),
    ("shift", "shift [interval]", "shift"),
    # Beside the shift, which it is read with.
    ("matched", "retraining with compression", "size"),
    ("noise_floor", "retraining alone, up to", "size"),
    ("sim_low", "simultaneous limits", "limits"),
    ("p_value", "p", "p"),
    ("p_adjusted", "p, corrected", "p"),
    ("loss_ruled_out", "loss that matters ruled out", "yes"),
    ("excess_shift", "excess over the others", "shift"),
    ("excess_sim_low", "simultaneous limits of the excess", "limits"),
    ("excess_p", "p of the excess", "p"),
    ("excess_p_adjusted", "p of the excess, corrected", "p"),
    ("churn", "churn", "share"),
    ("debiased", "corrected for noise", "value"),
    ("p_retraining", "p against retraining", "p"),
    ("status", "status", "text"),
)


def results_table(
    title: str,
    frame: pd.DataFrame,
    members: str,
    without: Sequence[str] = (),
    link: RowLink | None = None,
    rows: pd.Series | None = None,
) -> ShownTable:
    """Rows of the results.

    Parameters
    ----------
    rows
        Which rows of the frame; all by default.
    without
        Columns that the title, or the page, says of every row.
    link
        Where the names in a row lead.
    """
    scope = frame["scope"] if rows is None else frame["scope"][rows]
    same = (*without, "scope") if scope.nunique() < 2 else without
    columns = tuple(
        (key, worded(heading, members), partial(_result_cell, kind))
        for key, heading, kind in _RESULTS
        if key not in same
    )
    return frame_table(title, frame, columns, RESULTS, link, rows=rows)


def frame_table(
    title: str,
    frame: pd.DataFrame,
    columns: Sequence[tuple[str, str, Show]],
    file: str,
    link: RowLink | None = None,
    first: int | None = None,
    rows: pd.Series | None = None,
) -> ShownTable:
    """Rows of a frame; columns without a single value are left out.

    Parameters
    ----------
    columns
        Column of the frame, heading, and how it is shown.
    file
        Where all rows are.
    first
        So many rows from the top; by default the `LIMIT` with the largest n.
    rows
        Which rows of the frame; all by default. Only those that are shown are copied.
    """
    # By places: the labels of a frame need not be unique.
    chosen = np.arange(len(frame)) if rows is None else np.flatnonzero(rows)
    held = [c for c in columns if frame[c[0]].notna().to_numpy()[chosen].any()]
    some = chosen[: LIMIT if first is None else first]
    if first is None and len(chosen) > LIMIT and "n" in frame.columns:
        n = frame["n"].astype("float64").fillna(-1.0).to_numpy()[chosen]
        some = np.sort(chosen[n.argsort(kind="stable")[::-1][:LIMIT]])  # in their own order
    made = []
    for row in records(frame.take(some)):
        cells = [show(row, key) for key, _, show in held]
        if link is not None:
            places = [link(row, key) for key, _, _ in held]
            cells = [
                c if at is None else replace(c, link=at)
                for c, at in zip(cells, places, strict=True)
            ]
        made.append(tuple(cells))
    which = "with the largest n" if first is None else "that come first"
    cut = cut_of(len(made), len(chosen), file, which)
    headings = tuple(heading for _, heading, _ in held)
    return ShownTable(title, headings, tuple(made), len(chosen), cut)


_MEMBERS = (
    ("variant", "variant", "text"),
    ("seed", "member", "text"),
    ("task", "task", "text"),
    ("group", "group", "text"),
    ("class", "class", "text"),
    ("metric", "metric", "text"),
    ("n", "n", "count"),
    ("value", "value", "value"),
)


# Frames without metrics of their own: how their columns are read; all others are plain numbers.
_PLAIN = {
    "concentration": "Concentration of lost and gained predictions",
    "group_error": "Excess allowing for wrong group labels",
    "power": "What could have been found",
    "data": "Data",
}
_SHARES = frozenset((
    "share", "share_examples", "share_lost", "share_gained", "share_lost_poisson", "discordance",
))  # fmt: skip
_LOSSES = frozenset(("min_detectable_shift", "reference_shift", "largest_loss"))  # without a sign
_POINTS = frozenset(("excess_shift", "corrected_low", "corrected_high"))


def _plain(row: dict[str, Any], key: str) -> Cell:
    value = row[key]
    if isinstance(value, str) or missing(value):
        return name_cell(value)
    if key in _SHARES:
        return Cell(percent(float(value)), float(value))
    if key in _LOSSES:
        return Cell(size_in_points(float(value)), abs(float(value)))
    if key in _POINTS:
        return Cell(points(float(value)), float(value))
    whole = key.startswith("n") or float(value).is_integer()
    return Cell(count(value) if whole else number(float(value)), finite(value))


# Tables of the finding: who loses, who loses more than the rest, who has too few examples.


def finding_tables(
    finding: Finding, link: Link | None = None, most: int = LIMIT
) -> dict[str, ShownTable]:
    """Who loses more than the rest, who loses, who has too few examples, who was not tested.

    Parameters
    ----------
    link
        Where the name of a class or group leads.
    most
        Rows of a table.
    """
    several = len(finding.families) > 1
    strong = f" Strong: p of at most {finding.alpha:g}." if several else ""
    more = _losses(finding, "pays more", f"{IN_FAMILY} {CHURN}{strong}", link, most)
    corrected = " p-values are not corrected." if finding.correction == "none" else ""
    strong = " Strong: limits below 0." if several else ""
    loses = _losses(finding, "loses", f"{IN_FAMILY}{corrected}{strong}", link, most)
    tables = {"pays-more": more, "loses": loses, "columns": _columns(finding)}
    blind, small = finding.blind, finding.small
    if blind:
        tasks = any(b.task is not None for b in blind)
        never = "no loss would be found reliably at this n"
        rows = tuple(
            (
                _who(b, link),
                *([name_cell(b.task)] if tasks else []),
                Cell(count(b.n), b.n),
                replace(size_cell(b.detectable), why=never if missing(b.detectable) else None),
                Cell(count(b.n_needed), finite(b.n_needed)),
            )
            for b in blind[:most]
        )
        headings = (
            "who",
            *(["task"] if tasks else []),
            "n",
            "smallest loss detectable (80 % power)",
            f"n needed for {loss_that_matters(blind[0].reference)}",
        )
        cut = cut_of(len(rows), len(blind), "tables/power.parquet", "with the smallest n")
        tables["unseen"] = ShownTable("Too few examples", headings, rows, len(blind), cut)
    if small:
        rows = tuple((_who(s), Cell(count(s.n), s.n), name_cell(s.reason)) for s in small[:most])
        cut = cut_of(len(rows), len(small), RESULTS, "that come first")
        tables["small"] = ShownTable("Not tested", ("who", "n", "why"), rows, len(small), cut)
    return {key: table for key, table in tables.items() if table is not None}


def _columns(finding: Finding) -> ShownTable | None:
    """Whether the change differs by each of many columns: a row each, the clearest first."""
    first, *_ = scopes = finding.verdicts
    if len(first.columns) <= MOST_COLUMNS:
        return None
    tasks = any(column.task is not None for column in first.columns)
    own = [{(c.kind, c.name, c.task): c for c in scope.columns} for scope in scopes]
    rows = []
    for column in sorted(first.columns, key=lambda c: 2.0 if missing(c.p) else c.p):
        apart = first.apart(column)
        did = ""
        if apart and column.differs:
            better = "better" if apart[0].gain > 0 else "worse"
            did = f"{name_of(apart[0], NAME)} did {better} by {size_in_points(apart[0].shift)}"
        cells = [
            name_cell("class" if column.kind == "class" else column.name),
            *([name_cell(column.task)] if tasks else []),
        ]
        for held in own:
            here = held.get((column.kind, column.name, column.task))
            why = "not known" if here is None else here.reason
            known = here is not None and here.differs is not None
            cells.append(
                Cell(p_value(here.p, bare=True), finite(here.p), strong=bool(here.differs))
                if known and here is not None
                else Cell(NOTHING, None, why)
            )
        within = column.within_p
        cells.append(Cell(did or NOTHING, did or None))
        cells.append(
            Cell(NOTHING if missing(within) else p_value(within, bare=True), finite(within))
        )
        rows.append(tuple(cells))
    names = [f", {worded(SIDES[scope.scope], finding.members.kind).lower()}" for scope in scopes]
    headings = (
        "by",
        *(["task"] if tasks else []),
        *(f"p{name}" for name in (names if len(names) > 1 else [""])),
        "who differs most from the rest",
        "p among examples of one class",
    )
    note = f"Strong: the change differs (p of at most {finding.alpha:g})."
    return ShownTable("Differences by column", headings, tuple(rows), len(rows), None, note)


def _losses(
    finding: Finding, what: Literal["loses", "pays more"], note: str, link: Link | None, most: int
) -> ShownTable | None:
    """Who loses, or loses more than the rest, in every scope in which it can be told.

    By the limits of their family, not by those of the lead: more may stand here than the lead
    names. Whoever does so in one scope stands here with the numbers of both; those that say it
    are strong.
    """
    loses, families, members = what == "loses", finding.families, finding.members.kind
    told = [family.loses if loses else family.pays_more for family in families]
    # The numbers are those of the first scope that tells it.
    listed = {c.key: c for side in reversed(told) for c in side}
    changes = [listed[key] for key in dict.fromkeys(c.key for side in told for c in side)]
    if not changes:
        return None
    own = [{c.key: c for c in (f.shifts if loses else f.excesses)} for f in families]
    strong = [{c.key for c in side} for side in told]
    tasks = any(change.task is not None for change in changes)
    # The noise floor is one of shifts; beside an excess it would be read as one of excesses.
    floors = loses and any(not missing(change.noise_floor) for change in changes)
    dash = Cell(NOTHING, None, "cannot be estimated in this scope")
    rows = []
    for change in changes[:most]:
        cells = [
            _who(change, link),
            *([name_cell(change.task)] if tasks else []),
            Cell(change.metric, change.metric),
            Cell(count(change.n), change.n),
            Cell(
                f"{level(change.baseline).removesuffix(' %')} → {level(change.compressed)}",
                finite(change.compressed),
            ),
            Cell(percent(change.churn), finite(change.churn)),
        ]
        for held, says_so in zip(own, strong, strict=True):  # scope by scope
            here = held.get(change.key)
            cells += [dash, dash] if here is None else [
                Cell(interval(here), finite(here.shift), strong=change.key in says_so),
                Cell(p_value(here.p, bare=True), finite(here.p)),
            ]  # fmt: skip
        cells += [size_cell(change.noise_floor)] if floors else []
        rows.append(tuple(cells))
    quantity = ("shift" if loses else "excess over the rest") + unit().of_shift
    names = [f", {worded(SIDES[family.scope], members).lower()}" for family in families]
    headings = (
        "who",
        *(["task"] if tasks else []),
        "metric",
        "n",
        "baseline → compressed",
        "churn",
        *(
            heading
            for name in (names if len(names) > 1 else [""])
            for heading in (f"{quantity}{name} [simultaneous limits]", f"p{name}")
        ),
        *([worded("retraining alone, up to", members)] if floors else []),
    )
    title = "Who loses" if loses else "Who loses more than the rest"
    cut = cut_of(len(rows), len(changes), RESULTS, "with the largest shift")
    return ShownTable(title, headings, tuple(rows), len(changes), cut, note)


def interval(change: Change) -> str:
    """A shift in points with its limits, where the heading names the unit."""
    return points_interval(change.shift, change.low, change.high).replace(" points", "")


def size_cell(share: float) -> Cell:
    """The size of a change in points."""
    return Cell(NOTHING if missing(share) else size_in_points(share), finite(share))


def _who(item: Change | Blind | Small, link: Link | None = None) -> Cell:
    name = item.label or item.name
    cell = name_cell(f"class {name}" if item.kind == "class" else name)
    if link is None or isinstance(item, Small):
        return cell
    return replace(cell, link=link(item.kind, item.name, item.task))


# The dense and the compressed numbers side by side: two short tables per variant.

# What a reader looks for first; every other number is in the tables at the end.
_OVERALL = (
    *OUTCOMES, "accuracy", "balanced_accuracy", "recall", "precision", "f1", "fpr", "fnr", "kappa",
    "auc", "ece_top_label", "calibration_gap", "calibration_error_sq", "class_gap",
)  # fmt: skip
_GROUPING = ("worst_group", "group_gap")


def number_tables(result: AuditResult, finding: Finding) -> dict[str, ShownTable]:
    """Baseline and compressed numbers side by side, and calibration by group."""
    tables = {"numbers": _numbers(result, finding), "calibration": _calibration(result, finding)}
    return {key: table for key, table in tables.items() if table is not None}


def _numbers(result: AuditResult, finding: Finding) -> ShownTable | None:
    """Headline metrics of baseline and variant with their shift in every scope."""
    sides = [verdict.scope for verdict in finding.families]
    more = tuple(entry.name for entry in metrics() if entry.headline)
    held: dict[Scope, list[dict[str, Any]]] = {}
    for side in sides:
        held[side] = []
        for wanted, by in (((*_OVERALL, *more), "overall"), ((*_GROUPING, *more), "grouping")):
            own = at_task(select(result, finding.variant, wanted, by, side), result, None)
            known = records(own[own["baseline"].notna()])
            held[side] += [
                row for name in dict.fromkeys(wanted) for row in known if row["metric"] == name
            ]
    rows = held["model"]
    if not rows:
        return None
    shifts = {
        (side, row["metric"], text(row["group"])): _shift_cell(row)
        for side, own in held.items()
        for row in own
    }
    groups = any(not missing(row["group"]) for row in rows)
    floors = any(not missing(row["noise_floor"]) for row in rows)
    members = finding.members.kind
    names = [f", {worded(SIDES[side], members).lower()}" for side in sides]
    headings = (
        "metric",
        *(["of"] if groups else []),
        shown(result.baseline),
        shown(finding.variant),
        *(f"shift{name} [interval]" for name in (names if len(names) > 1 else [""])),
        *([worded("retraining alone, up to", members)] if floors else []),
    )
    cells = tuple(
        (
            name_cell(row["metric"]),
            *([name_cell(row["group"])] if groups else []),
            _side_value(row, "baseline"),
            _side_value(row, "compressed"),
            *(
                shifts.get((side, row["metric"], text(row["group"])), Cell(NOTHING))
                for side in sides
            ),
            *([_result_cell("size", row, "noise_floor")] if floors else []),
        )
        for row in rows
    )
    return ShownTable("Baseline and compressed numbers", headings, cells, len(cells))


def _calibration(result: AuditResult, finding: Finding) -> ShownTable | None:
    """Calibration error beside that of a calibrated model, and the gap, by group."""
    from fairweight.auditing.compare.reliability import if_calibrated  # with pandas

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
            gap = gaps.get(key, dict.fromkeys(row) | {"metric": "calibration_gap"})
            values = [*(expected[name] for name in names), real(gap["baseline"])]
            calibrated, after, *gap_cells = (
                Cell(value_of("calibration_gap", value), finite(value))
                for value in (*values, real(gap["compressed"]))
            )
            cells.append(
                (
                    *([name_cell(key[0])] if result.tasks else []),
                    name_cell(key[1] or "everyone"),
                    Cell(count(row["n"]), finite(row["n"])),
                    _side_value(row, "baseline"),
                    calibrated,
                    _side_value(row, "compressed"),
                    after,
                    *gap_cells,
                    _shift_cell(gap),
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
    note = (
        "ECE is above 0 by chance alone, so it is shown beside that of a calibrated model of "
        "the same size and has no interval. The gap is the mean score less the share that "
        "came true: above 0 the scores promise too much."
    )
    return ShownTable("Calibration by group", headings, tuple(cells), len(cells), note=note)


def _shift_cell(row: dict[str, Any]) -> Cell:
    shift, low, high = (real(row[name]) for name in ("shift", "ci_low", "ci_high"))
    said = shift_of(str(row["metric"]), shift, low, high)
    return Cell(said, finite(shift), _why(row, "ci_low"))


def _side_value(row: dict[str, Any], key: str) -> Cell:
    said = value_of(str(row["metric"]), real(row[key]), real(row["shift"]))
    return Cell(said, finite(row[key]))
