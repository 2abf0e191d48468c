"""Measure how often the intervals cover the truth and how often the tests cry wolf.

    python benchmarks/interval_coverage.py --out docs/interval-coverage.md

Wilson and Tango by exact enumeration, everything else by simulation with fixed seeds; about two
minutes on one core. The slow tests call the same functions.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.multiplicity import holm
from fairweight.auditing.intervals.power import min_detectable_shift
from fairweight.auditing.intervals.proportion import mcnemar, tango, wilson
from fairweight.auditing.intervals.units import linearised

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SIZES = (20, 50, 100, 300, 1000)
GROUPS = ((30, 200), (30, 2_000), (100, 1_000), (300, 3_000), (500, 1_000), (2_000, 20_000))
LOSS_AND_GAIN = ((0.005, 0.005), (0.02, 0.01), (0.05, 0.02), (0.05, 0.05), (0.2, 0.005), (0.2, 0.1))
EXCESSES = (0.0, -0.002, -0.01, -0.05, -0.3)

CHURN = (
    (300, (0.30, 0.036), 0.0), (100, (0.20, 0.04), 0.0), (300, (0.12, 0.06), 0.0),
    (300, (0.05, 0.05), 0.0), (300, (0.30, 0.036), 0.02), (100, (0.02, 0.02), 0.05),
)  # fmt: skip

Numbers = NDArray[np.float64]


def wilson_coverage(n: int, p: float, *, modified: bool = False) -> float:
    """Exact coverage of a proportion p at nominal 95 %."""
    k = np.arange(n + 1)
    low, high = wilson(k, n, modified=modified)
    return float(binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum())


def tango_coverage(n: int, discordance: float, delta: float) -> float:
    """Exact coverage of a shift at nominal 95 %: every table with a chance above 1e-15."""
    p_base, p_compressed = (discordance - delta) / 2, (discordance + delta) / 2
    base = _support(n, p_base)[:, None]
    compressed = _support(n, p_compressed)[None, :]
    base, compressed = (x.ravel() for x in np.broadcast_arrays(base, compressed))
    possible = base + compressed <= n
    base, compressed = base[possible], compressed[possible]
    chance = binom.pmf(base, n, p_base) * binom.pmf(
        compressed, n - base, min(1.0, p_compressed / (1 - p_base))
    )
    low, high = tango(n, base, compressed)
    covered = (low <= delta + 1e-12) & (delta - 1e-12 <= high)
    return float(chance[covered].sum() / chance.sum())


def cluster_coverage(
    clusters: int, icc: float, repeats: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Coverage of a rate of 0.85 and of a shift of −0.03; clusters of 10 to 60 examples."""
    size = rng.integers(10, 61, size=(repeats, clusters))
    right = rng.binomial(size, _beta(0.85, icc, size.shape, rng))
    lost = rng.binomial(size, _beta(0.05, icc, size.shape, rng))
    gained = rng.binomial(size - lost, _beta(0.02 / 0.95, icc, size.shape, rng))
    # The gain is drawn from what is not lost: its mean is 0.02.
    covered = []
    for total, truth, bounds in ((right, 0.85, (0.0, 1.0)), (gained - lost, -0.03, (-1.0, 1.0))):
        low, high, _ = linearised(
            total.sum(1),
            size.sum(1),
            (total**2).sum(1),
            (total * size).sum(1),
            (size**2).sum(1),
            clusters,
            bounds=bounds,
        )
        covered.append(float(np.mean((low <= truth) & (truth <= high))))
    return covered[0], covered[1]


def excess_coverage(
    group: int,
    total: int,
    loss: float,
    gain: float,
    excess: float,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Coverage, share of rejections, and agreement of test and interval.

    The group's rate of loss is higher than that of the others by −excess.
    """
    inside = rng.multinomial(group, [loss - excess, gain, 1 - loss + excess - gain], size=repeats)
    outside = rng.multinomial(total - group, [loss, gain, 1 - loss - gain], size=repeats)
    table = (group, inside[:, 0], inside[:, 1], total - group, outside[:, 0], outside[:, 1])
    p = excess_test(*table)
    low, high = excess_interval(*table)
    covered = float(np.mean((low <= excess) & (excess <= high)))
    agree = float(np.mean(((low > 0) | (high < 0)) == (p < 0.05)))
    return covered, float(np.mean(p < 0.05)), agree


def any_rejection(
    kind: str, drop: float, repeats: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Audits of 20 groups × 500 with a uniform drop that reject something, and all rejections.

    `kind` is "shift" (McNemar) or "excess" (MOVER), both after Holm's correction.
    """
    groups, n = 20, 500
    lost = rng.binomial(n, 0.02 + drop, size=(repeats, groups))
    gained = rng.binomial(n - lost, 0.02)
    if kind == "shift":
        p = mcnemar(lost, gained)
    else:
        rest = (groups - 1) * n
        others = (x.sum(1, keepdims=True) - x for x in (lost, gained))
        p = excess_test(n, lost, gained, rest, *others)
    significant = np.array([holm(row) <= 0.05 for row in p])
    return float(significant.any(axis=1).mean()), float((p <= 0.05).mean())


def found_at_80_per_cent(
    n: int, discordance: float, repeats: int, rng: np.random.Generator
) -> float:
    """How often a shift that should be found with 80 % power is found, at α = 0.05 / 20."""
    alpha = 0.05 / 20
    delta = float(min_detectable_shift(n, discordance, alpha))
    psi = max(discordance, delta)
    lost = rng.binomial(n, (psi + delta) / 2, size=repeats)
    gained = rng.binomial(n - lost, (psi - delta) / 2 / (1 - (psi + delta) / 2))
    return float(np.mean((mcnemar(lost, gained) <= alpha) & (lost > gained)))


def churn_level(
    group: int, others: int, churn: tuple[float, float], loss: float,
    repeats: int, rng: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    """Rejections at 5 % and at 0.17 % where a group flips more often but loses as all do."""
    table = []
    for n, own in ((group, churn[0]), (others, churn[1])):
        lost = rng.binomial(n, own / 2 + loss, size=repeats)
        table += [np.full(repeats, n), lost, rng.binomial(n - lost, own / 2 / (1 - own / 2 - loss))]
    p = excess_test(*table)
    return float(np.mean(p <= 0.05)), float(np.mean(p <= 0.0017))


def report(scale: float) -> Iterator[str]:
    """The page, line by line; `scale` multiplies the number of simulated data sets."""

    def times(repeats: int) -> int:
        return max(20, int(repeats * scale))

    rng = np.random.default_rng(20260101)
    yield "# Measured coverage of intervals and level of tests\n"
    yield "Made by `python benchmarks/interval_coverage.py --out docs/interval-coverage.md`."
    yield "Nominal coverage 95 %, nominal level 5 %.\n"

    yield "## Wilson's interval of a rate (exact)\n"
    yield "Textbook, and in brackets the modified limits for 1 to 3 successes or failures.\n"
    yield from _table(
        ("n", *(f"p = {p}" for p in RATES)),
        (
            [
                n,
                *(
                    f"{wilson_coverage(n, p):.3f} ({wilson_coverage(n, p, modified=True):.3f})"
                    for p in RATES
                ),
            ]
            for n in (10, *SIZES)
        ),
    )
    yield "## Tango's interval of a shift (exact)\n"
    yield "Discordance ψ and shift δ; the three numbers are for δ = 0, −ψ/2 and −ψ.\n"
    yield from _table(
        ("n", *(f"ψ = {psi}" for psi in RATES)),
        (
            [
                n,
                *(
                    " ".join(f"{tango_coverage(n, psi, -psi * part):.3f}" for part in (0, 0.5, 1))
                    for psi in RATES
                ),
            ]
            for n in SIZES
        ),
    )
    yield "## Clusters: linearised totals with t\n"
    yield "Clusters of 10 to 60 examples; a rate of 0.85 and a shift of −0.03.\n"
    yield from _table(
        ("clusters", "correlation within", "rate", "shift"),
        (
            [
                clusters,
                icc,
                *(f"{x:.3f}" for x in cluster_coverage(clusters, icc, times(20_000), rng)),
            ]
            for clusters, icc in itertools.product((20, 50, 100), (0.05, 0.2))
        ),
    )
    yield "## Excess of a level over all others\n"
    yield f"Least, mean and greatest coverage over the true excesses {EXCESSES}; level of the test"
    yield "where the excess is 0; agreement of p < 0.05 with an interval that excludes 0.\n"
    yield from _table(
        ("level", "of", "lost", "gained", "coverage", "level of the test", "agreement"),
        (
            _excess_row(*group, *rates, times(2_000), rng)
            for group in GROUPS
            for rates in LOSS_AND_GAIN
        ),
    )
    yield "## Families: 20 groups × 500 examples\n"
    yield "Share of audits in which something is significant after Holm's correction, and share of"
    yield "uncorrected p-values up to 0.05, when every group loses the same.\n"
    yield from _table(
        ("test", "uniform drop", "any after Holm", "uncorrected"),
        (
            [kind, drop, *(f"{x:.3f}" for x in any_rejection(kind, drop, times(2_000), rng))]
            for kind, drop in (("shift", 0.0), ("excess", 0.0), ("shift", 0.02), ("excess", 0.02))
        ),
    )
    yield "## Power: shifts that should be found in 80 % are found in\n"
    yield from _table(
        ("n", "discordance", "found"),
        (
            [n, psi, f"{found_at_80_per_cent(n, psi, times(20_000), rng):.3f}"]
            for n, psi in itertools.product((50, 500, 5_000), (0.02, 0.1))
        ),
    )
    yield "## Unequal churn: level of the excess test\n"
    yield "A hard group flips more in both directions than the 3,000 others; all lose the same."
    yield "The exact test given the totals of lost and gained predictions rejected up to 34 %.\n"
    yield from _table(
        ("group", "churn of the group", "of the others", "loss of all", "p ≤ .05", "p ≤ .0017"),
        (
            [
                n, *churn, loss,
                *(f"{x:.4f}" for x in churn_level(n, 3_000, churn, loss, times(20_000), rng)),
            ]
            for n, churn, loss in CHURN
        ),
    )  # fmt: skip


def _excess_row(
    group: int, total: int, loss: float, gain: float, repeats: int, rng: np.random.Generator
) -> list[object]:
    rows = [excess_coverage(group, total, loss, gain, x, repeats, rng) for x in EXCESSES]
    covered = [row[0] for row in rows]
    span = f"{min(covered):.3f} {np.mean(covered):.3f} {max(covered):.3f}"
    agreement = min(row[2] for row in rows)
    return [group, total, loss, gain, span, f"{rows[0][1]:.3f}", f"{agreement:.3f}"]


def _support(n: int, p: float) -> NDArray[np.int64]:
    reach = 8 * np.sqrt(n * p) + 12
    return np.arange(max(0, int(n * p - reach)), min(n, int(n * p + reach)) + 1 if p > 0 else 1)


def _beta(mean: float, icc: float, shape: tuple[int, ...], rng: np.random.Generator) -> Numbers:
    scale = 1 / icc - 1
    return rng.beta(mean * scale, (1 - mean) * scale, size=shape)


def _table(
    head: Sequence[str], rows: Iterator[list[object]] | Sequence[list[object]]
) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the page here instead of printing it")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1 for a quick look")
    options = parser.parse_args()
    page = "\n".join(report(options.scale))
    if options.out is None:
        print(page)
    else:
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
