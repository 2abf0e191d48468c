"""Clusters and weights: coverage of linearised intervals, level of the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.outcome import outcome_rows
from fairweight.auditing.counts.cube import Cube, OutcomeCells
from fairweight.tables.spec import Better, OutcomeRole

from .audits import chosen, covers, heterogeneity, rate, replicated, value_block
from .latent import HARD, Floats, compared, cube, world
from .measured import Share, share, stored

ICC = 0.05
LABELS = 5


# The dense model is wrong on half of a cluster's share H of hard examples, so its answers have the
# intraclass correlation ICC if Var(H) / 4 = ICC · a (1 − a), a = 1 − HARD / 2 the accuracy.
VARIANCE_HARD = 4 * ICC * (1 - HARD / 2) * (HARD / 2)


def variance_of_skill(mean: float) -> float:
    """Variance over clusters of the chance Q that the compressed model is right on a hard example.

    It is chosen so that the *change* (compressed right − dense right) has the intraclass
    correlation ICC: its variance between clusters is E[H²] Var(Q) + (mean − ½)² Var(H).
    """
    shift = HARD * (mean - 0.5)
    total = HARD * 0.5 - shift**2
    between = ICC * total - (mean - 0.5) ** 2 * VARIANCE_HARD
    return between / (HARD**2 + VARIANCE_HARD)


def people(
    clusters: int, skill: float, rng: np.random.Generator, *, levels: int, mixed: bool
) -> Cube:
    """Clusters of 10 to 60 examples that share a difficulty and a loss.

    Clusters lie in one level each, equally many in every level; `mixed` ones hold all levels.
    """
    hard = _beta(HARD, VARIANCE_HARD, clusters, rng)
    right = _beta(skill, variance_of_skill(skill), clusters, rng)
    unit = np.repeat(np.arange(clusters), rng.integers(10, 61, clusters))
    n = len(unit)
    confusion = world(1, LABELS).confusion
    label = rng.integers(0, LABELS, n)

    def answers(wrong: np.ndarray) -> np.ndarray:
        until = np.cumsum(confusion, axis=1)
        other = (rng.random(n)[:, None] > until[label]).sum(axis=1)
        return np.where(wrong, other, label)

    is_hard = rng.random(n) < hard[unit]
    dense = answers(is_hard & (rng.random(n) < 0.5))
    compressed = answers(is_hard & (rng.random(n) >= right[unit]))
    level = rng.integers(0, levels, n) if mixed else unit % levels
    return cube(level, label, np.stack([dense, compressed], axis=1), cluster=unit)


def _beta(mean: float, variance: float, size: int, rng: np.random.Generator) -> Floats:
    scale = mean * (1 - mean) / variance - 1
    return rng.beta(mean * scale, (1 - mean) * scale, size=size)


def measured_icc(number: int = 20_000, seed: int = 1300) -> tuple[float, float]:
    """Intraclass correlations of the dense model's answers and of the change.

    Analysis of variance: (B − W) / (B + (n0 − 1) W), B and W the mean squares between and within
    clusters, n0 the adjusted mean size.
    """
    sample = people(number, 0.4, np.random.default_rng(seed), levels=1, mixed=False)
    assert sample.unit is not None
    right = (sample.prediction == sample.label[:, None]).astype(float)
    size = np.bincount(sample.unit)
    n0 = (size.sum() - (size**2).sum() / size.sum()) / (number - 1)
    found = []
    for value in (right[:, 0], right[:, 1] - right[:, 0]):
        mean = np.bincount(sample.unit, weights=value) / size
        between = (size * (mean - value.mean()) ** 2).sum() / (number - 1)
        within = ((value - mean[sample.unit]) ** 2).sum() / (len(value) - number)
        found.append(float((between - within) / (between + (n0 - 1) * within)))
    return found[0], found[1]


@stored
def clusters(number: int, audits: int = 800, seed: int = 1301) -> dict[str, Share]:
    """Everyone loses 2 points on average: coverage with clusters, and as if there were none.

    "accuracy" and "shift" are the dense accuracy and its shift, "i.i.d." the same data with
    examples taken as independent, "level" the shift within the first of the levels.
    """
    rng = np.random.default_rng([seed, number])
    found: dict[str, list[float]] = {
        name: [] for name in ("accuracy", "shift", "accuracy, i.i.d.", "shift, i.i.d.", "level")
    }
    for i in range(audits):
        sample = people(number, 0.4, rng, levels=max(1, number // 25), mixed=False)
        alone = replace(sample, unit=None, unit_names=(), unit_is_cluster=False)
        for ending, data in (("", sample), (", i.i.d.", alone)):
            c = compared(data, i)
            row = rate(c, "accuracy", "overall").block
            dense = covers(row["baseline_low"], np.array(1 - HARD / 2), row["baseline_high"])
            shift = covers(row["ci_low"], np.array(-0.02), row["ci_high"])
            found[f"accuracy{ending}"].append(float(dense[0]))
            found[f"shift{ending}"].append(float(shift[0]))
            if data is sample and number >= 50:
                rows = rate(c, "accuracy", "group").block
                inside = covers(rows["ci_low"], np.array(-0.02), rows["ci_high"])
                found["level"].append(float(inside[0]))
    return {name: share(values) for name, values in found.items() if values}


@stored
def sign_flips(number: int, audits: int = 800, seed: int = 1302) -> dict[str, Share]:
    """P(p <= .05) for the accuracy shift where nobody loses on average."""
    rng = np.random.default_rng([seed, number])
    clustered, alone = [], []
    for i in range(audits):
        sample = people(number, 0.5, rng, levels=1, mixed=False)
        row = rate(compared(sample, i), "accuracy", "overall").block
        clustered.append(row["p_value"][0] <= 0.05)
        plain = replace(sample, unit=None, unit_names=(), unit_is_cluster=False)
        row = rate(compared(plain, i), "accuracy", "overall").block
        alone.append(row["p_value"][0] <= 0.05)
    return {"sign flips": share(clustered), "McNemar, i.i.d.": share(alone)}


@stored
def cluster_heterogeneity(
    number: int, levels: int, mixed: bool, audits: int = 500, seed: int = 1303
) -> Share:
    """P(p <= .05) where everyone loses 2 points on average."""
    rng = np.random.default_rng([seed, number, levels, mixed])
    found = []
    for i in range(audits):
        sample = people(number, 0.4, rng, levels=levels, mixed=mixed)
        found.append(heterogeneity(compared(sample, i)) <= 0.05)
    return share(found)


@stored
def cluster_kappa(
    number: int, audits: int = 300, n_boot: int = 500, seed: int = 1304
) -> dict[str, Share]:
    """Shift of kappa: coverage of the bootstrap of whole clusters."""
    rng = np.random.default_rng([seed, number])
    # Clusters are alike on average: the cells of the world of single examples give the truth.
    everyone = compared(world(1, LABELS, compressed=0.4).whole(), 0, n_boot=20)
    (true,) = replicated(everyone, chosen(everyone, [("kappa", "overall")]))
    truth = true.observed.change[0]
    found: dict[str, list[float]] = {"whole clusters": [], "single examples": []}
    for i in range(audits):
        sample = people(number, 0.4, rng, levels=1, mixed=False)
        alone = replace(sample, unit=None, unit_names=(), unit_is_cluster=False)
        for name, data in (("whole clusters", sample), ("single examples", alone)):
            c = compared(data, i, n_boot=n_boot)
            (q,) = chosen(c, [("kappa", "overall")])
            row = value_block(c, q, replicated(c, [q])[0])
            found[name].append(float(covers(row["ci_low"], truth, row["ci_high"])[0]))
    return {name: share(values) for name, values in found.items()}


@stored
def weights(spread: float, n: int = 500, audits: int = 1000, seed: int = 1305) -> Share:
    """Shift with log-normal weights that are larger in the groups that lose more."""
    rng = np.random.default_rng([seed, n])
    factor = np.array([1.0, 1.5, 2.0, 3.0])
    hurt = world(4, LABELS, compressed=0.5 - np.array([[0.0], [0.05], [0.1], [0.2]]))
    truth = np.array(np.average(hurt.shift, weights=factor))  # groups are equally large
    found = []
    for i in range(audits):
        group, label, dense, compressed = np.unravel_index(hurt.draw(n, rng), hurt.shape)
        weight = factor[group] * rng.lognormal(0, spread, n)
        sample = cube(group, label, np.stack([dense, compressed], axis=1), weight=weight)
        row = rate(compared(sample, i), "accuracy", "overall").block
        found.append(covers(row["ci_low"], truth, row["ci_high"]))
    return share(found)


PERSON = 0.25  # by how much a person moves the chance of being right on a hard pair, up or down


def verification_pairs(people: tuple[int, int], n: int, skill: float, seed: list[int]) -> Cube:
    """Pairs of a probe and a gallery person; both make a loss more or less likely.

    On a hard pair the dense model is right with a chance of one half, the compressed one with
    `skill` and what the two people add. Pairs lie in four levels, whoever their people are. The
    number of every pair is a score that both people move too.
    """
    rng = np.random.default_rng(seed)
    who = [rng.integers(0, size, n) for size in people]
    moved = [PERSON * rng.choice([-1.0, 1.0], size) for size in people]
    added = sum(of[at] for of, at in zip(moved, who, strict=True))
    hard = rng.random(n) < HARD
    dense = np.where(hard & (rng.random(n) < 0.5), 1, 0)
    small = np.where(hard & (rng.random(n) >= skill + added), 1, 0)
    sample = cube(
        rng.integers(0, 4, n), np.zeros(n, int), np.stack([dense, small], 1), cluster=who[0]
    )
    score = rng.normal(size=n)
    change = 0.5 * added + rng.exponential(0.5, n) - 0.5 + skill - 0.5
    return replace(
        sample,
        second_unit=who[1],
        second_unit_names=tuple(str(i) for i in range(people[1])),
        outcome=OutcomeCells(
            OutcomeRole("score", Better.HIGHER, binary=False),
            np.stack([score, score + change], axis=1),
        ),
    )


@stored
def two_columns(
    people: tuple[int, int], n: int, audits: int = 300, seed: int = 1306
) -> dict[str, Share]:
    """Pairs of people: coverage where all lose, level and false lines where nobody does.

    Of right and wrong predictions and of numbers, with both columns, with the first alone, and as
    if pairs were independent.
    """
    found: dict[str, list[float]] = {}
    for i in range(audits):
        for skill, loss in ((0.4, 0.1), (0.5, 0.0)):
            pairs = verification_pairs(people, n, skill, [seed, *people, i, int(100 * skill)])
            first = replace(pairs, second_unit=None, second_unit_names=())
            alone = replace(first, unit=None, unit_names=(), unit_is_cluster=False)
            for ending, data in (("", pairs), (", first column", first), (", i.i.d.", alone)):
                rates = _unsigned(replace(data, outcome=None), i)
                tables = {
                    "rate": [rate(rates, "accuracy", kind).block for kind in ("overall", "group")],
                    "number": [built.block for built in outcome_rows(_unsigned(data, i))],
                }
                for what, (overall, groups, *_) in tables.items():
                    seen = {f"{what} level{ending}": overall["p_value"][0] <= 0.05}
                    if loss:
                        true = np.array(-loss * (HARD if what == "rate" else 1.0))
                        inside = covers(overall["ci_low"], true, overall["ci_high"])[0]
                        seen = {f"{what} covered{ending}": inside}
                    elif not ending:
                        lines = groups["excess_p_adjusted"] <= 0.05
                        seen[f"{what} any excess"] = lines.any()
                    for name, value in seen.items():
                        found.setdefault(name, []).append(float(value))
    return {name: share(values) for name, values in found.items()}


def _unsigned(sample: Cube, seed: int) -> Comparison:
    """The comparison without random signs, which nothing here is read from."""
    return comparison(
        sample,
        baseline="dense",
        variant="compressed",
        task=None,
        grouping_names=("group",),
        positive=None,
        options=Options(random_state=seed),
    )
