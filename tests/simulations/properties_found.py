"""Properties of examples against losses: findings where nothing is planted, and where something is.

Ten classes lose right answers at different rates, and most properties differ between classes: what
goes with the class alone must not be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.explain.properties import example_properties
from fairweight.auditing.prediction_matrix import Answers, from_arrays

from .latent import Floats
from .measured import Figures, Share, share, stored

CLASSES = 10
EXAMPLES = 3000
PLANTED = "planted"
EFFECTS = (0.1, 0.2, 0.3, 0.5)  # log odds per standard deviation


@dataclass(frozen=True)
class Design:
    """Pairs of members, and people who have properties and losses of their own."""

    pairs: int = 1
    people: int | None = None


DESIGNS = {
    "one pair": Design(),
    "five pairs": Design(pairs=5),
    "100 clusters": Design(people=100),
    "100 clusters, five pairs": Design(pairs=5, people=100),
    "25 clusters": Design(people=25),
}


def draw(
    design: Design, effect: float, rng: np.random.Generator, rate: float = 0.05
) -> tuple[Answers, dict[str, Floats]]:
    """Answers, and properties of which `planted` moves the log odds of losing by `effect`."""
    label = rng.integers(0, CLASSES, EXAMPLES)
    whose = rng.integers(0, design.people or EXAMPLES, EXAMPLES)
    centre = rng.normal(size=(CLASSES, 20))

    def measured(k: int) -> Floats:
        """Half of the variance is the person's own, where there are people."""
        alone = rng.normal(size=EXAMPLES)
        if design.people is None:
            return alone
        return np.sqrt(0.5) * (alone + rng.normal(size=design.people)[whose])

    columns = {f"normal {k}": measured(k) + centre[label, k] for k in range(10)}
    columns |= {f"skewed {k}": np.exp(measured(k)) for k in range(4)}
    columns |= {f"rare {k}": (rng.random(EXAMPLES) < 0.02 * k).astype(float) for k in (1, 2, 4)}
    planted = measured(0)
    columns[PLANTED] = planted + centre[label, 10]
    odds = np.log(rate / (1 - rate)) + 0.5 * rng.normal(size=CLASSES)[label] + effect * planted
    if design.people is not None:
        odds = odds + 0.5 * rng.normal(size=design.people)[whose]
    if design.pairs > 1:
        odds = odds + 1.5 * rng.normal(size=EXAMPLES)  # pairs lose the same examples
    right = rng.random((EXAMPLES, design.pairs)) < 0.97
    lost = rng.random((EXAMPLES, design.pairs)) < 1 / (1 + np.exp(-odds))[:, None]
    wrong = ((label + 1) % CLASSES)[:, None]
    dense = np.where(right, label[:, None], wrong)
    pruned = np.where(right & lost, wrong, dense)
    levels = rng.choice(["a", "b", "c", "d"], EXAMPLES, p=[0.6, 0.25, 0.1, 0.05])
    answers = from_arrays(
        label,
        {"dense": dense, "pruned": pruned},
        groups={"group": levels},
        cluster=None if design.people is None else whose,
    )
    return answers, columns


@stored
def nothing_planted(
    name: str, rate: float = 0.05, audits: int = 300, seed: int = 1710
) -> dict[str, Share]:
    """Rows with p ≤ .05, by the kind of property, and audits with a finding after correction.

    Kinds that no audit calls estimable are left out.
    """
    rng = np.random.default_rng([seed, list(DESIGNS).index(name), round(1000 * rate)])
    found: dict[str, list[Floats]] = {"normal": [], "skewed": [], "rare": [], "group": []}
    anything = []
    for _ in range(audits):
        answers, columns = draw(DESIGNS[name], 0.0, rng, rate)
        frame = example_properties(answers, "pruned", columns)
        anything.append((frame["p_adjusted"] <= 0.05).any())
        p = frame["p_value"].to_numpy()
        for kind, rows in found.items():
            own = p[frame["property"].str.startswith(kind)]
            rows.append(np.where(np.isnan(own), np.nan, own <= 0.05))
    told = {kind: rows for kind, rows in found.items() if not np.isnan(np.concatenate(rows)).all()}
    return {kind: share(rows) for kind, rows in told.items()} | {"any": share(anything)}


@stored
def planted(effect: float, audits: int = 200, seed: int = 1711) -> dict[str, Share]:
    """One pair: how often the planted property is found after correction, is first, is covered."""
    rng = np.random.default_rng([seed, round(1000 * effect)])
    seen, first, covered = [], [], []
    for _ in range(audits):
        answers, columns = draw(DESIGNS["one pair"], effect, rng)
        frame = example_properties(answers, "pruned", columns).set_index("property")
        row = frame.loc[PLANTED]
        seen.append(row["p_adjusted"] <= 0.05)
        first.append(frame["p_value"].idxmin() == PLANTED)
        right = answers.correct("dense")[0]
        truth = effect * columns[PLANTED][right].std()  # the effect is per standard deviation
        covered.append(row["low"] <= truth <= row["high"])
    return {"found": share(seen), "first": share(first), "covered": share(covered)}


def null_figures() -> Figures:
    rows = []
    for name in DESIGNS:
        found = nothing_planted(name)
        rows.append((name, *(found[k] for k in ("normal", "skewed", "rare", "group", "any"))))
    head = (
        "nothing planted",
        "normal numbers",
        "skewed numbers",
        "rare marks",
        "levels of a group",
        "audits with any finding",
    )
    return Figures("properties-null", head, rows, "300 audits per row, seed 1710.")


def planted_figures() -> Figures:
    rows = []
    for effect in EFFECTS:
        found = planted(effect)
        rows.append((effect, found["found"], found["first"], found["covered"]))
    head = ("log odds per standard deviation", "found", "first of 22", "interval covers")
    return Figures("properties-planted", head, rows, "200 audits per row, seed 1711.")


TABLES = {"properties-null": null_figures, "properties-planted": planted_figures}
