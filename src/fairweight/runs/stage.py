"""One piece of work: what it is, needs and costs, and which kinds of work there are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairweight.base.registry import Registry

# Files that stages of the lab write.
MODEL, ONNX = "model", "model.onnx"
PREDICTIONS, VARIANT, TRAINING = "predictions.parquet", "variant.json", "train.parquet"
SIMILARITY = "similarity.json"
MODELS = ("train", "compress")  # kinds that write a model
DENSE = "dense"  # the variant of models that were not compressed


@dataclass(frozen=True, slots=True)
class Stage:
    """A node of the graph.

    Parameters
    ----------
    key
        Its name: `key_of(kind, spec, inputs)`.
    kind
        `train`, `compress`, `predict`, `audit`.
    function
        What does it, as `module:function`; it is imported where it runs.
    spec
        Everything that decides the result, as JSON has it.
    inputs
        Keys of the stages that must be done before.
    label
        For people: `cifar10: dense, seed 0`.
    work
        Expected seconds of one thread; 0 where nothing is known.
    member
        Which dense member of its experiment it belongs to, from 0: runs go member by member, so
        that what is there after a while is whole. Stages of all members come last.
    """

    key: str
    kind: str
    function: str
    spec: Mapping[str, Any]
    inputs: tuple[str, ...]
    label: str
    work: float = 0.0
    member: int = 0


@dataclass(frozen=True)
class ExampleCost:
    """What one example costs in an experiment, and how many there are."""

    train_s: float  # per example, forwards and backwards
    predict_s: float
    n_train: int
    n_test: int
    classes: int
    n_params: int
    flops: int  # forwards


@dataclass(frozen=True)
class Cost:
    """The cost of stages: seconds of one thread, bytes on disk, and GPU seconds of the networks."""

    seconds: float
    bytes: float
    gpu_seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.seconds + other.seconds,
            self.bytes + other.bytes,
            self.gpu_seconds + other.gpu_seconds,
        )


@dataclass(frozen=True, slots=True)
class StageKind:
    """What stages of one kind do, read and cost.

    Parameters
    ----------
    function
        As `module:function`, so that planning does not load it. Called with the spec, the folders
        of the inputs by key, an empty folder for the outputs, and a `StageContext`.
    reads
        Kinds that its inputs may be of.
    cost
        What a stage of this spec will take; the unit is that of its experiment, and None for a
        stage that belongs to no single one.
    """

    function: str
    reads: tuple[str, ...]
    cost: Callable[[Mapping[str, Any], Any], Cost]


STAGES: Registry[StageKind] = Registry(
    "kind of stage",
    remedy="Import the module that registers it; those of audits come with `library.study`.",
)


# Stages are named by the content of their full spec: the same work has the same name.

# What stages write. A change that makes earlier outputs wrong or unreadable raises it.
FORMAT = 1
LENGTH = 32  # hex digits: 128 bits


def canonical(value: Any) -> str:
    """JSON that is the same for the same values, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def key_of(kind: str, spec: Mapping[str, Any] | str, inputs: Sequence[str] = ()) -> str:
    """The name of a stage: of its kind, its full spec, and the stages that it builds on.

    Defaults are part of a spec, so a default that changes changes the name. A spec may be given as
    its canonical text.

    >>> key_of("train", {"epochs": 2, "lr": 0.1}) == key_of("train", {"lr": 0.1, "epochs": 2})
    True
    >>> key_of("train", {"epochs": 2, "lr": 0.1}) == key_of("train", {"epochs": 3, "lr": 0.1})
    False
    """
    text = spec if isinstance(spec, str) else canonical(spec)
    return digest(f"{FORMAT}\n{kind}\n{text}\n{','.join(inputs)}")
