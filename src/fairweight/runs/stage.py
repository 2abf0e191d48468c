"""One piece of work: what it is, what it needs, and what it is expected to cost."""

from __future__ import annotations

from collections.abc import Mapping
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
