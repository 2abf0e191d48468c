"""Ratios of sums: limits of the change of a mean, a word error rate, a loss per token, an IoU.

A model's value is R = Σ numerator / Σ denominator over units (examples, or clusters of them); the
shift is R of the compressed model − R of the baseline. Everything here is computed from sums of
products per row, which add up over cells, files and machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import factorial, prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from fairweight.auditing.counts.outcome_sums import EXPONENTS, VARIABLES, about_another_centre
from fairweight.auditing.intervals.units import crossed_variance
from fairweight.base.types import Floats, Limits

POSITION = {exponents: place for place, exponents in enumerate(EXPONENTS)}
N_CHANGED = 10  # with fewer changed values nothing is known of their size
SMALL_POOL = 1000  # units up to which the skewness of a pool counts more than once
OWN_SIZE = 10  # changed values from which a row's own size of a change is heard
LARGEST_Z = 37.0  # beyond this p is no normal floating-point number


def products_of(variables: ArrayLike) -> Floats:
    """The products of every unit, (units, 34), from its four variables, (4, units).

    Their sums are what `RatioSums` holds.
    """
    powers = [
        [np.ones_like(v), v, v * v, v * v * v] for v in np.asarray(variables, dtype=np.float64)
    ]
    return np.stack([prod(p[k] for p, k in zip(powers, e, strict=True)) for e in EXPONENTS], -1)


@dataclass(frozen=True)
class RatioSums:
    """Sums of some rows (groups, classes, all): everything that limits need.

    Parameters
    ----------
    n
        Units: examples, or clusters.
    changed
        Units in which numerator or denominator differ between the models.
    products
        Sums of `products_of`, (rows, 34).
    examples, den
        Examples, and their unweighted sum of the baseline's denominators.
    centre
        The constant of `products_of`.
    """

    n: Floats
    changed: Floats
    products: Floats
    examples: Floats
    den: Floats
    centre: float = 0.0

    @staticmethod
    def of_units(
        num_b: ArrayLike,
        num_c: ArrayLike,
        den_b: ArrayLike,
        den_c: ArrayLike,
        rows: NDArray[np.bool_] | None = None,
        *,
        centre: float = 0.0,
    ) -> RatioSums:
        """The sums of units that are examples, by masks (rows, units); of all by default.

        Numerators and denominators of the baseline and of the compressed model, about a constant
        near the baseline's ratio, so that sums of cubes keep their digits.
        """
        nb, nc, db, dc = (np.asarray(v, dtype=np.float64) for v in (num_b, num_c, den_b, den_c))
        made = products_of(np.stack([nb - centre * db, nc - nb, db, dc - db]))
        masks = np.ones((1, len(made))) if rows is None else rows.astype(np.float64)
        n = masks.sum(1)
        return RatioSums(n, masks @ ((nb != nc) | (db != dc)), masks @ made, n, masks @ db, centre)

    def __add__(self, other: RatioSums) -> RatioSums:
        same = other.recentred(self.centre)
        return RatioSums(
            self.n + same.n, self.changed + same.changed, self.products + same.products,
            self.examples + same.examples, self.den + same.den, self.centre,
        )  # fmt: skip

    def recentred(self, centre: float) -> RatioSums:
        """The same sums about another constant: num becomes num + (old − new) den."""
        step = self.centre - centre
        if step == 0:
            return self
        held = [
            about_another_centre(lambda e: self.products[..., POSITION[e]], exponents, step)
            for exponents in EXPONENTS
        ]
        made = np.stack(held, axis=-1)
        return RatioSums(self.n, self.changed, made, self.examples, self.den, centre)

    def total(self, what: Literal["den", "den_compressed"]) -> Floats:
        """The sums of the denominators of the baseline, or of the compressed model."""
        base = self._sum(den=1)
        return base if what == "den" else base + self._sum(den_change=1)

    def _sum(self, **powers: int) -> Floats:
        return self.products[..., POSITION[tuple(powers.get(v, 0) for v in VARIABLES)]]

    def influence(self, rho: float = 1.0) -> Floats:
        """(4, rows): what a unit's variables add to R_c − ρ R_b of each row."""
        with np.errstate(invalid="ignore", divide="ignore"):
            base, grown = self._sum(den=1), self._sum(den_change=1)
            total = base + grown
            baseline = self._sum(num=1) / base  # less the centre
            compressed = (
                self._sum(num=1) + self._sum(num_change=1) - self.centre * grown
            ) / total  # less the centre too
            return np.stack([
                1 / total - rho / base,
                1 / total,
                rho * baseline / base - compressed / total,
                -(compressed + self.centre) / total,
            ])  # fmt: skip

    def squares(self, of: RatioSums) -> Floats:
        """Σ over the units of these sums of the squares of what they would add to other rows."""
        return self._form(of.influence(), 2)

    def moments(self, rho: float = 1.0) -> RatioMoments:
        """The shift R_c − ρ R_b, and second and third moments of what units contribute to it."""
        with np.errstate(invalid="ignore", divide="ignore"):
            base, grown = self._sum(den=1), self._sum(den_change=1)
            total = base + grown
            baseline = self._sum(num=1) / base  # less the centre
            compressed = (
                self._sum(num=1) + self._sum(num_change=1) - self.centre * grown
            ) / total  # less the centre too
            n = self.n
            coefficients = n * self.influence(rho)
            second, third = (self._form(coefficients, order) for order in (2, 3))
            return RatioMoments(
                n=n,
                n_equal=np.minimum(base**2 / self._sum(den=2), n),
                den=self.den / self.examples,
                baseline=baseline + self.centre,
                compressed=compressed + self.centre,
                shift=compressed - rho * baseline + (1 - rho) * self.centre,
                changed=self.changed if rho == 1 else n,
                second=np.maximum(second, 0),
                third=third,
            )

    def sum_of(self, one: Sequence[float] | Floats) -> Floats:
        """Σ one · v over units, v the four variables."""
        made = np.zeros_like(self.n)
        for name, k in zip(VARIABLES, one, strict=True):
            made = made + k * self._sum(**{name: 1})
        return made

    def influence_or_0(self) -> Floats:
        """`influence` on the shift of each row, 0 where a row has no shift."""
        made = self.influence()
        return np.where(np.isfinite(made).all(axis=0), made, 0.0)

    def product_of(self, one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> Floats:
        """Σ (one · v) (other · v) over units, v the four variables."""
        made = np.zeros_like(self.n)
        for i, j in product(range(len(VARIABLES)), repeat=2):
            exponents = tuple((k == i) + (k == j) for k in range(len(VARIABLES)))
            made = made + one[i] * other[j] * self.products[..., POSITION[exponents]]
        return made

    def _form(self, coefficients: Floats, order: int) -> Floats:
        """Σ (c · v)^order over units, from the sums of products of that order."""
        made = np.zeros_like(self.n)
        for place, exponents in enumerate(EXPONENTS):
            if sum(exponents) == order:
                times = factorial(order) // prod(factorial(k) for k in exponents)
                powers = prod(c**k for c, k in zip(coefficients, exponents, strict=True) if k)
                made = made + times * powers * self.products[..., place]
        return made


@dataclass(frozen=True)
class RatioMoments:
    """Of rows: values, shift, and moments of e, n times what a unit contributes to the shift."""

    n: Floats
    n_equal: Floats  # (Σ den)² / Σ den²: as many units of equal size
    den: Floats  # mean denominator of an example, unweighted
    baseline: Floats
    compressed: Floats
    shift: Floats
    changed: Floats
    second: Floats  # Σ e²
    third: Floats  # Σ e³

    @property
    def change_size(self) -> Floats:
        """Root mean square of a change, over the units that changed."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt((self.second + self.n * self.shift**2) / self.changed)


@dataclass(frozen=True)
class UsualChange:
    """What a change is like in the whole variant, which small rows borrow.

    size
        Root mean square of a change.
    skewness
        Of what units contribute, in units of `size`; up to twice in pools under 1,000 units.
    """

    size: float
    skewness: float
    den: float
    changed: float
    share_changed: float
    variance: float

    @staticmethod
    def of(pool: RatioMoments) -> UsualChange:
        """Of the one row that holds all units of a variant and task."""
        n, changed, second, third, den, size = (
            float(np.asarray(one).item())
            for one in (
                pool.n, pool.changed, pool.second, pool.third, pool.den, pool.change_size
            )
        )  # fmt: skip
        size = size if changed else 0.0
        skewness = third / (second * size) if second * size > 0 else 0.0
        return UsualChange(
            size=size,
            skewness=(1 + min(1.0, SMALL_POOL / n)) * skewness,
            den=den,
            changed=changed,
            share_changed=changed / n,
            variance=second / n,
        )


@dataclass(frozen=True)
class RatioShift:
    """Limits and p of shifts of ratios.

    Notes
    -----
    shift ± q √((s2 + m²) / n² · n* / (n* − 1)) + (1 + 2 q²) / 6 · S± / n, q = t(n* − 1): one
    pseudo-change of usual size m, Johnson's term for skewness where it widens, with a floor where
    little changed. The plain t interval passes up to 30 % of gates at the margin where changes
    are rare or skewed; this rule up to 7 % (docs/statistics.md). NaN where fewer than 10 values
    changed in the whole pool, and in rows of one unit.

    References
    ----------
    Johnson, N. J. (1978), Journal of the American Statistical Association 73, 536-544.
    """

    rows: RatioMoments
    usual: UsualChange

    @property
    def degrees(self) -> Floats:
        """Degrees of freedom of the quantile."""
        return self.rows.n_equal - 1

    @property
    def estimable(self) -> NDArray[np.bool_]:
        enough = self.usual.changed >= N_CHANGED
        found: NDArray[np.bool_] = (self.rows.n_equal > 1) & np.isfinite(self.rows.shift) & enough
        return found

    @property
    def size(self) -> Floats:
        """m of each row: the pool's, for examples of the row's length; its own where larger."""
        rows = self.rows
        with np.errstate(invalid="ignore", divide="ignore"):
            lent = self.usual.size * self.usual.den / rows.den
            own = np.where(rows.changed >= OWN_SIZE, rows.change_size, 0.0)
        return np.fmax(lent, own)

    @property
    def standard_error(self) -> Floats:
        rows = self.rows
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = (rows.second + self.size**2) / rows.n**2
            return np.sqrt(spread * rows.n_equal / (rows.n_equal - 1))

    @property
    def skewed(self) -> tuple[Floats, Floats]:
        """S− / n and S+ / n: how far skewness moves the lower and the upper limit."""
        rows, size = self.rows, self.size
        with np.errstate(invalid="ignore", divide="ignore"):
            own = np.where(rows.second > 0, rows.third / rows.second, 0.0)
        lent, floor = self.usual.skewness * size, 2 * size / (2 + rows.changed)
        low = np.minimum(np.minimum(own, lent), -floor) / rows.n
        return low, np.maximum(np.maximum(own, lent), floor) / rows.n

    def distances(self, z: ArrayLike) -> Limits:
        """How far the lower and the upper limit lie from the shift at a normal quantile."""
        with np.errstate(invalid="ignore"):
            q = -stdtrit(self.degrees, ndtr(-np.asarray(z, dtype=np.float64)))
            low, high = self.skewed
            wide, bend = q * self.standard_error, (1 + 2 * q * q) / 6
            below, above = wide - bend * low, wide + bend * high
        return np.where(self.estimable, below, np.nan), np.where(self.estimable, above, np.nan)

    def limits(self, alpha: ArrayLike) -> Limits:
        """Limits at confidence 1 − alpha; levels (L, 1) give (L, rows)."""
        below, above = self.distances(-ndtri(np.asarray(alpha, dtype=np.float64) / 2))
        return self.rows.shift - below, self.rows.shift + above

    def p_value(self) -> Floats:
        """The smallest level at which the limits exclude 0, by a quadratic in the quantile."""
        shift, (low, high) = self.rows.shift, self.skewed
        bend = np.where(shift > 0, -low, high)  # of the limit that faces 0
        error, distance = self.standard_error, np.abs(shift)
        with np.errstate(invalid="ignore", divide="ignore"):
            left = distance - bend / 6
            q = (np.sqrt(error**2 + 4 / 3 * bend * left) - error) / (2 / 3 * bend)
            p = np.where(left > 0, 2 * stdtr(self.degrees, -q), 1.0)
        return np.where(self.estimable, p, np.nan)


@dataclass(frozen=True)
class CrossedShift(RatioShift):
    """Shifts of examples that clusters of two columns bind.

    Parameters
    ----------
    rows, usual
        Over the clusters of the first column.
    second, both
        The same shifts over those of the second, and over pairs of both.

    Notes
    -----
    The variance is V_a + V_b − V_ab, not below V_a or V_b, each with its own pseudo-change;
    skewness moves a limit as far as in the column where that is further, and the quantile is that
    of the column with fewer clusters (of equal size).
    """

    second: RatioShift
    both: RatioShift

    @staticmethod
    def of(parts: Sequence[RatioShift]) -> RatioShift:
        """Of both columns and their pairs; of a single one the shift itself."""
        if len(parts) == 1:
            return parts[0]
        first, second, both = parts
        return CrossedShift(first.rows, first.usual, second, both)

    @property
    def degrees(self) -> Floats:
        return np.minimum(super().degrees, self.second.degrees)

    @property
    def estimable(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = super().estimable & self.second.estimable
        return found

    @property
    def standard_error(self) -> Floats:
        errors = super().standard_error, self.second.standard_error, self.both.standard_error
        return np.sqrt(crossed_variance([error**2 for error in errors]))

    @property
    def skewed(self) -> tuple[Floats, Floats]:
        (low, high), (other_low, other_high) = super().skewed, self.second.skewed
        return np.minimum(low, other_low), np.maximum(high, other_high)


@dataclass(frozen=True)
class RatioExcess:
    """Limits and p of shift of a row − shift of all others: MOVER on the limits of both.

    Parameters
    ----------
    factor
        Where groups vary inside clusters: how much the two sides' common clusters narrow (or
        widen) the half-widths, √(Σ (U_g − U_o)² / (Σ U_g² + Σ U_o²)) of what each adds.
    """

    group: RatioShift
    others: RatioShift
    factor: Floats | float = 1.0

    @property
    def value(self) -> Floats:
        return self.group.rows.shift - self.others.rows.shift

    def distances(self, z: ArrayLike) -> Limits:
        """How far the limits lie from the excess at a normal quantile."""
        (below, above), (others_below, others_above) = (
            side.distances(z) for side in (self.group, self.others)
        )
        return (
            self.factor * np.hypot(below, others_above),
            self.factor * np.hypot(above, others_below),
        )

    def limits(self, alpha: ArrayLike) -> Limits:
        """Limits at confidence 1 − alpha; levels (L, 1) give (L, rows)."""
        return self.limits_at(-ndtri(np.asarray(alpha, dtype=np.float64) / 2))

    def limits_at(self, z: ArrayLike) -> Limits:
        """Limits at a normal quantile, such as that of the largest of a family."""
        below, above = self.distances(z)
        return self.value - below, self.value + above

    def touching(self) -> Floats:
        """The normal quantile at which the limits touch 0; 0 where they contain it at any level."""
        value = self.value

        def excluded(z: Floats) -> NDArray[np.bool_]:
            below, above = self.distances(z)
            return np.abs(value) > np.where(value > 0, below, above)

        return largest_quantile(excluded, value)

    def p_value(self) -> Floats:
        """The smallest level at which the limits exclude 0."""
        return np.where(np.isnan(self.value), np.nan, 2 * ndtr(-self.touching()))


def largest_quantile(excluded: Callable[[Floats], NDArray[np.bool_]], value: Floats) -> Floats:
    """The largest normal quantile at which limits exclude 0, by bisection; NaN where undefined."""
    low, high = np.zeros_like(value), np.full_like(value, LARGEST_Z)
    for _ in range(60):
        middle = (low + high) / 2
        out = excluded(middle)
        low, high = np.where(out, middle, low), np.where(out, high, middle)
    return np.where(np.isnan(value), np.nan, low)


def min_detectable_change(
    n: ArrayLike, usual: UsualChange, alpha: ArrayLike, power_z: float = 0.8416
) -> Floats:
    """The change that is found with a power of 80 % in a row of n examples.

    Parameters
    ----------
    alpha
        The row's level: α / the size of its family.
    power_z
        The normal quantile of the power.
    """
    n, alpha = (np.asarray(v, dtype=np.float64) for v in (n, alpha))
    if usual.changed < N_CHANGED or usual.size == 0:
        return np.full(np.broadcast_shapes(n.shape, alpha.shape), np.nan)
    with np.errstate(invalid="ignore"):
        q = -stdtrit(n - 1, alpha / 2)
    size, grows = usual.size, usual.share_changed <= 0.9  # else harm brings no more changes
    change: Floats = np.zeros_like(q)
    for _ in range(200):
        variance = usual.variance + (size * change if grows else 0.0)
        changed = n * np.minimum(1.0, usual.share_changed + change / size)
        change = (
            q * np.sqrt(variance / n + (size / n) ** 2)
            + power_z * np.sqrt(variance / n)
            + (1 + 2 * q * q) / 6 * 2 * size / (2 + changed) / n
        )
    return change


def examples_for(margin: float, usual: UsualChange, alpha: float) -> float:
    """How many examples a row needs to find a change of this size with a power of 80 %.

    NaN without a margin, or where too few values changed to know the size of a change.
    """
    if not margin > 0 or usual.changed < N_CHANGED or usual.size == 0:
        return math.nan
    low, high = 3.0, 1e12
    if float(min_detectable_change(high, usual, alpha)) > margin:
        return math.inf
    for _ in range(60):
        middle = math.sqrt(low * high)
        found = float(min_detectable_change(middle, usual, alpha)) <= margin
        low, high = (low, middle) if found else (middle, high)
    return float(math.ceil(high))
