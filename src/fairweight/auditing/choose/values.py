"""Value functions: weights of objectives, and over which weights each variant wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairweight.auditing.choose.objectives import Objective
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError


@dataclass(frozen=True)
class WinningRange:
    """A variant has the highest value while the second weight lies in [low, high] × the first."""

    variant: int
    low: float
    high: float


def read_weights(given: Sequence[str]) -> dict[str, float]:
    """`accuracy=1`, `unfairness=100` as numbers by name.

    >>> read_weights(["accuracy=1", "unfairness=100"])
    {'accuracy': 1.0, 'unfairness': 100.0}
    """
    found: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = np.nan
        if not (name.strip() and equals and np.isfinite(weight) and weight >= 0):
            raise InputError(
                f"--weight {text!r} cannot be read; write the name of an objective and a number of "
                "at least 0: --weight accuracy=1."
            )
        if name.strip() in found:
            raise InputError(f"--weight {name.strip()} was given twice; give it once.")
        found[name.strip()] = weight
    return found


def weights_of(objectives: Sequence[Objective], given: dict[str, float]) -> Floats | None:
    """A weight for every objective, 1 where none was given; None without any weight.

    A single objective needs no weight: its own value ranks.
    """
    names = [objective.name for objective in objectives]
    for name in given:
        if name not in names:
            raise InputError(
                f"--weight {name} is for no objective; there are: {', '.join(names)}. Add "
                f"--objective {name}, or leave the weight out."
            )
    if not given and len(objectives) > 1:
        return None
    found = np.array([given.get(name, 1.0) for name in names])
    if not found.any():
        raise InputError("--weight is 0 for every objective; give at least one a weight above 0.")
    return found


def winning_ranges(points: Floats) -> list[WinningRange]:
    """For two objectives, who wins for which ratio of the second weight to the first.

    Parameters
    ----------
    points
        (V, 2), higher better. Only corners of the upper convex hull ever win, in the order of
        the first objective; of equal points the first is named.

    Examples
    --------
    >>> [(w.variant, w.low, w.high) for w in winning_ranges(np.array([[3.0, 0.0], [2.0, 2.0],
    ...                                                               [0.0, 3.0], [1.0, 1.0]]))]
    [(0, 0.0, 0.5), (1, 0.5, 2.0), (2, 2.0, inf)]
    """
    order = [int(i) for i in np.lexsort((-points[:, 1], -points[:, 0]))]
    hull: list[int] = []
    for i in order:
        if hull and points[i, 1] <= points[hull[-1], 1]:
            continue  # no better in the second, no better in the first: it never wins alone
        while len(hull) > 1 and _turn(points, hull[-2], hull[-1]) >= _turn(points, hull[-1], i):
            hull.pop()
        hull.append(i)
    ends = [_turn(points, one, other) for one, other in pairwise(hull)]
    return [
        WinningRange(i, low, high)
        for i, low, high in zip(hull, [0.0, *ends], [*ends, np.inf], strict=True)
    ]


def _turn(points: Floats, one: int, other: int) -> float:
    """The ratio of weights at which the second overtakes the first."""
    lost = points[one, 0] - points[other, 0]
    return float(lost / (points[other, 1] - points[one, 1]))
