"""What the training loop minimises when a student has a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, Scaling, model_input
from fairweight.lab.distill.reading import LOGITS, names_read, paths_of, run
from fairweight.lab.distill.registry import Batch, Features, Setting
from fairweight.lab.distill.teacher import Teacher
from fairweight.lab.distill.terms import Terms, initial_terms_of, terms_of
from fairweight.lab.train import loss_of
from fairweight.specs.distillation import Distillation
from fairweight.specs.training import Augment, Training

SHOWN = 2  # images that show the shapes of features


class Distiller:
    """The weighted sum of a spec's losses and the cross-entropy.

    The training loop calls `begin` before its first step, `loss` in every step, and trains what
    `parameters` gives beside the student's own.

    Losses that relate the examples of a batch (SP, PKT) are left out where it has less than half of
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
        self._kind = "cross-entropy"
        self._names: dict[str, list[str]] = {}  # of the features that each loss reads
        self._student: dict[str, str] = {}
        self._teacher: dict[str, str] = {}

    def begin(self, model: nn.Module, data: Examples, training: Training, scaling: Scaling) -> None:
        """Look at both networks, and build what losses keep."""
        self._scaling, self._kind = scaling, training.loss
        self._fewest = min(training.batch_size, len(data)) // 2
        self._check(data, training)
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
        """The sum of one batch; `index` are the places of its examples in the training set."""
        student = run(model, images, self._student)
        total = torch.zeros((), device=images.device)
        if self.terms.ce:
            total = self.terms.ce * loss_of(student[LOGITS], labels, self._kind)
        if not self.terms.terms:
            return total
        teacher = self.teacher.features(images, index, self._teacher, self._scaling)
        for term in self.terms.terms:
            if term.loss.relates and len(index) < self._fewest:
                continue
            names = self._names[term.loss.name]
            mine = {name: student[name] for name in names}
            theirs = {name: teacher[name] for name in names}
            if term.loss.has_state:
                value = self._modules[term.loss.name](mine, theirs, Batch(index, labels))
            else:
                value = term.loss.function(mine, theirs, **term.options)
            total = total + term.weight * value
        return total

    def parameters(self) -> list[nn.Parameter]:
        """What losses train of their own."""
        return list(self._modules.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        return dict(self._modules.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._modules.load_state_dict(state)

    def described(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        return {**asdict(self.spec), "stage": [term.loss.name for term in self.terms.terms]}

    def _check(self, data: Examples, training: Training) -> None:
        if self.spec.cache and training.augment != Augment():
            raise InputError(
                "The teacher's features cannot be kept (cache) where images are changed at random "
                "(augment): leave one of the two out."
            )
        several = [
            term.loss.name
            for term in self.terms.terms
            if data.labels.dim() != 1 and (term.loss.reads == LOGITS or term.loss.has_state)
        ]
        if several:
            raise InputError(
                f"The loss '{several[0]}' compares distributions over classes, and the data have "
                "several binary tasks; use a loss of features, such as at."
            )

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
                setting = Setting(
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
