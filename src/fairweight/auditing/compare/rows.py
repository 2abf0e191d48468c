"""From a comparison to rows: which estimator makes a family, and the one builder of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairweight.auditing.columns import DIVISORS, FEW_DIVISORS, GATE_ALPHA
from fairweight.auditing.compare.bootstrap import drawn_family
from fairweight.auditing.compare.closed_form import closed_rates
from fairweight.auditing.compare.comparison import (
    TWO_CLUSTERS,
    Comparison,
    Outcomes,
    event_outcomes,
    groupings_of,
)
from fairweight.auditing.compare.estimands import Estimand, kept_by_baseline
from fairweight.auditing.compare.estimate import (
    FEW_CHANGED,
    MANY_ROWS,
    Block,
    Ends,
    Estimate,
    Family,
    block,
    corrected_rows,
    few_changes,
    joined,
    limits_at,
    limits_where,
    repeated,
    status,
    without_limits,
)
from fairweight.auditing.compare.few_changes import harmful_bounds
from fairweight.auditing.compare.flips import churn
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.compare.retraining import context, difference
from fairweight.auditing.compare.simultaneous import FamilyDraws
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.base.types import Floats, Limits


@dataclass(frozen=True)
class Built:
    """A family in one scope, and its rows."""

    family: Family
    scope: str
    block: Block

    @property
    def key(self) -> tuple[str, str]:
        return self.family.metric.name, self.family.slots.kind

    @property
    def is_confirmatory(self) -> bool:
        return self.family.slots.kind in self.family.metric.confirmatory


def build(c: Comparison, family: Family, scope: str = "model") -> Block:
    """The rows of one family."""
    return build_all(c, [(family, scope)])[0]


def build_all(c: Comparison, families: Iterable[tuple[Family, str]]) -> list[Block]:
    """The rows of families, each with its scope; limits of all of them are asked for together.

    Only here limits are asked for, and rows corrected for each other. Limits are asked for at the
    level of the audit (pointwise), at that of the family (simultaneous: its level over its size, or
    by random signs where they were drawn), and about these models at the gate's levels.
    """
    asked = [_Asked.of(c, family, scope) for family, scope in families]
    wanted = [(one, name) for one in asked for name in one.levels]
    ends = limits_at(
        [(one.estimate(name), c.options.alpha, one.levels[name]) for one, name in wanted]
    )
    found: dict[int, dict[str, Ends]] = {id(one): {} for one in asked}
    for (one, name), made in zip(wanted, ends, strict=True):
        found[id(one)][name] = made
    return [_rows(c, one, found[id(one)]) for one in asked]


@dataclass(frozen=True)
class _Asked:
    """A family with what is decided before its limits: who is in it, and at which levels."""

    family: Family
    scope: str
    state: NDArray[np.object_]
    sized: NDArray[np.bool_]  # whoever is in a family: however many members there are
    draws: FamilyDraws | None
    # Of every estimate the levels beyond that of the audit. Of the change: simultaneous,
    # simultaneous on one side, and the gate's.
    levels: Mapping[str, Floats]
    use: NDArray[np.intp]  # for each of the gate's divisors, which of its levels stands for it

    def estimate(self, name: str) -> Estimate:
        found: Estimate = getattr(self.family, name)
        return found

    @staticmethod
    def of(c: Comparison, family: Family, scope: str) -> _Asked:
        metric, slots, alpha = family.metric, family.slots, c.options.alpha
        if family.status is not None:
            state = family.status
            sized = np.asarray(state == "ok") if family.sized is None else family.sized
        else:
            state = status(c, family.n, family.clusters)
            state[(state == "ok") & np.isnan(family.compressed.value)] = "not_estimable: no weight"
            sized = np.asarray(state == "ok")
            if scope == "method" and not c.has_method:
                state[sized] = f"not_estimable: {c.no_method}"
        # Random signs: drawn for right and wrong predictions whose rows share out the examples.
        draws, event = None, metric.event
        if scope == "model" and family.sums is not None and metric.kind == "outcome":
            draws = c.draws(slots.kind)
        elif scope == "model" and family.sums is not None and event is not None:
            shared = event.given == "all" or slots.kind == "class"
            right = event.happens in ("correct", "wrong")
            draws = c.draws(slots.kind) if shared and right else None
        level = alpha / max(1, int((sized & ~slots.outside).sum()))
        if family.sums is not None and c.options.correction == "none":
            level = alpha
        both = [level, 2 * level, level]
        if draws is not None:
            stars = draws.shift_z_star, draws.harm_z_star, draws.z_star
            both = [float(2 * ndtr(-z(alpha))) for z in stars]
        many = family.sums is not None and len(family.n) > MANY_ROWS
        divisors = FEW_DIVISORS if many else c.divisors
        if scope != "model" or slots.kind == "group*class" or not metric.gated:
            divisors = ()
        gate = np.array([2 * GATE_ALPHA / j for j in divisors])
        none = np.zeros(0)
        # Where there is no shift to judge, the change is the value.
        shifts = family.shift is not None and bool(np.isfinite(family.shift.value).any())
        wanted = ("shift" if shifts else "value") in metric.gated
        levels = {"change": np.array([*both[:2], *(gate if wanted else none)])}
        if family.shift is not None and family.baseline is not None:
            levels |= {"baseline": none, "compressed": gate if shifts else none}
        if family.excess is not None:
            levels["excess"] = none if family.sums is None else np.array(both[2:])
        use = np.searchsorted(divisors, DIVISORS) if divisors else np.zeros(0, dtype=np.intp)
        return _Asked(family, scope, state, sized, draws, levels, use)


def _rows(c: Comparison, asked: _Asked, ends: Mapping[str, Ends]) -> Block:
    """The rows of a family, from its limits."""
    family, state = asked.family, asked.state
    metric, slots = family.metric, family.slots
    columns: dict[str, Any] = {"compressed": family.compressed.value, "interval": family.interval}
    (columns["ci_low"], columns["ci_high"]), further = ends["change"]
    columns["p_value"] = np.nan if family.change.p is None else family.change.p
    if family.shift is not None and family.baseline is not None:
        columns |= {"shift": family.shift.value, "baseline": family.baseline.value}
        for name in ("baseline", "compressed"):
            columns[f"{name}_low"], columns[f"{name}_high"] = ends[name].pointwise
    if family.excess is not None:
        columns["excess_shift"] = family.excess.value
        columns["excess_low"], columns["excess_high"] = ends["excess"].pointwise
        columns["excess_p"] = np.nan if family.excess.p is None else family.excess.p
        corrected = ends["excess"].corrected
        if corrected is not None:
            columns["excess_sim_low"], columns["excess_sim_high"] = (side[0] for side in corrected)
    more: Block = {}
    if further is not None:
        low, high = further
        if family.change.p is not None and metric.inflation is None:  # no worst of composites
            columns["sim_low"], columns["sim_high"] = low[0], high[0]
        if family.sums is not None:
            # Whether a change, and a loss, as large as the margin is ruled out; the largest loss.
            margin, unknown = c.margin, np.isnan(low[0] + high[0])
            within = (low[0] >= -margin) & (high[0] <= margin)
            columns["equivalent"] = np.where(unknown | np.isnan(margin), np.nan, within)
            worst = low[1] if metric.better == "higher" else -high[1]
            open_ = np.isnan(worst + margin)
            columns["loss_ruled_out"] = np.where(open_, np.nan, worst >= -margin)
            if metric.better not in ("higher", "lower"):
                columns["loss_ruled_out"] = np.full(len(worst), np.nan)
            more["largest_loss"] = -worst
        more |= _bounds(c, asked, (low[2:], high[2:]), ends)
    rows = block(
        c,
        metric.name,
        slots,
        asked.scope,
        aggregation=metric.aggregation,
        n=family.n,
        n_clusters=family.clusters,
        status=state,
        **columns,
        **family.columns,
    )
    # Who belongs to a family is decided on sizes and on what a metric needs, never on results.
    rows |= {"sized": asked.sized, **more}
    if family.members is not None:
        rows["members"] = family.members.T
    if slots.kind == "group*class":
        present = np.asarray(family.n) > 0
        if not present.all():
            rows = {name: values[present] for name, values in rows.items()}
    if "p_adjusted" in family.columns:  # by random signs, with the groups it is the largest of
        return rows
    return corrected_rows(rows, metric, c.options, asked.draws)


def _bounds(c: Comparison, asked: _Asked, change: Limits, ends: Mapping[str, Ends]) -> Block:
    """The gate's limits of shift and compressed value, (rows, levels, 2)."""
    if not len(asked.use):
        return {}
    family = asked.family

    def columns(limits: Limits) -> Floats:
        made: Floats = np.stack([side[asked.use].T for side in limits], axis=-1)
        return made

    if family.shift is None or not np.isfinite(family.shift.value).any():
        return {"bounds_value": columns(change)} if "value" in family.metric.gated else {}
    made: Block = {}
    value = ends["compressed"].corrected
    if value is not None:
        made["bounds_value"] = columns(value)
    few = few_changes(asked.state)
    if few.any():
        # The shift may have no limits where few predictions changed; the value has its own.
        made["value_known"] = few & np.isfinite(made["bounds_value"][:, 0, 0])
    if "shift" not in family.metric.gated:
        return made
    made["bounds_shift"] = columns(change)
    if family.gate_status is not None:
        made["bound_status"] = repeated(family.gate_status, len(family.n))
    if few.any():
        asked_for = few & np.isfinite(family.shift.value)
        bounds = harmful_bounds(c, family.metric, family.slots.kind, asked_for)
        if bounds is not None:
            # One-sided bounds in the place of limits: a model can pass with them, and never fail.
            lower = family.metric.better == "lower"
            limits = np.full((*bounds.loss.shape, 2), np.nan)
            limits[..., int(lower)] = bounds.loss if lower else -bounds.loss
            made["bounds_shift"][bounds.few] = limits[bounds.few]
            made["bound_status"] = bounds.status
    return made


KINDS = ("overall", "class", "group", "intersection", "group*class")
LEVEL_OF_KIND = {kind: kind for kind in KINDS} | {"intersection": "group"}


ROWS_AT_ONCE = 20_000  # of several rates: their limits are computed together
DRAWN_AT_ONCE = 500  # of what is drawn: thousands of draws go with every row


def rate_rows(c: Comparison, metrics: Iterable[Metric]) -> Iterator[Built]:
    """Rows of every rate that is a share of single examples' events."""
    levels = {kind: sum(len(g.levels) for g in groupings_of(c, kind)) for kind in KINDS}
    wanted: list[tuple[Metric, str]] = []
    size = 0
    for rate in metrics:
        for kind in KINDS:
            if LEVEL_OF_KIND[kind] not in rate.by or rate.of_scores:
                continue
            # Every rate by class within every group would multiply the tables; some determine all.
            if kind == "group*class" and not rate.crossed:
                continue
            rows = levels[kind] * (len(c.classes) if kind in ("class", "group*class") else 1)
            if wanted and size + rows > ROWS_AT_ONCE:
                yield from _rates_together(c, wanted)
                wanted, size = [], 0
            wanted.append((rate, kind))
            size += rows
    yield from _rates_together(c, wanted)


def _rates_together(c: Comparison, wanted: Sequence[tuple[Metric, str]]) -> list[Built]:
    parts = []
    for (rate, kind), family in zip(wanted, rates(c, wanted), strict=True):
        # With a single label there is nobody of another class: not one row of FPR.
        if family is not None and (kind != "group*class" or family.n.any()):
            assert rate.event is not None
            parts.append((family, event_outcomes(c, rate.event, kind)))
    return scopes(c, parts)


def rates(c: Comparison, wanted: Sequence[tuple[Metric, str]]) -> list[Family | None]:
    """Rates by kind of rows about these models: in closed form, or linearised."""
    if c.closed_form:
        return closed_rates(c, wanted)
    return [
        linear_rates(c, metric, event_outcomes(c, metric.event, kind), kind)
        for metric, kind in wanted
        if metric.event is not None
    ]


def scopes(c: Comparison, parts: Iterable[tuple[Family, Iterable[Outcomes]]]) -> list[Built]:
    """Ratios of sums about these models and, for populations, about the method."""
    found: list[tuple[Family, str]] = []
    for family, rows in parts:
        metric, kind = family.metric, family.slots.kind
        about: dict[str, Any] = {}
        if kind != "group*class":
            about["churn"] = churn(c, metric.event, kind)
        if not c.one_pair:
            assert family.members is not None
            about |= context(c.retraining, difference(family.members))
        family = replace(family, columns=about)
        found.append((family, "model"))
        if c.one_pair:
            continue
        method = method_rates(c, metric, rows, kind) if c.has_method else without_limits(family)
        if method is not None:
            found.append((replace(method, columns=about), "method"))
    # Every member's own value is stored once, and by group and class there is no room for it.
    stored = [
        (replace(f, members=None) if s == "method" or f.slots.kind == "group*class" else f, s)
        for f, s in found
    ]
    blocks = build_all(c, stored)
    return [Built(*one, rows) for one, rows in zip(found, blocks, strict=True)]


def value_rows(c: Comparison, wanted: Sequence[Estimand]) -> Iterator[Block]:
    """Rows of what is drawn, by family and scope: all that one metric has of one kind together."""
    made = replicate(c, [q for q in wanted if q.evaluate is not None])[::-1]
    families: dict[tuple[str, str], list[tuple[Estimand, Replicated | None]]] = {}
    for estimand in wanted:
        found = made.pop() if estimand.evaluate is not None else None
        if found is not None and estimand.metric.inflation is None:  # its limits need no null
            found = found.tested(two_sided=True)
        key = estimand.metric.name, estimand.slots.kind
        families.setdefault(key, []).append((estimand, found))
    together: list[Sequence[tuple[Estimand, Replicated | None]]] = []
    size = 0
    for key in tuple(families):  # draws are let go once their rows are made
        together.append(families.pop(key))
        size += sum(len(estimand.slots) for estimand, _ in together[-1])
        if size > DRAWN_AT_ONCE or not families:
            yield from drawn_rows(c, together)
            together, size = [], 0


def drawn_rows(
    c: Comparison, families: Iterable[Sequence[tuple[Estimand, Replicated | None]]]
) -> Iterator[Block]:
    """The rows of families in every scope there is, each in the order of its parts."""
    made: list[tuple[Family, str]] = []
    for parts in families:
        if not sum(len(estimand.slots) for estimand, _ in parts):
            continue  # a column in which no example has a value has no levels
        for scope in ("model",) if c.one_pair else ("model", "method"):
            family = joined([drawn_family(c, *part, scope) for part in parts])
            made.append((undrawn(family) if c.crossed else family, scope))
    yield from build_all(c, made)


def undrawn(family: Family) -> Family:
    """The values alone: whole clusters of two columns cannot be drawn again."""
    assert family.status is not None
    held = np.array([text == "ok" or FEW_CHANGED in text for text in family.status], dtype=bool)
    nothing = np.full(len(family.n), np.nan)

    def bare(estimate: Estimate | None) -> Estimate | None:
        """Without limits at any level, so that a gate cannot tell."""
        if estimate is None:
            return None
        p = None if estimate.p is None else nothing
        return Estimate.closed(estimate.value, limits_where(nothing > 0, None), p)

    compressed = bare(family.compressed)
    assert compressed is not None
    return replace(
        family,
        compressed=compressed,
        baseline=bare(family.baseline),
        shift=bare(family.shift),
        excess=bare(family.excess),
        status=np.where(held, f"not_estimable: {TWO_CLUSTERS}", family.status),
        interval=None,
        columns={name: nothing if name == "debiased" else values
                 for name, values in family.columns.items()},
    )  # fmt: skip


# Classes in which the baseline makes no errors: CEV and SDE cannot use them, and must say so.
#
# A class that goes from 0 errors to many must never vanish from the sum.

SHOWN = 10


@dataclass(frozen=True)
class LeftOut:
    """A class that relative changes leave out, with how its rates changed."""

    name: str
    fnr: float
    fpr: float
    harmed: bool  # a rate rose, significantly


def without_baseline_errors(c: Comparison) -> list[LeftOut]:
    """Classes whose baseline FPR or FNR is 0, with shifts and tests as everywhere else."""
    if c.options.zero_baseline != "drop":
        return []
    missed, false = rates(c, [(metric("fnr"), "class"), (metric("fpr"), "class")])
    if missed is None or false is None:
        return []
    dropped = (missed.n > 0) & (false.n > 0) & ~kept_by_baseline(c)
    fnr, fpr = missed.change, false.change
    assert fnr.p is not None
    assert fpr.p is not None
    rises = [e.value > 0 for e in (fnr, fpr)]
    harmed = (rises[0] & (fnr.p < c.options.alpha)) | (rises[1] & (fpr.p < c.options.alpha))
    return [
        LeftOut(c.classes[k], float(fnr.value[k]), float(fpr.value[k]), bool(harmed[k]))
        for k in np.flatnonzero(dropped)
    ]


def left_out_notes(c: Comparison, found: Sequence[LeftOut]) -> list[str]:
    """What was left out, in one sentence."""
    if not found:
        return []
    changes = ", ".join(
        f"'{k.name}' (FNR {100 * k.fnr:+.2f}, FPR {100 * k.fpr:+.2f} points)" for k in found[:SHOWN]
    )
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [
        f"CEV and SDE of {c.variant} leave out classes in which the baseline makes no false "
        f"positives or no false negatives: {changes}{more}."
    ]


def refused_if_harmed(rows: Block, found: Sequence[LeftOut]) -> Block:
    """CEV and SDE without a number where a class that they leave out was harmed."""
    harmed = [k.name for k in found if k.harmed]
    if not harmed or "zero_baseline" not in metric(str(rows["metric"][0])).options:
        return rows
    shown = ", ".join(harmed[:5]) + (f" and {len(harmed) - 5} more" if len(harmed) > 5 else "")
    size = len(rows["status"])
    refused = {**rows, "status": repeated(f"not_estimable: zero baseline in {shown}", size)}
    for name in ("ci_low", "ci_high", "p_value", "p_adjusted", "debiased"):
        refused[name] = repeated(np.nan, size)
    return refused
