"""Excess over the others: coverage of its interval, plain and standardised."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.compare.harm import standardised_excess_shift
from fairweight.auditing.compare.rows import value_rows

from .audits import covers, rate
from .latent import compared, world
from .measured import Share, share, stored

SIZES = np.array([[0.1], [0.2], [0.3], [0.4]])
LABELS = 5
HARM = np.array([[0.25], [0.0], [0.1], [0.05]])


@stored
def excess_coverage(n: int, audits: int = 800, seed: int = 1401) -> dict[str, Share]:
    """Four groups of 10, 20, 30 and 40 % that lose 5, 0, 2 and 1 points."""
    rng = np.random.default_rng([seed, n])
    hurt = world(4, 2, compressed=0.5 - HARM, share=SIZES)
    truth = hurt.excess
    covered, agreed = [], []
    for i in range(audits):
        rows = rate(
            compared(hurt.cube(hurt.draw(n, rng)), i, positive=1), "accuracy", "group"
        ).block
        covered.append(covers(rows["excess_low"], truth, rows["excess_high"]))
        excludes = (rows["excess_low"] > 0) | (rows["excess_high"] < 0)
        agreed.append(excludes == (rows["excess_p"] < 0.05))
    by_group = np.array(covered)
    return {
        "all rows": share(by_group),
        "smallest group": share(by_group[:, 0]),
        "agrees with the test": share(agreed),
    }


@stored
def standardised_coverage(n: int, audits: int = 300, n_boot: int = 500, seed: int = 1402) -> Share:
    """The same groups: labels are alike in all of them, so the excess is also the standardised."""
    rng = np.random.default_rng([seed, n])
    hurt = world(4, LABELS, compressed=0.5 - HARM, share=SIZES)
    covered = []
    for i in range(audits):
        c = compared(hurt.cube(hurt.draw(n, rng)), i, n_boot=n_boot)
        (rows,) = value_rows(c, list(standardised_excess_shift(c)))
        covered.append(covers(rows["ci_low"], hurt.excess, rows["ci_high"]))
    return share(covered)
