"""How many examples a margin needs before any model can pass it."""

from __future__ import annotations

import math
from statistics import NormalDist

from fairweight.auditing.result import GATE_ALPHA


def least_n(margin: float) -> int:
    """The least n at which identical predictions pass a margin on accuracy.

    Tango's lower limit without a discordant pair is −z² / (n + z²), which must be above −margin:
    n > z² (1 / margin − 1), with z of the one-sided gate.

    >>> least_n(0.02)
    133
    """
    z = NormalDist().inv_cdf(1 - GATE_ALPHA)
    return math.floor(z**2 * (1 / margin - 1)) + 1


def likely_n(margin: float, discordance: float, power: float = 0.8) -> int:
    """About how many examples let a model pass with that power if it truly loses nothing.

    `discordance` ψ is the share of examples on which just one of the two models is right. Tango's
    statistic is normal with variance ψ / n, while its own error at a shift of −margin is
    (2q + margin (1 − margin)) / n, with q the share of gained answers that fits such a shift.

    >>> likely_n(0.02, 0.05)
    837
    """
    normal = NormalDist()
    linear = 2 * margin - discordance
    root = math.sqrt(linear**2 + 4 * discordance * margin * (1 - margin))
    q = (root - linear) / 4
    assumed = math.sqrt(2 * q + margin * (1 - margin))
    reach = normal.inv_cdf(1 - GATE_ALPHA) * assumed
    reach += normal.inv_cdf(power) * math.sqrt(discordance)
    return max(least_n(margin), math.ceil((reach / margin) ** 2))
