"""The noise floor and relabelling, against comparisons made one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.exemplars.exemplars import find, share_correct
from fairweight.auditing.exemplars.retraining import (
    dense_splits,
    disputed,
    matched_sizes,
    redrawn,
    retraining,
)
from fairweight.auditing.exemplars.selection import Selection
from fairweight.auditing.exemplars.votes import RULES, TieRule, disagreement
from fairweight.auditing.prediction_matrix import from_arrays

N = 300


@pytest.fixture
def population():
    """(label, members): forty of a hundred examples are hard, and compression makes them harder."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 4, N)
    hard = rng.random(N) < 0.4

    def member(chance):
        wrong = hard & (rng.random(N) < chance)
        return np.where(wrong, (label + rng.integers(1, 3, N)) % 4, label)

    return label, {
        "dense": np.stack([member(0.3) for _ in range(6)], axis=1),
        "again": np.stack([member(0.3) for _ in range(6)], axis=1),
        "small": np.stack([member(0.6) for _ in range(6)], axis=1),
    }


@pytest.mark.parametrize("rule", [r for r in RULES if r != "random"])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (1, 4)])
def test_many_draws_at_once_find_what_each_finds(population, rule, sizes, monkeypatch):
    monkeypatch.setattr("fairweight.auditing.exemplars.retraining.EXAMPLES", 50)
    monkeypatch.setattr("fairweight.auditing.exemplars.retraining.DRAWS", 3)
    label, members = population
    dense = members["dense"].T.astype(np.uint8)
    rng = np.random.default_rng(0)
    correct = share_correct(dense, label)
    one, other = dense_splits(6, sizes[0], sizes[1], rng)
    rule = TieRule(rule, 1)
    left, right = _padded(one, other)
    found = redrawn(disputed(dense, dense[:1], correct, rng), left, right, rule, rng)
    for draw in range(0, len(one), 7):
        alone = disagreement(dense[one[draw]], dense[other[draw]], rule, rng)
        assert found.scale == alone.scale
        shares = found.exemplars
        assert shares.of("modal")[draw] == pytest.approx(alone.exemplar.mean())
        assert shares.of("unanimous")[draw] == pytest.approx(alone.unanimous.mean())
        for far in (1, alone.scale, 2 * alone.scale):
            beyond = alone.distance >= far
            assert shares.of("taxicab", far)[draw] == pytest.approx(beyond.mean())
            right = (correct * beyond).mean()
            assert found.correct.of("taxicab", far)[draw] == pytest.approx(right)


def _padded(*chosen):
    return [np.pad(mask, ((0, 0), (0, 1))) for mask in chosen]


def test_sizes_keep_their_ratio():
    assert matched_sizes(10, 10) == (5, 5)
    assert matched_sizes(12, 4) == (9, 3)
    assert matched_sizes(4, 12) == (1, 3)
    assert matched_sizes(10, 1) == (9, 1)
    for n in range(4, 12):
        for m in range(1, 12):
            first, second = matched_sizes(n, m)
            assert first >= 1
            assert 1 <= second <= m
            assert first + second <= n


def test_retraining_alone_is_not_called_compression(population):
    label, members = population
    counts = find(from_arrays(label, members)).counts
    modal = counts[counts["kind"] == "modal"].set_index("variant")
    again, small = modal.loc["again"], modal.loc["small"]
    assert again["floor_low"] <= again["floor"] <= again["floor_high"]
    assert again["matched"] == pytest.approx(again["floor"], rel=0.35)
    assert again["p_retraining"] > 0.05
    assert small["matched"] > 1.5 * small["floor"]
    assert small["p_retraining"] == pytest.approx(2 / 64)  # all 2^6 exchanges: itself, its mirror


def test_relabelling_sees_changes_that_a_majority_hides():
    """All ten members change five answers: exchanging four of them moves no majority."""
    label = np.zeros(40, dtype=int)
    dense = np.zeros((40, 10), dtype=int)
    small = dense.copy()
    small[:5] = 1
    counts = find(from_arrays(label, {"dense": dense, "small": small}), percentiles=[90]).counts
    assert counts["n_exemplars"].tolist() == [5, 5, 4]
    assert counts["p_retraining"].to_numpy() == pytest.approx(2 / 1024)


def test_children_never_stand_beside_their_parents(population):
    """With children that answer as their parents do, matched and floor are the same number."""
    label, members = population
    answers = from_arrays(label, {"dense": members["dense"], "copy": members["dense"]})
    found = retraining(answers, "copy", np.ones(N), TieRule(), 0)
    context = found.context(Selection("modal", None, None, None))
    assert context.matched == context.floor > 0
    assert context.p_retraining == 1.0


def test_cuts_are_compared_at_the_cut_of_the_matched_sizes(population):
    label, members = population
    counts = find(from_arrays(label, members), percentiles=[90]).counts
    row = counts[(counts["kind"] == "taxicab") & (counts["variant"] == "small")].iloc[0]
    first, second = (members[name].T.astype(np.uint8) for name in ("dense", "small"))
    alone = disagreement(first, second, TieRule(), np.random.default_rng(0))
    assert row["n_exemplars"] == 30
    assert row["threshold"] == sorted(alone.distance)[-30] / 6
    assert row["matched"] >= 0.1 > row["floor"]
    assert row["p_retraining"] == pytest.approx(2 / 64)


@pytest.mark.parametrize(
    ("n_dense", "n_small", "told"),
    [
        (1, 1, "no noise floor: 1 baseline member, 4 are needed"),
        (3, 3, "no noise floor: 3 baseline members, 4 are needed"),
        (2, 3, "no p_retraining: 10 ways to relabel members, 20 are needed"),
    ],
)
def test_too_few_members_have_a_reason(population, n_dense, n_small, told):
    label, members = population
    small = {"dense": members["dense"][:, :n_dense], "small": members["small"][:, :n_small]}
    row = find(from_arrays(label, small)).counts.iloc[0]
    assert np.isnan(row["floor"])
    assert np.isnan(row["p_retraining"])
    assert told in row["status"]


def test_four_members_have_a_mean_and_no_limits(population):
    label, members = population
    four = {name: members[name][:, :4] for name in ("dense", "small")}
    row = find(from_arrays(label, four)).counts.iloc[0]
    assert row["floor"] > 0
    assert np.isnan(row["floor_low"])


def test_several_children_of_one_parent_are_not_exchanged(population):
    label, members = population
    answers = from_arrays(label, {"dense": members["dense"][:, :5], "small": members["small"]})
    table = pd.DataFrame(
        {
            "variant": ["dense"] * 5 + ["small"] * 6,
            "seed": [*range(5), *range(6)],
            "parent": [None] * 5 + [f"dense:{i % 5}" for i in range(6)],
        }
    )
    from dataclasses import replace

    row = find(replace(answers, variants_table=table)).counts.iloc[0]
    assert np.isnan(row["p_retraining"])
    assert "not one to one" in row["status"]
    assert row["floor"] > 0


def test_large_tables_are_sampled_and_say_so(population, monkeypatch):
    label, members = population
    whole = find(from_arrays(label, members))
    for module in ("retraining", "exemplars"):
        monkeypatch.setattr(f"fairweight.auditing.exemplars.{module}.MOST_EXAMPLES", 60)
    part = find(from_arrays(label, members))
    assert part.counts["floor"][0] == pytest.approx(whole.counts["floor"][0], rel=0.5)
    assert any("rest on 60 of the examples" in note for note in part.notes)
    assert not any("rest on" in note for note in whole.notes)
