"""A pruned copy of a model, at once; `pruner.py` prunes while a model trains."""

from __future__ import annotations

import copy

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compress.mask import set_masks
from fairweight.lab.compress.registry import Masks, method_of
from fairweight.lab.compress.schedules import Step, due
from fairweight.lab.compress.whole_channels import channel_masks
from fairweight.specs.compression import NOfM, ToSparsity
from fairweight.specs.pruning_schedules import OneShot

Spec = ToSparsity | NOfM


def prune(model: nn.Module, spec: Spec, example: Tensor | None = None) -> nn.Module:
    """A copy with masks set; `bake` makes the zeros permanent.

    Parameters
    ----------
    spec
        Any method with the schedule `one-shot`.
    example
        With a batch of inputs, structured methods mask whole channels (filters with their biases
        and norms, alike in all layers that share them), which `remove_channels` can remove.
    """
    if not isinstance(spec.schedule, OneShot):
        raise InputError(
            f"The schedule '{spec.schedule.kind}' prunes while a model trains; train with this "
            "spec, or leave the schedule out to prune at once."
        )
    try:
        pruned = copy.deepcopy(model)
    except RuntimeError as error:
        raise InputError(
            f"The model cannot be copied ({error}); remove the hooks of torch.nn.utils.prune first "
            "(prune.remove)."
        ) from error
    set_masks(pruned, masks_due(pruned, spec, due(spec.schedule, spec.sparsity, 1), example))
    return pruned


def masks_due(model: nn.Module, spec: Spec, step: Step, example: Tensor | None = None) -> Masks:
    """The masks after a step: layer by layer, or of whole channels where there is an example."""
    if example is not None:
        return channel_masks(model, spec, example, step)  # type: ignore[arg-type]
    return method_of(spec).function(model, spec, step)
