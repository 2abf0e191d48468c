"""Selection probabilities where the truth is known: how often the stated winner is the best.

True values are normal with a spread τ, estimates err by σ = 1; replicates have the same errors.
With `common`, all variants share an error three times as large, as easy and hard draws of examples
give them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fairweight.auditing.choose.best import best_set, share_best
from fairweight.auditing.choose.shrunk import shrink

from .measured import Figures, Share, share

REPLICATES = 1000
RATIOS = (0.25, 1.0, 3.0)
VARIANTS = (5, 20)
COMMON = 3.0


@dataclass(frozen=True)
class Calibration:
    """What was stated of the variant with the highest probability, and how often it was right."""

    stated: float
    actual: Share
    frequency: float  # the raw bootstrap frequency of the leader
    covered: Share  # samples whose 95 % set contains the best
    size: float  # of that set

    @property
    def off(self) -> float:
        return self.stated - self.actual.value


@cache
def calibration(
    n_variants: int, ratio: float, *, common: bool = False, samples: int = 1500, seed: int = 1801
) -> Calibration:
    rng = np.random.default_rng([seed, n_variants, int(100 * ratio), common])
    stated, raw, right, covered, sizes = [], [], [], [], []
    for _ in range(samples):
        truth = ratio * rng.standard_normal(n_variants)
        shared = COMMON * common
        values = truth + rng.standard_normal(n_variants) + shared * rng.standard_normal()
        error = rng.standard_normal((REPLICATES, n_variants))
        replicates = values + error + shared * rng.standard_normal((REPLICATES, 1))
        chance = share_best(shrink(values, replicates, rng).draws)
        stated.append(chance.max())
        raw.append(share_best(replicates).max())
        right.append(chance.argmax() == truth.argmax())
        inside = best_set(values, replicates)
        covered.append(inside[truth.argmax()])
        sizes.append(inside.sum())
    return Calibration(
        stated=float(np.mean(stated)),
        actual=share(right),
        frequency=float(np.mean(raw)),
        covered=share(covered),
        size=float(np.mean(sizes)),
    )


def calibration_figures() -> Figures:
    rows = []
    for n_variants in VARIANTS:
        for ratio in RATIOS:
            found = calibration(n_variants, ratio)
            stated, raw = (f"{100 * part:.1f} %" for part in (found.stated, found.frequency))
            size = f"{found.size:.1f}"
            rows.append((n_variants, ratio, stated, found.actual, raw, found.covered, size))
    head = ("variants", "τ / σ", "P(best) of the leader", "it is the best",
            "its bootstrap frequency", "95 % set contains the best", "size of the set")  # fmt: skip
    return Figures("choices", head, rows, f"1,500 samples each, {REPLICATES:,} replicates.")


if __name__ == "__main__":
    figures = calibration_figures()
    print(f"### {figures.name}\n\n{figures.markdown()}\n", flush=True)
