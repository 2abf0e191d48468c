"""The training loop, with its learning rate, weights of classes and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.batches import (
    Examples,
    Scaling,
    arithmetic,
    generator,
    in_format,
    lay_out,
    model_input,
    scaling_of,
)
from fairweight.lab.checkpoint import Position, load_checkpoint, save_checkpoint
from fairweight.lab.compression.pruner import Pruner
from fairweight.lab.compression.simulation import SimulatedInt8
from fairweight.specs.fields import recorded
from fairweight.specs.training import Training

if TYPE_CHECKING:
    from fairweight.lab.distillation.distiller import Distiller

# The learning rate as a function of the time that has passed, in epochs.


def learning_rate(spec: Training, at: float) -> float:
    """The learning rate after `at` epochs (fractions are steps within an epoch).

    >>> spec = Training(epochs=10, lr=0.4, schedule="cosine", warmup_epochs=2)
    >>> [round(learning_rate(spec, at), 3) for at in (0, 1, 2, 6, 10)]
    [0.0, 0.2, 0.4, 0.2, 0.0]
    >>> steps = Training(epochs=9, lr=1.0, schedule="step", milestones=(3, 6))
    >>> [round(learning_rate(steps, at), 3) for at in (2.9, 3, 6)]
    [1.0, 0.1, 0.01]
    """
    if at < spec.warmup_epochs:
        return spec.lr * at / spec.warmup_epochs
    if spec.schedule == "cosine":
        passed = (at - spec.warmup_epochs) / max(spec.epochs - spec.warmup_epochs, 1e-12)
        return spec.lr * (1 + math.cos(math.pi * min(passed, 1.0))) / 2
    if spec.schedule == "step":
        return spec.lr * spec.gamma ** sum(at >= milestone for milestone in spec.milestones)
    return spec.lr


# Weights of classes in the loss: all the same, or more for those that a network gets wrong.

STEP = 1.0  # a class with an error of 1 in an epoch gains a factor of e on one without errors


class Weighting:
    """The weight of an example, by its class, or by its value of every attribute.

    Weights are (tasks, values), with a mean over the training examples of 1, so that a learning
    rate means what it means without them. A single label is one task. `worst-class` is the
    exponentiated update of group DRO (Sagawa et al. 2020) with classes as groups, once per epoch,
    on the errors that the network made while it trained.
    """

    def __init__(self, kind: Literal["class-balanced", "worst-class"], labels: Tensor) -> None:
        self._follows = kind == "worst-class"
        self._counts = counted(labels)
        first = torch.ones_like(self._counts) if self._follows else 1 / self._counts.clamp(min=1)
        self.weights = scaled(first, self._counts)
        self._seen = torch.zeros_like(self._counts)
        self._wrong = torch.zeros_like(self._counts)

    def before_epoch(self) -> None:
        """Update the weights by the errors of the last epoch, and start a new count."""
        if not self._follows:
            return
        error = self._wrong / self._seen.clamp(min=1)
        self.weights = scaled(self.weights * torch.exp(STEP * error), self._counts)
        self._seen.zero_()
        self._wrong.zero_()

    def loss(self, output: Tensor, labels: Tensor) -> Tensor:
        """The weighted mean loss of one batch."""
        if labels.dim() == 1:
            each = functional.cross_entropy(output, labels, reduction="none")[:, None]
            answer = output.argmax(dim=1)
        else:
            each = functional.binary_cross_entropy_with_logits(
                output, labels.to(output.dtype), reduction="none"
            )
            answer = (output > 0).long()
        values = labels.reshape(len(labels), -1)
        if self._follows:
            wrong = (answer != labels).reshape(values.shape).cpu()
            n = self._counts.shape[1]
            for task, (given, missed) in enumerate(zip(values.cpu().T, wrong.T, strict=True)):
                self._seen[task] += torch.bincount(given, minlength=n)
                self._wrong[task] += torch.bincount(given[missed], minlength=n)
        weights = self.weights.to(output.device, output.dtype)
        tasks = torch.arange(values.shape[1], device=values.device)
        return (weights[tasks, values] * each).mean()

    def state_dict(self) -> dict[str, Tensor]:
        """The state that the next epoch depends on."""
        return {"weights": self.weights, "seen": self._seen, "wrong": self._wrong}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.weights = state["weights"].clone()
        self._seen, self._wrong = state["seen"].clone(), state["wrong"].clone()


def counted(labels: Tensor) -> Tensor:
    """Examples by task and value: (1, classes), or (attributes, 2).

    >>> counted(torch.tensor([0, 2, 2])).tolist()
    [[1.0, 0.0, 2.0]]
    >>> counted(torch.tensor([[0, 1], [0, 0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    values = int(labels.max()) + 1 if labels.dim() == 1 else 2
    columns = labels.reshape(len(labels), -1).T
    return torch.stack([torch.bincount(column, minlength=values) for column in columns]).double()


def scaled(weights: Tensor, counts: Tensor) -> Tensor:
    """The same weights with a mean over the examples of 1 in every task.

    >>> scaled(torch.tensor([[1.0, 3.0]]), torch.tensor([[3.0, 1.0]])).tolist()  # mean 6 / 4
    [[0.6666666865348816, 2.0]]
    """
    n = counts.sum(dim=1, keepdim=True)
    return weights * n / (weights * counts).sum(dim=1, keepdim=True)


def drawing_chances(data: Examples, spec: Training) -> Tensor | None:
    """The chance of each example to be the next one drawn; None where each is seen once."""
    if spec.sampling == "shuffled":
        return None
    if spec.sampling == "class-balanced":
        if data.labels.dim() > 1:
            raise InputError(
                'sampling = "class-balanced" needs one label per example, and there are several '
                'attributes; use weighting = "class-balanced", or sampling = "group-balanced".'
            )
        levels: Any = data.labels.numpy()
    else:
        name = str(spec.sampling_group)
        if name not in data.groups:
            raise UnknownNameError("sampling_group", name, data.groups)
        levels = np.asarray(data.groups[name]).astype(str)
    _, level, counts = np.unique(levels, return_inverse=True, return_counts=True)
    return torch.from_numpy(1 / (len(counts) * counts[level.reshape(-1)]))


EVALUATED_AT_ONCE = 512
# Numbers (loss of the step, sparsity, accuracy of the last validation if there was one), steps
# done, steps in all. While the held-out examples are asked there are no numbers, and they count.
Progress = Callable[[dict[str, float], int, int], None]


@dataclass(frozen=True)
class Trained:
    """The model with its selected weights, its scaling, and its history."""

    model: nn.Module
    scaling: Scaling
    history: tuple[dict[str, float], ...]  # per epoch: loss, accuracy on the validation images
    kept_epoch: int  # whose weights the model has


def train(
    model: nn.Module,
    data: Examples,
    validation: Examples | None,
    spec: Training,
    *,
    pruner: Pruner | SimulatedInt8 | None = None,
    distiller: Distiller | None = None,
    scaling: Scaling | None = None,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    save_every: float = 60.0,
    progress: Progress | None = None,
) -> Trained:
    """Train a model in place, and return it with the weights that were best.

    Parameters
    ----------
    validation
        Decides which epoch's weights are kept (None: the last). While a pruner raises the
        sparsity, the best of the highest sparsity reached so far is kept.
    pruner
        What changes the model while it trains: removes weights, or rounds numbers.
    distiller
        Gives the loss of a step from the model's and a teacher's features; by default the loss is
        that of the labels alone.
    scaling
        How pixels are scaled; by default to mean 0 and variance 1 over the training images.
    checkpoint
        A folder from which the run goes on if it was interrupted, to the very same weights.
    save_every
        Seconds between two checkpoints.
    progress
        Is called after every step with `loss`, `sparsity` (share of masked weights), `accuracy` of
        the last validation once there was one, the steps done, and the steps in all.
    """
    scaling = scaling or scaling_of(data.images)
    layout = lay_out(model.to(device))
    if pruner is not None:
        pruner.before_training(model)
    if distiller is not None:
        distiller.begin(model, data, spec, scaling)
    weighting = None if spec.weighting == "none" else Weighting(spec.weighting, data.labels)
    chances = drawing_chances(data, spec)
    if weighting is not None and distiller is not None:
        raise InputError(
            f'weighting = "{spec.weighting}" weighs the loss of the labels, which a distilled '
            "training does not have by itself; leave one of the two out."
        )
    optimizer = _optimizer(model, spec, [] if distiller is None else distiller.parameters())
    run: dict[str, Any] = {
        "training": recorded(spec),
        "n": len(data),
        "parameters": [f"{n} {tuple(value.shape)}" for n, value in model.state_dict().items()],
    }
    if distiller is not None:
        run["distillation"] = distiller.described()
    position, best = Position(), None
    folder = None if checkpoint is None else Path(checkpoint)
    if folder is not None:
        found = load_checkpoint(folder, model, optimizer, run)
        if found is not None:
            position, best, companions = found
            if pruner is not None:
                pruner.load_state_dict(companions["pruner"])
            if distiller is not None:
                distiller.load_state_dict(companions["distiller"])
            if weighting is not None:
                weighting.load_state_dict(companions["weighting"])
    steps = max(1, math.ceil(len(data) / spec.batch_size))
    updates, sparsity = _updates(pruner), _zeros(model)
    saved = time.monotonic()

    with torch.random.fork_rng(devices=[]):  # dropout draws from torch's own generator
        for epoch in range(position.epoch, spec.epochs):
            random = generator(spec.seed, epoch)
            if chances is None:
                order = torch.randperm(len(data), generator=random)
            else:
                order = torch.multinomial(chances, len(data), replacement=True, generator=random)
            seeds = torch.randint(2**62, (steps,), generator=random).tolist()
            model.train()
            if pruner is not None and position.step == 0:
                rewinds = pruner.rewinds
                pruner.before_epoch(model, epoch, steps)
                _forget_if_rewound(optimizer, pruner.rewinds - rewinds)
            if weighting is not None and position.step == 0:
                weighting.before_epoch()
            for step in range(position.step, steps):
                chosen = order[step * spec.batch_size : (step + 1) * spec.batch_size]
                if len(chosen) == 1 and len(data) > 1:
                    continue  # a batch norm has no variance of one image
                # Torch's own generator: what it draws does not depend on the steps before. To seed
                # every kind of device takes as long as a tenth of a small step.
                seed = torch.default_generator.manual_seed if device == "cpu" else torch.manual_seed
                random = seed(seeds[step])
                # index_select copies whole images; images[chosen] takes five times as long.
                images = model_input(
                    data.images.index_select(0, chosen),
                    scaling,
                    augment=spec.augment,
                    random=random,
                )
                labels = data.labels[chosen].to(device)
                rate = learning_rate(spec, epoch + step / steps)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                images = in_format(images.to(device), layout)
                if distiller is not None:
                    loss = distiller.loss(model, images, labels, chosen)
                else:
                    with arithmetic(spec.precision, device):
                        output = model(images)
                    if weighting is not None:
                        loss = weighting.loss(output.float(), labels)
                    else:
                        loss = loss_of(output.float(), labels, spec.loss)
                value = loss.item()
                if not math.isfinite(value):
                    raise InputError(
                        f"The loss became {value} in epoch {epoch + 1}, step {step + 1}; "
                        f"train with a lower learning rate than lr = {spec.lr:g}, or with a "
                        "longer warm-up (warmup_epochs)."
                    )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                if pruner is not None:
                    rewinds = pruner.rewinds
                    pruner.after_step(model, epoch, step, steps)
                    _forget_if_rewound(optimizer, pruner.rewinds - rewinds)
                position.epoch, position.step = epoch, step + 1
                if progress is not None:
                    if updates != _updates(pruner):
                        updates, sparsity = _updates(pruner), _zeros(model)
                    numbers = {"loss": value, "sparsity": sparsity}
                    if position.history:
                        numbers["accuracy"] = position.history[-1]["accuracy"]
                    progress(numbers, epoch * steps + step + 1, spec.epochs * steps)
                if folder is not None and time.monotonic() - saved > save_every:
                    states = _states(pruner, distiller, weighting)
                    save_checkpoint(folder, model, optimizer, position, best, states, run)
                    saved = time.monotonic()
            zeros = _zeros(model)
            if validation is not None:
                numbers = evaluate(model, validation, scaling, loss=spec.loss, device=device)
                position.history.append({"epoch": float(epoch), "sparsity": zeros, **numbers})
                reached = max((h["sparsity"] for h in position.history[:-1]), default=0.0)
                sparser = zeros > reached + 1e-9
                if spec.keep_best and (sparser or numbers["accuracy"] > position.best_accuracy):
                    position.best_epoch, position.best_accuracy = epoch, numbers["accuracy"]
                    best = {name: v.detach().clone() for name, v in model.state_dict().items()}
            position.epoch, position.step = epoch + 1, 0
            if folder is not None and time.monotonic() - saved > save_every:
                states = _states(pruner, distiller, weighting)
                save_checkpoint(folder, model, optimizer, position, best, states, run)
                saved = time.monotonic()
    if best is not None:
        model.load_state_dict(best)
    kept = position.best_epoch if best is not None else spec.epochs - 1
    return Trained(model.eval(), scaling, tuple(position.history), kept)


def evaluate(
    model: nn.Module,
    data: Examples,
    scaling: Scaling,
    *,
    loss: str = "cross-entropy",
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[str, float]:
    """Mean loss and accuracy (of attributes: the mean over all of them) on all examples."""
    model.eval()
    total, right = 0.0, 0.0
    with torch.inference_mode():
        for start in range(0, len(data), EVALUATED_AT_ONCE):
            images = model_input(data.images[start : start + EVALUATED_AT_ONCE], scaling)
            labels = data.labels[start : start + EVALUATED_AT_ONCE].to(device)
            output = model(images.to(device))
            total += float(loss_of(output, labels, loss)) * len(labels)
            answer = output.argmax(dim=1) if loss == "cross-entropy" else (output > 0).long()
            right += float((answer == labels).double().mean()) * len(labels)
            if progress is not None:
                progress({}, start + len(labels), len(data))
    return {"loss": total / len(data), "accuracy": right / len(data)}


def loss_of(output: Tensor, labels: Tensor, kind: str) -> Tensor:
    """Cross-entropy of one label, or the mean binary loss of all attributes."""
    if kind == "binary":
        return functional.binary_cross_entropy_with_logits(output, labels.to(output.dtype))
    return functional.cross_entropy(output, labels)


def _states(
    pruner: Pruner | SimulatedInt8 | None,
    distiller: Distiller | None,
    weighting: Weighting | None,
) -> dict[str, dict[str, Tensor]]:
    return {
        "pruner": {} if pruner is None else pruner.state_dict(),
        "distiller": {} if distiller is None else distiller.state_dict(),
        "weighting": {} if weighting is None else weighting.state_dict(),
    }


def _updates(pruner: Pruner | SimulatedInt8 | None) -> int:
    return 0 if pruner is None else pruner.updates


def _forget_if_rewound(optimizer: torch.optim.Optimizer, times: int) -> None:
    """Clear the optimiser's momentum after a rewind: it belongs to the earlier weights."""
    if times:
        optimizer.state.clear()


def _zeros(model: nn.Module) -> float:
    """Share of masked weights among all that have a mask; 0 without masks."""
    masks = [buffer for name, buffer in model.named_buffers() if name.endswith(".mask")]
    total = sum(mask.numel() for mask in masks)
    kept = sum(int(torch.count_nonzero(mask)) for mask in masks)
    return 1 - kept / total if total else 0.0


def _optimizer(
    model: nn.Module, spec: Training, others: list[nn.Parameter]
) -> torch.optim.Optimizer:
    """SGD or Adam, with the weight decay that each parameter's name asks for."""
    by_decay: dict[float, list[Tensor]] = {}
    patterns: Mapping[str, float] = dict(spec.decay_of)
    for name, parameter in model.named_parameters():
        plain = name.replace("parametrizations.", "").replace(".original", "")
        fitting = [decay for pattern, decay in patterns.items() if fnmatch(plain, pattern)]
        by_decay.setdefault(fitting[-1] if fitting else spec.weight_decay, []).append(parameter)
    if others:
        by_decay.setdefault(spec.weight_decay, []).extend(others)
    groups: list[dict[str, Any]] = [
        {"params": parameters, "weight_decay": decay} for decay, parameters in by_decay.items()
    ]
    # `foreach` gives the same weights with fewer calls from Python: a tenth of a small step.
    if spec.optimizer == "adam":
        return torch.optim.Adam(groups, lr=spec.lr, foreach=True)
    return torch.optim.SGD(
        groups, lr=spec.lr, momentum=spec.momentum, nesterov=spec.nesterov, foreach=True
    )
