"""Exactly as many as asked, ties by position, nothing that is back."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from fairweight.lab.compression.methods import (
    keep_largest,
    n_removed,
    of_each_group,
    over_all,
    per_layer,
)
from fairweight.lab.compression.schedules import Step

# Few values, so that most cases have ties.
SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=30)
SHARES = st.floats(0, 1)


def everything(n: int) -> torch.Tensor:
    return torch.ones(n, dtype=torch.bool)


@given(SCORES, SHARES)
def test_exactly_round_of_the_share_goes_and_no_kept_score_is_below_a_removed_one(
    values: list[float], share: float
) -> None:
    scores = torch.tensor(values)
    kept = per_layer({"w": scores}, {"w": everything(len(values))}, Step(share))["w"]
    assert int((~kept).sum()) == round(share * len(values))
    if kept.any() and not kept.all():
        assert scores[kept].min() >= scores[~kept].max()
        limit = scores[~kept].max()
        gone, stays = (
            torch.nonzero((scores == limit) & ~kept),
            torch.nonzero((scores == limit) & kept),
        )
        assert not len(stays) or gone.max() < stays.min()  # of equals the first go


@given(SCORES, SHARES, SHARES)
def test_later_steps_only_add(values: list[float], first: float, second: float) -> None:
    scores, n = torch.tensor(values), len(values)
    once = per_layer({"w": scores}, {"w": everything(n)}, Step(first))["w"]
    twice = per_layer({"w": scores.flip(0)}, {"w": once}, Step(second))["w"]
    assert not (twice & ~once).any()
    assert int((~twice).sum()) == max(round(first * n), round(second * n))


def test_both_ends() -> None:
    scores = {"w": torch.tensor([3.0, 1.0, 2.0])}
    assert per_layer(scores, {"w": everything(3)}, Step(0.0))["w"].all()
    assert not per_layer(scores, {"w": everything(3)}, Step(1.0))["w"].any()


def test_of_what_remains() -> None:
    # 6 channels, 20 % of what remains: round(1.2), round(1.0), round(.8), round(.6), round(.4).
    counts, gone = [], 0
    for _ in range(6):
        gone = n_removed(6, gone, Step(0.2, "remaining"))
        counts.append(6 - gone)
    assert counts == [5, 4, 3, 2, 2, 2]


def test_over_all_layers_the_smallest_go_wherever_they_are() -> None:
    scores = {"a": torch.tensor([5.0, 6.0]), "b": torch.tensor([1.0, 9.0, 2.0, 5.0])}
    kept = {name: everything(len(score)) for name, score in scores.items()}
    half = over_all(scores, kept, Step(0.5))
    # 1 and 2 of b, and of the two 5 the one in the earlier layer.
    assert half["a"].tolist() == [False, True]
    assert half["b"].tolist() == [False, True, False, True]


def test_what_is_gone_stays_gone_even_if_it_would_be_largest() -> None:
    kept = torch.tensor([False, True, True])
    assert keep_largest(torch.tensor([9.0, 1.0, 2.0]), kept, 2).tolist() == [False, False, True]
    assert keep_largest(torch.tensor([9.0, 1.0, 2.0]), kept, 0).tolist() == kept.tolist()


def test_groups_keep_their_largest() -> None:
    scores = torch.tensor([[4.0, 3.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    kept = of_each_group(scores, torch.ones(2, 4, dtype=torch.bool), 1)
    assert kept.tolist() == [[True, False, False, False], [False, False, False, True]]
