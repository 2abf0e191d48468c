"""CRD: tell an example's own representation from those of other classes, in both networks."""

from __future__ import annotations

import logging
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from fairweight.errors import InputError
from fairweight.lab.batches import generator
from fairweight.lab.distillation.registry import (
    BatchPositions,
    Features,
    LossSetting,
    distillation_loss,
    number,
    one_pair,
)

_MEMINFO = Path("/proc/meminfo")
GB = 1e9


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what does not fit, with both figures and the remedy."""
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{what} would take {needed / GB:.1f} GB of memory, and {free / GB:.1f} GB are free; "
            f"{remedy}."
        )


def free_memory() -> int | None:
    """Bytes that are available now; None where the system does not say."""
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


FLOAT, WHOLE = 4, 8  # bytes
# Per contrast of a step: places, as drawn and as found, and the floats of two scores with their
# losses and gradients. Measured: docs/reference/distillation.md.
PER_CONTRAST = 2 * WHOLE + 12 * FLOAT
MB = 1e6


@dataclass(frozen=True)
class ContrastMemory:
    """Bytes of two banks and of one step, and which way to the scores takes less."""

    examples: int
    dimension: int
    negatives: int
    batch_size: int

    @property
    def banks(self) -> int:
        return 2 * FLOAT * self.examples * self.dimension

    @property
    def multiplies_whole_banks(self) -> bool:
        """Whether the products with all rows of a bank take less than copies of the chosen rows."""
        return self._whole_banks < self._chosen_rows

    @property
    def step(self) -> int:
        contrasts = self.batch_size * (self.negatives + 1)
        return min(self._whole_banks, self._chosen_rows) + PER_CONTRAST * contrasts

    @property
    def total(self) -> int:
        return self.banks + self.step

    @property
    def _whole_banks(self) -> int:
        # Copies of both banks outlive their update; the products of both and one gradient.
        return self.banks + 3 * FLOAT * self.batch_size * self.examples

    @property
    def _chosen_rows(self) -> int:
        return 2 * FLOAT * self.batch_size * (self.negatives + 1) * self.dimension

    def __str__(self) -> str:
        return (
            f"two banks of {self.examples:,} × {self.dimension:,} ({self.banks / MB:,.1f} MB) and "
            f"steps of {self.batch_size:,} × {self.negatives:,} negatives "
            f"({self.step / MB:,.1f} MB)"
        )

    def require(self) -> None:
        """Refuse what does not fit, with the number of negatives that would."""
        free, fewer = free_memory() or 0, self.negatives
        while fewer > 1 and replace(self, negatives=fewer).total > free:
            fewer //= 2
        remedy = f"use fewer negatives: options = {{crd = {{negatives = {fewer}}}}}"
        if replace(self, negatives=fewer).total > free:
            remedy = "the banks alone need more: train with fewer examples, or leave crd out"
        require_memory(self.total, f"The loss 'crd' with {self}", remedy)


EPSILON = 1e-7
STREAM = 0x637264  # keeps what is drawn here apart from the order of the training's batches
_log = logging.getLogger(__name__)


@distillation_loss(
    "crd",
    reads="pooled",
    weight=0.8,
    summary="An example's own representation, told from those of other classes",
    source="Tian, Krishnan, Isola 2020",
)
class ContrastiveRepresentation(nn.Module):
    """Noise-contrastive estimation between the student and the teacher, both ways.

    Both networks' features are projected (a linear layer each, which is trained) to unit vectors,
    and a bank keeps the last such vector of every training example. For a student's vector s of
    example i, with the teacher's bank b and K examples j of other classes, n examples in all:

        h(j) = exp(s · b[j] / T) / Z,  D(j) = h(j) / (h(j) + K / n + ε),  ε = 1e-7
        loss = − ln D(i) − Σ ln(K / n / (h(j) + K / n + ε)), mean over the batch

    and the same for the teacher's vectors with the student's bank; the two are added. Z is n times
    the mean of exp(s · b / T) in the first batch, and stays. After each step the rows of the batch
    become momentum × row + (1 − momentum) × vector, of length 1 again. Not negative.
    Undefined where all training examples are of one class.

    Parameters
    ----------
    negatives
        How many examples of other classes each example is told from; drawn with equal chances.
    dimension
        Of the projections.

    Notes
    -----
    Given the same negatives, equal to `torchdistill.losses.CRDLoss` with its `Normalizer4CRD`, and
    to RepDistiller. What is drawn differs: torchdistill draws from all examples (1.1.5 cannot: it
    asks for an attribute that it does not have), RepDistiller from other classes, without
    repetition where they have enough examples; here examples may come twice. Scores stay
    logarithms, so that no temperature overflows. The seed and the number of the step, a part of
    the state, determine what is drawn: a training that is resumed draws what it would have drawn.
    """

    student_bank: Tensor
    teacher_bank: Tensor
    log_constants: Tensor  # ln Z of the student's scores and of the teacher's
    step: Tensor
    _classes: Tensor
    _by_class: Tensor
    _first: Tensor
    _size: Tensor

    def __init__(
        self,
        setting: LossSetting,
        *,
        negatives: int = 16_384,
        dimension: int = 128,
        temperature: float = 0.07,
        momentum: float = 0.5,
    ) -> None:
        super().__init__()
        self.negatives = int(number("crd", "negatives", negatives, "a whole number from 1"))
        self.temperature = number("crd", "temperature", temperature, "a number above 0")
        self.momentum = number("crd", "momentum", momentum, "a number from 0 to 1")
        dimension = int(number("crd", "dimension", dimension, "a whole number from 1"))
        pair = one_pair("crd", setting.student, setting.teacher)
        self.seed = setting.seed
        n = len(setting.labels)
        self.memory = ContrastMemory(n, dimension, self.negatives, setting.batch_size)
        _log.info("The loss 'crd' takes %s.", self.memory)
        self.memory.require()
        labels = setting.labels
        if labels.dim() != 1:
            raise InputError(
                f"The loss 'crd' needs one label per training example, and the labels are of shape "
                f"{tuple(labels.shape)}; use another loss, such as at."
            )
        values, classes, size = torch.unique(labels, return_inverse=True, return_counts=True)
        if len(values) < 2:
            raise InputError(
                "The loss 'crd' tells examples from those of other classes, and all "
                f"{len(labels):,} training examples are of one class; train with two classes or "
                "more, or use another loss."
            )
        # Examples class by class, so that those of other classes are two slices.
        for name, value in (
            ("_classes", classes),
            ("_by_class", classes.argsort(stable=True)),
            ("_first", size.cumsum(0) - size),
            ("_size", size),
        ):
            self.register_buffer(name, value, persistent=False)
        random = generator(self.seed, STREAM)
        self.student_projection = _projection(pair.student, dimension, random)
        self.teacher_projection = _projection(pair.teacher, dimension, random)
        self.register_buffer("student_bank", _bank(n, dimension, random))
        self.register_buffer("teacher_bank", _bank(n, dimension, random))
        self.register_buffer("log_constants", torch.zeros(2))
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, student: Features, teacher: Features, batch: BatchPositions) -> Tensor:
        pair = one_pair("crd", student, teacher)
        if len(batch.index) != len(pair.student):
            raise InputError(
                f"The loss 'crd' got {len(pair.student):,} examples of feature '{pair.name}' and "
                f"the places of {len(batch.index):,}; give the place of each in the training set."
            )
        if int(batch.index.min()) < 0 or int(batch.index.max()) >= self._n:
            raise InputError(
                f"The loss 'crd' has {self._n:,} training examples, and the batch names places "
                f"from {int(batch.index.min()):,} to {int(batch.index.max()):,}; count them from 0."
            )
        mine = normalize(self.student_projection(pair.student.flatten(1)))
        theirs = normalize(self.teacher_projection(pair.teacher.flatten(1)))
        chosen = self.contrasts(batch.index)
        scores = (
            self._scores(mine, self.teacher_bank, chosen),
            self._scores(theirs, self.student_bank, chosen),
        )
        if self.step == 0:
            for side, values in enumerate(scores):
                held = values.detach().flatten()
                log_mean = held.logsumexp(0) - math.log(held.numel())
                self.log_constants[side] = log_mean + math.log(self._n)
        losses = [
            self._contrast(values - constant)
            for values, constant in zip(scores, self.log_constants, strict=True)
        ]
        self._remember(self.student_bank, batch.index, mine)
        self._remember(self.teacher_bank, batch.index, theirs)
        self.step += 1
        return losses[0] + losses[1]

    def contrasts(self, index: Tensor) -> Tensor:
        """A row per example: its own place, then those of its negatives in this step."""
        index = index.to(self._classes.device)
        own = self._classes[index].unsqueeze(1)
        random = generator(self.seed, STREAM, int(self.step) + 1)
        drawn = torch.randint(2**62, (len(index), self.negatives), generator=random).to(own.device)
        # Places among the examples of other classes, then, past the own class, among all.
        drawn %= self._n - self._size[own]
        drawn += torch.where(drawn < self._first[own], 0, self._size[own])
        return torch.cat([index.unsqueeze(1), self._by_class[drawn]], dim=1)

    @property
    def _n(self) -> int:
        return len(self._classes)

    def _scores(self, vectors: Tensor, bank: Tensor, chosen: Tensor) -> Tensor:
        """Cosines over the temperature, a row per example."""
        if self.memory.multiplies_whole_banks:
            # The backward pass needs the bank as it is now, and the bank is updated before it.
            products = (vectors @ bank.clone().T).gather(1, chosen)
        else:
            products = (bank[chosen] @ vectors.unsqueeze(2)).squeeze(2)
        return products / self.temperature

    def _contrast(self, log_h: Tensor) -> Tensor:
        """The loss of one side: ln D written with softplus(x) = ln(1 + exp x)."""
        noise = self.negatives / self._n
        level = math.log(noise + EPSILON)
        own, others = log_h[:, 0], log_h[:, 1:]
        rest = self.negatives * (level - math.log(noise))
        return (softplus(level - own) + softplus(others - level).sum(dim=1)).mean() + rest

    @torch.no_grad()
    def _remember(self, bank: Tensor, index: Tensor, vectors: Tensor) -> None:
        index = index.to(bank.device)
        rows = torch.lerp(vectors.detach(), bank[index], self.momentum)
        bank.index_copy_(0, index, normalize(rows))


def _projection(values: Tensor, dimension: int, random: torch.Generator) -> nn.Linear:
    """A linear layer with torch's usual initial weights, from a generator of its own."""
    width = values.flatten(1).shape[1]
    with torch.random.fork_rng(devices=[]):  # whatever else is drawn stays as it was
        layer = nn.Linear(width, dimension)
    for parameter in (layer.weight, layer.bias):
        nn.init.uniform_(parameter, -(width**-0.5), width**-0.5, generator=random)
    return layer


def _bank(n: int, dimension: int, random: torch.Generator) -> Tensor:
    """Rows of length 1 on average."""
    limit = (3 / dimension) ** 0.5
    return torch.empty(n, dimension).uniform_(-limit, limit, generator=random)
