"""One piece of work: what it is, what it needs, and what it is expected to cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
        What does it, as `module:function`; it is looked up where it runs.
    spec
        Everything that decides the result, as JSON has it.
    inputs
        Keys of the stages that must be done before.
    label
        For people: `cifar10: dense, seed 0`.
    work
        Expected seconds of one thread; 0 where nothing is known.
    """

    key: str
    kind: str
    function: str
    spec: Mapping[str, Any]
    inputs: tuple[str, ...]
    label: str
    work: float = 0.0


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
