"""Pruning while a model trains: the training loop calls, the schedule decides."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compression.channels import channel_masks
from fairweight.lab.compression.registry import Masks, method_of
from fairweight.lab.compression.schedules import Step, due, n_updates, n_updates_in_all
from fairweight.lab.masks import dense_values, load_dense_values, set_masks
from fairweight.specs.compression import Control, Iterative, NOfM, OneShot, ToSparsity

# A pruned copy of a model, at once; `pruner.py` prunes while a model trains.

Spec = ToSparsity | NOfM | Control


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
    masks: Masks = method_of(spec).function(model, spec, step)
    return masks


class Pruner:
    """Prunes a model in place as its spec's schedule says.

    Masks are there from the start (all True at first), so the model's parameters and the keys of
    its state stay the same through the training.

    Parameters
    ----------
    example
        With a batch of inputs, structured methods mask whole channels (see `prune`).

    Attributes
    ----------
    rewinds
        How often the weights were put back; a loop that sees it rise starts its optimiser anew.
    updates
        How many updates of the schedule were made; between two of them the masks stay.
    """

    def __init__(self, spec: Spec, *, example: Tensor | None = None) -> None:
        self.spec = spec
        self.rewinds = 0
        self._example = example
        self.updates = 0
        self._start: dict[str, Tensor] = {}

    def before_training(self, model: nn.Module) -> None:
        """Set the masks, remember the weights to rewind to, and prune if that is due already."""
        set_masks(model, masks_due(model, self.spec, Step(0.0, "remaining"), self._example))
        self._remember(model, epoch=0)
        self._advance(model, epoch=0, steps=0)

    def before_epoch(self, model: nn.Module, epoch: int, steps_per_epoch: int) -> None:
        """Do what is due at the start of an epoch (from 0).

        A loop that does not call this gets it with its first `after_step` of the epoch.
        """
        self._remember(model, epoch=epoch)
        self._advance(model, epoch=epoch, steps=epoch * steps_per_epoch)

    def after_step(self, model: nn.Module, epoch: int, step: int, steps_per_epoch: int) -> None:
        """Do what is due after an optimiser step (epochs and steps count from 0)."""
        self._advance(model, epoch=epoch, steps=epoch * steps_per_epoch + step + 1)
        if step + 1 == steps_per_epoch:
            self._remember(model, epoch=epoch + 1)

    def check_length(self, epochs: int, steps_per_epoch: int) -> None:
        """Refuse a training that ends before the schedule does: it would miss the sparsity."""
        schedule, sparsity = self.spec.schedule, self.spec.sparsity
        reached = n_updates(schedule, sparsity, epoch=epochs - 1, steps=epochs * steps_per_epoch)
        needed = n_updates_in_all(schedule, sparsity)
        if reached < needed:
            raise InputError(
                f"The training of {epochs} epochs ({epochs * steps_per_epoch} steps) ends after "
                f"{reached} of the {needed} updates of the schedule '{schedule.kind}'; train "
                "longer, or give the schedule an earlier end."
            )

    def state_dict(self) -> dict[str, Tensor]:
        """Where the schedule is, as tensors only; the masks are in the model's own state."""
        counters = {
            "updates": torch.tensor(self.updates),
            "rewinds": torch.tensor(self.rewinds),
        }
        return counters | {f"start.{name}": value for name, value in self._start.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.updates, self.rewinds = int(state["updates"]), int(state["rewinds"])
        self._start = {
            name.removeprefix("start."): value
            for name, value in state.items()
            if name.startswith("start.")
        }

    def _advance(self, model: nn.Module, *, epoch: int, steps: int) -> None:
        schedule, sparsity = self.spec.schedule, self.spec.sparsity
        while self.updates < n_updates(schedule, sparsity, epoch=epoch, steps=steps):
            self.updates += 1
            step = due(schedule, sparsity, self.updates)
            set_masks(model, masks_due(model, self.spec, step, self._example))
            if isinstance(schedule, Iterative) and schedule.rewind_to is not None:
                load_dense_values(model, self._start)
                self.rewinds += 1

    def _remember(self, model: nn.Module, *, epoch: int) -> None:
        schedule = self.spec.schedule
        if isinstance(schedule, Iterative) and schedule.rewind_to == epoch and not self._start:
            values = dense_values(model)
            self._start = {name: value.detach().clone() for name, value in values.items()}
