"""Hints by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fairweight.lab.distillation.losses import hint, max_pool_hint


@pytest.mark.parametrize("loss", [hint, max_pool_hint])
def test_means_of_squares_are_added(loss: Callable[..., torch.Tensor]) -> None:
    # (1 + 9) / 2 of the one and (0 + 0 + 16 + 0) / 4 of the other.
    student = {"a": torch.tensor([[[[1.0, 3.0]]]]), "b": torch.zeros(2, 2, 1, 1)}
    teacher = {"a": torch.zeros(1, 1, 1, 2), "b": torch.zeros(2, 2, 1, 1)}
    teacher["b"][1, 0] = 4
    assert loss(student, teacher).item() == pytest.approx(5 + 4)
