"""How wide intervals will be, from a pilot's intervals and the spread of its members."""

from __future__ import annotations

from math import isnan, log
from pathlib import Path

import pytest
from tests.studies.published import claim, claims, members, publish, results

from fairweight.studies.pilots import expected_half_width, piloted


def test_the_half_width_to_expect() -> None:
    # 1.959964 √(.05 / 4000 × (.5 + .5 / 5)); t of 4 degrees of freedom × .004 / √5; both
    assert expected_half_width(5, n=4000, churn=0.05) == pytest.approx(0.0053676, rel=1e-4)
    assert expected_half_width(5, spread=0.004) == pytest.approx(0.0049666, rel=1e-4)
    both = expected_half_width(5, n=4000, churn=0.05, spread=0.004)
    assert both == pytest.approx((0.0053676**2 + 0.0049666**2) ** 0.5, rel=1e-4)
    assert isnan(expected_half_width(5))


def test_a_pilot_says_which_claims_will_be_sharp(tmp_path: Path) -> None:
    results(tmp_path, {})  # a shift of −.05 [−.07, −.03] of one member, .85 [.83, .87] after
    publish(tmp_path, "per_seed", members({"dense": [0.9], "pruned-90": [0.85]}))
    level = {"family": "pruned-*", "loss": [0.0134]}
    against = {"where": {"variant": "dense"}}
    asked = claims(
        claim(id="sharp", smallest=0.04),
        claim(id="blunt", smallest=0.03),
        claim(id="level", where={"metric": "accuracy"}, level=level, smallest=0.04),
        claim(id="difference", smallest=0.04, against=against),
        claim(id="none", folder=None, where={}, unjudged="not here"),
        claim(id="absent", where={"metric": "recall", "variant": "pruned-90"}),
    )
    found = piloted(asked, tmp_path)
    assert [(one.claim, one.sharp) for one in found] == [
        ("sharp", True), ("blunt", False), ("level", True), ("difference", False),
        ("absent", False),
    ]  # fmt: skip
    # Five members share half of their changes: .02 √(.5 + .5 / 5); both sides: √2 of that.
    assert found[0].half_width == pytest.approx(0.02 * 0.6**0.5)
    assert found[3].half_width == pytest.approx(0.02 * (2 * 0.6) ** 0.5)
    assert found[4].reason == "these results have no such row"


def test_ratios_are_piloted_on_the_scale_of_logarithms(tmp_path: Path) -> None:
    row = {"variant": "pruned-90", "by": "group", "group": "old", "odds_ratio": 4.0}
    publish(tmp_path, "enrichment", [row | {"or_low": 2.0, "or_high": 8.0}])
    (found,) = piloted(
        claims(claim(
            table="enrichment", where={"variant": "pruned-90", "group": "old"}, value="odds_ratio",
            null=1.0, direction="up", smallest=1.0,
        )), tmp_path,
    )  # fmt: skip
    assert found.half_width == pytest.approx(log(2) * 0.6**0.5)
    assert found.needed == pytest.approx(log(2) / 2)


def test_members_of_a_pilot_say_how_far_they_scatter(tmp_path: Path) -> None:
    results(tmp_path, {})
    values = {"dense": [0.90, 0.92], "pruned-90": [0.85, 0.89], "plain": [0.80, 0.80]}
    publish(tmp_path, "per_seed", members(values))
    against = {"where": {"variant": "plain"}}
    shift, difference = piloted(claims(claim(), claim(id="difference", against=against)), tmp_path)
    # Changes of −.05 and −.03 from their own dense models, and examples; .05 and .09 from `plain`,
    # which is a difference over members alone.
    over_members = expected_half_width(5, spread=0.02 / 2**0.5)
    assert shift.half_width == pytest.approx((0.02**2 * 0.6 + over_members**2) ** 0.5)
    assert difference.half_width == pytest.approx(expected_half_width(5, spread=0.04 / 2**0.5))
