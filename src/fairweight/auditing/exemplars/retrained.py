"""How often each example is an exemplar at matched sizes: of compression, and of retraining alone.

Every split sets k baseline members against k others: for compression these are compressed, for
retraining they are baseline members too. Where compressed members descend from baseline ones, the
children of a split's second half stand where that half stands for retraining: nobody is compared
with a parent, and the two comparisons differ in nothing but the compression of one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer
from fairweight.auditing.compare.pairing import Pairing
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.chances import Definition, chances
from fairweight.auditing.exemplars.modal import TieRule
from fairweight.auditing.intervals.retraining import MOST_SPLITS, matched_size, splits

LEFT_OUT_SPLITS = 100  # of the remaining members, for every unit left out
MOST_COMPARED = 10**8  # (split, example) pairs held at a time, beyond which there are fewer splits
FEWEST_SPLITS = 10

COMPRESSED, RETRAINED = 0, 1


@dataclass(frozen=True)
class Units:
    """What may stand on either side: rows of `prediction`.

    Unit i of both sides belongs together where `paired`; several children of one parent are one
    unit, and one of them stands for it in every split.
    """

    dense: tuple[int, ...]
    compressed: tuple[tuple[int, ...], ...]
    paired: bool

    @property
    def size(self) -> int:
        """Members on either side of a split."""
        return matched_size(len(self.dense), len(self.compressed))

    def without(self) -> tuple[tuple[Units, ...], ...]:
        """The units without each one in turn: pairs, or members of one side and then the other."""
        dense, compressed = self.dense, self.compressed
        fewer_dense = [dense[:i] + dense[i + 1 :] for i in range(len(dense))]
        fewer = [compressed[:i] + compressed[i + 1 :] for i in range(len(compressed))]
        if self.paired:
            both = zip(fewer_dense, fewer, strict=True)
            return (tuple(Units(one, other, True) for one, other in both),)
        return (
            tuple(Units(one, compressed, False) for one in fewer_dense),
            tuple(Units(dense, other, False) for other in fewer),
        )


@dataclass(frozen=True)
class Rates:
    """Chances of each example to be an exemplar, means over splits, (2, definitions, examples).

    The first axis is COMPRESSED, RETRAINED. `left_out` holds the same without each unit in turn,
    (units, 2, definitions, examples), one array for every kind of unit that varies by itself.
    """

    mean: Floats
    left_out: tuple[Floats, ...]


def units_of(pairing: Pairing) -> Units:
    """The units of a pairing: rows are those of its weights."""
    dense = tuple(int(np.flatnonzero(row)[0]) for row in pairing.first)
    compressed = tuple(tuple(int(m) for m in np.flatnonzero(row)) for row in pairing.second)
    return Units(dense, compressed, pairing.paired)


def retrained_rates(
    prediction: Answer,
    n_examples: int,
    units: Units,
    definitions: Sequence[Definition],
    rule: TieRule,
    rng: np.random.Generator,
    *,
    left_out: bool,
) -> Rates:
    """Average the exemplars over splits of all units, and over splits without each of them.

    Parameters
    ----------
    prediction
        (members, examples about which anybody differs), rows as `units` counts them.
    n_examples
        All examples, with those about which nobody differs.
    left_out
        Whether splits without each unit are wanted: there must be at least 3 on either side.
    """
    affordable = MOST_COMPARED // max(prediction.shape[1], 1)

    def mean(of: Units, most: int) -> Floats:
        number = max(FEWEST_SPLITS, min(most, affordable))
        first, *others = _sides(of, len(prediction), number, rng)
        return np.stack(
            [
                chances(prediction, n_examples, first, second, definitions, rule, rng)
                for second in others
            ]
        )

    without = units.without() if left_out else ()
    return Rates(
        mean(units, MOST_SPLITS),
        tuple(np.stack([mean(one, LEFT_OUT_SPLITS) for one in several]) for several in without),
    )


def _sides(
    units: Units, n_members: int, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Who stands on the first side, and who on the second: compressed, and retrained members."""
    one, other = (side > 0 for side in splits(len(units.dense), units.size, rng))
    if len(one) > most:
        chosen = rng.choice(len(one), size=most, replace=False)
        one, other = one[chosen], other[chosen]
    dense = np.array(units.dense)
    sides = np.zeros((3, len(one), n_members), dtype=bool)
    for i, (here, there) in enumerate(zip(one, other, strict=True)):
        standing = (
            np.flatnonzero(there)
            if units.paired
            else rng.permutation(len(units.compressed))[: units.size]
        )
        sides[0, i, dense[here]] = True
        sides[1, i, [_one_of(units.compressed[u], rng) for u in standing]] = True
        sides[2, i, dense[there]] = True
    return sides[0], sides[1], sides[2]


def _one_of(children: Sequence[int], rng: np.random.Generator) -> int:
    return children[0] if len(children) == 1 else int(rng.choice(np.array(children)))
