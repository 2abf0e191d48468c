"""`noise_floor`, `matched` and `p_retraining` by brute force over all splits and relabellings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import fairweight as fw

from ..strategies import row
from .made_populations import Population, audit, audit_with_seeds, population

Matrix = NDArray[Any]
# What a number is, of the predictions (examples, members) of two sides.
Number = Callable[[Matrix, Matrix], float]
SIZES = {"cev", "sde", "cev_pp", "sde_pp"}  # never negative: not differences
CONTEXT = ["matched", "noise_floor", "p_retraining"]


@cache
def five() -> tuple[Population, fw.Audit]:
    """Five and five, paired by seed: 30 ordered splits, 32 sign flips."""
    made = population(11, n=100, members=(5, 5))
    return made, audit(made)


def numbers(made: Population) -> dict[tuple[str, str, str | None, str | None], Number]:
    """By (metric, by, group, class), written from the definitions."""
    label, site = made.label, made.groups["site"]

    def accuracies(side: Matrix, here: Any = slice(None)) -> Matrix:
        return np.asarray((side[here] == label[here, None]).mean(axis=0))

    def shift_of(value: Callable[[Matrix], Any]) -> Number:
        return lambda one, other: float(np.mean(value(other)) - np.mean(value(one)))

    def gap(side: Matrix) -> Matrix:
        by_site = np.stack([accuracies(side, site == level) for level in "xyz"])
        return np.asarray(by_site.max(axis=0) - by_site.min(axis=0))

    def precision(side: Matrix) -> list[float]:
        return [(label[column == "a"] == "a").mean() for column in side.T]

    def rates(side: Matrix) -> tuple[Matrix, Matrix]:
        """Mean FPR and FNR of every class in points."""
        fpr = [(side[label != c] == c).mean() for c in "abc"]
        fnr = [(side[label == c] != c).mean() for c in "abc"]
        return 100 * np.array(fpr), 100 * np.array(fnr)

    def cev_pp(one: Matrix, other: Matrix) -> float:
        moved = [after - before for before, after in zip(rates(one), rates(other), strict=True)]
        return float(sum(d.var() for d in moved) / 2)

    def least(one: Matrix, other: Matrix) -> float:
        here = [site == level for level in "xyz"]
        return float(min(accuracies(other, h).mean() - accuracies(one, h).mean() for h in here))

    return {
        ("accuracy", "overall", None, None): shift_of(accuracies),
        ("accuracy", "group", "site=x", None): shift_of(lambda s: accuracies(s, site == "x")),
        ("recall", "class", None, "b"): shift_of(lambda s: accuracies(s, label == "b")),
        ("precision", "class", None, "a"): shift_of(precision),
        ("group_gap", "grouping", "site", None): shift_of(gap),
        ("cev_pp", "overall", None, None): cev_pp,
        ("worst_group_shift", "grouping", "site", None): least,
    }


def find(results: pd.DataFrame, key: tuple[str, str, str | None, str | None]) -> list[pd.Series]:
    name, by, group, cls = key
    return [
        row(results, name, by, group=group, cls=cls, scope=scope) for scope in ("model", "method")
    ]


def splits(number: Number, side: Matrix, k: int) -> list[float]:
    """|T| of every ordered pair of disjoint sets of k members."""
    everyone = range(side.shape[1])
    return [
        abs(number(side[:, one], side[:, other]))
        for one in combinations(everyone, k)
        for other in combinations([m for m in everyone if m not in one], k)
    ]


def exact_p(number: Number, regrouped: Sequence[tuple[Matrix, Matrix]]) -> float:
    """Share of the relabellings, the first of them as observed, at least as far from 0."""
    far = [abs(number(one, other)) for one, other in regrouped]
    return float(np.mean([value >= far[0] * (1 - 1e-9) for value in far]))


def flips(made: Population) -> list[tuple[Matrix, Matrix]]:
    """All 2^K ways of exchanging the members of a pair."""
    found = []
    for signs in product((False, True), repeat=made.dense.shape[1]):
        swap = np.array(signs)[None, :]
        found.append(
            (np.where(swap, made.small, made.dense), np.where(swap, made.dense, made.small))
        )
    return found


def regroupings(made: Population) -> list[tuple[Matrix, Matrix]]:
    """All ways of calling as many members dense."""
    everyone = np.hstack([made.dense, made.small])
    total, k = everyone.shape[1], made.dense.shape[1]
    return [
        (everyone[:, list(one)], everyone[:, [m for m in range(total) if m not in one]])
        for one in combinations(range(total), k)
    ]


def test_the_floor_is_the_95_percent_quantile_of_all_splits() -> None:
    """S = 5: k = 2, 30 ordered splits."""
    made, audited = five()
    for key, number in numbers(made).items():
        moved = splits(number, made.dense, 2)
        assert len(moved) == 30
        for found in find(audited.results, key):
            # Differences reach √(S / (S − 1)) further between new members; sizes stay.
            reach = 1.0 if key[0] in SIZES else np.sqrt(5 / 4)
            floor = reach * np.quantile(moved, 0.95)
            assert found["noise_floor"] == pytest.approx(floor, rel=1e-9), key


def test_p_retraining_counts_all_sign_flips_of_pairs() -> None:
    made, audited = five()
    relabelled = flips(made)
    assert len(relabelled) == 32
    for key, number in numbers(made).items():
        expected = exact_p(number, relabelled)
        for found in find(audited.results, key):
            assert found["p_retraining"] == pytest.approx(expected, abs=1e-12), key


def test_matched_is_the_median_of_draws_of_as_many_members() -> None:
    """Of all 100 ways to take two dense and two small members; 200 draws come near it."""
    made, audited = five()
    for key, number in numbers(made).items():
        moved = [
            abs(number(made.dense[:, one], made.small[:, other]))
            for one in combinations(range(5), 2)
            for other in combinations(range(5), 2)
        ]
        low, high = np.quantile(moved, [0.3, 0.7])  # 5.6 standard errors of 200 draws
        for found in find(audited.results, key):
            assert low <= found["matched"] <= high, key


def test_flips_between_dense_members_are_their_floor() -> None:
    """All pairs of the two sets; symmetric in the sides, so that relabelling says nothing."""
    made, audited = five()
    label = made.label[:, None]

    def share(name: str) -> Number:
        def of(one: Matrix, other: Matrix) -> float:
            pairs = [(a, b) for a in one.T for b in other.T]
            if name == "flips":
                return float(np.mean([a != b for a, b in pairs]))
            right = [(a == label[:, 0], b == label[:, 0]) for a, b in pairs]
            return float(np.mean([a & ~b if name == "harmful_flips" else ~a & b for a, b in right]))

        return of

    for name in ("flips", "harmful_flips", "helpful_flips"):
        floor = np.quantile(splits(share(name), made.dense, 2), 0.95)
        for found in find(audited.results, (name, "overall", None, None)):
            assert found["noise_floor"] == pytest.approx(floor, rel=1e-9)
            assert np.isnan(found["p_retraining"])


def test_every_row_has_its_context_in_both_scopes() -> None:
    """Sizes, so never negative; the same in both scopes; for every metric that has a value."""
    _, audited = five()
    results = audited.results
    assert (results[CONTEXT].dropna() >= 0).all(axis=None)
    ok = results[results["status"] == "ok"]
    ok = ok[ok["metric"] != "heterogeneity_within_classes"]  # drawn from signs alone
    assert ok[["matched", "noise_floor"]].notna().all(axis=None)
    tested = ok[~ok["metric"].isin(["flips", "harmful_flips", "helpful_flips", "concentration"])]
    assert tested["p_retraining"].notna().all()
    frame = results[results["metric"] != "class_impact"].fillna({"group": "", "class": ""})
    model, method = (
        frame[frame["scope"] == scope]
        .set_index(["metric", "by", "group", "class"])[CONTEXT]
        .sort_index()
        for scope in ("model", "method")
    )
    pd.testing.assert_frame_equal(model, method)


def test_composites_about_the_method_are_tested_by_relabelling() -> None:
    _, audited = five()
    for name, by, group in (("cev_pp", "overall", None), ("group_gap", "grouping", "site")):
        found = row(audited.results, name, by, group=group, scope="method")
        assert found["p_value"] == found["p_retraining"]
        # about these models: exchanged answers, another number
        assert row(audited.results, name, by, group=group)["p_value"] != found["p_value"]


def test_below_five_dense_members_there_is_no_floor() -> None:
    """Four dense, five small: no splits, but C(9, 4) = 126 relabellings."""
    made = population(12, n=60, members=(4, 5))
    results = audit(made).results
    assert results[["matched", "noise_floor"]].isna().all(axis=None)
    expected = exact_p(numbers(made)["accuracy", "overall", None, None], regroupings(made))
    for found in find(results, ("accuracy", "overall", None, None)):
        assert found["p_retraining"] == pytest.approx(expected, abs=1e-12)


def test_twenty_regroupings_are_enough() -> None:
    """Three and three of different seeds: C(6, 3) = 20."""
    made = population(13, n=60, members=(3, 3))
    results = audit_with_seeds(made, [0, 1, 2], [10, 11, 12]).results
    relabelled = regroupings(made)
    assert len(relabelled) == 20
    for key, number in numbers(made).items():
        expected = exact_p(number, relabelled)
        assert expected >= 1 / 20
        for found in find(results, key):
            assert found["p_retraining"] == pytest.approx(expected, abs=1e-12), key


@pytest.mark.parametrize("members", [(2, 3), (4, 4)])
def test_fewer_than_twenty_relabellings_are_none(members: tuple[int, int]) -> None:
    """C(5, 2) = 10 regroupings; 2^4 = 16 flips of pairs of equal seeds."""
    made = replace(population(14, n=40, members=members), groups={})
    assert audit(made).results["p_retraining"].isna().all()


def test_one_small_member_is_matched_by_one_dense_member() -> None:
    """S = 5, K_c = 1: k = 1, 20 ordered splits; no scope `method`, but a floor."""
    made = population(15, n=60, members=(5, 1))
    results = audit(made).results
    key = ("accuracy", "overall", None, None)
    number = numbers(made)[key]
    moved = splits(number, made.dense, 1)
    assert len(moved) == 20
    for found in find(results, key):
        floor = np.sqrt(5 / 4) * np.quantile(moved, 0.95)
        assert found["noise_floor"] == pytest.approx(floor, rel=1e-9)
        against = [abs(number(made.dense[:, [m]], made.small)) for m in range(5)]
        assert min(abs(found["matched"] - value) for value in against) < 1e-9
    assert row(results, "accuracy", scope="method")["status"].startswith("not_estimable")


def test_members_of_a_unit_are_relabelled_together() -> None:
    """Five parents with two children each: 32 flips of parents against their children's mean."""
    made = replace(population(16, n=50, members=(5, 10)), groups={})
    of = np.arange(10) % 5
    parents: list[str | None] = [f"dense:{p}" for p in of]
    results = audit_with_seeds(made, list(range(5)), list(range(10)), parents).results
    right = (made.dense == made.label[:, None]).mean(axis=0)
    children = (made.small == made.label[:, None]).mean(axis=0)
    moved = np.array([children[of == p].mean() - right[p] for p in range(5)])
    far = [abs(np.mean(moved * signs)) for signs in product((1, -1), repeat=5)]
    expected = np.mean([value >= far[0] * (1 - 1e-9) for value in far])
    for found in find(results, ("accuracy", "overall", None, None)):
        assert found["p_retraining"] == pytest.approx(expected, abs=1e-12)


def test_a_real_effect_stands_out_and_retraining_alone_does_not() -> None:
    """Small members that lose a third of their answers are farther apart than dense ones."""
    made = replace(population(17, n=80, members=(6, 6), errors=(0.1, 0.5)), groups={})
    found = row(audit(made).results, "accuracy", scope="method")
    assert found["matched"] > 3 * found["noise_floor"]
    assert found["p_retraining"] == 2 / 2**6  # the flips of all or of none
