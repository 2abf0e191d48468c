"""Parameters that are crossed: a share of the combinations in `make test`, all of them beside."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def crossed(*factors: Iterable[Any], every: int) -> list[ParameterSet]:
    """All combinations of the factors' values; one of `every` is quick, the others are slow.

    The quick ones lie on diagonals, so that with up to `every` values of one factor each value of
    the others meets some of them.

    >>> [(*p.values, bool(p.marks)) for p in crossed("ab", [1, 2], every=2)]
    [('a', 1, False), ('a', 2, True), ('b', 1, True), ('b', 2, False)]
    """
    found = []
    numbered: list[Sequence[tuple[int, Any]]] = [list(enumerate(values)) for values in factors]
    for combination in itertools.product(*numbered):
        slow = sum(place for place, _ in combination) % every > 0
        values = [value for _, value in combination]
        found.append(pytest.param(*values, marks=[pytest.mark.slow] if slow else []))
    return found
