"""Individuals with few examples each: how often the shrunken limits hold the true rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairweight.auditing.explain.individuals import individuals
from fairweight.auditing.prediction_matrix import Answers, from_arrays

from .latent import Floats
from .measured import Figures, Share, stored

# Shares of an individual's examples: lost, gained, right before and after, wrong before and after.
PRUNED = np.array([0.08, 0.01, 0.89, 0.02])
STRUGGLING = np.array([0.30, 0.03, 0.62, 0.05])


def one_kind(n: int, rng: np.random.Generator) -> Floats:
    """Everyone is a draw from one Dirichlet distribution, as the method supposes."""
    return rng.dirichlet(25 * PRUNED, n)


def two_kinds(n: int, rng: np.random.Generator) -> Floats:
    """One in ten struggles: the distribution has two humps, which the method does not suppose."""
    plain = rng.dirichlet(100 * np.array([0.04, 0.01, 0.94, 0.01]), n)
    return np.where(rng.random((n, 1)) < 0.1, rng.dirichlet(20 * STRUGGLING, n), plain)


def no_loss(n: int, rng: np.random.Generator) -> Floats:
    """Compression changes next to nothing; individuals differ in difficulty alone."""
    return rng.dirichlet(25 * np.array([0.002, 0.002, 0.946, 0.05]), n)


@dataclass(frozen=True)
class Crowd:
    """How many individuals, of how many examples each, judged by how many pairs of members."""

    truth: Callable[[int, np.random.Generator], Floats]
    people: int
    fewest: int
    most: int
    pairs: int = 1


CROWDS = {
    "535 of 34–134": Crowd(one_kind, 535, 34, 134),
    "535 of 8–30": Crowd(one_kind, 535, 8, 30),
    "20 of 8–30": Crowd(one_kind, 20, 8, 30),
    "8 of 34–134": Crowd(one_kind, 8, 34, 134),
    "535 of 34–134, five members": Crowd(one_kind, 535, 34, 134, pairs=5),
    "535 of 8–30, five members": Crowd(one_kind, 535, 8, 30, pairs=5),
    "535 of 34–134, nothing lost": Crowd(no_loss, 535, 34, 134),
    "535 of 34–134, one in ten struggles": Crowd(two_kinds, 535, 34, 134),
    "535 of 8–30, one in ten struggles": Crowd(two_kinds, 535, 8, 30),
}
EXAMPLES_ALIKE = 2.0  # concentration of the pairs' answers on one example: they mostly agree
WANTED = ("baseline", "compressed", "shift")


def draw(crowd: Crowd, rng: np.random.Generator) -> tuple[Answers, dict[str, Floats]]:
    """Answers, and the true rates of every individual."""
    share = crowd.truth(crowd.people, rng)
    n = rng.integers(crowd.fewest, crowd.most + 1, crowd.people)
    whose = np.repeat(np.arange(crowd.people), n)
    if crowd.pairs > 1:  # each example has chances of its own, whose mean is the individual's
        gamma = rng.standard_gamma(EXAMPLES_ALIKE * share[whose])
        chance = gamma / gamma.sum(axis=1, keepdims=True)
    else:
        chance = share[whose]
    until = np.cumsum(chance, axis=1)[:, None, :3]
    kind = (rng.random((len(whose), crowd.pairs, 1)) > until).sum(axis=2)
    dense, pruned = np.isin(kind, (1, 3)), np.isin(kind, (0, 3))
    label = np.zeros(len(whose), dtype=int)
    answers = from_arrays(
        label, {"dense": dense.astype(int), "pruned": pruned.astype(int)}, cluster=whose
    )
    lost, gained, right, _ = share.T
    return answers, {
        "baseline": lost + right,
        "compressed": gained + right,
        "shift": gained - lost,
    }


@stored
def coverage(name: str, audits: int | None = None, seed: int = 1700) -> dict[str, Share]:
    """Shares of individuals whose limits hold the truth.

    Individuals are drawn independently, so each of them counts; the prior that they share moves
    them together by less than chance does.
    """
    crowd = CROWDS[name]
    runs = audits or (10 if crowd.people > 100 else 200)
    rng = np.random.default_rng([seed, list(CROWDS).index(name)])
    held: dict[str, list[float]] = {}
    for _ in range(runs):
        answers, truth = draw(crowd, rng)
        frame = individuals(answers, "pruned")
        order = frame["individual"].astype(int).to_numpy()
        true = {side: truth[side][order] for side in WANTED}
        for side in WANTED:
            inside = (frame[f"{side}_low"] <= true[side]) & (true[side] <= frame[f"{side}_high"])
            held.setdefault(side, []).extend(inside)
            if side == "shift":
                worst = frame["rank"] <= max(1, crowd.people // 20)
                held.setdefault("shift of the worst", []).extend(inside[worst])
        p, n = frame["compressed"], frame["n"]
        reach = 1.96 * np.sqrt(p * (1 - p) / n)
        held.setdefault("normal", []).extend((true["compressed"] - p).abs() <= reach)
    return {what: Share(float(np.mean(rows)), len(rows)) for what, rows in held.items()}


def figures() -> Figures:
    rows = []
    for name in CROWDS:
        found = coverage(name)
        rows.append((name, *(found[what] for what in (*WANTED, "shift of the worst", "normal"))))
    head = (
        "individuals, examples each",
        "accuracy before",
        "accuracy after",
        "shift",
        "shift, the 5 % ranked worst",
        "accuracy after ± 1.96 √(p(1 − p)/n)",
    )
    return Figures(
        "individuals", head, rows, "10 audits per row (200 of the two small crowds), seed 1700."
    )


TABLES = {"individuals": figures}
