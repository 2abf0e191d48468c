"""SP by hand."""

from __future__ import annotations

import pytest
import torch

from fairweight.lab.distillation.losses import similarity_preserving


def test_two_examples_by_hand() -> None:
    # Student: F Fᵀ = [[9, 12], [12, 16]], rows (3, 4) / 5 both. Teacher: the identity.
    student = {"block3": torch.tensor([[3.0], [4.0]])}
    teacher = {"block3": torch.tensor([[2.0, 0.0], [0.0, 5.0]])}
    # (1 − .6)² + .8² + .6² + (1 − .8)² = .16 + .64 + .36 + .04
    assert similarity_preserving(student, teacher).item() == pytest.approx(1.2 / 4)


def test_maps_count_as_rows_of_all_their_activations() -> None:
    maps = torch.arange(24.0).view(2, 3, 2, 2)
    teacher = {"block3": torch.eye(2)}
    flat = similarity_preserving({"block3": maps.reshape(2, 12)}, teacher)
    assert similarity_preserving({"block3": maps}, teacher).item() == pytest.approx(flat.item())
    assert flat.item() > 0.1
