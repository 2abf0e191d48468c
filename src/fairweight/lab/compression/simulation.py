"""int8 simulated in a network while it trains (quantisation-aware finetuning).

Weights of every convolution and linear layer are rounded by output channel, the inputs of these
layers and the network's outputs by one range each, as `int8-static` rounds them in its file. Sums
of branches are rounded in the file alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from fairweight.lab.masks import chosen
from fairweight.specs.compression import Int8Static

LEVELS = 255  # steps between the ends of an activation's range
INPUT, OUTPUT = "int8_input", "int8_output"


class RoundedWeight(nn.Module):
    """The nearest multiples of each output channel's scale; gradients pass as if nothing was done.

    Scaling a channel by a batch norm, which the exported file does, changes nothing: its weights
    and its scale grow alike.
    """

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.active = True
        self._largest = 2 ** (bits - 1) - 1 if bits == 8 else 2 ** (bits - 1)

    def forward(self, weight: Tensor) -> Tensor:
        if not self.active:
            return weight
        held = weight.detach()
        others = tuple(range(1, held.dim()))
        scale = held.abs().amax(dim=others, keepdim=True) / self._largest
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        return weight + ((held / scale).round() * scale - held)


class RoundedValues(nn.Module):
    """Values cut to a range and rounded to 256 levels of it; gradients pass inside the range."""

    low: Tensor
    high: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.active = True
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    def forward(self, values: Tensor) -> Tensor:
        if not self.active:  # the range is being measured, and always holds 0
            found = values.detach().float()
            self.low = torch.minimum(self.low, found.amin())
            self.high = torch.maximum(self.high, found.amax())
            return values
        scale = ((self.high - self.low) / LEVELS).to(values.dtype)
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        zero = (-self.low.to(values.dtype) / scale).round()
        cut = values.clamp(-zero * scale, (LEVELS - zero) * scale)
        held = cut.detach()
        return cut + ((held / scale).round() * scale - held)


class SimulatedInt8:
    """Makes a network round its numbers in place, and measures ranges anew after every epoch.

    The training loop calls it as it calls a `Pruner`. The weights below the rounding are floats:
    `fairweight.lab.masks.dense_values` gives them.

    Parameters
    ----------
    inputs
        The calibration examples of the spec, as the network takes them: with the weights that are
        kept in the end, they give the file the ranges that were simulated.
    """

    rewinds = updates = 0

    def __init__(self, spec: Int8Static, inputs: Tensor) -> None:
        self._spec = spec
        self._inputs = inputs

    def before_training(self, model: nn.Module) -> None:
        bits = 7 if self._spec.reduce_range else 8
        for layer in chosen(model, self._spec.layers).values():
            parametrize.register_parametrization(layer, "weight", RoundedWeight(bits))
            layer.add_module(INPUT, RoundedValues())
            layer.register_forward_pre_hook(_round_input)
        model.add_module(OUTPUT, RoundedValues())
        model.register_forward_hook(_round_output)
        model.to(next(model.parameters()).device)  # the ranges too
        self.measure(model)

    def before_epoch(self, model: nn.Module, epoch: int, steps_per_epoch: int) -> None:
        """Ranges were measured at the end of the epoch before."""

    def after_step(self, model: nn.Module, epoch: int, step: int, steps_per_epoch: int) -> None:
        if step + 1 == steps_per_epoch:
            self.measure(model)

    def check_length(self, epochs: int, steps_per_epoch: int) -> None:
        """Any length will do."""

    def state_dict(self) -> dict[str, Tensor]:
        """Nothing: ranges are in the model's own state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """There is nothing to load."""

    def measure(self, model: nn.Module) -> None:
        """The smallest and the largest value that each layer is given, computed in floats."""
        was = model.training
        model.eval()
        device = next(model.parameters()).device
        with _in_floats(model), torch.no_grad():
            model(self._inputs.to(device))
        model.train(was)


@contextmanager
def _in_floats(model: nn.Module) -> Iterator[None]:
    """No part rounds, and ranges start again from 0."""
    parts = [part for part in model.modules() if isinstance(part, RoundedWeight | RoundedValues)]
    for part in parts:
        part.active = False
        if isinstance(part, RoundedValues):
            part.low, part.high = torch.zeros_like(part.low), torch.zeros_like(part.high)
    try:
        yield
    finally:
        for part in parts:
            part.active = True


def _round_input(layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    first, *others = given
    return (getattr(layer, INPUT)(first), *others)


def _round_output(model: nn.Module, given: tuple[Any, ...], output: Tensor) -> Tensor:
    rounded: Tensor = getattr(model, OUTPUT)(output)
    return rounded
