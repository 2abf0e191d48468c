"""The slice finder as a whole: planted slices, no slices, and input that cannot be searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.explain.slices.candidates import candidates, chosen_columns
from fairweight.auditing.explain.slices.contrasts import Half, p_values
from fairweight.auditing.explain.slices.search import discoveries, find_slices
from fairweight.auditing.intervals.excess import excess_interval, excess_test
from fairweight.auditing.intervals.multiplicity import benjamini_hochberg
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError, UnknownNameError

N = 4000


def made(
    pays: Any = None,
    *,
    excess: float = 0.3,
    groups: dict[str, Any] | None = None,
    numbers: dict[str, Any] | None = None,
    members: int = 1,
    cluster: Any = None,
    seed: int = 0,
) -> Answers:
    """Everyone loses 3 % and gains 2 %; those that `pays` marks lose more."""
    rng = np.random.default_rng([seed, 7])
    label = rng.integers(0, 2, N)
    marked = np.zeros(N) if pays is None else np.asarray(pays, dtype=float)
    draw = rng.random((N, members))
    lost = draw < 0.03 + excess * marked[:, None]
    gained = draw > 0.98
    predictions = {
        "dense": np.where(gained, 1 - label[:, None], label[:, None]),
        "small": np.where(lost, 1 - label[:, None], label[:, None]),
    }
    return from_arrays(
        label,
        predictions,
        groups={} if groups is None else {k: np.asarray(v).tolist() for k, v in groups.items()},
        numbers=numbers,
        cluster=cluster,
    )


def levels(seed: int, number: int) -> Any:
    return np.random.default_rng([seed, 8]).integers(0, number, N)


A, B, C = levels(1, 4), levels(2, 3), levels(3, 2)
GROUPS = {"a": A, "b": B, "c": C}


def notes(found: pd.DataFrame) -> str:
    return " ".join(found.attrs["notes"])


def test_a_planted_level_is_listed_alone_and_confirmed() -> None:
    found = find_slices(made(A == 1, groups=GROUPS), "small")
    assert tuple(found.columns) == column_names("slices")
    assert found["slice"].tolist() == ["a=1"]
    row = found.iloc[0]
    assert row["columns"] == "a"
    assert row["n"] == np.sum(A == 1) == row["n_discovery"] + row["n_confirmation"]
    assert row["excess_low"] < -0.3 < row["excess_high"] < 0
    assert row["p_confirmation"] < 1e-6
    assert (row["status"], row["parent"]) == ("confirmed", "")
    # Everyone else seems to gain beside it; that is the same finding.
    assert "a=0" in notes(found)


def test_a_planted_pair_is_listed_with_its_parent_and_the_parents_are_not() -> None:
    found = find_slices(made((A == 1) & (B == 2), groups=GROUPS), "small")
    assert found["slice"].tolist() == ["a=1 & b=2"]
    assert found["columns"].tolist() == ["a*b"]
    assert found["parent"].iloc[0] in ("a=1", "b=2")
    assert "a=1" in notes(found)
    assert "b=2" in notes(found)


def test_without_pairs_the_parents_stand_for_it() -> None:
    found = find_slices(made((A == 1) & (B == 2), groups=GROUPS), "small", pairs=False)
    assert set(found["slice"]) <= {"a=1", "b=2"}
    assert len(found) >= 1


def test_a_parent_that_pays_and_a_child_that_pays_more_are_both_listed() -> None:
    pays = 0.5 * (A == 1) + 1.0 * ((A == 1) & (C == 0))
    found = find_slices(made(pays, groups=GROUPS), "small")
    assert set(found["slice"]) == {"a=1", "a=1 & c=0"}


def test_those_that_pay_come_before_those_that_gain() -> None:
    answers = made(A == 1, groups=GROUPS, excess=0.1)
    swapped = from_arrays(
        answers.label,
        {"dense": answers.prediction[1], "small": answers.prediction[0]},
        groups={"a": A.tolist()},
    )
    gains = find_slices(swapped, "small")
    assert gains["slice"].tolist() == ["a=1"]
    assert gains["excess"].iloc[0] > 0
    # One level pays 10 points, another, held by more, gains more clearly.
    rng = np.random.default_rng(0)
    label = np.zeros(N, dtype=int)
    lost = rng.random(N) < 0.02 + 0.15 * (A == 1)
    gained = rng.random(N) < 0.02 + 0.4 * (B == 2)
    both = from_arrays(
        label,
        {"dense": (gained & ~lost).astype(int), "small": (lost & ~gained).astype(int)},
        groups={"a": A.tolist(), "b": B.tolist()},
    )
    found = find_slices(both, "small", pairs=False)
    assert found["slice"].tolist() == ["a=1", "b=2"]
    assert found["p_discovery"].is_monotonic_decreasing
    assert np.sign(found["excess_discovery"]).tolist() == [-1, 1]


def test_the_same_examples_under_two_names_are_listed_once() -> None:
    twin = np.where(A == 1, "yes", "no")
    twin[:20] = "no"
    found = find_slices(made(A == 1, groups={"a": A, "twin": twin}), "small")
    assert len(found) == 1
    named = {found["slice"].iloc[0]} | set(found["status"].iloc[0].split(": ")[1].split(", "))
    assert named == {"a=1", "twin=yes"}
    assert found["status"].iloc[0].startswith("confirmed; nearly the same examples: ")


def test_of_two_levels_the_one_that_pays_is_listed() -> None:
    for pays, name in ((C == 0, "c=0"), (C == 1, "c=1")):
        found = find_slices(made(pays, groups={"c": C}), "small")
        assert found["slice"].tolist() == [name]


def test_the_effect_is_that_of_the_other_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known halves, excess, interval and p are those of the audit on the second one."""
    from fairweight.auditing.explain.slices import search

    first = np.arange(N) % 2 == 0
    monkeypatch.setattr(search, "discovery_half", lambda *_: first)
    answers = made(A == 1, groups={"a": A}, excess=0.1)
    row = find_slices(answers, "small").iloc[0]
    change = answers.correct("small")[0].astype(int) - answers.correct("dense")[0]
    counted = [
        np.sum(part)
        for side in ((A == 1) & ~first, (A != 1) & ~first)
        for part in (side, change[side] == -1, change[side] == 1)
    ]
    assert row["n_confirmation"] == counted[0]
    n, lost, gained, rest, rest_lost, rest_gained = counted
    excess = (gained - lost) / n - (rest_gained - rest_lost) / rest
    assert row["excess"] == pytest.approx(excess, rel=1e-12)
    assert row["p_confirmation"] == excess_test(*counted)
    assert (row["excess_low"], row["excess_high"]) == excess_interval(*counted)
    assert row["excess_discovery"] != row["excess"]


def test_missing_values_and_bins_are_levels() -> None:
    x = np.random.default_rng(5).normal(size=N)
    x[A == 1] = np.nan
    found = find_slices(made(A == 1, numbers={"x": x}), "small")
    assert found["slice"].tolist() == ["x=(missing)"]
    x = np.random.default_rng(5).normal(size=N)
    cut = np.quantile(x, 0.2)
    found = find_slices(made(x < cut, numbers={"x": x}), "small")
    assert len(found) == 1
    assert found["slice"].iloc[0].startswith("x=-")
    assert " to -0." in found["slice"].iloc[0]


def test_the_class_is_a_column_only_if_it_is_asked_for() -> None:
    answers = made(groups=GROUPS)
    pays = made(answers.label == 1, groups=GROUPS)
    assert len(find_slices(pays, "small")) == 0
    assert find_slices(pays, "small", columns=["a", "label"])["slice"].tolist() == ["label=1"]


@pytest.mark.parametrize("kind", ["members", "clusters", "weights"])
def test_members_clusters_and_weights_are_tested_with_linearised_totals(kind: str) -> None:
    from dataclasses import replace

    cluster = np.arange(N) % 400 if kind == "clusters" else None
    answers = made((A == 1) & (B == 2), groups=GROUPS, cluster=cluster,
                   members=3 if kind == "members" else 1)  # fmt: skip
    if kind == "weights":
        answers = replace(answers, weight=np.random.default_rng(6).random(N) + 0.5)
    found = find_slices(answers, "small")
    assert found["slice"].tolist() == ["a=1 & b=2"]
    assert found["status"].tolist() == ["confirmed"]
    assert found["excess_low"].iloc[0] < -0.3 < found["excess_high"].iloc[0] < 0
    assert f"t over {'clusters' if kind == 'clusters' else 'examples'}" in notes(found)
    quiet = made(groups=GROUPS, cluster=cluster, members=3 if kind == "members" else 1)
    none = find_slices(quiet, "small")
    assert len(none) == 0
    assert "No slice found" in notes(none)


def test_too_few_clusters_are_nothing_to_compare() -> None:
    found = find_slices(made(A == 1, groups=GROUPS, cluster=np.arange(N) % 30), "small")
    assert len(found) == 0
    assert "20 clusters in each half" in notes(found)


def test_no_slice_found_says_how_many_were_tested_and_what_could_have_been() -> None:
    found = find_slices(made(groups=GROUPS), "small")
    assert len(found) == 0
    assert tuple(found.columns) == column_names("slices")
    # 4 + 3 + 2 levels; 12 + 8 + 6 pairs.
    assert "No slice found: 35 slices (9 levels and 26 pairs) were tested" in notes(found)
    assert "found with a power of 80 %: " in notes(found)
    assert " points in a slice of " in notes(found)


@pytest.mark.parametrize(
    ("answers", "options", "sentence"),
    [
        (made(), {}, "there is no column to make them of"),
        (made(groups=GROUPS), {"columns": []}, "there is no column to make them of"),
        (made(groups={"a": np.zeros(N)}), {}, "100 examples both inside and outside"),
        (made(groups={"id": np.arange(N)}), {}, "no column has a level of at least 100 examples"),
        (made(groups=GROUPS), {"min_size": 3000}, "no column has a level of at least 3000"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(
    answers: Answers, options: dict[str, Any], sentence: str
) -> None:
    found = find_slices(answers, "small", **options)
    assert len(found) == 0
    assert sentence in notes(found)


def test_equal_answers_are_a_sentence() -> None:
    label = levels(4, 2)
    answers = from_arrays(label, {"dense": label, "small": label}, groups={"a": A.tolist()})
    found = find_slices(answers, "small")
    assert len(found) == 0
    assert "right on the same examples, so none can lose" in notes(found)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bins": 1}, "bins is 1; give a whole number of at least 2"),
        ({"min_size": 0}, "min_size is 0; give"),
        ({"top": 0}, "top is 0; give"),
        ({"alpha": 1.0}, "alpha is 1.0; give a share between 0 and 1"),
        ({"columns": ["sexx"]}, "Column 'sexx' does not exist"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        find_slices(made(groups=GROUPS), "small", **options)


def test_the_variant_must_be_a_compressed_one() -> None:
    with pytest.raises(UnknownNameError):
        find_slices(made(groups=GROUPS), "large")
    with pytest.raises(InputError, match="'dense' is the baseline"):
        find_slices(made(groups=GROUPS), "dense")


def test_the_seed_decides_the_halves() -> None:
    answers = made(A == 1, groups=GROUPS)
    first, again = (find_slices(answers, "small", random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    other = find_slices(answers, "small", random_state=4)
    assert other["excess"].iloc[0] != first["excess"].iloc[0]


def test_the_list_ends_at_top() -> None:
    answers = made((A == 1) | (B == 2) | (C == 0), groups=GROUPS)
    assert len(find_slices(answers, "small")) >= 2
    found = find_slices(answers, "small", top=1)
    assert len(found) == 1
    assert "The list ends at 1; " in notes(found)


def test_the_correction_runs_over_all_tests_and_pairs_bring_their_largest_p() -> None:
    answers = made((A == 1) & (B == 2), groups=GROUPS, excess=0.15)
    columns = chosen_columns(answers, ["a", "b", "c"], 5, 100)
    change = answers.correct("small")[0].astype(float) - answers.correct("dense")[0]
    first = np.arange(N) % 2 == 0
    tested = candidates(
        columns, first, Half(change[first], None, None, exact=True),
        pairs=True, min_size=100, clustered=False,
    )  # fmt: skip
    assert tested is not None
    found = discoveries(tested, 0.05)
    singles = tested.n_single
    # The largest of three p for pairs, all of them exact.
    p = p_values(tested.everyone)
    p[singles:] = np.max([p[singles:], *(p_values(c) for c in tested.parents)], axis=0)
    expected = benjamini_hochberg(p)
    passed = np.flatnonzero(expected <= 0.05)
    assert 1 <= passed.size < p.size
    assert set(found.order) == set(passed)
    np.testing.assert_allclose(found.p_decisive[passed], p[passed])
    names = [tested.slices[i].name(columns) for i in found.order]
    assert names[0] == "a=1 & b=2"
    place = found.order[0]
    inside = ((A == 1) & (B == 2))[first]
    lost, gained = change[first] < 0, change[first] > 0
    by_hand = excess_test(
        inside.sum(), lost[inside].sum(), gained[inside].sum(),
        (~inside).sum(), lost[~inside].sum(), gained[~inside].sum(),
    )  # fmt: skip
    assert found.p[place] == pytest.approx(float(by_hand), rel=1e-9)
