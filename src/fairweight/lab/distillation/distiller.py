"""What the training loop minimises when a student has a teacher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, Scaling, arithmetic, in_format, lay_out, model_input
from fairweight.lab.checkpoint import STATE
from fairweight.lab.compression.pruner import Pruner
from fairweight.lab.compression.simulation import SimulatedInt8
from fairweight.lab.distillation.contrastive import require_memory
from fairweight.lab.distillation.registry import (
    BatchPositions,
    DistillationLoss,
    Features,
    LossSetting,
    Terms,
    initial_terms_of,
    terms_of,
)
from fairweight.lab.loop import Progress, loss_of, train
from fairweight.lab.models.features import feature_paths, watched
from fairweight.specs.training import Augment, Distillation, Training

# Which features of a network the losses of a sum read, and where they are.

LOGITS = "logits"


def names_read(loss: DistillationLoss, model: nn.Module, given: Mapping[str, str]) -> list[str]:
    """The names of the features that a loss reads from this network, in its order."""
    if loss.reads == LOGITS:
        return [LOGITS]
    if loss.reads == "max-pools":
        found = [name for name, part in model.named_modules() if isinstance(part, nn.MaxPool2d)]
        if not found:
            raise InputError(
                f"The loss '{loss.name}' reads the outputs of MaxPool2d layers, and the network "
                "has none; use another loss, such as hint."
            )
        return found
    own: Any = getattr(model, "blocks", None)
    known = {**(own if isinstance(own, Mapping) else {}), **given}
    blocks = [name for name in known if name.startswith("block")]
    if loss.reads == "pooled":
        return _some([name for name in known if name == "pooled"], loss, "pooled")
    blocks = _some(blocks, loss, "block1")
    if loss.reads == "last-block":
        return blocks[-1:]
    if loss.reads == "stem-and-blocks":
        return [*_some([n for n in known if n == "stem"], loss, "stem"), *blocks]
    return blocks


def paths_of(model: nn.Module, names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """The paths of the modules behind features; the logits are what the network returns."""
    wanted = [name for name in names if name != LOGITS]
    paths = feature_paths(model, [given.get(name, name) for name in wanted])
    return dict(zip(wanted, paths.values(), strict=True))


def run(
    model: nn.Module, images: Tensor, paths: Mapping[str, str], precision: str = "float32"
) -> dict[str, Tensor]:
    """Run a network once: its features by name, and its `logits`, as float32."""
    with arithmetic(precision, images.device):
        found, logits = watched(model, images, paths)
    return {name: value.float() for name, value in {**found, LOGITS: logits}.items()}


def _some(names: list[str], loss: DistillationLoss, feature: str) -> list[str]:
    if not names:
        raise InputError(
            f"The loss '{loss.name}' reads {loss.reads}, and the network has no feature "
            f'\'{feature}\'; say where it is: features = {{"{feature}": "path.of.a.module"}}.'
        )
    return names


# A teacher: it never trains, and is asked once per batch, or once for all.

ASKED_AT_ONCE = 256


class Teacher:
    """A frozen network that sees the student's images.

    Parameters
    ----------
    scaling
        How its own pixels are scaled; the student's may be scaled otherwise.
    """

    def __init__(self, network: nn.Module, scaling: Scaling) -> None:
        self.network = network.eval().requires_grad_(False)
        self.scaling = scaling
        self._layout = lay_out(network)
        self._cached: dict[str, Tensor] = {}

    def to(self, device: str) -> None:
        self.network.to(device)

    def features(
        self,
        images: Tensor,
        index: Tensor,
        paths: Mapping[str, str],
        seen_as: Scaling,
        precision: str = "float32",
    ) -> dict[str, Tensor]:
        """Its features of a batch of the student's images, without gradients."""
        if self._cached:
            return {name: held[index] for name, held in self._cached.items()}
        with torch.no_grad():
            adapted = rescaled(images, seen_as, self.scaling)
            return run(self.network, in_format(adapted, self._layout), paths, precision)

    def remember(self, data: Examples, paths: Mapping[str, str], wanted: set[str]) -> None:
        """Compute the features of all examples now, in their order, and keep them."""
        device = next(self.network.parameters()).device
        with torch.no_grad():
            for start in range(0, len(data), ASKED_AT_ONCE):
                pixels = data.images[start : start + ASKED_AT_ONCE]
                batch = model_input(pixels, self.scaling).to(device)
                found = run(self.network, in_format(batch, self._layout), paths)
                found = {name: value for name, value in found.items() if name in wanted}
                if not self._cached:
                    n = len(data)
                    require_memory(
                        sum(n * held[0].numel() * held.element_size() for held in found.values()),
                        f"The teacher's features of {n:,} examples",
                        "leave cache out, so that the teacher is asked for every batch",
                    )
                    self._cached = {
                        name: held.new_empty((n, *held.shape[1:])) for name, held in found.items()
                    }
                for name, value in found.items():
                    self._cached[name][start : start + len(batch)] = value


def rescaled(images: Tensor, now: Scaling, wanted: Scaling) -> Tensor:
    """Images that were scaled one way, scaled another way."""
    if now == wanted:
        return images
    if len(now.mean) != len(wanted.mean):
        raise InputError(
            f"The teacher takes images of {len(wanted.mean)} channels, and the student's have "
            f"{len(now.mean)}; choose a teacher of the same kind of images."
        )
    pairs = zip(now.mean, now.std, wanted.mean, wanted.std, strict=True)
    numbers = [(own / other, (mean - of) / other) for mean, own, of, other in pairs]
    change = torch.tensor(numbers, device=images.device).T[:, :, None, None]
    return images * change[0] + change[1]


SHOWN = 2  # images that show the shapes of features


class Distiller:
    """The weighted sum of a spec's losses and the cross-entropy.

    The training loop calls `begin` before its first step, `loss` in every step, and trains what
    `parameters` gives beside the student's own.

    Losses that relate the examples of a batch (SP, PKT) are skipped where it has less than half of
    the usual number: their published weights are for a batch of 64, and on the last four examples
    of an epoch such a loss is thirty times as large, which undoes the training.

    Parameters
    ----------
    terms
        Which sum; by default the spec's for the training itself.
    """

    def __init__(self, spec: Distillation, teacher: Teacher, *, terms: Terms | None = None) -> None:
        self.spec, self.teacher = spec, teacher
        self.terms = terms or terms_of(spec)
        self._modules = nn.ModuleDict()
        self._scaling = teacher.scaling
        self._fewest = 0  # examples that a batch must have for losses that relate them
        self._kind, self._precision = "cross-entropy", "float32"
        self._names: dict[str, list[str]] = {}  # of the features that each loss reads
        self._student: dict[str, str] = {}
        self._teacher: dict[str, str] = {}

    def begin(self, model: nn.Module, data: Examples, training: Training, scaling: Scaling) -> None:
        """Check both networks, and build the losses that have a state."""
        self._scaling, self._kind = scaling, training.loss
        self._precision = training.precision
        self._fewest = min(training.batch_size, len(data)) // 2
        if self.spec.cache and training.augment != Augment():
            raise InputError(
                "The teacher's features cannot be kept (cache) where images are changed at random "
                "(augment): leave one of the two out."
            )
        for term in self.terms.terms:
            compares_classes = term.loss.reads == LOGITS or term.loss.has_state
            if data.labels.dim() != 1 and compares_classes:
                raise InputError(
                    f"The loss '{term.loss.name}' compares distributions over classes, and the "
                    "data have several binary tasks; use a loss of features, such as at."
                )
        device = next(model.parameters()).device
        self.teacher.to(str(device))
        given = dict(self.spec.features)
        for_teacher = dict(self.spec.teacher_features) or given
        partners: dict[str, str] = {}  # of the student's features, the teacher's: by their order
        for term in self.terms.terms:
            own = names_read(term.loss, model, given)
            theirs = names_read(term.loss, self.teacher.network, for_teacher)
            if len(own) != len(theirs):
                raise InputError(
                    f"The loss '{term.loss.name}' reads {len(own)} features of the student and "
                    f"{len(theirs)} of the teacher; say which belong together: features and "
                    "teacher_features."
                )
            self._names[term.loss.name] = own
            partners |= dict(zip(own, theirs, strict=True))
        wanted = [name for name in partners if name != LOGITS]
        self._student = paths_of(model, wanted, given)
        paths = paths_of(self.teacher.network, [partners[name] for name in wanted], for_teacher)
        self._teacher = {name: paths[partners[name]] for name in wanted}
        if self.spec.cache:
            self.teacher.remember(data, self._teacher, set(partners))
        self._build(model, data, training)

    def loss(self, model: nn.Module, images: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        """The loss of one batch; `index` has its examples' positions in the training set."""
        student = run(model, images, self._student, self._precision)
        total = torch.zeros((), device=images.device)
        if self.terms.ce:
            total = self.terms.ce * loss_of(student[LOGITS], labels, self._kind)
        if not self.terms.terms:
            return total
        teacher = self.teacher.features(
            images, index, self._teacher, self._scaling, self._precision
        )
        for term in self.terms.terms:
            if term.loss.relates and len(index) < self._fewest:
                continue
            names = self._names[term.loss.name]
            mine = {name: student[name] for name in names}
            theirs = {name: teacher[name] for name in names}
            if term.loss.has_state:
                value = self._modules[term.loss.name](mine, theirs, BatchPositions(index, labels))
            else:
                value = term.loss.function(mine, theirs, **term.options)
            total = total + term.weight * value
        return total

    def parameters(self) -> list[nn.Parameter]:
        """Parameters of the losses themselves, which are trained too."""
        return list(self._modules.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self._modules.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._modules.load_state_dict(state)

    def described(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        return {**asdict(self.spec), "stage": [term.loss.name for term in self.terms.terms]}

    def _build(self, model: nn.Module, data: Examples, training: Training) -> None:
        kept = [term for term in self.terms.terms if term.loss.has_state]
        if not kept:
            return
        device = next(model.parameters()).device
        images = model_input(data.images[:SHOWN], self._scaling).to(device)
        was_training = model.training
        model.eval()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(training.seed)
            student: Features = run(model, images, self._student)
            index = torch.arange(len(images))
            teacher = self.teacher.features(images, index, self._teacher, self._scaling)
            for term in kept:
                names = self._names[term.loss.name]
                setting = LossSetting(
                    data.labels,
                    {name: student[name] for name in names},
                    {name: teacher[name] for name in names},
                    training.seed,
                    training.batch_size,
                )
                self._modules[term.loss.name] = term.loss.function(setting, **term.options)
        self._modules.to(device).train()
        model.train(was_training)


def initial_distiller(spec: Distillation, teacher: Teacher) -> Distiller | None:
    """The distiller of the stage before the training, if a loss asks for one."""
    terms = initial_terms_of(spec)
    return None if terms is None else Distiller(spec, teacher, terms=terms)


# The stage before a training, in which a student's features follow the teacher's.


def initial_folder(checkpoint: Path) -> Path:
    """Where this stage's checkpoint is: beside the training's, which replaces its whole folder."""
    return checkpoint.with_name(f"{checkpoint.name}-initial")


def initialise(
    network: nn.Module,
    data: Examples,
    training: Training,
    distiller: Distiller | None,
    *,
    pruner: Pruner | SimulatedInt8 | None,
    scaling: Scaling | None,
    device: str,
    checkpoint: Path,
    save_every: float,
    progress: Progress | None,
) -> None:
    """Train the features of a network in place; nothing where no loss asks for it.

    What a schedule prunes before the first epoch is pruned before this stage too. Where the
    training itself was begun already, this stage is over.
    """
    if distiller is None or (checkpoint / STATE).is_file():
        return
    if pruner is not None:
        pruner.before_training(network)
    stage = replace(
        training,
        epochs=distiller.spec.initial_epochs,
        schedule="constant",
        milestones=(),
        warmup_epochs=0.0,
    )
    train(
        network,
        data,
        None,
        stage,
        distiller=distiller,
        scaling=scaling,
        device=device,
        checkpoint=initial_folder(checkpoint),
        save_every=save_every,
        progress=progress,
    )
