"""Accuracy of individuals before and after: raw values by hand, ranks, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from fairweight.auditing.explain.individuals import individual_fits, individuals
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError, UnknownNameError


def two_writers(**given: Any) -> Answers:
    """Ann: 4 examples, 4 right before, 2 lost. Bob: 3, 1 right before, 1 gained."""
    label = np.zeros(7, dtype=int)
    dense = np.array([0, 0, 0, 0, 0, 1, 1])
    pruned = np.array([0, 1, 0, 1, 0, 0, 1])
    given = {"cluster": ["ann"] * 4 + ["bob"] * 3} | given
    return from_arrays(label, {"dense": dense, "pruned": pruned}, **given)


def test_raw_rates_by_hand() -> None:
    frame = individuals(two_writers(), "pruned", properties={"ink": [1, 2, 3, np.nan, 5, 6, 10]})
    assert tuple(frame.columns) == (*column_names("individuals"), "ink")
    ann, bob = (frame[frame["individual"] == name].iloc[0] for name in ("ann", "bob"))
    raw = ["n", "baseline", "compressed", "lost", "gained", "shift", "ink", "rank"]
    assert ann[raw].tolist() == [4, 1.0, 0.5, 0.5, 0.0, -0.5, 2.0, 1]
    assert bob[raw].tolist() == pytest.approx([3, 1 / 3, 2 / 3, 0.0, 1 / 3, 1 / 3, 7.0, 2])
    for side in ("baseline", "compressed", "shift"):
        assert (frame[f"{side}_low"] < frame[f"{side}_shrunk"]).all()
        assert (frame[f"{side}_shrunk"] < frame[f"{side}_high"]).all()
    assert bob["baseline"] < bob["baseline_shrunk"] < ann["baseline_shrunk"] < ann["baseline"]


def test_members_are_averaged_in_pairs() -> None:
    label = np.zeros(2, dtype=int)
    # Example 0: pair 0 loses it, pair 1 keeps it. Example 1: pair 0 wrong twice, pair 1 gains it.
    dense = np.array([[0, 0], [1, 1]])
    pruned = np.array([[1, 0], [1, 0]])
    a = from_arrays(label, {"dense": dense, "pruned": pruned}, cluster=["ann", "ann"])
    (row,) = individuals(a, "pruned").to_dict("records")
    raw = [row[name] for name in ("n", "baseline", "compressed", "lost", "gained", "shift")]
    assert raw == [2, 0.5, 0.5, 0.25, 0.25, 0.0]


def test_unpaired_members_are_compared_each_with_each() -> None:
    label = np.zeros(1, dtype=int)
    dense = np.array([[0, 0, 1]])  # right in 2 of 3
    pruned = np.array([[1, 0]])  # right in 1 of 2
    a = from_arrays(label, {"dense": dense, "pruned": pruned}, cluster=["ann"])
    (row,) = individuals(a, "pruned").to_dict("records")
    assert [row["lost"], row["gained"]] == pytest.approx([2 / 6, 1 / 6])
    assert row["shift"] == pytest.approx(row["compressed"] - row["baseline"])


def test_ranks_follow_the_shrunken_shift_not_the_raw_one() -> None:
    # One of two answers lost is less evidence than forty of a hundred.
    n = np.array([2, 100, *[50] * 60])
    lost = np.array([1, 40, *[5] * 60])
    who = np.repeat(np.arange(len(n)), n)
    wrong = np.concatenate([np.arange(k) < m for k, m in zip(n, lost, strict=True)])
    a = from_arrays(0 * who, {"dense": 0 * who, "pruned": wrong.astype(int)}, cluster=who)
    frame = individuals(a, "pruned").set_index("individual")
    assert frame.loc["0", "shift"] < frame.loc["1", "shift"]
    assert (frame.loc["1", "rank"], frame.loc["0", "rank"]) == (1, 2)
    assert set(frame["rank"][2:]) == {3}  # equal ones share a rank


def test_individuals_come_from_any_column_and_groups_stand_beside_them() -> None:
    writer = ["7", "7", "8", "8", "9", "9", None]
    series = ["a", "a", "a", "b", None, None, "b"]
    a = two_writers(
        groups={"writer": writer, "series": series},
        numbers={"id": [1, 1, 1, 2, 2, 3, np.nan]},
    )
    frame = individuals(a, "pruned", by="writer", group="series")
    assert frame["individual"].tolist() == ["7", "8", "9"]
    assert frame["group"].tolist() == ["a", "(several)", "(missing)"]
    assert frame["n"].tolist() == [2, 2, 2]  # the example without a writer is left out
    numbered = individuals(a, "pruned", by="id")
    assert numbered[["individual", "n"]].values.tolist() == [["1", 3], ["2", 2], ["3", 1]]
    assert "id" not in numbered.columns


def test_equal_predictions_give_no_shift() -> None:
    same = np.array([0, 1] * 30)
    a = from_arrays(0 * same, {"dense": same, "copy": same}, cluster=np.arange(60) // 6)
    frame = individuals(a, "copy")
    assert (frame["shift"] == 0).all()
    assert frame["shift_shrunk"].to_numpy() == pytest.approx(0, abs=1e-3)
    assert (frame["rank"] == 1).all()
    assert ((frame["shift_low"] < 0) & (frame["shift_high"] > 0)).all()


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ({"cluster": None}, {}, "no cluster column"),
        ({}, {"by": "writre"}, "column of individuals 'writre' does not exist"),
        ({}, {"group": "series"}, "group column 'series' does not exist"),
        ({}, {"alpha": 1.5}, "alpha is 1.5"),
        ({}, {"properties": {"ink": [1, 2]}}, "'ink' has shape"),
        ({}, {"properties": {"ink": ["a"] * 7}}, "'ink' is not made of numbers"),
        ({}, {"properties": {"shift": [0.0] * 7}}, "'shift' has the name of a column"),
        ({"numbers": {"ink": [0.0] * 7}}, {"properties": {"ink": [0.0] * 7}}, "already"),
        ({"groups": {"w": [None] * 7}}, {"by": "w"}, "No example has a value in 'w'"),
    ],
)
def test_what_cannot_be_done_is_said(given: dict, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        individuals(two_writers(**given), "pruned", **options)


def test_the_baseline_is_no_variant_of_itself() -> None:
    with pytest.raises(InputError, match="is the baseline itself"):
        individuals(two_writers(), "dense")
    with pytest.raises(UnknownNameError, match="'prunde' does not exist"):
        individuals(two_writers(), "prunde")


def table(n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    tilt = rng.random(n)
    frame = pd.DataFrame({"variant": "pruned", "group": np.where(np.arange(n) % 3, "a", "b")})
    frame["baseline"] = 0.97 - 0.02 * tilt + 0.01 * rng.normal(size=n)
    frame["compressed"] = 0.8 - 0.3 * tilt + 0.1 * tilt * rng.normal(size=n)
    frame["shift"] = frame["compressed"] - frame["baseline"]
    return frame.assign(tilt=tilt, flat=0.1)


def test_fits_equal_statsmodels_with_hc3() -> None:
    frame = table()
    fits = individual_fits(frame, ["tilt"], sides=("baseline", "compressed", "shift"))
    assert tuple(fits.columns) == column_names("individual_fits")
    assert fits["group"].fillna("everyone").tolist() == ["a", "b", "everyone"] * 3
    for row in fits.to_dict("records"):
        part = frame if pd.isna(row["group"]) else frame[frame["group"] == row["group"]]
        fitted = sm.OLS(part[row["side"]], sm.add_constant(part["tilt"])).fit(cov_type="HC3")
        names = ("intercept", "slope", "intercept_se", "slope_se", "r2", "n")
        assert [row[name] for name in names] == pytest.approx(
            [*fitted.params, *fitted.bse, fitted.rsquared, len(part)]
        )
        assert row["status"] == "ok"


def test_a_line_that_is_not_determined_is_said_to_be_so() -> None:
    few = individual_fits(table(5), ["tilt"], sides=("baseline",)).set_index("group")
    assert few.loc["b", "status"] == "not_estimable: 2 individuals"
    assert np.isnan(few.loc["b", "slope"])
    flat = individual_fits(table(), ["flat"], sides=("baseline",))
    assert set(flat["status"]) == {"not_estimable: the property is constant"}
    lever = table(6).assign(group=None, tilt=[0, 0, 0, 0, 0, 1.0])
    (row,) = individual_fits(lever, ["tilt"], sides=("baseline",)).to_dict("records")
    assert row["status"] == "no standard error: one individual decides the slope"
    assert np.isnan(row["slope_se"])
    assert np.isfinite(row["slope"])


def test_unknown_properties_and_sides_are_named() -> None:
    with pytest.raises(UnknownNameError, match="property 'tild'"):
        individual_fits(table(), ["tild"])
    with pytest.raises(UnknownNameError, match="side 'after'"):
        individual_fits(table(), ["tilt"], sides=("after",))
