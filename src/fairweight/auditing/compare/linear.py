"""Rates where examples are not single independent trials: clusters, weights, several members.

A rate is a ratio of totals over units (clusters, or examples). Its variance comes from the units'
linearised contributions, so examples of one person, weights, and the average over members of a
population need no assumption of independence within a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import MIN_CLUSTERS, Comparison
from fairweight.auditing.compare.estimate import Limits, RateEstimate
from fairweight.auditing.compare.events import EventRows
from fairweight.auditing.compare.slots import Slots, join_slots, plain_slots
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.metrics.ratio import ratio


@dataclass(frozen=True)
class Contributions:
    """Sums per (unit, row): numerator of both sides and denominator, in coordinate form."""

    unit: NDArray[np.int64]
    row: NDArray[np.int64]
    baseline: Floats
    compressed: Floats
    size: Floats
    copies: Floats  # how many equal units an entry stands for
    n_rows: int
    n_units: int | None  # None: units are examples, and entries of different rows are unrelated

    def total(self, values: Floats) -> Floats:
        return sums(self.row, values * self.copies, self.n_rows)


def linear_rates(c: Comparison, rows: Iterable[EventRows], kind: str) -> RateEstimate | None:
    """As `closed_rates`, from linearised totals per unit; None without rows."""
    estimates = []
    for part in rows:
        n = sums(part.row, c.cube.count[part.cells], part.n_rows)
        u = contributions(c, part.cells, part.row, part.n_rows, part.happens)
        members = _of_members(c, part)
        estimates.append(_estimate(c, part.slots, u, n, part.partition, kind=kind, members=members))
    return joined_estimates(estimates, kind) if estimates else None


def _of_members(c: Comparison, part: EventRows) -> Floats:
    """Every member's own rate, (members, rows)."""
    from scipy.sparse import coo_array

    weight = c.cube.count[part.cells].astype(float)
    if c.cube.weight is not None:
        weight *= c.cube.weight[part.cells]
    place = (part.row, np.arange(len(weight)))
    total = coo_array((weight, place), shape=(part.n_rows, len(weight))).tocsr()
    size = sums(part.row, weight, part.n_rows)
    return ratio((total @ part.happens.astype(np.float64)).T, size)


def share_limits(
    c: Comparison, share: Floats, row: NDArray[np.int64], n_rows: int, alpha: float | Floats
) -> Limits:
    """Limits of the mean of a share per cell (such as: flipped pairs of members) in each row."""
    cells = np.arange(c.cube.n_cells)
    # One baseline without the event against members that all have this share of it.
    happens = np.zeros((c.cube.n_cells, len(c.cube.members)))
    happens[:, c.n_baseline :] = share[:, None]
    u = contributions(c, cells, row, n_rows, happens)
    n = sums(row, c.cube.count, n_rows)
    slots = plain_slots(c, "overall", "overall", n_rows)
    return _estimate(c, slots, u, n, False, kind="overall", members=share).compressed_limits(alpha)


def contributions(
    c: Comparison,
    cells: NDArray[np.intp],
    row: NDArray[np.int64],
    n_rows: int,
    happens: NDArray[np.bool_] | Floats,
) -> Contributions:
    cube = c.cube
    weight = np.ones(len(cells)) if cube.weight is None else cube.weight[cells]
    base = happens[:, : c.n_baseline].mean(axis=1) * weight
    compressed = happens[:, c.n_baseline :].mean(axis=1) * weight
    count = cube.count[cells].astype(float)
    if cube.unit is None:
        return Contributions(cells, row, base, compressed, weight, count, n_rows, None)
    n_units = len(cube.unit_names)
    key, place = np.unique(cube.unit[cells] * n_rows + row, return_inverse=True)
    place = place.reshape(-1)

    def summed(values: Floats) -> Floats:
        return sums(place, values * count, len(key))

    return Contributions(
        unit=key // n_rows,
        row=key % n_rows,
        baseline=summed(base),
        compressed=summed(compressed),
        size=summed(weight),
        copies=np.ones(len(key)),
        n_rows=n_rows,
        n_units=n_units,
    )


def _estimate(
    c: Comparison,
    slots: Slots,
    u: Contributions,
    n: Floats,
    partition: bool,
    *,
    kind: str,
    members: Floats,
) -> RateEstimate:
    from fairweight.auditing.intervals.linearised import linearised

    units = u.total(np.ones(len(u.row)))
    size = u.total(u.size)
    size_squared = u.total(u.size**2)
    enough = units >= (MIN_CLUSTERS if c.clustered else 2)

    def ratio(
        a: Floats, bounds: tuple[float, float]
    ) -> tuple[Floats, Callable[[float | Floats], Limits]]:
        total, squared, mixed = u.total(a), u.total(a**2), u.total(a * u.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = total / size

        def limits(alpha: float | Floats) -> Limits:
            low, high, _ = linearised(
                total, size, squared, mixed, size_squared, units, alpha, bounds=bounds
            )
            return np.where(enough, low, np.nan), np.where(enough, high, np.nan)

        return value, limits

    difference = u.compressed - u.baseline
    baseline, baseline_limits = ratio(u.baseline, (0.0, 1.0))
    compressed, compressed_limits = ratio(u.compressed, (0.0, 1.0))
    shift, limits = ratio(difference, (-1.0, 1.0))
    p_value = np.where(enough, _p_value(c, u, difference, shift, units), np.nan)
    nothing = np.full(len(n), np.nan)
    excess, excess_error, excess_p, degrees = nothing, nothing, nothing, 1.0
    if partition and kind in ("class", "group", "intersection"):
        excess, excess_error, excess_p, degrees = excess_of(u, difference, shift)
        excess_error = np.where(enough, excess_error, np.nan)
        excess_p = np.where(enough, excess_p, np.nan)

    def excess_limits(alpha: float) -> Limits:
        from scipy.special import stdtrit

        with np.errstate(invalid="ignore"):
            reach = stdtrit(degrees, 1 - alpha / 2) * excess_error
        return excess - reach, excess + reach

    moved, effect = _spread(c, u, difference, shift, size)
    return RateEstimate(
        slots=slots,
        n=n,
        n_clusters=units if c.cube.unit_is_cluster else nothing,
        baseline=baseline,
        compressed=compressed,
        shift=shift,
        p_value=p_value,
        excess=excess,
        excess_p=excess_p,
        discordance=moved,
        design_effect=effect,
        baseline_limits=baseline_limits,
        compressed_limits=compressed_limits,
        limits=limits,
        excess_limits=excess_limits,
        interval="linearised t over clusters" if c.clustered else "linearised t over examples",
        members=members,
    )


def _p_value(
    c: Comparison, u: Contributions, difference: Floats, shift: Floats, units: Floats
) -> Floats:
    """Sign flips of whole clusters; with independent examples, the linearised t."""
    if u.n_units is None:
        from scipy.special import stdtr

        residual = difference - shift[u.row] * u.size
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = units / (units - 1) * u.total(residual**2)
            t = np.abs(u.total(difference)) / np.sqrt(variance)
            p: Floats = 2 * stdtr(np.maximum(units - 1, 1), -t)
        return np.where(u.total(np.abs(difference)) == 0, 1.0, p)
    from scipy.sparse import coo_array

    from fairweight.auditing.intervals.sign_flip import sign_flip

    per_unit = coo_array((difference, (u.unit, u.row)), shape=(u.n_units, u.n_rows)).tocsc()
    return sign_flip(per_unit, rng=c.rng("sign flip"))


def excess_of(
    u: Contributions, difference: Floats, shift: Floats
) -> tuple[Floats, Floats, Floats, float]:
    """Shift of each row minus the shift of all other rows, its standard error and p (linearised).

    The influence of a unit on the excess of row g is its part in g minus its part in the rest;
    units without a part in g enter through the rest alone.
    """
    from scipy.special import stdtr

    total_d, total_m = u.total(u.size), u.total(difference)
    rest_d, rest_m = total_d.sum() - total_d, total_m.sum() - total_m
    with np.errstate(invalid="ignore", divide="ignore"):
        rest_shift = rest_m / rest_d
        excess = shift - rest_shift
    if u.n_units is None:
        own_m, own_d, n_units = difference, u.size, float(u.copies.sum())
        everyone = _quadratic(u.copies, own_m, own_d)
    else:
        unit_m = sums(u.unit, difference, u.n_units)
        unit_d = sums(u.unit, u.size, u.n_units)
        own_m, own_d, n_units = unit_m[u.unit], unit_d[u.unit], float((unit_d > 0).sum())
        everyone = _quadratic(np.ones(u.n_units), unit_m, unit_d)
    g = u.row
    degrees = max(n_units - 2, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = (difference - shift[g] * u.size) / total_d[g]
        outside = ((own_m - difference) - rest_shift[g] * (own_d - u.size)) / rest_d[g]
        as_rest = (own_m - rest_shift[g] * own_d) / rest_d[g]
        mm, md, dd = everyone
        all_as_rest = (mm - 2 * rest_shift * md + rest_shift**2 * dd) / rest_d**2
        squares = all_as_rest - u.total(as_rest**2) + u.total((inside - outside) ** 2)
        error = np.sqrt(np.maximum(squares, 0) * n_units / (n_units - 1))
        t = np.abs(excess) / error
        p = 2 * stdtr(degrees, -t)
    return excess, error, np.where((excess == 0) & (error == 0), 1.0, p), degrees


def _quadratic(copies: Floats, m: Floats, d: Floats) -> tuple[float, float, float]:
    return (
        float((copies * m * m).sum()),
        float((copies * m * d).sum()),
        float((copies * d * d).sum()),
    )


def _spread(
    c: Comparison, u: Contributions, difference: Floats, shift: Floats, size: Floats
) -> tuple[Floats, Floats]:
    """Discordance of a row (mean absolute change) and how much clustering inflates its variance."""
    units = u.total(np.ones(len(u.row)))
    residual = difference - shift[u.row] * u.size
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = u.total(np.abs(difference)) / size
        clustered = units / (units - 1) * u.total(residual**2)
        alone = size * np.maximum(moved - shift**2, 1e-12)
        effect = np.maximum(clustered / alone, 1.0)
    return moved, np.where(np.isfinite(effect), effect, 1.0)


def joined_estimates(parts: list[RateEstimate], kind: str) -> RateEstimate:
    """Tables of several groupings as one, so that a family is one table."""
    if len(parts) == 1:
        return parts[0]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts])

    def limits_of(name: str, alpha: float | Floats) -> Limits:
        both = [getattr(part, name)(alpha) for part in parts]
        return tuple(np.concatenate([b[i] for b in both], axis=-1) for i in (0, 1))  # type: ignore[return-value]

    return RateEstimate(
        slots=join_slots([part.slots for part in parts], kind),
        n=joined("n"),
        n_clusters=joined("n_clusters"),
        baseline=joined("baseline"),
        compressed=joined("compressed"),
        shift=joined("shift"),
        p_value=joined("p_value"),
        excess=joined("excess"),
        excess_p=joined("excess_p"),
        discordance=joined("discordance"),
        design_effect=joined("design_effect"),
        baseline_limits=lambda alpha: limits_of("baseline_limits", alpha),
        compressed_limits=lambda alpha: limits_of("compressed_limits", alpha),
        limits=lambda alpha: limits_of("limits", alpha),
        excess_limits=lambda alpha: limits_of("excess_limits", alpha),
        interval=parts[0].interval,
        members=np.concatenate([part.members for part in parts], axis=1),
    )
