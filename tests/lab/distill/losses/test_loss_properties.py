"""What holds of every loss in the registry."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import fairweight.lab.distillation.losses  # noqa: F401  (registers them)
from fairweight.lab.distillation.registry import DistillationLoss, loss, losses

NAMES = ["kd", "at", "sp", "fsp", "pkt", "hint", "max-pool-hint", "crd"]
PLAIN = [name for name in NAMES if name != "crd"]
MAPS = {"block1": (4, 3, 4, 4), "block2": (4, 5, 2, 2)}
SHAPES = {
    "logits": {"logits": (4, 6)},
    "pooled": {"pooled": (4, 5)},
    "blocks": MAPS,
    "last-block": {"block2": MAPS["block2"]},
    "stem-and-blocks": {"stem": (4, 2, 4, 4), **MAPS},
    "max-pools": {"pool1": (4, 3, 4, 4), "pool2": (4, 5, 2, 2)},
}
Dict = dict[str, Tensor]


def features(entry: DistillationLoss, seed: int) -> Dict:
    random = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, ...]] = SHAPES[entry.reads]
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


def test_all_are_registered_in_the_order_of_listings() -> None:
    assert [entry.name for entry in losses() if entry.name in NAMES] == NAMES
    assert [name for name in NAMES if loss(name).has_state] == ["crd"]
    assert [name for name in NAMES if loss(name).initial] == ["fsp"]


def test_options_are_the_published_ones() -> None:
    assert loss("kd").options == {"temperature": 4.0}
    assert loss("crd").options == {
        "negatives": 16_384,
        "dimension": 128,
        "temperature": 0.07,
        "momentum": 0.5,
    }
    assert [name for name in NAMES if loss(name).options] == ["kd", "crd"]


def test_weights_are_the_published_ones() -> None:
    assert {name: (loss(name).ce, loss(name).weight) for name in NAMES} == {
        "kd": (0.1, 0.9),
        "at": (1, 1000),
        "sp": (1, 3000),
        "fsp": (1, 50),
        "pkt": (1, 30_000),
        "crd": (1, 0.8),
        "hint": (1, 1),
        "max-pool-hint": (0.01, 1),
    }


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 2))
def test_equal_features_cost_nothing_and_others_do(name: str, seed: int) -> None:
    entry = loss(name)
    student, teacher = features(entry, seed), features(entry, seed + 1)
    assert entry.function(student, student).item() == pytest.approx(0, abs=1e-6)
    value = entry.function(student, teacher)
    assert value.shape == ()
    assert value.item() > 1e-6


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 2), order=st.permutations(range(4)))
def test_the_order_of_a_batch_does_not_matter(name: str, seed: int, order: list[int]) -> None:
    entry = loss(name)
    student, teacher = features(entry, seed), features(entry, seed + 1)
    moved = [{key: value[order] for key, value in both.items()} for both in (student, teacher)]
    value = entry.function(student, teacher).item()
    assert entry.function(*moved).item() == pytest.approx(value, rel=1e-4)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 2), scale=st.floats(1e-2, 1e2))
def test_at_does_not_see_the_scale_of_a_map(seed: int, scale: float) -> None:
    entry = loss("at")
    student, teacher = features(entry, seed), features(entry, seed + 1)
    scaled = {**student, "block2": student["block2"] * scale}
    value = entry.function(student, teacher).item()
    assert entry.function(scaled, teacher).item() == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", PLAIN)
def test_only_the_student_gets_gradients(name: str) -> None:
    entry = loss(name)
    student, teacher = features(entry, 0), features(entry, 1)
    for value in student.values():
        value.requires_grad_()
    entry.function(student, teacher).backward()
    for value in student.values():
        assert value.grad is not None
        assert float(value.grad.abs().max()) > 0
    assert all(value.grad is None for value in teacher.values())


@pytest.mark.parametrize("name", PLAIN)
def test_a_network_without_activations_has_gradients(name: str) -> None:
    """Hard pruning can silence a block."""
    entry = loss(name)
    student = {key: torch.zeros_like(v).requires_grad_() for key, v in features(entry, 0).items()}
    value = entry.function(student, features(entry, 1))
    value.backward()
    assert value.item() > 0
    for feature in student.values():
        assert feature.grad is not None
        assert bool(feature.grad.isfinite().all())


@pytest.mark.parametrize("name", ["at", "sp", "fsp", "hint", "max-pool-hint"])
def test_how_maps_lie_in_memory_does_not_matter(name: str) -> None:
    entry = loss(name)
    both = [features(entry, seed) for seed in (0, 1)]
    lying = [
        {key: value.contiguous(memory_format=torch.channels_last) for key, value in one.items()}
        for one in both
    ]
    value = entry.function(*both).item()
    assert entry.function(*lying).item() == pytest.approx(value, rel=1e-5)
