"""Rates of populations: coverage of the two-way t (method) and of linearised limits (model)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.compare.comparison import Comparison, event_outcomes
from fairweight.auditing.compare.estimate import Family
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.metrics.registry import metric

from .audits import covers
from .latent import Floats
from .measured import Share, share, stored
from .populations import Design, children, compared, latent, of_groups, same_seeds, unrelated

SIZES = np.array([100, 300, 1000, 2000])  # examples of the four groups
ROWS = ("overall", *(f"{n:,}" for n in SIZES))
AUDITS, MODEL_AUDITS, SEED = 2000, 1000, 1301
PARTS = ("accuracy", "shift", "excess")

_HARM = [[0.3], [0.1], [0.0], [0.15]]

WORLDS = {
    # Retraining moves a member's accuracy by .7 points, compression its children's by as much.
    "near": latent(4, harm=_HARM, member_group=0.03, step=0.05),
    # Children differ from their parents by a constant alone.
    "no step": latent(4, harm=_HARM),
    # Retraining moves a member's accuracy by 3 points: members, not examples, limit what is known.
    "far": latent(4, harm=_HARM, member=0.2, member_group=0.1, step=0.1),
}


DESIGNS = (
    *(make(k) for make in (children, same_seeds) for k in (3, 5, 10)),
    unrelated(3, 10),
    unrelated(5, 5),
)
CASES = (
    *(("near", design) for design in DESIGNS),
    *(("far", design) for design in DESIGNS),
    *(("no step", children(k)) for k in (3, 5, 10)),
)
MODEL_CASES = (("far", children(3)), ("far", children(10)), ("far", unrelated(3, 10)))


@dataclass(frozen=True)
class Truth:
    """Values by row: overall first, then the groups."""

    dense: Floats
    compressed: Floats

    @property
    def parts(self) -> dict[str, Floats]:
        shift = self.compressed - self.dense
        rest = (np.dot(SIZES, shift[1:]) - SIZES * shift[1:]) / (SIZES.sum() - SIZES)
        return {
            "baseline": self.dense,
            "compressed": self.compressed,
            "shift": shift,
            "excess": np.concatenate([[np.nan], shift[1:] - rest]),
        }


def truth_of(dense: Floats, compressed: Floats, labels: Floats) -> Truth:
    """From rates by group and label."""

    def rows(rates: Floats) -> Floats:
        by_group = of_groups(rates, labels)
        return np.concatenate([[by_group @ SIZES / SIZES.sum()], by_group])

    return Truth(rows(dense), rows(compressed))


def estimates(c: Comparison, scope: str) -> list[Family]:
    """Accuracy overall and by group, as the audit estimates it."""
    event = metric("accuracy").event
    assert event is not None
    rates = method_rates if scope == "method" else linear_rates
    found = [
        rates(c, metric("accuracy"), event_outcomes(c, event, kind), kind)
        for kind in ("overall", "group")
    ]
    return [e for e in found if e is not None]


def covered(found: list[Family], truth: Truth) -> dict[str, Floats]:
    """Whether the 95 % limits hold the truth, by row."""

    def rows(part: str) -> Floats:
        low, high = (
            np.concatenate(ends)
            for ends in zip(*(getattr(e, part).limits(0.05) for e in found), strict=True)
        )
        return covers(low, truth.parts[part], high)

    accuracy = [rows(side) for side in ("baseline", "compressed")]
    return {
        "accuracy": np.mean(accuracy, axis=0),
        "shift": rows("shift"),
        "excess": rows("excess"),
    }


@stored
def coverage(
    name: str, design: Design, scope: str = "method", audits: int = AUDITS
) -> dict[tuple[str, str], Share]:
    """By part and row.

    Scope `method`: of the value over new members and new examples; scope `model`: of the mean over
    the members at hand over new examples.
    """
    world = WORLDS[name]
    rng = np.random.default_rng([SEED, *design.key])
    truth = truth_of(*world.rates(), world.share)
    inside: dict[tuple[str, str], list[float]] = {}
    for i in range(audits):
        skills = world.skills(design, rng)
        c = compared(world.sample(design, SIZES, rng, skills), design, i)
        if scope == "model":
            first, second = (rates.mean(axis=0) for rates in world.rates_of(skills))
            truth = truth_of(first, second, world.share)
        for part, rows in covered(estimates(c, scope), truth).items():
            for row, value in zip(ROWS, rows, strict=True):
                inside.setdefault((part, row), []).append(float(value))
    return {at: share(values) for at, values in inside.items() if not np.isnan(values).all()}
