"""A model's weights as they act: masks applied, one plain tensor per parameter."""

from __future__ import annotations

import copy

from torch import Tensor, nn

from fairweight.lab.compress.mask import bake


def plain(model: nn.Module) -> nn.Module:
    """A copy without masks, in evaluation mode: what is exported, stored and timed."""
    return bake(copy.deepcopy(model)).eval()


def plain_state(model: nn.Module) -> dict[str, Tensor]:
    """The state of the plain copy, on the CPU, each tensor with memory of its own."""
    return {
        name: value.detach().cpu().contiguous().clone()
        for name, value in plain(model).state_dict().items()
    }
