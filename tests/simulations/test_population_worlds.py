"""The simulated populations are what they say, and are audited as users' populations are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import fairweight as fw

from . import populations_composites as composites
from . import populations_power as power
from . import populations_rates as rates
from . import populations_values as values
from .populations import Design, Skills, children, compared, latent, same_seeds, unrelated


def test_true_rates_by_hand() -> None:
    # A margin of 1.3 with luck √.69 and nothing else: Φ(1.3 / √1.69) = Φ(1) = .8413.
    # A harm of 1.3 leaves Φ(0) = .5.
    world = replace(latent(1, margin=1.3, harm=1.3, member=0.0), luck=np.sqrt(0.69))
    dense, compressed = world.rates()
    np.testing.assert_allclose(dense, norm.cdf(1.0))
    np.testing.assert_allclose(compressed, 0.5)
    # A member with a skill of 1.3 on top: Φ(2); compressed with the same skill: Φ(1).
    of_member = world.rates_of(Skills(np.array([[1.3]]), np.array([[1.3]])))
    np.testing.assert_allclose([of_member[0][0, 0, 0], of_member[1][0, 0, 0]], norm.cdf([2.0, 1.0]))


@pytest.mark.parametrize("related", [True, False])
def test_true_rates_are_what_large_populations_approach(related: bool) -> None:
    world = replace(rates.WORLDS["far"], step_group=0.1)
    design = Design(400, 400, related=related, paired="parent" if related else "independent")
    sample = world.sample(design, np.full(4, 400), np.random.default_rng(3))
    right = sample.prediction == sample.label[:, None]
    group = sample.columns[0].code
    for side, truth in zip((slice(0, 400), slice(400, None)), world.rates(), strict=True):
        found = [right[group == g, side].mean() for g in range(4)]
        # 400 examples: a standard error of .3 / √400 · √(1 / 1.64) is about .012.
        np.testing.assert_allclose(found, truth @ world.share, atol=0.036)


def test_children_resemble_their_parents_and_strangers_do_not() -> None:
    world = latent(1)

    def discordance(design: Design) -> float:
        sample = world.sample(design, [200_000], np.random.default_rng(4))
        right = sample.prediction == sample.label[:, None]
        return float((right[:, 0] != right[:, design.n_dense]).mean())

    of_family = power.variances(world)
    # Without harm the differences have mean 0, so their variance is the discordance.
    assert discordance(children(1)) == pytest.approx(sum(of_family), abs=0.002)
    assert sum(of_family) == pytest.approx(0.05, abs=0.005)
    assert discordance(unrelated(1, 1)) == pytest.approx(0.12, abs=0.005)


def test_the_parts_of_the_variance_by_simulation() -> None:
    world = power.world(0.25)
    member, example, _ = power.variances(world)
    design = children(1000)
    rng = np.random.default_rng(5)
    dense, compressed = world.rates_of(world.skills(children(200_000), rng))
    assert member == pytest.approx(float((compressed - dense)[:, 0, 0].var()), rel=0.03)
    sample = world.sample(design, [3000], rng)
    right = (sample.prediction == sample.label[:, None]).astype(float)
    change = right[:, 1000:] - right[:, :1000]
    # The variance over examples of a mean of 1,000 members holds a thousandth of the rest.
    within = change.var(axis=1, ddof=1).mean() / 1000
    assert example == pytest.approx(change.mean(axis=1).var(ddof=1) - within, rel=0.15)


def test_smooth_values_by_hand() -> None:
    # Recalls .8 and .6: precision of class 1 is .6 / (.6 + .2) = .75, kappa 2 · .7 − 1 = .4.
    found = values.of_rates(np.array([0.8, 0.6]))
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {"precision": 0.75, "balanced_accuracy": 0.7, "kappa": 0.4}
    )


def test_composites_of_a_world_without_change_are_0() -> None:
    assert composites.truths(composites.WORLDS["unchanged"]) == {"cev_pp": 0.0, "sde_pp": 0.0}
    mild, uneven = (composites.truths(composites.WORLDS[name]) for name in ("mild", "uneven"))
    assert 0 < mild["cev_pp"] < uneven["cev_pp"]


@pytest.mark.parametrize("design", [children(3), same_seeds(3), unrelated(3, 4)], ids=str)
def test_a_simulated_population_is_paired_as_it_says(design: Design) -> None:
    sample = latent(2).sample(design, [30, 30], np.random.default_rng(0))
    assert compared(sample, design, 0).pairing.how == design.paired


def test_a_simulated_population_is_the_audit_of_its_members() -> None:
    world, design = rates.WORLDS["near"], same_seeds(4)
    sample = world.sample(design, [60, 60, 60, 60], np.random.default_rng(1))
    rows = fw.audit(
        sample.label,
        {"dense": sample.prediction[:, :4], "compressed": sample.prediction[:, 4:]},
        sensitive_features={"group": sample.columns[0].code},
        n_boot=20,
        random_state=2,
    ).results
    theirs = rows[(rows["metric"] == "accuracy") & (rows["by"] == "group")]
    for scope in ("model", "method"):
        _, mine = rates.estimates(compared(sample, design, 2), scope)
        expected = theirs[theirs["scope"] == scope]
        np.testing.assert_allclose(mine.shift.value, expected["shift"])
        low, high = mine.change.limits(0.05)
        np.testing.assert_allclose(low, expected["ci_low"])
        np.testing.assert_allclose(high, expected["ci_high"])
        np.testing.assert_allclose(mine.excess.limits(0.05)[0], expected["excess_low"])
