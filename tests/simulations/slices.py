"""The slice finder where the truth is known: planted slices, and none at all.

10,000 examples, 20 columns of 2, 3, 5, 8 and 10 levels, 112 levels in all. Everyone loses and gains
some answers at random: a drop of one point comes with churn, answers that are lost here and gained
there, as when a model is merely trained again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.auditing.counts.cube import CubeMember, GroupColumn
from fairweight.auditing.explain.slices.search import find_slices
from fairweight.auditing.prediction_matrix import Answers

from .measured import Figures, Share, share, stored

EXAMPLES = 10_000
LEVELS = (2, 3, 5, 8, 10) * 4
CLUSTERS = 400
CHURN = 0.005  # lost here and gained there, beside a drop of one point
SINGLE, PARENTS = "c2=0", ("c0=0", "c2=0")
PAIR = " & ".join(PARENTS)

Codes = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True)
class Planted:
    """How often the planted slice came first, was confirmed, and was covered by its interval."""

    first: Share
    confirmed: Share
    covered: Share


@stored
def single(
    size: int, excess: float, churn: float, searches: int = 200, seed: int = 1601
) -> Planted:
    """One level of one column pays `excess` more than a drop of one point; single columns."""

    def world(rng: np.random.Generator) -> tuple[list[Codes], Any]:
        columns = _columns(rng)
        columns[2] = _exactly(size, columns[2], rng)
        return columns, columns[2] == 0

    return _planted(world, SINGLE, excess, churn, searches, seed, pairs=False)


@stored
def pair(size: int, excess: float, churn: float, searches: int = 200, seed: int = 1602) -> Planted:
    """What two levels have in common pays `excess` more; single columns and all pairs."""

    def world(rng: np.random.Generator) -> tuple[list[Codes], Any]:
        columns = _columns(rng)
        columns[2] = _exactly(2 * size, columns[2], rng)
        return columns, (columns[0] == 0) & (columns[2] == 0)

    return _planted(world, PAIR, excess, churn, searches, seed, pairs=True)


@stored
def nothing(drop: float, kind: str = "one pair", searches: int = 500, seed: int = 1603) -> Share:
    """How often nothing is found if everyone loses the same; single columns and all pairs."""
    quiet = []
    for i in range(searches):
        rng = np.random.default_rng([seed, i])
        columns = _columns(rng)
        chance = np.full(EXAMPLES, drop + 0.02)
        if kind == "clusters":
            answers = _clustered(columns, chance, rng)
        else:
            answers = _answers(columns, chance, 0.02, rng, members=3 if kind == "members" else 1)
        quiet.append(len(find_slices(answers, "small", random_state=i)) == 0)
    return share(quiet)


def _planted(
    world: Any, name: str, excess: float, churn: float, searches: int, seed: int, *, pairs: bool
) -> Planted:
    first, confirmed, covered = [], [], []
    for i in range(searches):
        rng = np.random.default_rng([seed, i])
        columns, pays = world(rng)
        answers = _answers(columns, 0.01 + churn + excess * pays, churn, rng)
        found = find_slices(answers, "small", pairs=pairs, random_state=i)
        hit = len(found) > 0 and found["slice"].iloc[0] == name
        first.append(hit)
        confirmed.append(hit and found["status"].iloc[0].startswith("confirmed"))
        if hit:
            row = found.iloc[0]
            covered.append(row["excess_low"] <= -excess <= row["excess_high"])
    return Planted(share(first), share(confirmed), share(covered))


def _columns(rng: np.random.Generator) -> list[Codes]:
    return [rng.integers(0, levels, EXAMPLES).astype(np.int32) for levels in LEVELS]


def _exactly(size: int, code: Codes, rng: np.random.Generator) -> Codes:
    """The column with level 0 held by exactly this many examples."""
    made = np.where(code == 0, rng.integers(1, int(code.max()) + 1, code.size), code)
    made[rng.permutation(code.size)[:size]] = 0
    return made.astype(np.int32)


def _answers(
    columns: list[Codes],
    lost: Any,
    gained: float,
    rng: np.random.Generator,
    members: int = 1,
    cluster: Any = None,
) -> Answers:
    """Label 0 everywhere; answers are wrong (1) before where gained, after where lost."""
    draw = rng.random((members, EXAMPLES))
    before, after = draw > 1 - gained, draw < lost
    names = [(variant, str(i)) for variant in ("dense", "small") for i in range(members)]
    return Answers(
        label=np.zeros(EXAMPLES, dtype=np.uint8),
        prediction=np.concatenate([before, after]).astype(np.uint8),
        members=tuple(CubeMember(*name) for name in names),
        classes=("0", "1"),
        n_label_classes=1,
        baseline="dense",
        variants=("small",),
        columns=tuple(
            GroupColumn(f"c{i}", tuple(map(str, range(levels))), code)
            for i, (levels, code) in enumerate(zip(LEVELS, columns, strict=True))
        ),
        cluster=cluster,
    )


def _clustered(columns: list[Codes], lost: Any, rng: np.random.Generator) -> Answers:
    """Clusters of 25 that share their luck; every second column is a property of the cluster."""
    cluster = rng.permutation(np.repeat(np.arange(CLUSTERS), EXAMPLES // CLUSTERS))
    luck = rng.gamma(1.0, 1.0, CLUSTERS)
    columns = [
        rng.integers(0, levels, CLUSTERS).astype(np.int32)[cluster] if i % 2 else code
        for i, (levels, code) in enumerate(zip(LEVELS, columns, strict=True))
    ]
    return _answers(columns, lost * luck[cluster], 0.02, rng, cluster=cluster)


SIZES, EXCESSES, CHURNS = (150, 300, 600), (0.05, 0.1, 0.15), (0.005, 0.01, 0.02)
PAIR_SIZES, PAIR_EXCESSES, PAIR_CHURNS = (500, 1000), (0.1, 0.15), (0.005, 0.02)


def required_figures() -> Figures:
    """How often planted slices come first, and what the list says about them."""
    rows = []
    for what, found in (
        ("one level, 10 points in 300", single(300, 0.1, CHURN)),
        ("one level, 10 points in 500", single(500, 0.1, CHURN)),
        ("one level, 15 points in 300", single(300, 0.15, CHURN)),
        ("a pair, 15 points in 1,000", pair(1000, 0.15, CHURN)),
    ):
        rows.append((what, found.first, found.confirmed, found.covered))
    head = ("planted", "first", "first and confirmed", "interval of the first covers the truth")
    return Figures("slices-planted", head, rows, "200 searches per row.")


def null_figures() -> Figures:
    few = 200
    rows = [
        ("one pair of models", "no change", nothing(0.0)),
        ("one pair of models", "everyone loses 2 points", nothing(0.02)),
        ("three members on each side", "everyone loses 2 points", nothing(0.02, "members", few)),
        ("clusters of 25", "everyone loses 2 points", nothing(0.02, "clusters", few)),
    ]
    note = f"500 searches of one pair, {few} of members and clusters; all pairs of 20 columns."
    return Figures("slices-null", ("answers", "change", "nothing found"), rows, note)


def power_figures(kind: Any, sizes: Any, excesses: Any, churns: Any) -> Figures:
    """Power curve: how often the planted slice comes first."""
    rows = [
        (f"{100 * excess:.0f} points", f"{size:,}", *(kind(size, excess, c).first for c in churns))
        for excess in excesses
        for size in sizes
    ]
    changes = (f"{100 * (0.01 + c):g} % lost, {100 * c:g} % gained" for c in churns)
    head = ("excess", "examples of 10,000", *changes)
    note = "Share of 200 searches in which the planted slice is the first of the list."
    return Figures(f"slices-power-{kind.__name__}", head, rows, note)


TABLES = {
    "slices-planted": required_figures,
    "slices-null": null_figures,
    "slices-power-single": lambda: power_figures(single, SIZES, EXCESSES, CHURNS),
    "slices-power-pair": lambda: power_figures(pair, PAIR_SIZES, PAIR_EXCESSES, PAIR_CHURNS),
}
