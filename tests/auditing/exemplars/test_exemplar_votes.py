"""Votes, distances and modal answers, against the same counted by hand and one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fairweight.auditing.exemplars.votes import (
    FEW,
    RULES,
    TieRule,
    count_votes,
    disagreement,
    jaccard,
    per_member,
    scale_of,
    taxicab,
    tie_rule,
)
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.errors import InputError, UnknownNameError

CAT, DOG, EMU = 0, 1, 2


def compared(first, second, rule="disjoint", negative=None, kind=np.uint8):
    """Members' answers of one example (or of several, as columns)."""
    one, other = (np.asarray(side, dtype=kind).reshape(len(side), -1) for side in (first, second))
    return disagreement(one, other, TieRule(rule, negative), np.random.default_rng(0))


@st.composite
def populations(draw, most_classes=5, equal=False):
    n_first, n_second = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    n, classes = draw(st.integers(1, 8)), draw(st.integers(1, most_classes))
    codes = st.integers(0, classes)  # the last is an abstention
    first = draw(hnp.arrays(np.uint16, (n_first, n), elements=codes))
    second = draw(hnp.arrays(np.uint16, (n_first if equal else n_second, n), elements=codes))
    return first, second


def test_the_distances_of_a_worked_example():
    # Ten dense members: cat 7, dog 3. Ten compressed ones: cat 4, dog 5, emu 1.
    dense = [CAT] * 7 + [DOG] * 3
    small = [CAT] * 4 + [DOG] * 5 + [EMU]
    found = compared(dense, small)
    assert found.distance.tolist() == [3 + 2 + 1]
    assert found.scale == 10
    assert per_member(found.distance, 10).tolist() == [0.6]
    assert jaccard(found.distance, 10).tolist() == [1 - (4 + 3 + 0) / (7 + 5 + 1)]
    assert found.exemplar.tolist() == [True]
    assert found.undecided.tolist() == [False]
    assert found.unanimous.tolist() == [False]


def test_unequal_sizes_are_compared_per_member():
    # cat 2/3, dog 1/3 against cat 1/2, dog 1/2: |1/6| + |1/6|, in sixths 1 + 1.
    found = compared([CAT, CAT, DOG], [CAT, DOG])
    assert (found.scale, found.distance.tolist()) == (6, [2])
    assert per_member(found.distance, found.scale) == pytest.approx([1 / 3])


@settings(max_examples=30)
@given(populations())
def test_distance_equals_its_definition(sides):
    first, second = sides
    found = disagreement(first, second, TieRule(), np.random.default_rng(0))
    for i, distance in enumerate(per_member(found.distance, found.scale)):
        b, v = Counter(first[:, i].tolist()), Counter(second[:, i].tolist())
        shares = [abs(b[c] / len(first) - v[c] / len(second)) for c in b | v]
        assert distance == pytest.approx(sum(shares))


@settings(max_examples=30)
@given(populations(equal=True))
def test_jaccard_is_a_function_of_the_taxicab_distance(sides):
    first, second = sides
    found = taxicab(count_votes(first, second))
    for i, distance in enumerate(jaccard(found, len(first))):
        b, v = Counter(first[:, i].tolist()), Counter(second[:, i].tolist())
        least, most = sum((b & v).values()), sum((b | v).values())
        assert distance == pytest.approx(1 - least / most)
        assert distance == pytest.approx(2 * found[i] / (2 * len(first) + found[i]))


@settings(max_examples=40)
@given(populations(most_classes=FEW + 20), st.sampled_from([r for r in RULES if r != "random"]))
def test_many_classes_are_counted_as_few_are(sides, rule):
    first, second = sides
    # The same examples with codes close together: counted class by class, not answer by answer.
    _, close = np.unique(np.vstack(sides), return_inverse=True)
    close = close.reshape(-1, first.shape[1])
    if close.max() >= FEW:
        return
    few = compared(close[: len(first)], close[len(first) :], rule, 0)
    many = compared(first, second, rule, int(np.vstack(sides).min()), np.uint16)
    for name in ("distance", "exemplar", "unanimous", "undecided"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))


def test_a_thousand_classes():
    rng = np.random.default_rng(3)
    first, second = (rng.integers(0, 1000, (7, 300)).astype(np.uint16) for _ in range(2))
    first[:, :150] = first[0, :150]
    found = compared(first, second, kind=np.uint16)
    votes = [
        (Counter(b.tolist()), Counter(v.tolist())) for b, v in zip(first.T, second.T, strict=True)
    ]
    assert found.distance.tolist() == [sum(((b - v) + (v - b)).values()) for b, v in votes]


TIED = ([CAT, CAT, DOG, DOG], [DOG, DOG, DOG, CAT])  # the baseline is undecided
TIED_APART = ([CAT, CAT, CAT], [DOG, EMU])
TIED_BOTH = ([CAT, CAT, DOG, DOG], [DOG, DOG, EMU, EMU])


@pytest.mark.parametrize(
    ("sides", "rule", "exemplar"),
    [
        (TIED, "disjoint", False),  # both may say dog
        (TIED, "max", False),  # dog, dog
        (TIED, "min", True),  # cat, dog
        (TIED, "baseline", True),  # the baseline's smallest is cat, the other side says dog
        (TIED_APART, "disjoint", True),
        (TIED_APART, "baseline", True),
        (TIED_BOTH, "disjoint", False),
        (TIED_BOTH, "max", True),  # dog, emu
        (TIED_BOTH, "min", True),  # cat, dog
        (TIED_BOTH[::-1], "baseline", False),  # dog; cat or dog
    ],
)
def test_tie_rules_by_hand(sides, rule, exemplar):
    found = compared(sides[0], sides[1], rule)
    assert found.exemplar.tolist() == [exemplar]
    assert found.undecided.tolist() == [True]


@pytest.mark.parametrize(("negative", "exemplar"), [(CAT, True), (DOG, False)])
def test_the_negative_class_wins_ties(negative, exemplar):
    # cat 2, dog 2 against dog 3, cat 1: the tie goes to the negative class, the other says dog.
    assert compared(*TIED, "negative", negative).exemplar.tolist() == [exemplar]


def test_ties_drawn_at_random_go_either_way_and_the_same_way_again():
    first = np.tile(np.array([[CAT], [DOG]], np.uint8), (1, 4000))
    second = np.full((2, 4000), DOG, np.uint8)
    found = compared(first, second, "random").exemplar
    np.testing.assert_array_equal(found, compared(first, second, "random").exemplar)
    assert 0.46 < found.mean() < 0.54  # half of the draws say cat; ±5 standard errors


def test_no_answer_is_an_answer_of_its_own():
    nothing = 2  # after the classes cat and dog
    found = compared([CAT, CAT, nothing], [nothing, nothing, CAT])
    assert found.distance.tolist() == [2]
    assert found.exemplar.tolist() == [True]


def test_unanimous_is_disagreement_of_every_compressed_member():
    teacher = [[CAT, CAT, CAT]]
    students = [[DOG, DOG, CAT], [DOG, CAT, CAT], [EMU, EMU, CAT]]
    assert compared(teacher, students).unanimous.tolist() == [True, False, False]
    # Against several: nobody gives any of the baseline's most frequent answers.
    assert compared([CAT, CAT, DOG, DOG], [EMU, EMU]).unanimous.tolist() == [True]
    assert compared([CAT, CAT, DOG, DOG], [EMU, DOG]).unanimous.tolist() == [False]


@settings(max_examples=30)
@given(populations())
def test_exchanging_the_sides_changes_no_distance_and_no_modal_exemplar(sides):
    one, other = compared(*sides, kind=np.uint16), compared(*sides[::-1], kind=np.uint16)
    np.testing.assert_array_equal(one.distance, other.distance)
    np.testing.assert_array_equal(one.exemplar, other.exemplar)
    assert not one.exemplar[one.distance == 0].any()


def test_more_members_than_fit_a_byte():
    first = np.zeros((300, 2), np.uint8)
    second = np.ones((300, 2), np.uint8)
    second[:150, 1] = 0
    found = compared(first, second)
    assert found.distance.tolist() == [600, 300]
    assert scale_of(300, 300) == 300


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 3, (4, 100)).astype(np.uint8) for _ in range(2))
    whole = compared(first, second)
    monkeypatch.setattr("fairweight.auditing.exemplars.votes.BLOCK", 7)
    np.testing.assert_array_equal(whole.distance, compared(first, second).distance)
    np.testing.assert_array_equal(whole.exemplar, compared(first, second).exemplar)


def test_rules_that_cannot_be_used_say_why():
    three = from_arrays([0, 1, 2], {"dense": [0, 1, 2], "int8": [0, 1, 1]})
    with pytest.raises(InputError, match="needs two classes, but there are 3"):
        tie_rule("negative", three)
    named = from_arrays(["a", "b"], {"dense": ["a", "b"], "int8": ["b", "b"]})
    with pytest.raises(InputError, match="positive"):
        tie_rule("negative", named)
    with pytest.raises(UnknownNameError, match="most"):
        tie_rule("most", three)
    binary = from_arrays([0, 1], {"dense": [0, 1], "int8": [1, 1]})
    assert tie_rule("negative", binary).negative == 0
