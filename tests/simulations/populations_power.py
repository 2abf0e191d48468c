"""Power of the two-way t: a shift that analysis says is found in 80 % of audits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, nct, norm, t

from .measured import Share, share, stored
from .populations import Design, Latent, compared, latent
from .populations_rates import estimates

N = 1000
ALPHA = 0.05
POWER = 0.8
AUDITS, SEED = 2000, 1341


def world(harm: float) -> Latent:
    """One group; compression moves members' skill by a step of its own."""
    return latent(1, harm=harm, step=0.05)


def variances(of: Latent) -> tuple[float, float, float]:
    """Of the difference between child and parent on an example: member, example, the rest.

    All by integration, nothing simulated: over an example's difficulty, over members' skills, and
    P(right in both) from the bivariate normal distribution.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    margin, harmed = float(of.margin[0, 0]), float((of.margin - of.harm)[0, 0])
    dense, compressed = of.member**2 + of.luck**2, of.member**2 + of.luck**2 + of.step**2
    by_example = norm.cdf((harmed - points) / np.sqrt(compressed)) - norm.cdf(
        (margin - points) / np.sqrt(dense)
    )
    scale = np.sqrt(1 + of.luck**2)
    shared = of.member * points[:, None]
    own = of.step * points[None, :]
    by_member = norm.cdf((harmed + shared + own) / scale) - norm.cdf((margin + shared) / scale)
    both_weights = weights[:, None] * weights[None, :]
    shift = float(weights @ by_example)
    example = float(weights @ (by_example - shift) ** 2)
    member = float((both_weights * (by_member - shift) ** 2).sum())
    common = 1 + of.member**2 + np.sqrt(of.kept) * of.luck**2
    total = _discordance(margin, harmed, 1 + dense, 1 + compressed, common) - shift**2
    return member, example, total - member - example


def _discordance(
    first: float, second: float, var_first: float, var_second: float, common: float
) -> float:
    """P(exactly one of two answers is right)."""
    both = multivariate_normal.cdf(
        [first, second], mean=[0, 0], cov=[[var_first, common], [common, var_second]]
    )
    alone = norm.cdf(first / np.sqrt(var_first)) + norm.cdf(second / np.sqrt(var_second))
    return float(alone - 2 * both)


def analytic_power(harm: float, k: int, n: int = N) -> float:
    """Of the two-way t with k pairs and n examples, by the noncentral t distribution."""
    of = world(harm)
    member, example, rest = variances(of)
    dense, compressed = of.rates()
    terms = (
        ((member + rest / n) / k, k - 1),
        ((example + rest / k) / n, n - 1),
        (-rest / (k * n), (k - 1) * (n - 1)),
    )
    variance = sum(part for part, _ in terms)
    degrees = variance**2 / sum(part**2 / d for part, d in terms)
    away = float(compressed[0, 0] - dense[0, 0]) / np.sqrt(variance)
    beyond = t.ppf(1 - ALPHA / 2, degrees)
    return float(nct.sf(beyond, degrees, abs(away)))  # the other side is out of reach


@stored
def detectable(k: int) -> float:
    """The harm that analysis says is found in 80 %."""
    return float(brentq(lambda harm: analytic_power(harm, k) - POWER, 0.02, 0.6))


@stored
def found(design: Design, *, planted: bool = True, audits: int = AUDITS) -> Share:
    """How often the two-way t finds it; with nothing planted, how often it cries wolf."""
    k = design.n_dense
    of = world(detectable(k) if planted else 0.0)
    rng = np.random.default_rng([SEED, planted, *design.key])
    happened = []
    for i in range(audits):
        overall, _ = estimates(compared(of.sample(design, [N], rng), design, i), "method")
        happened.append(bool(overall.change.p[0] <= ALPHA))
    return share(happened)
