"""FSP by hand."""

from __future__ import annotations

import pytest
import torch

from fairweight.lab.distillation.losses import flow_of_solution


def test_flow_matrices_by_hand() -> None:
    # Two places. Stem: channels (1, 2) and (0, 2); block 1: (3, 1).
    # G = ((1·3 + 2·1) / 2, (0·3 + 2·1) / 2) = (2.5, 1); the teacher's is 0.
    student = {
        "stem": torch.tensor([[[[1.0, 2.0]], [[0.0, 2.0]]]]),
        "block1": torch.tensor([[[[3.0, 1.0]]]]),
    }
    teacher = {name: torch.zeros_like(value) for name, value in student.items()}
    assert flow_of_solution(student, teacher).item() == pytest.approx((2.5**2 + 1) / 2)


def test_the_larger_map_is_average_pooled() -> None:
    # The stem's mean is 2.5, so that G = 2.5 × 4 = 10; by its maximum it would be 16.
    student = {
        "stem": torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]),
        "block1": torch.tensor([[[[4.0]]]]),
    }
    teacher = {name: torch.zeros_like(value) for name, value in student.items()}
    assert flow_of_solution(student, teacher).item() == pytest.approx(100.0)


def test_consecutive_pairs_are_added() -> None:
    values = dict(zip(("stem", "block1", "block2"), (2.0, 3.0, 5.0), strict=True))
    student = {name: torch.full((1, 1, 1, 1), value) for name, value in values.items()}
    teacher = {name: torch.zeros(1, 1, 1, 1) for name in values}
    assert flow_of_solution(student, teacher).item() == pytest.approx(6**2 + 15**2)


def test_sizes_of_student_and_teacher_may_differ() -> None:
    student = {"stem": torch.ones(1, 1, 4, 4), "block1": torch.ones(1, 1, 2, 2)}
    teacher = {"stem": torch.ones(1, 1, 8, 8), "block1": torch.full((1, 1, 8, 8), 3.0)}
    assert flow_of_solution(student, teacher).item() == pytest.approx(4.0)
