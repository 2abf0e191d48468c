"""Enrichment: odds ratios by hand, the noise of retraining beside them, and every way to fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from fairweight.auditing.exemplars.enrichment import enrichment
from fairweight.auditing.exemplars.exemplars import find
from fairweight.auditing.exemplars.odds import (
    Definition,
    OddsRows,
    chances,
    influences,
    linear,
    log_odds_limits,
    log_odds_ratio,
    taken_at,
)
from fairweight.auditing.exemplars.votes import TieRule
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.schema import column_names

TAXICAB = ("taxicab", 90.0)


def masks_of(answers: Answers, kind: str = "modal", percentile: float | None = None) -> Any:
    asked = [percentile] if percentile else []
    return find(answers, kinds=[kind], percentiles=asked).masks


def population(
    members: int, harm: float = 0.0, *, n: int = 600, seed: int = 0, **more: Any
) -> Answers:
    """Two groups, of which `b` is harder; compression harms `b` by `harm` on top."""
    rng = np.random.default_rng(seed)
    group = np.where(np.arange(n) < n // 4, "b", "a")
    eased = np.where(group == "b", 0.8, 1.6) - rng.standard_normal(n)
    label = rng.integers(0, 2, n)

    def side(shift: Any) -> Any:
        right = (eased - shift)[:, None] + 0.8 * rng.standard_normal((n, members)) > 0
        return np.where(right, label[:, None], 1 - label[:, None])

    dense, compressed = side(np.zeros(n)), side(np.where(group == "b", harm, 0.0))
    return from_arrays(label, {"dense": dense, "small": compressed}, groups={"g": group}, **more)


def row(frame: pd.DataFrame, group: str) -> pd.Series:
    (found,) = frame[frame["group"] == group].to_dict("records")
    return pd.Series(found)


def test_the_odds_ratio_is_that_of_statsmodels_with_a_half_in_every_cell() -> None:
    table = sm.stats.Table2x2(np.array([[8, 11], [8, 41]]) + 0.5)
    assert float(log_odds_ratio(8, 19, 8, 49)) == pytest.approx(table.log_oddsratio)
    near = linear(8, 19, 8, 49)
    mask = np.repeat([1.0, 0.0], [8, 11]), np.repeat([1.0, 0.0], [8, 41])
    squares = [
        ((m - r) ** 2).sum() * s**2 for m, r, s in zip(mask, near.rates, near.slopes, strict=True)
    ]
    assert sum(squares) + near.pseudo == pytest.approx(table.log_oddsratio_se**2)


def test_limits_of_the_odds_ratio_agree_with_woolf_in_large_tables() -> None:
    table = sm.stats.Table2x2(np.array([[800, 1100], [900, 4100]]))
    low, high = log_odds_limits(800, 1900, 900, 5000)
    assert (float(low), float(high)) == pytest.approx(table.log_oddsratio_confint(), abs=2e-3)


def test_influences_add_up_to_what_a_change_does() -> None:
    """One more exemplar inside: the derivative times one, to first order."""
    near = linear(200, 1000, 300, 5000)
    moved = influences(near, np.array([1.0]), np.array([0.0]), np.array([0.0]), np.array([0.0]))
    exact = log_odds_ratio(200.5, 1000, 300, 5000) - log_odds_ratio(199.5, 1000, 300, 5000)
    assert float(moved[0]) == pytest.approx(float(exact), rel=1e-4)


def test_counts_shares_and_odds_by_hand() -> None:
    """Of 4 in b two change, of 8 in a one does: (2.5 / 2.5) / (1.5 / 7.5) = 5."""
    label = np.zeros(12, dtype=int)
    changed = label.copy()
    changed[[0, 1, 4]] = 1
    answers = from_arrays(
        label, {"dense": label, "small": changed}, groups={"g": ["b"] * 4 + ["a"] * 8}
    )
    train = pd.DataFrame({"label": ["0", "0"], "g": ["a", "b"], "n": [90.0, 10.0]})
    answers = replace(answers, train=train)
    frame = enrichment(answers, masks_of(answers), min_group=1, fewest=1)
    assert tuple(frame.columns) == column_names("enrichment")
    found = row(frame, "g=b")
    assert (found["n"], found["n_exemplars"]) == (4, 2)
    assert found["share_exemplars"] == pytest.approx(2 / 3)
    assert found["share_test"] == pytest.approx(1 / 3)
    assert found["share_train"] == pytest.approx(0.1)
    assert found["odds_ratio"] == pytest.approx(5.0)
    low, high = (np.exp(side) for side in log_odds_limits(2, 4, 1, 8))
    assert (found["or_low"], found["or_high"]) == pytest.approx((low, high))
    assert low < 5 < high


def test_one_baseline_model_cannot_tell_difficulty_apart() -> None:
    answers = population(1)
    frame = enrichment(answers, masks_of(answers), fewest=1)
    found = row(frame, "g=b")
    assert found["status"] == "may reflect difficulty alone: one baseline model"
    assert np.isfinite(found["odds_ratio"])
    assert frame[["retraining_odds_ratio", "ratio", "p_value", "p_adjusted"]].isna().all(axis=None)


@pytest.mark.parametrize(("members", "told"), [(2, "5 baseline members"), (4, "5 baseline")])
def test_few_members_give_values_without_a_test(members: int, told: str) -> None:
    answers = population(members)
    found = row(enrichment(answers, masks_of(answers), fewest=1), "g=b")
    assert told in found["status"]
    assert np.isfinite(found["ratio"])
    assert np.isnan([found["ratio_low"], found["p_value"]]).all()


def test_a_hard_group_is_enriched_and_not_beyond_retraining() -> None:
    answers = population(6, n=1200)
    frame = enrichment(answers, {**masks_of(answers, *TAXICAB), **masks_of(answers)})
    hard = frame[(frame["kind"] == "taxicab") & (frame["group"] == "g=b")].iloc[0]
    assert hard["retraining_low"] > 1  # difficulty is there
    assert hard["ratio_low"] < 1 < hard["ratio_high"]
    assert hard["p_value"] > 0.05
    assert hard["ratio"] == pytest.approx(
        hard["matched_odds_ratio"] / hard["retraining_odds_ratio"]
    )


def test_a_planted_effect_is_found() -> None:
    answers = population(6, harm=0.8, n=1200)
    found = row(enrichment(answers, masks_of(answers, *TAXICAB), fewest=1), "g=b")
    assert found["ratio_low"] > 1
    assert found["p_adjusted"] < 0.01
    assert found["status"] == "ok"


def test_levels_of_a_binary_column_mirror_each_other() -> None:
    answers = population(5)
    frame = enrichment(answers, masks_of(answers, *TAXICAB), fewest=1)
    a, b = row(frame, "g=a"), row(frame, "g=b")
    assert a["ratio"] * b["ratio"] == pytest.approx(1)
    assert a["ratio_low"] * b["ratio_high"] == pytest.approx(1)
    assert a["p_adjusted"] == pytest.approx(min(2 * a["p_value"], 1))


def test_equal_predictions_have_no_exemplars() -> None:
    label = np.arange(40) % 2
    same = np.repeat(label[:, None], 5, axis=1)
    answers = from_arrays(label, {"dense": same, "small": same}, groups={"g": ["a", "b"] * 20})
    frame = enrichment(answers, masks_of(answers), fewest=1)
    assert set(frame["status"]) == {"not_estimable: no exemplars"}
    assert frame["odds_ratio"].isna().all()


def test_everyone_in_one_group_and_no_groups() -> None:
    answers = replace(population(5, n=80), columns=(), groupings=())
    frame = enrichment(answers, masks_of(answers), fewest=1)
    assert set(frame["by"]) == {"class"}
    alone = population(5, n=80)
    (column,) = alone.columns
    one = replace(alone, columns=(replace(column, values=("a",), code=np.zeros_like(column.code)),))
    found = row(enrichment(one, masks_of(one), fewest=1), "g=a")
    assert found["status"] == "not_estimable: every example is in this group"
    assert np.isnan(found["odds_ratio"])


def test_small_groups_are_shown_and_not_tested() -> None:
    answers = population(5, harm=2.0, n=36)  # 9 in b
    found = row(enrichment(answers, masks_of(answers), fewest=1), "g=b")
    assert found["status"] == "small_group: n < 10"
    assert np.isnan(found["p_value"])


def test_clusters_of_one_example_change_little_and_few_clusters_are_said() -> None:
    n = 400
    single = population(5, n=n)
    apart = replace(single, cluster=np.arange(n))
    a, b = (
        row(enrichment(one, masks_of(one, *TAXICAB), fewest=1), "g=b") for one in (single, apart)
    )
    assert a["ratio"] == pytest.approx(b["ratio"])
    assert np.log(a["ratio_high"]) == pytest.approx(np.log(b["ratio_high"]), rel=1e-3)
    assert np.log(a["or_low"]) == pytest.approx(np.log(b["or_low"]), abs=0.1)
    few = replace(single, cluster=np.arange(n) % 5)
    found = row(enrichment(few, masks_of(few, *TAXICAB), fewest=1), "g=b")
    assert found["status"] == "not_estimable: 5 clusters"
    assert np.isnan([found["or_low"], found["p_value"]]).all()


def test_a_variant_has_the_same_numbers_whoever_else_is_there() -> None:
    alone = population(5, n=200)
    label, dense, small = alone.label, alone.of("dense").T, alone.of("small").T
    groups = {"g": [alone.columns[0].values[code] for code in alone.columns[0].code]}
    both = from_arrays(label, {"dense": dense, "other": dense, "small": small}, groups=groups)
    masks = masks_of(alone)
    frames = [
        enrichment(one, {**masks, ("other", "modal", None): masks["small", "modal", None]})
        for one in (alone, both)
    ]
    first, second = (one[one["variant"] == "small"].reset_index(drop=True) for one in frames)
    pd.testing.assert_frame_equal(first, second)


def test_children_stand_where_their_parents_stood() -> None:
    """With perfect copies as children the two comparisons are the same: a ratio of 1 exactly."""
    answers = population(6)
    dense = answers.of("dense")
    table = pd.DataFrame(
        {
            "variant": ["dense"] * 6 + ["small"] * 6,
            "seed": list(range(6)) * 2,
            "parent": [None] * 6 + [f"dense:{i}" for i in range(6)],
        }
    )
    copied = replace(answers, prediction=np.concatenate([dense, dense]), variants_table=table)
    mask = np.arange(answers.n_examples) % 7 == 0
    frame = enrichment(copied, {("small", *TAXICAB): mask})
    assert frame["ratio"].to_numpy() == pytest.approx(1.0)


def test_units_left_out_in_turn() -> None:
    paired = OddsRows((0, 1, 2), ((3,), (4, 5), (6,)), True)
    (without,) = paired.without()
    assert [one.dense for one in without] == [(1, 2), (0, 2), (0, 1)]
    assert without[1].compressed == ((3,), (6,))
    dense, compressed = replace(paired, paired=False).without()
    assert dense[0].compressed == paired.compressed
    assert compressed[0].dense == paired.dense


def test_ties_count_with_the_chance_that_a_draw_takes_them() -> None:
    """Three members each; distances 6, 2, 2, 0: half of four are asked for, so 1, ½, ½, 0."""
    first = np.array([[0, 0, 0, 0]] * 3, dtype=np.uint8)
    second = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=np.uint8)
    sides = np.array([[True] * 3 + [False] * 3])
    found = chances(
        np.concatenate([first, second]), 4, sides, ~sides,
        (Definition("taxicab", 50.0), Definition("modal"), Definition("unanimous")),
        TieRule(), np.random.default_rng(0),
    )  # fmt: skip
    assert found.tolist() == [[1, 0.5, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


def test_more_asked_for_than_differ() -> None:
    assert taken_at(np.array([[5, 0, 3]]), 6).tolist() == [[0.0, 1.0, 1.0]]


def test_nothing_is_said_from_a_handful_of_exemplars() -> None:
    """19 of 60 change, then 20."""
    label = np.zeros(60, dtype=int)
    for number, told in ((19, False), (20, True)):
        changed = label.copy()
        changed[:number] = 1
        answers = from_arrays(
            label, {"dense": label, "small": changed}, groups={"g": ["a", "b"] * 30}
        )
        frame = enrichment(answers, masks_of(answers))
        groups = frame[frame["by"] == "group"]
        assert groups["odds_ratio"].notna().all() == told
        few = groups["status"] == f"not_estimable: {number} exemplars, 20 are needed"
        assert few.all() != told
