"""CRD: values by hand, what is drawn, and a training that goes on."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.distillation.contrastive import ContrastiveRepresentation
from fairweight.lab.distillation.registry import BatchPositions, LossSetting

LABELS = torch.tensor([5, 7, 5, 9, 7, 5, 9, 5])


def pooled(seed: int, n: int = 3, width: int = 6) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return {"pooled": torch.randn(n, width, generator=random)}


def made(labels: Tensor = LABELS, seed: int = 0, **options: Any) -> ContrastiveRepresentation:
    setting = LossSetting(labels, pooled(0), pooled(0, width=4), seed, 3)
    return ContrastiveRepresentation(setting, **{"negatives": 5, "dimension": 4, **options})


def batch(*places: int) -> BatchPositions:
    index = torch.tensor(places)
    return BatchPositions(index, LABELS[index])


def with_vectors_of_one(loss: ContrastiveRepresentation) -> None:
    """Projections to the number 1."""
    for layer in (loss.student_projection, loss.teacher_projection):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.ones_(layer.bias)


def test_one_step_by_hand() -> None:
    """Two examples, so that each has the other as its negative: K / n = 1 / 2."""
    loss = made(torch.tensor([0, 1]), negatives=1, dimension=1, temperature=1.0)
    with_vectors_of_one(loss)
    loss.student_bank[:] = 1.0
    loss.teacher_bank[:] = torch.tensor([[1.0], [-1.0]])
    value = loss(
        pooled(1, 1), pooled(2, 1, 4), BatchPositions(torch.tensor([0]), torch.tensor([0]))
    )
    # The student's side: scores 1 and −1, Z = 2 cosh 1. The teacher's: both 1, Z = 2 e, h = 1 / 2.
    z = 2 * math.cosh(1)
    own, other = math.e / z, 1 / math.e / z
    student = -math.log(own / (own + 0.5)) - math.log(0.5 / (other + 0.5))
    teacher = 2 * math.log(2)
    assert value.item() == pytest.approx(student + teacher, rel=1e-5)
    assert loss.log_constants.exp().tolist() == pytest.approx([z, 2 * math.e])


def test_constants_are_those_of_the_first_batch() -> None:
    loss = made()
    loss(pooled(1), pooled(2, width=4), batch(0, 1, 3))
    first = loss.log_constants.clone()
    assert float(first.abs().min()) > 0
    loss(pooled(3), pooled(4, width=4), batch(2, 5, 6))
    assert torch.equal(loss.log_constants, first)


def test_rows_move_towards_the_new_vectors() -> None:
    loss = made(dimension=2, momentum=0.25)
    with_vectors_of_one(loss)  # (1, 1) / √2
    loss.student_bank[4] = torch.tensor([0.0, 1.0])
    before = loss.student_bank.clone()
    loss(pooled(1, 1), pooled(2, 1, 4), batch(4))
    row = torch.tensor([0.75 / 2**0.5, 0.75 / 2**0.5 + 0.25])
    assert loss.student_bank[4].tolist() == pytest.approx((row / row.norm()).tolist())
    others = [0, 1, 2, 3, 5, 6, 7]
    assert torch.equal(loss.student_bank[others], before[others])


@pytest.mark.parametrize(("momentum", "stays"), [(0.0, False), (1.0, True)])
def test_momentum_at_its_ends(momentum: float, stays: bool) -> None:
    loss = made(dimension=2, momentum=momentum)
    with_vectors_of_one(loss)
    loss.teacher_bank[0] = torch.tensor([0.6, 0.8])
    loss(pooled(1, 1), pooled(2, 1, 4), batch(0))
    expected = [0.6, 0.8] if stays else [0.5**0.5, 0.5**0.5]
    assert loss.teacher_bank[0].tolist() == pytest.approx(expected)


def test_negatives_are_of_other_classes_and_equally_likely() -> None:
    loss = made(negatives=24_000)
    index = torch.arange(len(LABELS))
    chosen = loss.contrasts(index)
    assert chosen.shape == (8, 24_001)
    assert chosen[:, 0].tolist() == index.tolist()
    for place, row in zip(index.tolist(), chosen[:, 1:], strict=True):
        counts = torch.bincount(row, minlength=len(LABELS))
        allowed = LABELS[place] != LABELS
        assert counts[~allowed].sum() == 0
        expected = 24_000 / int(allowed.sum())
        # Four standard deviations of a count.
        assert float((counts[allowed] - expected).abs().max()) < 4 * expected**0.5


def test_draws_belong_to_the_seed_and_the_step() -> None:
    loss, same, other = made(seed=1), made(seed=1), made(seed=2)
    index = torch.tensor([0, 1, 3])
    assert torch.equal(loss.student_bank, same.student_bank)
    assert torch.equal(loss.student_projection.weight, same.student_projection.weight)
    assert torch.equal(loss.contrasts(index), same.contrasts(index))
    assert not torch.equal(loss.student_bank, other.student_bank)
    assert not torch.equal(loss.contrasts(index), other.contrasts(index))
    assert not torch.equal(loss.student_bank, loss.teacher_bank)
    first = loss.contrasts(index)
    loss(pooled(1), pooled(2, width=4), BatchPositions(index, LABELS[index]))
    assert not torch.equal(loss.contrasts(index), first)


def test_nothing_is_drawn_from_torchs_own_generator() -> None:
    before = torch.random.get_rng_state()
    loss = made()
    loss(pooled(1), pooled(2, width=4), batch(0, 1, 3))
    assert torch.equal(torch.random.get_rng_state(), before)


def steps(loss: ContrastiveRepresentation, which: range) -> list[float]:
    """Real steps: the projections are trained as well."""
    values = []
    for step in which:
        places = batch(step % 8, (step + 3) % 8, (step + 5) % 8)
        value = loss(pooled(10 + step), pooled(50 + step, width=4), places)
        gradients = torch.autograd.grad(value, list(loss.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(loss.parameters(), gradients, strict=True):
                parameter -= 0.1 * gradient
        values.append(value.item())
    return values


@pytest.mark.parametrize("negatives", [1, 50])
def test_a_training_that_goes_on_gives_the_very_same_numbers(negatives: int) -> None:
    whole = made(negatives=negatives)
    expected = steps(whole, range(6))
    assert len(set(expected)) == 6
    begun = made(negatives=negatives)
    assert steps(begun, range(3)) == expected[:3]
    resumed = made(negatives=negatives)
    resumed.load_state_dict({key: value.clone() for key, value in begun.state_dict().items()})
    assert steps(resumed, range(3, 6)) == expected[3:]
    for key, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[key]), key


def test_the_state_holds_banks_constants_projections_and_the_step() -> None:
    assert set(made().state_dict()) == {
        "student_bank",
        "teacher_bank",
        "log_constants",
        "step",
        "student_projection.weight",
        "student_projection.bias",
        "teacher_projection.weight",
        "teacher_projection.bias",
    }


def test_both_projections_and_the_student_get_gradients() -> None:
    loss, student = made(), pooled(1)
    student["pooled"].requires_grad_()
    loss(student, pooled(2, width=4), batch(0, 1, 3)).backward()
    for value in (student["pooled"], *loss.parameters()):
        assert value.grad is not None
        assert float(value.grad.abs().max()) > 0


def test_no_temperature_overflows() -> None:
    loss, student = made(temperature=0.001), pooled(1)  # exp(1000) is no float
    student["pooled"].requires_grad_()
    value = loss(student, pooled(2, width=4), batch(0, 1, 3))
    value.backward()
    assert math.isfinite(value.item())
    assert student["pooled"].grad is not None
    assert bool(student["pooled"].grad.isfinite().all())


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match=r"all 4 training examples are of one class; train with"):
        made(torch.full((4,), 2))


def test_several_labels_per_example_are_refused() -> None:
    with pytest.raises(InputError, match=r"one label per training example.*shape \(4, 2\)"):
        made(torch.zeros(4, 2, dtype=torch.int64))


def test_places_that_do_not_exist_are_refused() -> None:
    loss = made()
    index = torch.tensor([0, 8, 1])
    with pytest.raises(InputError, match=r"has 8 training examples, and .* from 0 to 8"):
        loss(pooled(1), pooled(2, width=4), BatchPositions(index, index))
    with pytest.raises(InputError, match="got 3 examples of feature 'pooled' and the places of 2"):
        loss(pooled(1), pooled(2, width=4), batch(0, 1))
