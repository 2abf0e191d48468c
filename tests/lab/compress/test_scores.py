"""Importance of weights and slices."""

from __future__ import annotations

import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.compression.methods import INFINITY, magnitudes, random_scores, slice_norms


def test_norms_along_both_axes_by_hand() -> None:
    # Filter 0 holds 1 -2 / 2 0, filter 1 holds 0 4 / -3 0 (inputs / places).
    weight = torch.tensor([[[1.0, -2.0], [2.0, 0.0]], [[0.0, 4.0], [-3.0, 0.0]]])
    assert slice_norms(weight, "w", dim=0, order=1).tolist() == [5, 7]
    assert slice_norms(weight, "w", dim=0, order=2).tolist() == [3, 5]
    assert slice_norms(weight, "w", dim=0, order=INFINITY).tolist() == [2, 4]
    # Input 0: 1 -2 0 4; input 1: 2 0 -3 0.
    assert slice_norms(weight, "w", dim=1, order=1).tolist() == [7, 5]
    assert slice_norms(weight, "w", dim=1, order=INFINITY).tolist() == [4, 3]


def test_random_scores_belong_to_seed_and_name() -> None:
    scores = random_scores(100, "a.weight", seed=0)
    assert torch.equal(scores, random_scores(100, "a.weight", seed=0))
    assert not torch.equal(scores, random_scores(100, "b.weight", seed=0))
    assert not torch.equal(scores, random_scores(100, "a.weight", seed=1))


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights of 'conv1' are not all finite"):
        magnitudes(torch.tensor([1.0, float("nan")]), "conv1")
    with pytest.raises(InputError, match="not all finite"):
        slice_norms(torch.tensor([[float("inf")]]), "conv1", dim=0, order=1)
