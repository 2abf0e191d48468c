"""Pruning while training: on time, to the end, after a restart, and back to the start."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compression.pruner import Pruner
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.masks import dense_values, masks, sparsity
from fairweight.specs.compression import (
    AGP,
    GMP,
    GlobalMagnitude,
    Iterative,
    L1Structured,
    L1Unstructured,
    NOfM,
    OneShot,
    Polynomial,
    RandomUnstructured,
    ZhuGupta,
)

STEPS = 4  # per epoch


def network() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 5))


class Run:
    """A training of few steps, of which the sparsity is noted after each."""

    def __init__(self, spec: Any, model: nn.Module | None = None) -> None:
        self.model = model or network()
        self.pruner = Pruner(spec)
        self.pruner.before_training(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.seen = [sparsity(self.model)]

    def train(self, epochs: range) -> Run:
        for epoch in epochs:
            self.pruner.before_epoch(self.model, epoch, STEPS)
            for step in range(STEPS):
                self.step(epoch, step)
        return self

    def step(self, epoch: int, step: int) -> None:
        batch = torch.randn(8, 10, generator=torch.Generator().manual_seed(100 * epoch + step))
        self.optimizer.zero_grad()
        self.model(batch).square().mean().backward()
        self.optimizer.step()
        self.pruner.after_step(self.model, epoch, step, STEPS)
        self.seen.append(sparsity(self.model))


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


# 300 weights in all: 200 and 100.
@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        # The share is noted after `before_training` (0) and after each of 6 · 4 steps.
        (GlobalMagnitude(sparsity=0.5), {0: 0.5}),
        (GlobalMagnitude(sparsity=0.5, schedule=OneShot(epoch=2)), {9: 0.5}),
        # Epochs 1, 3, 5 of AGP are 0, 2, 4 of ours: .9 + (.1 - .9) · .5³ = .8 in the middle.
        (L1Unstructured(sparsity=0.9, schedule=AGP(end=6, every=2)), {0: 0.1, 9: 0.8, 17: 0.9}),
        # range(1, 5, 2) is 1, 3: from .05 to .9 at once, because the last update finishes.
        (GlobalMagnitude(sparsity=0.9, schedule=GMP(start=1, every=2, end=5)), {5: 0.05, 13: 0.9}),
        # By finished steps: 0 at 4, .8 (1 - .5³) = .7 at 8, .8 at 12.
        (
            L1Unstructured(sparsity=0.8, schedule=ZhuGupta(start=4, every=4, end=12)),
            {8: 0.7, 12: 0.8},
        ),
        (
            L1Unstructured(sparsity=0.8, schedule=Polynomial(start=4, every=4, end=12)),
            {8: 0.7, 12: 0.8},
        ),
        # 20 % of what remains, twice: 300 → 240 → 192.
        (
            GlobalMagnitude(sparsity=1 - 0.8**2, schedule=Iterative(epochs=2)),
            {9: 60 / 300, 17: 108 / 300},
        ),
    ],
    ids=lambda value: value.schedule.kind if hasattr(value, "schedule") else "",
)
def test_the_schedule_is_followed(spec: Any, changes: dict[int, float]) -> None:
    seen = Run(spec).train(range(6)).seen
    expected, now = [], 0.0
    for place in range(1 + 6 * STEPS):
        now = changes.get(place, now)
        expected.append(now)
    assert seen == pytest.approx(expected, abs=1e-12)


def test_a_loop_without_before_epoch_prunes_with_the_first_step() -> None:
    run = Run(GlobalMagnitude(sparsity=0.5, schedule=OneShot(epoch=1)))
    for epoch in range(2):
        for step in range(STEPS):
            run.step(epoch, step)
    assert run.seen == [0] * 5 + [0.5] * 4


@pytest.mark.parametrize("share", [0.0, 0.03, 1.0])
def test_both_ends_are_reached_gradually(share: float) -> None:
    schedule = GMP(start=1, every=1, end=5)
    run = Run(GlobalMagnitude(sparsity=share, schedule=schedule)).train(range(6))
    assert sum(int((~mask).sum()) for mask in masks(run.model).values()) == round(share * 300)


@pytest.mark.parametrize(
    "spec",
    [
        L1Unstructured(sparsity=0.9, schedule=GMP(start=0, every=1, end=6)),
        RandomUnstructured(sparsity=0.9, schedule=GMP(start=0, every=1, end=6)),
        L1Structured(sparsity=0.7, schedule=AGP(end=6, every=1)),
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_nothing_grows_back_while_weights_move(spec: Any) -> None:
    run = Run(spec)
    before = masks(run.model)
    for epoch in range(6):
        run.train(range(epoch, epoch + 1))
        after = masks(run.model)
        assert all(not (after[name] & ~before[name]).any() for name in before)
        before = after


def test_state_and_parameters_stay_the_same_through_a_training() -> None:
    run = Run(GlobalMagnitude(sparsity=0.9, schedule=GMP(start=3, every=1, end=5)))
    keys = list(run.model.state_dict())
    parameters = [id(parameter) for parameter in run.model.parameters()]
    run.train(range(5))
    assert list(run.model.state_dict()) == keys
    assert [id(parameter) for parameter in run.model.parameters()] == parameters
    assert run.seen[-1] == 0.9


def test_n_of_m_waits_for_its_epoch() -> None:
    spec = NOfM(layers=("3",), schedule=OneShot(epoch=1))
    run = Run(spec)
    assert sparsity(run.model) == 0
    run.train(range(2))
    assert sparsity(run.model, ["3"]) == 0.5


def test_rewinding_puts_the_initial_weights_below_the_masks() -> None:
    start = network().state_dict()
    run = Run(GlobalMagnitude(sparsity=0.2, schedule=Iterative(epochs=2, rewind_to=0)))
    run.train(range(2))
    assert run.pruner.rewinds == 0
    trained = {name: value.detach().clone() for name, value in dense_values(run.model).items()}
    run.pruner.before_epoch(run.model, 2, STEPS)
    assert run.pruner.rewinds == 1
    assert not torch.equal(trained["0.weight"], start["0.weight"])
    assert same({k: v.detach() for k, v in dense_values(run.model).items()}, dict(start))
    # Which weights go is decided by the trained ones.
    together = torch.cat([trained["0.weight"].flatten(), trained["3.weight"].flatten()]).abs()
    gone = torch.cat([~masks(run.model)[name].flatten() for name in ("0.weight", "3.weight")])
    assert int(gone.sum()) == 60
    assert together[gone].max() <= together[~gone].min()


def test_rewinding_to_an_early_epoch() -> None:
    spec = GlobalMagnitude(sparsity=0.2, schedule=Iterative(epochs=3, rewind_to=1))
    run = Run(spec).train(range(1))
    early = {name: value.detach().clone() for name, value in dense_values(run.model).items()}
    run.train(range(1, 3))
    run.pruner.before_epoch(run.model, 3, STEPS)
    assert same({k: v.detach() for k, v in dense_values(run.model).items()}, early)


def test_finetuning_keeps_the_weights() -> None:
    run = Run(GlobalMagnitude(sparsity=0.2, schedule=Iterative(epochs=2))).train(range(2))
    trained = {name: value.detach().clone() for name, value in dense_values(run.model).items()}
    run.pruner.before_epoch(run.model, 2, STEPS)
    assert sparsity(run.model) == 0.2
    assert same({k: v.detach() for k, v in dense_values(run.model).items()}, trained)


@pytest.mark.parametrize("rewind_to", [None, 0, 1])
@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_stopped_training_goes_on_to_the_same_weights(rewind_to: int | None, stop: int) -> None:
    spec = GlobalMagnitude(sparsity=0.488, schedule=Iterative(epochs=2, rewind_to=rewind_to))
    whole = Run(spec).train(range(7))
    first = Run(spec).train(range(stop))
    saved = copy.deepcopy(
        (first.model.state_dict(), first.pruner.state_dict(), first.optimizer.state_dict())
    )
    assert all(isinstance(value, Tensor) for value in saved[1].values())
    second = Run(spec)
    second.model.load_state_dict(saved[0])
    second.pruner.load_state_dict(saved[1])
    second.optimizer.load_state_dict(saved[2])
    second.train(range(stop, 7))
    assert same(second.model.state_dict(), whole.model.state_dict())
    assert second.pruner.rewinds == whole.pruner.rewinds


def test_an_example_makes_the_pruner_mask_whole_channels() -> None:
    model = network()
    pruner = Pruner(L1Structured(sparsity=0.5), example=torch.randn(4, 10))
    pruner.before_training(model)
    silent = (model[0].weight == 0).all(1)
    assert int(silent.sum()) == 10
    assert (model[0].bias[silent] == 0).all()
    assert (model[1].weight[silent] == 0).all()


def test_a_training_that_is_too_short_is_refused() -> None:
    pruner = Pruner(spec_of("gmp-random-init", sparsity=0.9))
    with pytest.raises(InputError, match=r"50 epochs \(200 steps\) ends after 4 of the 8 updates"):
        pruner.check_length(50, STEPS)
    pruner.check_length(81, STEPS)
    with pytest.raises(InputError, match="16 of the 17 updates of the schedule 'zhu-gupta'"):
        Pruner(spec_of("zhu-gupta", sparsity=0.9)).check_length(1, 8999)
    Pruner(spec_of("zhu-gupta", sparsity=0.9)).check_length(1, 9000)
