"""Rows of the bootstrapped quantities: percentile (or basic) intervals, swap tests, corrections.

For populations every family has rows of scope `method` too: made in `method_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from fairweight.auditing.compare.bounds import LEVELS
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.drawn import (
    drawn_block,
    limits_known,
    linear_p,
    model_limits,
    undrawn_block,
)
from fairweight.auditing.compare.estimate import Limits
from fairweight.auditing.compare.families import corrected, family_size
from fairweight.auditing.compare.few_changes import FEW_CHANGED, harmful_bounds
from fairweight.auditing.compare.influence import Part
from fairweight.auditing.compare.method_values import (
    about_method,
    method_block,
    method_limits,
)
from fairweight.auditing.compare.quantities import Quantity
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.compare.rows import Block, block
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import metric
from fairweight.auditing.result import TEXT_COLUMNS

Found: TypeAlias = tuple[Quantity, Replicated | None]

RowsOf: TypeAlias = Callable[[Comparison, Quantity, Replicated], Block]
LimitsOf: TypeAlias = Callable[[Comparison, Quantity, Replicated, Floats, Part], Limits]


def value_rows(c: Comparison, wanted: Sequence[Quantity]) -> Iterator[Block]:
    """Blocks of rows, one per family and scope: all quantities of one metric and kind together."""
    made = iter(replicate(c, [q for q in wanted if q.evaluate is not None]))
    families: dict[tuple[str, str], list[Found]] = {}
    for quantity in wanted:
        found = next(made) if quantity.evaluate is not None else None
        families.setdefault((quantity.metric, quantity.slots.kind), []).append((quantity, found))
    for members in families.values():
        yield from family_blocks(c, members)


def family_blocks(c: Comparison, members: Sequence[Found]) -> Iterator[Block]:
    """The rows of one family, in the order of its quantities, for every scope there is."""
    alpha = c.options.alpha
    model = _joined(c, members, _model_block, "model")
    if not len(model["metric"]):  # a column in which no example has a value has no levels
        return
    levels = np.append(LEVELS, alpha / family_size(model))
    change = _limits(c, members, levels, model_limits, "change", model)
    _simultaneous(model, members, change)
    if np.isfinite(model.get("shift", np.nan)).any():
        model["bounds_shift"] = _columns(change)
        _bound_by_harm(c, members, model)
        value = _limits(c, members, levels, model_limits, "compressed", model)
        model["bounds_value"] = _columns(value)
        # The shift may have no limits where few predictions changed; the value has its own.
        model["value_known"] = np.isfinite(value[0][0])
    else:
        model["bounds_value"] = _columns(change)
    model["members"] = _of_members(c, members)
    yield corrected(model, c.options)
    if not c.one_pair:
        members = [
            (quantity, None if found is None else about_method(c, found))
            for quantity, found in members
        ]
        method = _joined(c, members, method_block, "method")
        level = np.array([alpha / family_size(method)])
        change = _limits(c, members, level, method_limits, "change", method)
        _simultaneous(method, members, change)
        yield corrected(method, c.options)


def _of_members(c: Comparison, members: Sequence[Found]) -> Floats:
    """Every member's own value, (rows, members); NaN where a member has none."""
    parts = [
        np.full((len(quantity.slots), len(c.cube.members)), np.nan)
        if found is None or found.own is None
        else found.own.T
        for quantity, found in members
    ]
    return np.concatenate(parts)


def _joined(c: Comparison, members: Sequence[Found], rows_of: RowsOf, scope: str) -> Block:
    """The quantities of a family as one block; columns that some lack are empty there."""
    blocks = [
        block(
            c,
            quantity.metric,
            quantity.slots,
            scope=scope,
            aggregation=quantity.aggregation,
            n=quantity.n,
            status=quantity.status,
        )
        if found is None
        else rows_of(c, quantity, found)
        for quantity, found in members
    ]
    joined: Block = {}
    for name in dict.fromkeys(name for b in blocks for name in b):
        empty: object = None if name in TEXT_COLUMNS else np.nan
        parts = [b[name] if name in b else np.full(len(b["metric"]), empty) for b in blocks]
        joined[name] = np.concatenate(parts)
    return joined


def _limits(
    c: Comparison,
    members: Sequence[Found],
    levels: Floats,
    limits_of: LimitsOf,
    part: Part,
    rows: Block,
) -> Limits:
    """Limits of all rows of a family at several levels, (levels, rows); NaN where not to be had."""
    shape = (len(levels), len(rows["metric"]))
    low, high = np.full(shape, np.nan), np.full(shape, np.nan)
    at = 0
    for quantity, found in members:
        here = slice(at, at + len(quantity.slots))
        if found is not None:
            made = limits_of(c, quantity, found, levels, part)
            state = rows["status"][here]
            known = limits_known(state, found, part) & ~np.char.startswith(
                state.astype(str), "small_group"
            )
            low[:, here], high[:, here] = (np.where(known, side, np.nan) for side in made)
        at = here.stop
    return low, high


def _bound_by_harm(c: Comparison, members: Sequence[Found], rows: Block) -> None:
    """Put one-sided bounds in the place of the gate's limits where too few predictions changed."""
    state = rows["status"].astype(str)
    open_rows = np.char.find(state, FEW_CHANGED) >= 0
    few = np.zeros(len(state), dtype=bool)
    told = np.full(len(state), None, dtype=object)
    at = 0
    for quantity, found in members:
        here = slice(at, at + len(quantity.slots))
        at = here.stop
        asked = open_rows[here] & np.isfinite(rows["shift"][here])
        bounds = None if found is None else harmful_bounds(c, quantity, asked)
        if bounds is None:
            continue
        few[here] = bounds.few
        told[here][bounds.few] = bounds.status[bounds.few]
        lower = metric(quantity.metric).better == "lower"
        limits = np.full((len(quantity.slots), len(LEVELS), 2), np.nan)
        limits[..., int(lower)] = bounds.loss if lower else -bounds.loss
        rows["bounds_shift"][here][few[here]] = limits[few[here]]
    rows["bound_status"] = told


def _simultaneous(rows: Block, members: Sequence[Found], limits: Limits) -> None:
    """The last level's limits as simultaneous ones; there is no worst of composites."""
    nothing = np.full(len(rows["metric"]), np.nan)
    composite = members[0][0].never_negative
    rows["sim_low"] = nothing if composite else limits[0][-1]
    rows["sim_high"] = nothing if composite else limits[1][-1]


def _columns(limits: Limits) -> Floats:
    """The gate's limits as (rows, levels, 2)."""
    made: Floats = np.stack([side[: len(LEVELS)].T for side in limits], axis=-1)
    return made


def _model_block(c: Comparison, quantity: Quantity, found: Replicated) -> Block:
    """Rows about these models: examples drawn again, answers exchanged."""
    from fairweight.auditing.intervals.bootstrap import exceedance_p

    if found.bootstrap is None or metric(quantity.metric).linear:
        linear = metric(quantity.metric).linear
        nothing = np.full(len(quantity.slots), np.nan)
        return undrawn_block(
            c, quantity, found, linear_p(c, quantity, found) if linear else nothing
        )
    p_value = np.full(len(quantity.slots), np.nan)
    if quantity.p_value is not None:
        p_value = quantity.p_value
    elif found.swapped is not None:
        p_value = exceedance_p(
            found.observed.change[0], found.swapped.change, two_sided=not quantity.never_negative
        )
    return drawn_block(
        c, quantity, found, found.observed, found.bootstrap, p_value, scope="model", drawn=""
    )
