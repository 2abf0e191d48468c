"""PKT by hand."""

from __future__ import annotations

import math

import pytest
import torch

from fairweight.lab.distillation.losses import probabilistic_transfer


def test_two_examples_by_hand() -> None:
    # The student's cosine is .6: (1, .8) / 1.8 is (5/9, 4/9). The teacher's is 0: (2/3, 1/3).
    student = {"pooled": torch.tensor([[1.0, 0.0], [3.0, 4.0]])}
    teacher = {"pooled": torch.eye(2)}
    row = 2 / 3 * math.log(2 / 3 / (5 / 9)) + 1 / 3 * math.log(1 / 3 / (4 / 9))
    assert probabilistic_transfer(student, teacher).item() == pytest.approx(row / 2, rel=1e-5)


def test_lengths_do_not_count() -> None:
    random = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(4, 3, generator=random) for _ in range(2))
    lengths = torch.tensor([[1.0], [2.0], [5.0], [0.5]])
    value = probabilistic_transfer({"pooled": student}, {"pooled": teacher}).item()
    longer = probabilistic_transfer({"pooled": student * lengths}, {"pooled": teacher}).item()
    assert value > 1e-4
    assert longer == pytest.approx(value, rel=1e-4)
