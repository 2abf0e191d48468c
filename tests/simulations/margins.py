"""The gate at a true loss equal to its margin, and excesses that are not there.

Clusters, weights and several members: what is sampled are not single independent trials. Changes
are drawn directly: a prediction is lost, gained or as before, and the dense models are wrong where
something is gained. `comparison` is what an audit makes of a table; `audit` is the audit itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import fairweight as fw
from fairweight.auditing.compare.comparison import Comparison, Options, comparison, event_outcomes
from fairweight.auditing.compare.estimate import Family
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.intervals.multiplicity import holm
from fairweight.auditing.metrics.registry import metric

from .latent import Codes, Floats, cube
from .measured import Figures, Share, share, stored

MARGIN = 0.02
AUDITS = 1000
WORLD_SEED = 2101

Changes = NDArray[np.int64]  # −1 lost, 1 gained, 0 as before


@dataclass(frozen=True)
class Table:
    """Binary predictions that are wrong or right; level 0 of `group` is the one that is judged."""

    group: Codes
    dense_wrong: NDArray[np.bool_]  # (examples, members)
    compressed_wrong: NDArray[np.bool_]
    cluster: Codes | None = None
    weight: Floats | None = None

    @property
    def label(self) -> Codes:
        return np.arange(len(self.group)) % 2

    def predictions(self, wrong: NDArray[np.bool_]) -> Codes:
        return np.where(wrong, 1 - self.label[:, None], self.label[:, None])

    def comparison(self) -> Comparison:
        sides = [self.predictions(w) for w in (self.dense_wrong, self.compressed_wrong)]
        sample = cube(
            self.group,
            self.label,
            np.concatenate(sides, axis=1),
            cluster=self.cluster,
            weight=self.weight,
        )
        names = [
            CubeMember(variant, str(i))
            for variant, side in zip(("dense", "compressed"), sides, strict=True)
            for i in range(side.shape[1])
        ]
        return comparison(
            replace(sample, members=tuple(names)),
            baseline="dense",
            variant="compressed",
            task=None,
            grouping_names=("group",),
            positive=1,
            options=Options(n_boot=20),
        )

    def audit(self) -> fw.Audit:
        return fw.audit(
            self.label,
            {
                "dense": self.predictions(self.dense_wrong),
                "compressed": self.predictions(self.compressed_wrong),
            },
            sensitive_features={"group": self.group},
            cluster=self.cluster,
            sample_weight=self.weight,
            n_boot=20,
        )


def accuracy(table: Table, scope: str = "model") -> Family:
    """Accuracy by group, as the audit estimates it."""
    event = metric("accuracy").event
    assert event is not None
    c = table.comparison()
    rates = linear_rates if scope == "model" else method_rates
    found = rates(c, metric("accuracy"), event_outcomes(c, event, "group"), "group")
    assert found is not None
    return found


def excess_p(found: Family) -> Floats:
    assert found.excess is not None
    assert found.excess.p is not None
    return found.excess.p


def passes(table: Table, margin: float = MARGIN) -> bool:
    """Whether a gate on accuracy by group passes level 0: its 90 % interval lies above −margin."""
    return bool(accuracy(table).change.limits(0.1)[0][0] > -margin)


def gate_passes(audited: fw.Audit, margin: float = MARGIN) -> bool:
    """The same through `Audit.gate`."""
    rule = {"metric": "accuracy", "by": "group", "margin": margin, "groups": ["group=0"]}
    return audited.gate({"schema": 1, "min_group_size": 10, "rule": [rule]}).passed


def changed(x: Changes, group: Codes, **more: Codes | Floats | None) -> Table:
    """A table of paired members from their changes, (examples, members)."""
    return Table(group, x > 0, x < 0, **more)


def drawn(lost: Floats, gained: Floats, rng: np.random.Generator, members: int = 1) -> Changes:
    """One change per example and member from its chances."""
    u = rng.random((len(lost), members))
    return np.where(u < lost[:, None], -1, np.where(u < (lost + gained)[:, None], 1, 0))


# ---------------------------------------------------------------- clusters


def _shares(n: int, icc: float, mean: float, rng: np.random.Generator) -> Floats:
    """The chance of a change in every cluster, with this intraclass correlation."""
    if mean == 0 or icc == 0:
        return np.full(n, mean)
    if icc == 1:
        return (rng.random(n) < mean).astype(float)
    scale = 1 / icc - 1
    return rng.beta(mean * scale, (1 - mean) * scale, n)


@dataclass(frozen=True)
class People:
    """A group of clusters beside seven times as many others."""

    clusters: int
    size: int
    icc: float
    unequal: bool = False  # log-sd .8
    mixed: bool = False  # every cluster has examples in both groups

    def draw(
        self,
        rng: np.random.Generator,
        here: tuple[float, float],
        others: tuple[float, float] = (0.01, 0.005),
    ) -> Table:
        """Chances to lose and to gain, in the group and elsewhere."""
        tables = []
        for number, (lost, gained) in ((self.clusters, here), (7 * self.clusters, others)):
            sizes = np.full(number, self.size)
            if self.unequal:
                spread = np.exp(rng.normal(0, 0.8, number) - 0.32)
                sizes = np.maximum(1, np.round(self.size * spread)).astype(int)
            cluster = np.repeat(np.arange(number), sizes)
            chance_lost = _shares(number, self.icc, lost, rng)[cluster]
            chance_gained = _shares(number, self.icc, gained, rng)[cluster] * (1 - chance_lost)
            tables.append((cluster, drawn(chance_lost, chance_gained, rng)))
        (first, x), (second, y) = tables
        group = np.repeat([0, 1], [len(first), len(second)])
        cluster = np.concatenate([first, self.clusters + second])
        if self.mixed:
            group = (rng.random(len(cluster)) < 7 / 8).astype(np.int64)
        return changed(np.concatenate([x, y]), group, cluster=cluster)

    def __str__(self) -> str:
        kind = ", unequal" if self.unequal else ""
        kind += ", groups mixed inside" if self.mixed else ""
        return f"{self.clusters} clusters of {self.size}{kind}, ICC {self.icc}"


PEOPLE = tuple(
    People(clusters, size, icc, unequal)
    for clusters, size in ((20, 10), (40, 20), (150, 10))
    for icc in (0.05, 0.2, 1.0)
    for unequal in (False, True)
)


@stored
def clusters_at_the_margin(people: People, audits: int = AUDITS, seed: int = WORLD_SEED) -> Share:
    rng = np.random.default_rng([seed, *_key(str(people))])
    return share(passes(people.draw(rng, (MARGIN, 0.0))) for _ in range(audits))


NULLS = (
    People(30, 10, 0.05),
    People(30, 10, 0.2),
    People(30, 10, 1.0),
    People(30, 20, 0.2, unequal=True),
    People(100, 10, 0.05),
    People(100, 10, 0.2, unequal=True),
    People(40, 10, 0.2, mixed=True),
)


@stored
def cluster_excess(
    people: People, churn: float, audits: int = AUDITS, seed: int = WORLD_SEED + 1
) -> Share:
    """How often p ≤ .05: everyone loses 2 points, the group flips `churn` times as often."""
    rng = np.random.default_rng([seed, int(churn), *_key(str(people))])
    quiet = (0.025, 0.005)
    hard = (0.02 + 0.005 * churn, 0.005 * churn) if not people.mixed else quiet
    return share(
        excess_p(accuracy(people.draw(rng, hard, quiet)))[0] <= 0.05 for _ in range(audits)
    )


# ---------------------------------------------------------------- weights


@stored
def weights_at_the_margin(
    n: int, spread: float, gained: float, audits: int = AUDITS, seed: int = WORLD_SEED + 2
) -> Share:
    """Log-normal weights; n examples of eight groups each."""
    rng = np.random.default_rng([seed, n, int(100 * spread), int(1000 * gained)])
    group = np.repeat(np.arange(8), n)
    gain = np.where(group == 0, gained, 0.005)
    lost = np.where(group == 0, MARGIN + gained, 0.01)

    def one() -> Table:
        return changed(drawn(lost, gain, rng), group, weight=rng.lognormal(0, spread, 8 * n))

    return share(passes(one()) for _ in range(audits))


# ---------------------------------------------------------------- members


def _chances(n: int, shape: float, mean: float, rng: np.random.Generator) -> Floats:
    """Examples differ in how often members change on them; a small shape: a few do it all."""
    return np.minimum(rng.gamma(shape, 1 / shape, n) * mean, 1.0)


@stored
def _mean_chance(shape: float, mean: float) -> float:
    return float(_chances(4_000_000, shape, mean, np.random.default_rng(1)).mean())


def population(
    n: int, k: int, shape: float, here: tuple[float, float], rng: np.random.Generator
) -> Table:
    """n examples of the group beside six times as many that lose and gain 1 %."""
    parts = []
    for number, (lost, gained) in ((n, here), (6 * n, (0.01, 0.01))):
        chance = _chances(number, shape, lost, rng)
        gain = np.minimum(_chances(number, shape, gained, rng), 1 - chance)
        parts.append(drawn(chance, gain, rng, k))
    return changed(np.concatenate(parts), np.repeat([0, 1], [n, 6 * n]))


@stored
def members_at_the_margin(
    k: int, n: int, shape: float, audits: int = AUDITS, seed: int = WORLD_SEED + 3
) -> Share:
    rng = np.random.default_rng([seed, k, n, int(100 * shape)])
    margin = _mean_chance(shape, MARGIN)
    return share(passes(population(n, k, shape, (MARGIN, 0.0), rng), margin) for _ in range(audits))


@stored
def unchanged_members(
    k: int, n: int, shape: float = 0.5, audits: int = AUDITS, seed: int = WORLD_SEED + 4
) -> Share:
    """How often a model without a loss passes 2 points; it changes 1 % of predictions."""
    rng = np.random.default_rng([seed, k, n, int(100 * shape)])
    return share(passes(population(n, k, shape, (0.005, 0.005), rng)) for _ in range(audits))


@stored
def crossed_members(
    sides: tuple[int, int], n: int, loss: float, audits: int = AUDITS, seed: int = WORLD_SEED + 5
) -> Share:
    """Independent members: all err on hard examples, compressed ones also by `loss` anywhere."""
    rng = np.random.default_rng([seed, *sides, n, int(1000 * loss)])
    right = 1 - _mean_chance(0.1, 0.02)
    margin = loss * right if loss else MARGIN

    def one() -> Table:
        hard = _chances(7 * n, 0.1, 0.02, rng)[:, None]
        group = np.repeat([0, 1], [n, 6 * n])
        more = np.where(group == 0, loss, 0.005)[:, None] * (1 - hard)
        dense = rng.random((7 * n, sides[0])) < hard
        return Table(group, dense, rng.random((7 * n, sides[1])) < hard + more)

    return share(passes(one(), margin) for _ in range(audits))


# ---------------------------------------------------------------- the method


@dataclass(frozen=True)
class Method:
    """Groups of these sizes whose shift varies by `spread` between members; nobody pays more."""

    name: str
    sizes: tuple[int, ...]
    churn: tuple[float, ...]
    shift: float
    spread: tuple[float, ...]

    def draw(self, k: int, rng: np.random.Generator, effect: float = 0.0) -> Table:
        parts = []
        for i, n in enumerate(self.sizes):
            moved = rng.gamma(0.5, 2, (n, 1)) * self.churn[i] / 2
            own = (self.shift + rng.normal(0, self.spread[i], (1, k))) / 2
            lost, gained = np.clip(moved - own, 0, 0.5), np.clip(moved + own, 0, 0.5)
            u = rng.random((n, k))
            x = np.where(u < lost, -1, np.where(u < lost + gained, 1, 0))
            if i == 0:
                x = np.where(rng.random((n, k)) < effect, -1, x)
            parts.append(x)
        return changed(np.concatenate(parts), np.repeat(np.arange(len(self.sizes)), self.sizes))


METHODS = (
    Method(
        "a hard group of 100 beside four of 400",
        (100, 400, 400, 400, 400),
        (0.3, 0.05, 0.05, 0.05, 0.05),
        0.0,
        (0.04, 0.01, 0.01, 0.01, 0.01),
    ),
    Method("20 groups of 40, all lose 2 points", (40,) * 20, (0.02,) * 20, -0.02, (0.0,) * 20),
    Method(
        "five hard groups of 40 beside five of 400, all lose 2 points",
        (40,) * 5 + (400,) * 5,
        (0.3,) * 5 + (0.04,) * 5,
        -0.02,
        (0.03,) * 5 + (0.01,) * 5,
    ),
)
POWER = Method(
    "one of 20 groups of 150 loses 8 points", (150,) * 20, (0.06,) * 20, 0.0, (0.01,) * 20
)


@stored
def method_excess(
    world: Method, k: int, effect: float = 0.0, audits: int = AUDITS, seed: int = WORLD_SEED + 6
) -> dict[str, Share]:
    """Any excess after Holm, and that of the first group."""
    rng = np.random.default_rng([seed, k, *_key(world.name)])
    found = [
        holm(excess_p(accuracy(world.draw(k, rng, effect), "method"))) <= 0.05
        for _ in range(audits)
    ]
    return {"any": share(f.any() for f in found), "first": share(f[0] for f in found)}


def _key(name: str) -> tuple[int, ...]:
    """Random numbers of their own for every world."""
    return tuple(name.encode())


def some_tables(seed: int = WORLD_SEED + 7) -> Iterator[Callable[[], Table]]:
    """One table of every kind, for the check that audits see what is simulated here."""
    rng = np.random.default_rng(seed)
    yield lambda: People(25, 10, 0.2, unequal=True).draw(rng, (0.01, 0.005))
    yield lambda: changed(
        drawn(np.full(1600, 0.01), np.full(1600, 0.005), rng),
        np.arange(1600) % 4,
        weight=rng.lognormal(0, 0.5, 1600),
    )
    yield lambda: population(200, 3, 0.5, (0.01, 0.005), rng)
    yield lambda: METHODS[0].draw(4, rng)


# ---------------------------------------------------------------- figures


def at_the_margin() -> Figures:
    rows: list[tuple[str, Share]] = [(str(p), clusters_at_the_margin(p)) for p in PEOPLE]
    for n in (150, 400):
        for spread in (0.1, 0.5):
            found = weights_at_the_margin(n, spread, 0.01)
            rows.append((f"{n} examples, log weights ± {spread}", found))
    for k in (3, 5, 10):
        for n in (60, 150, 300):
            rows.append((f"{n} examples, {k} members", members_at_the_margin(k, n, 0.5)))
    for sides in ((1, 4), (3, 10), (5, 2)):
        name = f"150 examples, {sides[0]} + {sides[1]} independent members"
        rows.append((name, crossed_members(sides, 150, MARGIN)))
    return Figures("margin", ("what is judged", "passes"), rows, _note(rows))


def unchanged() -> Figures:
    rows = [(n, *(unchanged_members(k, n) for k in (2, 3, 5, 10))) for n in (60, 150, 300)]
    head = ("examples", *(f"{k} members" for k in (2, 3, 5, 10)))
    return Figures("unchanged-members", head, rows, _note([(row[0], row[1]) for row in rows]))


def no_excess() -> Figures:
    rows = [
        (str(people), cluster_excess(people, 1), "" if people.mixed else cluster_excess(people, 5))
        for people in NULLS
    ]
    head = ("where nobody pays more", "equal churn", "five times the churn")
    return Figures("cluster-excess", head, rows, _note([(row[0], row[1]) for row in rows]))


def no_method_excess() -> Figures:
    rows = []
    for world in METHODS:
        for k in (3, 5, 10):
            found = method_excess(world, k)
            rows.append((world.name, k, found["any"]))
    for k in (3, 5, 10):
        rows.append((POWER.name, k, method_excess(POWER, k, 0.08)["first"]))
    head = ("groups", "members", "an excess is found")
    return Figures(
        "method-excess", head, rows, f"{rows[0][2].of} audits per row, seed {WORLD_SEED}."
    )


def _note(rows: list[tuple[object, Share]]) -> str:
    return f"{rows[0][1].of:,} audits per figure, seed {WORLD_SEED}."


TABLES: dict[str, Callable[[], Figures]] = {
    "margin": at_the_margin,
    "unchanged-members": unchanged,
    "cluster-excess": no_excess,
    "method-excess": no_method_excess,
}
