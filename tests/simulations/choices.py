"""Selection probabilities where the truth is known: how often the stated winner is the best.

Estimates err by σ = 1 and replicates have the same errors. Worlds say how the true values lie:
normal with a spread τ; `collapsed`, a quarter of the variants 3 to 6 σ below others with τ = σ / 2;
`far`, the same 30 to 60 σ below and τ = σ / 4; `skewed`, exponential downwards; `ahead`, one
variant ahead of others that are equal. In `common` all share an error three times as large, as easy
and hard draws of examples give them.

The prior's shapes were picked on samples of other seeds (57 and below); what is measured here is on
samples of `JUDGED_ON`. `tables` makes tables of predictions and chooses among them as users do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.auditing.choose.frontier import best_set, frontier, share_best, share_near
from fairweight.auditing.choose.prior import FOR_BEST, FOR_DISTANCE, FOR_FRONTIER, posterior
from fairweight.base.types import Floats

from .measured import Figures, Share, share, stored

JUDGED_ON = 1803
REPLICATES = 500
SAMPLES, TRUTHS = {5: 2000, 20: 1000}, 40_000
FRONTIERS = 600
RATIOS = (0.25, 1.0, 3.0)
VARIANTS = (5, 20)
MOST_OFF = {5: 0.08, 20: 0.05}
COMMON = 3.0
MARGIN = 0.5  # in σ
TABLES_OF_A_WORLD, NEW_TABLES, EXAMPLES, DRAWS = 400, 2000, 1000, 300
Truth = Callable[[np.random.Generator, int], Floats]


def _normal(ratio: float) -> Truth:
    return lambda rng, n: ratio * rng.standard_normal(n)


def _collapsed(ratio: float, far: float) -> Truth:
    def truth(rng: np.random.Generator, n: int) -> Floats:
        found = ratio * rng.standard_normal(n)
        found[: n // 4] -= far * (1 + rng.random(n // 4))
        return found

    return truth


def _skewed(rng: np.random.Generator, n: int) -> Floats:
    return -1.5 * rng.exponential(size=n)


def _ahead(by: float) -> Truth:
    return lambda rng, n: by * (np.arange(n) == rng.integers(n))


WORLDS: dict[str, Truth] = {
    "normal, τ = σ / 4": _normal(0.25),
    "normal, τ = σ": _normal(1.0),
    "normal, τ = 3 σ": _normal(3.0),
    "normal, τ = σ, common error": _normal(1.0),
    "collapsed": _collapsed(0.5, 3.0),
    "far": _collapsed(0.25, 30.0),
    "skewed": _skewed,
    "ahead by 1.5 σ": _ahead(1.5),
    "ahead by 3 σ": _ahead(3.0),
}
# No number can be right in these and where all are nearly equal: `no_number_can`.
OUT_OF_REACH = ("ahead by 1.5 σ", "ahead by 3 σ")


@dataclass(frozen=True)
class Calibration:
    """What was stated of the variant with the highest estimate, and how often it was right."""

    stated: dict[str, float]  # by prior: `ours`, `normal`, `npmle`, `frequency`
    actual: Share
    near: float  # stated: within the margin of the best
    actual_near: Share
    covered: Share  # samples whose 95 % set contains the best
    size: float  # of that set

    @property
    def off(self) -> float:
        return self.stated["ours"] - self.actual.value


def sample(rng: np.random.Generator, world: str, n_variants: int) -> tuple[Floats, Floats, Floats]:
    """True values, estimates and replicates of the estimates."""
    shared = COMMON if "common" in world else 0.0
    truth = WORLDS[world](rng, n_variants)
    values = truth + rng.standard_normal(n_variants) + shared * rng.standard_normal()
    error = rng.standard_normal((REPLICATES, n_variants))
    return truth, values, values + error + shared * rng.standard_normal((REPLICATES, 1))


@stored
def calibration(world: str, n_variants: int, *, samples: int | None = None) -> Calibration:
    seed = [JUDGED_ON, n_variants, list(WORLDS).index(world)]
    rng = np.random.default_rng(seed)
    stated: dict[str, list[float]] = {name: [] for name in ("ours", "normal", "npmle", "frequency")}
    near, covered, sizes = [], [], []
    for _ in range(samples or SAMPLES[n_variants]):
        truth, values, replicates = sample(rng, world, n_variants)
        draws = posterior(values, replicates, rng).draws
        lead = int(values.argmax())
        stated["ours"].append(share_best(draws)[lead])
        stated["normal"].append(share_best(normal_draws(values, rng))[lead])
        stated["npmle"].append(share_best(npmle_draws(values, rng))[lead])
        stated["frequency"].append(share_best(replicates)[lead])
        distances = posterior(values, replicates, rng, FOR_DISTANCE).draws
        near.append(share_near(distances, MARGIN)[lead])
        inside = best_set(values, replicates)
        covered.append(inside[truth.argmax()])
        sizes.append(inside.sum())
    truths = np.stack([WORLDS[world](rng, n_variants) for _ in range(TRUTHS)])
    leads = (truths + rng.standard_normal(truths.shape)).argmax(axis=1)
    lacking = truths.max(axis=1) - truths[np.arange(TRUTHS), leads]
    return Calibration(
        {name: float(np.mean(held)) for name, held in stated.items()},
        share(lacking == 0), float(np.mean(near)), share(lacking <= MARGIN), share(covered),
        float(np.mean(sizes)),
    )  # fmt: skip


# --- other priors, of errors that are independent with σ = 1 ------------------------------------


def normal_draws(values: Floats, rng: np.random.Generator) -> Floats:
    """A normal prior whose τ is integrated out: what was used before."""
    n = len(values)
    taus = np.geomspace(0.02, 200, 60)
    total = 1 + taus**2
    log = -0.5 * ((n - 1) * np.log(total) + ((values - values.mean()) ** 2).sum() / total)
    scale = 0.85 * (2 / (n - 1)) ** 0.25
    chance = np.exp(log - log.max()) * taus / (1 + (taus / scale) ** 2)
    tau = rng.choice(taus, REPLICATES, p=chance / chance.sum())[:, None]
    kept = tau**2 / (1 + tau**2)
    mean = values.mean() + np.sqrt((1 + tau**2) / n) * rng.standard_normal((REPLICATES, 1))
    noise = np.sqrt(kept) * rng.standard_normal((REPLICATES, n))
    drawn: Floats = mean + kept * (values - mean) + noise
    return drawn


def npmle_draws(values: Floats, rng: np.random.Generator, steps: int = 100) -> Floats:
    """The nonparametric maximum likelihood prior on a grid, by EM."""
    grid = np.linspace(values.min(), values.max(), 60)
    density = np.exp(-0.5 * (values[:, None] - grid) ** 2)
    weight = np.full(len(grid), 1 / len(grid))
    for _ in range(steps):
        chance = density * weight
        chance /= chance.sum(axis=1, keepdims=True)
        weight = chance.mean(axis=0)
    at = (rng.random((REPLICATES, len(values), 1)) > np.cumsum(chance, axis=1)).sum(axis=2)
    found: Floats = grid[np.minimum(at, len(grid) - 1)]
    return found


@stored
def no_number_can(n_variants: int, ahead: float = 1.5, samples: int = 200_000) -> float:
    """The least that any number must be off, in one of two worlds: nearly equal, and one ahead.

    The two give data that are alike: whatever is computed from them, a number between 1 / V and 1,
    has means in the two worlds that differ by at most (1 − 1 / V) times the distance in total
    variation. Where the right answers differ by more, half of the rest is missed in one of them.
    """
    rng = np.random.default_rng([JUDGED_ON, n_variants])
    equal, one = f"normal, τ = σ / {4}", _ahead(ahead)

    def drawn(truth: Truth) -> tuple[Floats, float]:
        true = np.stack([truth(rng, n_variants) for _ in range(samples // 10)])
        values = np.concatenate([true + rng.standard_normal(true.shape) for _ in range(10)])
        right = values.argmax(axis=1) == np.tile(true.argmax(axis=1), 10)
        return values - values.mean(axis=1, keepdims=True), float(right.mean())

    values, nearly = drawn(WORLDS[equal])
    _, leader = drawn(one)
    squares, total = (values**2).sum(axis=1), 1 + 0.25**2
    log_equal = -0.5 * squares / total - 0.5 * (n_variants - 1) * np.log(total)
    lifted = np.exp(ahead * values - 0.5 * ahead**2 * (1 - 1 / n_variants)).mean(axis=1)
    ratio = lifted * np.exp(-0.5 * squares - log_equal)
    distance = float(np.maximum(1 - ratio, 0.0).mean())
    return max((leader - nearly - (1 - 1 / n_variants) * distance) / 2, 0.0)


# --- the frontier ------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrontierCalibration:
    """What was stated of being on the frontier, and how often it was so, over variants."""

    stated: float  # of those that the estimates put on it
    actual: Share
    stated_all: float
    actual_all: Share

    @property
    def off(self) -> float:
        return self.stated - self.actual.value

    @property
    def off_all(self) -> float:
        return self.stated_all - self.actual_all.value


@stored
def frontier_calibration(
    n_variants: int, ratio: float, *, costs: bool, samples: int = FRONTIERS
) -> FrontierCalibration:
    """Two objectives with noise, or (`costs`) one with noise and one that is known exactly."""
    rng = np.random.default_rng([JUDGED_ON, n_variants, int(100 * ratio), 10 + costs])
    noise = np.array([1.0, 0.0 if costs else 1.0])
    sums: dict[str, list[float]] = {name: [] for name in ("on", "true", "all", "all true")}
    for _ in range(samples):
        truth = ratio * rng.standard_normal((n_variants, 2))
        values = truth + noise * rng.standard_normal(truth.shape)
        replicates = values + noise * rng.standard_normal((REPLICATES, *truth.shape))
        draws = replicates.copy()
        for k in np.flatnonzero(noise):
            one = values[:, k], replicates[:, :, k]
            draws[:, :, k] = posterior(*one, rng, FOR_BEST if costs else FOR_FRONTIER).draws
        chance, on, true = frontier(draws).mean(axis=0), frontier(values), frontier(truth)
        for name, part in zip(sums, (chance[on], true[on], chance, true), strict=True):
            sums[name].append(float(part.mean()))
    return FrontierCalibration(
        stated=float(np.mean(sums["on"])),
        actual=share(sums["true"]),
        stated_all=float(np.mean(sums["all"])),
        actual_all=share(sums["all true"]),
    )


# --- tables of predictions, chosen among as users do ---------------------------------------------


def predictions(rng: np.random.Generator, world: str, n_variants: int) -> tuple[Any, Floats]:
    """A table of predictions, and the true accuracies; every model errs on the hard examples."""
    import pandas as pd

    easy = np.where(rng.random(EXAMPLES) < 0.5, 0.75, 0.95)
    unit = float(np.sqrt((easy * (1 - easy)).mean() / EXAMPLES))
    lifted = unit * WORLDS[world](rng, n_variants)
    lifted -= np.median(lifted)
    right = np.clip(easy[:, None] + lifted, 0.02, 0.98)
    label = rng.integers(0, 2, EXAMPLES)
    wrong = rng.random(right.shape) > right
    columns = {f"v{v}": np.where(wrong[:, v], 1 - label, label) for v in range(n_variants)}
    frame = pd.DataFrame({"example_id": np.arange(EXAMPLES), "label": label, **columns})
    true = np.clip(np.array([0.75, 0.95])[:, None] + lifted, 0.02, 0.98).mean(axis=0)
    return frame, true


def chosen_once(world: str, n_variants: int, number: int) -> dict[str, float]:
    """One table, chosen among by `fairweight choose`'s own function."""
    from fairweight.auditing.choose.choice import Wishes, choice_from
    from fairweight.auditing.compare.comparison import Options
    from fairweight.tables.spec import TableSpec, sources_of

    rng = np.random.default_rng([JUDGED_ON, 7, n_variants, list(WORLDS).index(world), number])
    frame, true = predictions(rng, world, n_variants)
    names = [f"v{v}" for v in range(n_variants)]
    given = {"predictions": {name: name for name in names}, "groups": [], "baseline": "v0"}
    options = Options(n_boot=DRAWS, random_state=number)
    tables = TableSpec(sources_of(frame), **given)
    table = choice_from(tables, Wishes(["accuracy"]), options).tables["choice"]
    table = table.set_index("variant").loc[names]
    lead, best = int(table["value"].to_numpy().argmax()), int(true.argmax())
    return {
        "stated": float(table["p_best"].iloc[lead]),
        "right": float(lead == best),
        "near": float(table["p_within_margin"].iloc[lead]),
        "right_near": float(true[lead] >= true.max() - 0.02),
        "covered": float(bool(table["in_best_set"].iloc[best])),
        "size": float(table["in_best_set"].sum()),
    }


@stored
def of_tables(world: str, n_variants: int, *, new: bool = False) -> dict[str, float]:
    """Means over the tables of a world, or over new ones, and the error of `stated - right`."""
    first, tables = (TABLES_OF_A_WORLD, NEW_TABLES) if new else (0, TABLES_OF_A_WORLD)
    found = [chosen_once(world, n_variants, first + i) for i in range(tables)]
    mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    off = np.array([one["stated"] - one["right"] for one in found])
    return {
        **mean,
        "tables": tables,
        "off": float(off.mean()),
        "error": float(off.std() / tables**0.5),
    }


def judged_tables(world: str, n_variants: int) -> list[dict[str, float]]:
    """The tables of a world, and new ones where what is stated is further off than it may be."""
    found = of_tables(world, n_variants)
    if abs(found["off"]) <= MOST_OFF[n_variants] or world in OUT_OF_REACH:
        return [found]
    return [found, of_tables(world, n_variants, new=True)]


# --- tables of the documentation -----------------------------------------------------------------


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def best_figures() -> Figures:
    rows = []
    for world in WORLDS:
        for n in VARIANTS:
            found = calibration(world, n)
            rows.append(
                (world, n, percent(found.stated["ours"]), found.actual, percent(found.near),
                 found.actual_near, found.covered, f"{found.size:.1f}")
            )  # fmt: skip
    head = ("world", "variants", "P(best) of the highest estimate", "it is the best",
            "P(within σ / 2 of the best)", "it is", "95 % set contains the best",
            "size of the set")  # fmt: skip
    note = (
        f"{SAMPLES[5]:,} samples of five variants, {SAMPLES[20]:,} of twenty, "
        f"{REPLICATES:,} replicates; what is so from {TRUTHS:,}; seed {JUDGED_ON}."
    )
    return Figures("choices", head, rows, note)


def prior_figures() -> Figures:
    rows = []
    for world in WORLDS:
        for n in VARIANTS:
            found = calibration(world, n)
            names = ("frequency", "normal", "npmle", "ours")
            rows.append((world, n, found.actual, *(percent(found.stated[name]) for name in names)))
    head = ("world", "variants", "the highest estimate is the best", "bootstrap frequency",
            "normal prior", "maximum likelihood (NPMLE)", "shapes averaged: used")  # fmt: skip
    return Figures("choice-priors", head, rows, "The same samples.")


def frontier_figures() -> Figures:
    rows = []
    for costs in (False, True):
        for n_variants in VARIANTS:
            for ratio in RATIOS:
                found = frontier_calibration(n_variants, ratio, costs=costs)
                what = "one, and a cost" if costs else "two"
                cells = (percent(found.stated), found.actual, percent(found.stated_all))
                rows.append((what, n_variants, ratio, *cells, found.actual_all))
    head = ("objectives with noise", "variants", "τ / σ", "P(frontier), estimated to be on it",
            "they are on it", "P(frontier), all variants", "on it")  # fmt: skip
    note = f"{FRONTIERS} samples each, {REPLICATES:,} replicates, seed {JUDGED_ON}."
    return Figures("frontiers", head, rows, note)


def table_figures() -> Figures:
    rows = []
    for world in WORLDS:
        if "common" in world:
            continue  # tables have errors in common anyway
        for n in VARIANTS:
            for mean in judged_tables(world, n):
                tables = int(mean["tables"])
                error = np.sqrt(mean["right"] * (1 - mean["right"]) / tables)
                rows.append(
                    (world, n, f"{tables:,}", percent(mean["stated"]),
                     f"{percent(mean['right'])} ± {100 * error:.1f}", percent(mean["near"]),
                     percent(mean["right_near"]), percent(mean["covered"]), f"{mean['size']:.1f}")
                )  # fmt: skip
    head = ("world", "variants", "tables", "P(best) of the highest estimate", "it is the best",
            "P(within 2 points)", "it is", "95 % set contains the best",
            "size of the set")  # fmt: skip
    note = (
        f"Tables of {EXAMPLES:,} examples each (σ = 1.1 points), {DRAWS} replicates, "
        f"seed {JUDGED_ON}. Where P(best) is further off than it may be, {NEW_TABLES:,} new "
        "tables judge."
    )
    return Figures("choice-tables", head, rows, note)


TABLES = {
    "choices": best_figures,
    "choice-priors": prior_figures,
    "choice-tables": table_figures,
    "frontiers": frontier_figures,
}

if __name__ == "__main__":
    for make in TABLES.values():
        figures = make()
        print(f"### {figures.name}\n\n{figures.markdown()}\n", flush=True)
    for n_variants in VARIANTS:
        print(f"off by at least {no_number_can(n_variants):.3f} with {n_variants} variants")
