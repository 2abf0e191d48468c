"""Which members belong together: by parent, by seed, or nobody; and when three are not there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.pairing import Pairing, pair_members

from .compare.made_populations import audit, audit_with_seeds, population

Parents = dict[tuple[str, str], tuple[str, str]]


def members(variant: str, *seeds: int) -> list[CubeMember]:
    return [CubeMember(variant, str(seed)) for seed in seeds]


def paired(dense: list[int], small: list[int], parents: Parents | None = None) -> Pairing:
    return pair_members(members("dense", *dense), members("small", *small), parents or {})


def children(*parent_seeds: int) -> Parents:
    """Small member i descends from the dense member of the i-th seed given."""
    return {("small", str(i)): ("dense", str(seed)) for i, seed in enumerate(parent_seeds)}


def test_by_parent_whatever_the_seeds() -> None:
    found = paired([7, 8, 9], [0, 1, 2], children(9, 7, 8))
    assert found.how == "parent"
    assert found.parent.tolist() == [2, 0, 1]
    assert found.pairs == [(2, 3), (0, 4), (1, 5)]
    assert found.first.tolist() == np.eye(3, 6).tolist()
    # units in the order of the parents: dense 7 has small 1, dense 8 small 2, dense 9 small 0
    assert found.second.argmax(axis=1).tolist() == [4, 5, 3]
    assert found.reason is None


def test_parents_go_before_equal_seeds() -> None:
    found = paired([0, 1, 2], [0, 1, 2], children(1, 2, 0))
    assert found.how == "parent"
    assert found.parent.tolist() == [1, 2, 0]


def test_equal_seed_sets_where_no_parent_is_known() -> None:
    found = paired([0, 1, 2], [2, 0, 1])
    assert found.how == "seed"
    assert found.parent.tolist() == [2, 0, 1]
    assert found.pairs == [(2, 3), (0, 4), (1, 5)]


@pytest.mark.parametrize("small", [[0, 1, 3], [0, 1], [0, 1, 2, 3]])
def test_other_seeds_are_nobodys_partner(small: list[int]) -> None:
    found = paired([0, 1, 2], small)
    assert found.how == "independent"
    assert not found.paired
    assert (found.parent == -1).all()
    assert len(found.pairs) == 3 * len(small)


def test_known_parents_outside_the_baseline_are_no_pairs_by_seed() -> None:
    """Equal seeds, but the table says that they descend from something else."""
    parents: Parents = {("small", str(i)): ("other", str(i)) for i in range(3)}
    assert paired([0, 1, 2], [0, 1, 2], parents).how == "independent"


def test_one_unknown_parent_makes_all_independent() -> None:
    assert paired([0, 1, 2], [0, 1, 2], children(0, 1)).how == "independent"


def test_chains_are_followed_to_the_baseline() -> None:
    """small 0 ← middle 5 ← oldest 1 ← dense 2."""
    parents = children(0, 1, 2) | {
        ("small", "0"): ("middle", "5"),
        ("middle", "5"): ("oldest", "1"),
        ("oldest", "1"): ("dense", "2"),
    }
    assert paired([0, 1, 2], [0, 1, 2], parents).parent.tolist() == [2, 1, 2]


def test_chains_end_at_the_nearest_baseline_member() -> None:
    """The baseline's own parents do not matter."""
    parents = children(0, 1, 2) | {("dense", str(i)): ("seedling", "0") for i in range(3)}
    assert paired([0, 1, 2], [0, 1, 2], parents).parent.tolist() == [0, 1, 2]


def test_children_of_one_parent_are_one_unit() -> None:
    found = paired([0, 1, 2], [0, 1, 2, 3, 4], children(0, 0, 0, 1, 2))
    third = 1 / 3
    assert found.second[:, 3:].tolist() == [
        [third, third, third, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert found.reason is None


def test_parents_without_children_take_no_part() -> None:
    found = paired([0, 1, 2, 3, 4], [0, 1, 2], children(4, 0, 2))
    assert found.first[:, :5].tolist() == np.eye(5)[[0, 2, 4]].tolist()
    assert found.second[:, 5:].argmax(axis=1).tolist() == [1, 2, 0]


def test_independent_children_of_one_root_are_one_unit() -> None:
    """Six members of two roots that are not in the baseline: two units, too few."""
    parents: Parents = {("small", str(i)): ("other", str(i % 2)) for i in range(6)}
    found = paired([0, 1, 2], list(range(6)), parents)
    assert found.second[:, 3:].tolist() == [[1 / 3, 0, 1 / 3, 0, 1 / 3, 0], [0, 1 / 3] * 3]
    assert found.reason == "fewer than 3 distinct parents"


@pytest.mark.parametrize(
    ("dense", "small", "reason"),
    [
        ([0], [0, 1, 2, 3], "one baseline model"),
        ([0, 1], [0, 1, 2], "fewer than 3 members per side"),
        ([0, 1, 2], [0], "fewer than 3 members per side"),
        ([0, 1, 2], [0, 1, 2], None),
    ],
)
def test_three_members_per_side(dense: list[int], small: list[int], reason: str | None) -> None:
    assert paired(dense, small).reason == reason


@pytest.mark.parametrize(("parents", "enough"), [((0, 0, 1, 1), False), ((0, 1, 2, 2), True)])
def test_three_distinct_parents(parents: tuple[int, ...], enough: bool) -> None:
    found = paired([0, 1, 2, 3], [0, 1, 2, 3], children(*parents))
    assert (found.reason is None) == enough
    assert found.reason in (None, "fewer than 3 distinct parents")


def test_one_pair_is_single() -> None:
    found = paired([3], [8])
    assert (found.how, found.pairs) == ("single", [(0, 1)])
    assert not found.paired


MADE = replace(population(n=40, members=(3, 3)), groups={})


def test_the_audit_says_how_members_were_paired() -> None:
    assert audit(MADE).result.pairing == {"small": "seed"}
    for parents, how in (
        (["dense:2", "dense:1", "dense:0"], "parent"),
        (["dense:0", None, "dense:2"], "independent"),
    ):
        made = audit_with_seeds(MADE, [0, 1, 2], [0, 1, 2], parents)
        assert made.result.pairing == {"small": how}
