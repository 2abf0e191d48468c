"""Which unit of a network does the harm: what each does alone, and what comes back without it.

For every unit (a layer or a block) two models are compared with two others on the same examples:
only this unit compressed against nothing compressed, and all but this unit compressed against
everything compressed. Units are ranked on one half of the examples; every number comes from the
other half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fairweight.auditing import schema
from fairweight.auditing.compare.signs import N_DRAWS
from fairweight.auditing.intervals.excess import mover
from fairweight.auditing.intervals.proportion import tango_at
from fairweight.auditing.intervals.ratio import RatioMoments, RatioShift, RatioSums, UsualChange
from fairweight.auditing.result import AuditResult, of_scope
from fairweight.base.streams import generator
from fairweight.base.types import Floats, Limits, Mask
from fairweight.tables.names import level_name, split_grouping

ALL = ""  # the row of everyone
AT_ONCE = 200  # draws
MIN_GROUP = 10


@dataclass(frozen=True)
class UnitAnswers:
    """Whether each model is right on each example.

    Parameters
    ----------
    units
        Names of the units, in the order of the network.
    baseline, full
        (examples,): of nothing compressed, and of everything compressed.
    alone, without
        (units, examples): of only this unit compressed, and of all but this unit compressed.
    asked_alone
        (units,): which of them were compressed alone; the rows of the others in `alone` mean
        nothing. None: all.
    """

    units: tuple[str, ...]
    baseline: Mask
    full: Mask
    alone: Mask
    without: Mask
    asked_alone: Mask | None = None

    def of(self, chosen: Mask) -> UnitAnswers:
        """The same on some of the examples."""
        return UnitAnswers(
            self.units,
            self.baseline[chosen],
            self.full[chosen],
            self.alone[:, chosen],
            self.without[:, chosen],
            self.asked_alone,
        )

    @property
    def recovered(self) -> Floats:
        """(units, examples): what comes back (1) or goes (−1) when a unit is left out."""
        back: Floats = self.without.astype(np.float64) - self.full.astype(np.float64)
        return back


def judged_half(
    groups: Mapping[str, Mask], n: int, rng: np.random.Generator, cluster: NDArray[Any] | None
) -> Mask:
    """The half that numbers come from, drawn alike within all combinations of groups.

    With clusters whole clusters are drawn, since examples of one cluster say the same thing twice.
    """
    if cluster is not None:
        names, of = np.unique(cluster, return_inverse=True)
        chosen = np.zeros(len(names), dtype=bool)
        chosen[rng.permutation(len(names))[: (len(names) + 1) // 2]] = True
        return np.asarray(chosen[of.reshape(-1)])
    if groups:
        codes = np.unique(np.stack(list(groups.values())), axis=1, return_inverse=True)[1]
    else:
        codes = np.zeros(n, dtype=np.intp)
    order = rng.permutation(n)
    order = order[np.argsort(codes.reshape(-1)[order], kind="stable")]
    half = np.zeros(n, dtype=bool)
    half[order[::2]] = True
    return half


@dataclass(frozen=True)
class _Rows:
    """Groups as rows of examples or clusters: masks (groups, examples)."""

    masks: Floats
    unit: NDArray[np.intp] | None  # the cluster of each example

    def sums(self, values: Floats) -> Floats:
        """Σ over the examples of each group: (…, examples) → (…, groups)."""
        return values @ self.masks.T

    def signed(self, scores: Floats) -> Floats:
        """Scores per thing that gets a sign: examples, or totals of clusters."""
        if self.unit is None:
            return scores
        flat = scores.reshape(-1, scores.shape[-1])
        made: Floats = np.stack([np.bincount(self.unit, row) for row in flat]).astype(np.float64)
        return made.reshape(*scores.shape[:-1], -1)


def _quantile(scores: Floats, alpha: float, rng: np.random.Generator) -> float:
    """z* of a family: the 95 % point of the largest |Σ s u| / √Σ u² over all its rows."""
    u = scores.reshape(-1, scores.shape[-1]).astype(np.float32)  # (rows, signed things)
    size = np.sqrt((u * u).sum(axis=1))
    u = u[size > 0] / size[size > 0, None]
    largest = np.zeros(N_DRAWS, dtype=np.float32)
    for start in range(0, N_DRAWS, AT_ONCE):
        signs = rng.integers(0, 2, (u.shape[1], AT_ONCE), dtype=np.int8).astype(np.float32) * 2 - 1
        drawn = np.abs(u @ signs).max(axis=0, initial=0.0)
        largest[start : start + AT_ONCE] = drawn
    place = math.ceil((1 - alpha) * (N_DRAWS + 1) - 1e-9)
    return max(float(-ndtri(alpha / 2)), float(np.partition(largest, place - 1)[place - 1]))


def sensitivity_rows(
    answers: UnitAnswers,
    groups: Mapping[str, Mask],
    *,
    rng: np.random.Generator,
    shown_to_lose: Sequence[str] = (),
    cluster: NDArray[Any] | None = None,
    alpha: float = 0.05,
    min_group: int = MIN_GROUP,
) -> list[dict[str, Any]]:
    """One row per unit and group, units in the order of the loss that comes back without them.

    Parameters
    ----------
    groups
        Masks of examples by the group's name; everyone is added as "".
    shown_to_lose
        Groups that the audit of the full compression shows to lose; only for them a unit can
        stand out.
    cluster
        The cluster of each example, where examples are not independent.

    Notes
    -----
    `shift_alone` and `recovered` have Tango's limits and `recovered_excess` MOVER's, at the
    quantile of the largest over all units and groups. `contrast` is what comes back with this unit
    less the mean of what comes back with each other one, as a numeric outcome. A unit stands out
    where the lower limits of both are above 0. ("More than 0 comes back" alone would name a unit in
    30 % of networks whose harm is spread evenly; the contrast alone names a unit with which nothing
    is shown to come back, where leaving out the others makes it worse.)
    """
    masks = {ALL: np.ones(len(answers.baseline), dtype=bool), **groups}
    half = judged_half(groups, len(answers.baseline), rng, cluster)
    ranked = _ranking(answers.of(~half), {name: mask[~half] for name, mask in masks.items()})
    judged = answers.of(half)
    within = np.stack([mask[half] for mask in masks.values()]).astype(float)
    of_cluster = None
    if cluster is not None:
        of_cluster = np.unique(cluster[half], return_inverse=True)[1].reshape(-1)
    rows = _Rows(within, of_cluster)
    alone = _shifts(judged.alone.astype(float) - judged.baseline, rows, alpha, rng)
    if judged.asked_alone is not None:
        for part in alone:
            part[~judged.asked_alone] = math.nan
    back = _shifts(judged.recovered, rows, alpha, rng)
    excess = _excesses(judged.recovered, rows, alpha, rng)
    contrast = _contrasts(judged, rows, alpha, rng)
    n = within.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = rows.sums(judged.full.astype(float) - judged.baseline) / n
    made = []
    for rank, unit in enumerate(ranked, start=1):
        for place, name in enumerate(masks):
            row: dict[str, Any] = {"unit": answers.units[unit], "rank": rank, "group": name or None}
            row |= {"n": int(n[place]), "shift": float(shift[place]), "status": "ok"}
            numbers = {"shift_alone": alone, "recovered": back, "recovered_excess": excess,
                       "contrast": contrast}  # fmt: skip
            few = n[place] < min_group
            for column, (value, low, high) in numbers.items():
                cells = [math.nan if few else float(x[unit, place]) for x in (value, low, high)]
                row |= dict(zip((column, f"{column}_low", f"{column}_high"), cells, strict=True))
            if few:
                row["shift"] = math.nan
                row["status"] = f"not_estimable: {int(n[place])} examples in the judged half"
            clear = row["contrast_low"] > 0 and row["recovered_low"] > 0  # False for NaN
            row["stands_out"] = bool(clear and name in shown_to_lose)
            made.append(row)
    return made


def _ranking(answers: UnitAnswers, masks: Mapping[str, Mask]) -> list[int]:
    """Units by what comes back, on the ranking half, for the group that loses most there."""
    lost = {
        name: float((answers.baseline[mask].astype(float) - answers.full[mask]).mean())
        for name, mask in masks.items()
        if mask.sum() >= MIN_GROUP
    }
    worst = masks[max(lost, key=lambda name: lost[name])] if lost else masks[ALL]
    back = answers.recovered[:, worst].mean(axis=1)
    return [int(place) for place in np.argsort(-back, kind="stable")]


Estimates = tuple[Floats, Floats, Floats]  # values and limits, (units, groups) each


def _shifts(x: Floats, rows: _Rows, alpha: float, rng: np.random.Generator) -> Estimates:
    """Means of −1, 0 and 1 by unit and group with simultaneous limits."""
    n = rows.masks.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = rows.sums(x) / n
    centred = rows.signed((x[:, None, :] - value[:, :, None]) * rows.masks[None])
    z = _quantile(np.nan_to_num(centred), alpha, rng)
    lost, gained = (x < 0).astype(np.float64), (x > 0).astype(np.float64)
    if rows.unit is None:
        low, high = tango_at(n[None], rows.sums(lost), rows.sums(gained), z)
        return value, low, high
    ends = [_ratio(np.zeros_like(one), one, rows, z) for one in x]
    return value, np.stack([e[0] for e in ends]), np.stack([e[1] for e in ends])


def _excesses(x: Floats, rows: _Rows, alpha: float, rng: np.random.Generator) -> Estimates:
    """Shift of a group less that of everybody else, with MOVER's simultaneous limits."""
    n, total = rows.masks.sum(axis=1), x.shape[1]
    inside, everyone = rows.sums(x), x.sum(axis=1, keepdims=True)
    others = total - n
    with np.errstate(invalid="ignore", divide="ignore"):
        value = inside / n - (everyone - inside) / others
        contrast = rows.masks / n[:, None] - (1 - rows.masks) / others[:, None]
    deviation = x - everyone / total
    scores = rows.signed(deviation[:, None, :] * np.nan_to_num(contrast)[None])
    z = _quantile(scores, alpha, rng)
    lost, gained = (x < 0).astype(np.float64), (x > 0).astype(np.float64)
    if rows.unit is None:
        mine = (n[None] + 0 * inside, rows.sums(lost), rows.sums(gained))
        rest = (
            others[None] + 0 * inside,
            lost.sum(1, keepdims=True) - mine[1],
            gained.sum(1, keepdims=True) - mine[2],
        )
        low, high = mover((*mine, *rest), np.full_like(inside, z))
        return value, low, high
    side = [_ratio(np.zeros_like(one), one, rows, z) for one in x]
    rest_rows = _Rows(1 - rows.masks, rows.unit)
    rest_side = [_ratio(np.zeros_like(one), one, rest_rows, z) for one in x]
    low1, high1 = (np.stack([s[k] for s in side]) for k in (0, 1))
    low2, high2 = (np.stack([s[k] for s in rest_side]) for k in (0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        own, rest_value = inside / n, (everyone - inside) / others
    return (
        value,
        value - np.hypot(own - low1, high2 - rest_value),
        value + np.hypot(high1 - own, rest_value - low2),
    )


def _contrasts(
    answers: UnitAnswers, rows: _Rows, alpha: float, rng: np.random.Generator
) -> Estimates:
    """What comes back with a unit less the mean of what comes back with each other unit."""
    right = answers.without.astype(float)
    count = len(right)
    others = (right.sum(axis=0, keepdims=True) - right) / max(count - 1, 1)
    n = rows.masks.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = rows.sums(right - others) / n
    if count < 2:
        nothing = np.full_like(value, np.nan)
        return nothing, nothing, nothing
    centred = rows.signed(
        (right - others)[:, None, :] * rows.masks[None] - value[:, :, None] * rows.masks[None]
    )
    z = _quantile(np.nan_to_num(centred), alpha, rng)
    ends = [_ratio(base, own, rows, z) for base, own in zip(others, right, strict=True)]
    return value, np.stack([e[0] for e in ends]), np.stack([e[1] for e in ends])


def _ratio(base: Floats, compressed: Floats, rows: _Rows, z: float) -> Limits:
    """Limits of the mean change by group, as a numeric outcome; clusters are summed first."""
    sums, pool = _sums(base, compressed, rows), _sums(base, compressed, rows, whole=True)
    usual = UsualChange.of(pool)
    shift = RatioShift(sums, usual)
    below, above = shift.distances(z)
    return sums.shift - below, sums.shift + above


def _sums(base: Floats, compressed: Floats, rows: _Rows, *, whole: bool = False) -> RatioMoments:
    masks = np.ones((1, len(base))) if whole else rows.masks
    if rows.unit is None:
        ones = np.ones(len(base))
        return RatioSums.of_units(base, compressed, ones, ones, masks > 0).moments()
    made = []
    for mask in masks:
        unit = rows.unit[mask > 0]
        size = np.bincount(unit).astype(float)
        first, second = (np.bincount(unit, one[mask > 0]) for one in (base, compressed))
        made.append(RatioSums.of_units(first, second, size, size, (size > 0)[None]))
    examples = masks.sum(axis=1)
    n, changed, products = (
        np.concatenate([getattr(one, name) for one in made])
        for name in ("n", "changed", "products")
    )
    return RatioSums(n, changed, products, examples, examples).moments()


# The table of an audit.

TABLE = "sensitivity"


@dataclass(frozen=True)
class UnitCost:
    """What compressing a unit saves; a latency of None lies within the noise, or is not claimed."""

    saved_bytes: int
    latency_ms: float | None


def with_sensitivity(
    result: AuditResult,
    answers: UnitAnswers,
    columns: Mapping[str, NDArray[Any]],
    labels: NDArray[Any],
    costs: Mapping[str, UnitCost],
    *,
    not_reached: Sequence[str] = (),
    cluster: NDArray[Any] | None = None,
    notes: Sequence[str] = (),
) -> AuditResult:
    """The audit of a full compression with the table of its units.

    Parameters
    ----------
    result
        Its one variant is the full compression, on the examples of `answers`.
    columns
        Group columns, a value (or None) per example; the audit's groupings are made of them.
    labels
        The class of each example: classes are the groups where the audit has none.
    costs
        By unit; under "" of everything.
    not_reached
        Units for which there are no answers: their rows say so.
    """
    options = result.provenance.options
    alpha, seed = float(options.get("alpha", 0.05)), int(options.get("random_state", 0))
    least = int(options.get("min_group", MIN_GROUP))
    groups = masks_of(result, columns, labels)
    losers = shown_to_lose(result)
    rng = generator(seed, "sensitivity")
    rows = sensitivity_rows(
        answers,
        groups,
        rng=rng,
        shown_to_lose=losers,
        cluster=cluster,
        alpha=alpha,
        min_group=least,
    )
    whole = costs[ALL].saved_bytes
    for row in rows:
        cost = costs[row["unit"]]
        row |= {"bytes_saved": cost.saved_bytes, "latency_saved_ms": cost.latency_ms}
        row["share_of_saving"] = cost.saved_bytes / whole if whole else math.nan
    for unit in not_reached:
        reason = "not_estimable: not reached within the budget"
        rows += [{"unit": unit, "group": name or None, "status": reason} for name in (ALL, *groups)]
    for row in rows:
        row |= {"variant": result.variants[0], "scope": "model"}
    told = list(notes)
    if not_reached:
        told.append(
            f"{len(not_reached)} of {len(not_reached) + len(answers.units)} units were not reached "
            "within the budget; the others are compared with each other alone. Run it again with "
            "the same store to go on."
        )
    table = schema.frame(TABLE, rows)
    return replace(
        result,
        explanations={**result.explanations, TABLE: table},
        notes=tuple(dict.fromkeys((*result.notes, *told))),
    )


def shown_to_lose(result: AuditResult) -> list[str]:
    """Groups (or classes, where there are none) that lose beyond chance, as the table names them.

    Everyone is "".
    """
    lead = result.lead[of_scope(result.lead, "model")]
    lost = lead[(lead["quantity"] == "shift") & (lead["high"] < 0)]
    by = "group" if result.groupings else "class"
    losers = [str(name) for name in lost.loc[lost["by"] == by, by]]
    if by == "class":
        losers = [f"class={name}" for name in losers]
    if (lost["by"] == "overall").any():
        losers.append(ALL)
    return losers


def masks_of(
    result: AuditResult, columns: Mapping[str, NDArray[Any]], labels: NDArray[Any]
) -> dict[str, Mask]:
    """The examples of each group of the audit, or of each class where it has no groups."""
    if not result.groupings:
        return {f"class={name}": np.asarray(labels == name) for name in result.classes}
    masks: dict[str, Mask] = {}
    for grouping in result.groupings:
        names = split_grouping(grouping)
        parts = []
        for name in names:
            values = columns[name]
            known = dict.fromkeys(value for value in values.tolist() if value is not None)
            parts.append([(level_name(name, value), values == value) for value in known])
        levels = [("", np.ones(len(labels), dtype=bool))]
        for part in parts:
            levels = [
                (f"{before} & {text}" if before else text, mask & own)
                for before, mask in levels
                for text, own in part
            ]
        masks |= {text: np.asarray(mask) for text, mask in levels if mask.any()}
    return masks
