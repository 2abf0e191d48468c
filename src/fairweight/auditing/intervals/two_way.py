"""Two-way t: limits of a mean over members (models) and examples, both sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fairweight.auditing.counts.stats import Floats

Term: TypeAlias = tuple[ArrayLike, ArrayLike]  # a part of the variance, its degrees of freedom


ROUNDING = 1e-12  # differences of means of rates below this are rounding errors of 0
NO_VARIANCE = 1e-24


@dataclass(frozen=True)
class TwoWay:
    """An estimate with its variance and the degrees of freedom of that variance: Student's t."""

    estimate: Floats
    variance: Floats
    degrees: Floats

    def limits(self, alpha: ArrayLike) -> tuple[Floats, Floats]:
        """Estimate ± t standard errors; NaN where the variance is unknown."""
        from scipy.special import stdtrit

        with np.errstate(invalid="ignore"):
            reach = -stdtrit(self.degrees, np.asarray(alpha) / 2) * np.sqrt(self.variance)
        return self.estimate - reach, self.estimate + reach

    @property
    def p_value(self) -> Floats:
        """Two-sided p of an estimate of 0; 1 where nothing differs anywhere."""
        from scipy.special import stdtr

        with np.errstate(invalid="ignore", divide="ignore"):
            p: Floats = 2 * stdtr(self.degrees, -np.abs(self.estimate) / np.sqrt(self.variance))
        nothing = (np.abs(self.estimate) <= ROUNDING) & (self.variance <= NO_VARIANCE)
        return np.where(nothing, 1.0, p)


def two_way(
    estimate: ArrayLike,
    members: Sequence[Term],
    examples: Term,
    interactions: Sequence[Term],
) -> TwoWay:
    """Variance of a mean over K members and n examples, from its mean squares.

    Parameters
    ----------
    estimate
        The mean over members and examples (or the difference of two such means).
    members
        s²(member means) / K with K − 1 degrees of freedom; one term for paired members (of their
        differences), one for each side where members are independent.
    examples
        s²(example means) / n with n − 1 degrees of freedom, of the (difference of) means over
        members; with clusters the linearised variance over G clusters and G − 1.
    interactions
        MS_int / (K n) with (K − 1)(n − 1) degrees of freedom, one for every term of `members`.

    Notes
    -----
    Member means vary by σ²_member + σ²_int / n, example means by σ²_example + σ²_int / K; their sum
    counts the interaction twice, so it is taken off once:
    V = s²(member means)/K + s²(example means)/n − MS_int/(K n), and never below either of the first
    two terms. Degrees of freedom after Satterthwaite, V² / Σ (term² / its own), the term that is
    taken off included, and at least 1. (Not below K − 1 was the rule before. Where the terms nearly
    cancel, V is small by chance, and the degrees must be allowed to say so.)
    Members and examples are both resampled in thought: the limits are about another training run on
    other examples. Measured coverage at 3, 5 and 10 members: docs/statistics.md.

    Examples
    --------
    Two members and two examples, values 1 2 / 3 6: member means 1.5, 4.5 (s² = 4.5), example means
    2, 4 (s² = 2), MS_int = 1: V = 4.5/2 + 2/2 − 1/4 = 3.

    >>> found = two_way(3.0, [(4.5 / 2, 1)], (2 / 2, 1), [(1 / 4, 1)])
    >>> float(found.variance)
    3.0
    """
    value = np.asarray(estimate, dtype=np.float64)
    by_member = np.asarray(sum(np.asarray(v, dtype=np.float64) for v, _ in members))
    by_example = np.asarray(examples[0], dtype=np.float64)
    shared = np.asarray(sum(np.asarray(v, dtype=np.float64) for v, _ in interactions))
    # Not below either: a negative estimate of one component must not hide the other.
    variance = np.maximum(by_member + by_example - shared, np.maximum(by_member, by_example))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.zeros(variance.shape)
        for part, degrees in (*members, examples, *interactions):
            spread = spread + np.asarray(part) ** 2 / np.asarray(degrees)
        fewest = np.minimum.reduce([np.asarray(d, dtype=np.float64) for _, d in members])
        degrees_all = np.where(spread > 0, variance**2 / spread, fewest)
    return TwoWay(value, variance, np.maximum(degrees_all, 1.0))
