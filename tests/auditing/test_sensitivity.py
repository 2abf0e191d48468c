"""Which unit does the harm: rows by hand, and worlds with the harm in one unit or in all."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.sensitivity import UnitAnswers, judged_half, sensitivity_rows
from fairweight.base.types import Mask

UNITS = 8


def world(seed: int, *, spread: bool, n: int = 4000) -> tuple[UnitAnswers, dict[str, Mask]]:
    """600 of 4,000 lose 12 points, all by unit 3 or each by a random one; every unit flips some."""
    rng = np.random.default_rng(seed)
    group = np.zeros(n, dtype=bool)
    group[rng.permutation(n)[: 3 * n // 20]] = True
    right = rng.random(n) < 0.85
    harmed = right & group & (rng.random(n) < 0.12 / 0.85)
    cause = rng.integers(0, UNITS, n) if spread else np.full(n, 3)
    flips = rng.random((UNITS, n)) < 0.0025

    def model(compressed: Mask) -> Mask:
        flipped = np.logical_xor.reduce(flips[compressed], axis=0)
        return np.logical_xor(right & ~(harmed & compressed[cause]), flipped)

    places = np.arange(UNITS)
    answers = UnitAnswers(
        tuple(f"layer{unit}" for unit in places),
        model(places < 0),
        model(places >= 0),
        np.stack([model(places == unit) for unit in places]),
        np.stack([model(places != unit) for unit in places]),
    )
    return answers, {"sex=F": group, "sex=M": ~group}


def rows(
    answers: UnitAnswers, groups: dict[str, Mask], seed: int = 0, **given: object
) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)
    return sensitivity_rows(answers, groups, rng=rng, shown_to_lose=["sex=F"], **given)


def test_values_are_means_over_the_judged_half() -> None:
    answers, groups = world(0, spread=False)
    made = rows(answers, groups)
    half = judged_half(groups, 4000, np.random.default_rng(0), None)
    of = half & groups["sex=F"]
    leader = next(row for row in made if row["unit"] == "layer3" and row["group"] == "sex=F")
    back = answers.without[3].astype(float) - answers.full
    assert leader["n"] == of.sum()
    assert leader["recovered"] == pytest.approx(back[of].mean())
    assert leader["shift_alone"] == pytest.approx(
        (answers.alone[3].astype(float) - answers.baseline)[of].mean()
    )
    assert leader["recovered_excess"] == pytest.approx(
        back[of].mean() - back[half & ~groups["sex=F"]].mean()
    )
    others = [unit for unit in range(UNITS) if unit != 3]
    rest = np.mean([(answers.without[u].astype(float) - answers.full)[of].mean() for u in others])
    assert leader["contrast"] == pytest.approx(back[of].mean() - rest)


def test_halves_divide_every_group_alike() -> None:
    _, groups = world(1, spread=True, n=401)
    half = judged_half(groups, 401, np.random.default_rng(1), None)
    for mask in groups.values():
        assert abs(int((half & mask).sum()) - int((~half & mask).sum())) <= 1


def test_clusters_stay_whole() -> None:
    cluster = np.arange(300) // 7
    half = judged_half({}, 300, np.random.default_rng(0), cluster)
    assert all(len(set(half[cluster == one])) == 1 for one in np.unique(cluster))


@pytest.mark.parametrize("seed", range(5))
def test_harm_in_one_unit_is_found_and_harm_in_all_names_none(seed: int) -> None:
    made = rows(*world(seed, spread=False), seed=seed)
    assert made[0]["unit"] == "layer3"
    assert {row["unit"] for row in made if row["stands_out"]} == {"layer3"}
    assert not any(row["stands_out"] for row in rows(*world(seed, spread=True), seed=seed))


def test_clustered_answers_have_wider_limits_and_find_it_too() -> None:
    answers, groups = world(2, spread=False)
    made = rows(answers, groups, cluster=np.arange(4000) // 3)
    leader = next(row for row in made if row["group"] == "sex=F")
    assert leader["unit"] == "layer3"
    assert leader["stands_out"]


def test_only_groups_that_are_shown_to_lose_name_a_unit() -> None:
    answers, groups = world(0, spread=False)
    made = sensitivity_rows(answers, groups, rng=np.random.default_rng(0))
    assert not any(row["stands_out"] for row in made)


def test_a_unit_with_which_nothing_comes_back_does_not_stand_out() -> None:
    """Leaving out any other unit makes it worse; leaving out unit 3 changes nothing."""
    answers, groups = world(0, spread=False)
    worse = answers.full & (np.random.default_rng(1).random((UNITS, 4000)) > 0.1)
    worse[3] = answers.full
    changed = UnitAnswers(answers.units, answers.baseline, answers.full, answers.alone, worse)
    row = next(r for r in rows(changed, groups) if (r["unit"], r["group"]) == ("layer3", "sex=F"))
    assert row["contrast_low"] > 0
    assert row["recovered"] == 0
    assert not row["stands_out"]


def test_a_group_too_small_for_both_halves_is_not_estimable() -> None:
    answers, groups = world(0, spread=False)
    few = np.zeros(4000, dtype=bool)
    few[:12] = True
    made = rows(answers, {**groups, "rare": few})
    rare = [row for row in made if row["group"] == "rare"]
    assert {row["status"] for row in rare} == {"not_estimable: 6 examples in the judged half"}
    assert all(np.isnan(row["recovered"]) for row in rare)


@pytest.mark.slow
def test_levels_hold_over_200_seeds() -> None:
    found = [rows(*world(seed, spread=False), seed=seed) for seed in range(200)]
    assert np.mean([made[0]["unit"] == "layer3" for made in found]) >= 0.95
    named = [{row["unit"] for row in made if row["stands_out"]} for made in found]
    assert np.mean([units == {"layer3"} for units in named]) >= 0.95
    spread = [rows(*world(seed, spread=True), seed=seed) for seed in range(200)]
    assert np.mean([not any(row["stands_out"] for row in made) for made in spread]) >= 0.93
