"""KD by hand."""

from __future__ import annotations

import math

import pytest
import torch

from fairweight.lab.distillation.losses import knowledge_distillation


def test_one_example_by_hand() -> None:
    # At T = 2, logits 2 ln 3 and 0 are the chances 3/4 and 1/4; the student's are halves.
    teacher = {"logits": torch.tensor([[2 * math.log(3), 0.0]])}
    student = {"logits": torch.zeros(1, 2)}
    divergence = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    value = knowledge_distillation(student, teacher, temperature=2.0)
    assert value.item() == pytest.approx(4 * divergence, rel=1e-6)


def test_it_is_the_mean_over_examples() -> None:
    teacher = {"logits": torch.tensor([[8.0, 0.0], [0.0, 0.0]])}
    student = {"logits": torch.zeros(2, 2)}
    first = {"logits": teacher["logits"][:1]}
    alone = knowledge_distillation({"logits": torch.zeros(1, 2)}, first)
    assert alone.item() > 1
    assert knowledge_distillation(student, teacher).item() == pytest.approx(alone.item() / 2)


def test_the_gradient_by_hand() -> None:
    # T² / B × (q − p) / T, at T = 2: p = (3/4, 1/4), q = (1/2, 1/2).
    logits = torch.zeros(1, 2, requires_grad=True)
    teacher = {"logits": torch.tensor([[2 * math.log(3), 0.0]])}
    knowledge_distillation({"logits": logits}, teacher, temperature=2.0).backward()
    assert logits.grad is not None
    assert logits.grad.tolist()[0] == pytest.approx([-0.5, 0.5])


def test_certain_networks_give_numbers() -> None:
    student = {"logits": torch.tensor([[1000.0, -1000.0]])}
    teacher = {"logits": torch.tensor([[-1000.0, 1000.0]])}
    # The teacher is sure of class 1, for which ln q is −2000 / T; T² × 2000 / T.
    assert knowledge_distillation(student, teacher).item() == pytest.approx(8000.0)
