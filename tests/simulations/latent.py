"""The worlds that audits are simulated in, with every true value known.

A share `hard` of the examples of each group and label is hard. Easy examples are answered rightly
by both models. On a hard one the dense model is right with probability `dense` and the compressed
one with probability `compressed`, independently of each other: with both at one half and a fifth of
the examples hard, two models have an accuracy of 90 % and disagree in who is right on 10 % of the
examples, like two models that were trained from different seeds. Wrong answers fall on the other
classes by the rows of `confusion`.

Models are fixed and examples are sampled (scope `model`), so a world is a table of probabilities of
(group, label, answer of the dense model, answer of the compressed model). Its true values are
those of the table itself; nothing about the truth is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.simultaneous import draw_signs
from fairweight.auditing.counts.cube import Cube, CubeMember, GroupColumn

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

HARD = 0.2  # share of hard examples unless said otherwise: 10 % discordance
EXACT = 10**12  # examples of the cube that stands for the whole world


@dataclass(frozen=True)
class World:
    share: Floats  # (groups, labels), sums to 1
    hard: Floats  # (groups, labels)
    dense: Floats  # (groups, labels), chance to be right on a hard example
    compressed: Floats  # (groups, labels)
    confusion: Floats  # (labels, labels): where wrong answers go, rows sum to 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        groups, labels = self.share.shape
        return groups, labels, labels, labels

    @cached_property
    def chance(self) -> Floats:
        """P(group, label, dense answer, compressed answer), flat."""
        right = np.eye(self.share.shape[1])

        def answers(skill: Floats) -> Floats:
            """(groups, labels, answers) on a hard example."""
            return skill[..., None] * right + (1 - skill)[..., None] * self.confusion

        first, second = answers(self.dense), answers(self.compressed)
        hard = first[..., :, None] * second[..., None, :]
        easy = (right[:, :, None] * right[:, None, :])[None]
        mixed = self.hard[..., None, None] * hard + (1 - self.hard)[..., None, None] * easy
        chance: Floats = (self.share[..., None, None] * mixed).ravel()
        return chance

    def draw(self, n: int, rng: np.random.Generator) -> Codes:
        """Codes of n examples sampled from everyone."""
        return self._at(rng.random(n) * self._until[-1])

    def draw_per_group(self, n: int, rng: np.random.Generator) -> Codes:
        """Codes of n examples of every group."""
        groups = self.share.shape[0]
        ends = np.concatenate([[0.0], self._until.reshape(groups, -1)[:, -1]])
        places = ends[:-1, None] + rng.random((groups, n)) * np.diff(ends)[:, None]
        return self._at(places.ravel())

    def _at(self, places: Floats) -> Codes:
        return np.asarray(np.searchsorted(self._until, places, side="right"), dtype=np.int64)

    @cached_property
    def _until(self) -> Floats:
        return np.cumsum(self.chance)

    def cube(self, codes: Codes) -> Cube:
        """The cube of a sample."""
        cells, count = np.unique(codes, return_counts=True)
        return self._cube(cells, count)

    def whole(self) -> Cube:
        """The cube of the world itself, for true values."""
        count = np.round(self.chance * EXACT).astype(np.int64)
        cells = np.flatnonzero(count)
        return self._cube(cells, count[cells])

    def expected(self, n: int) -> Cube:
        """The cube of n examples with every cell at its expected count, which must be whole."""
        count = np.round(self.chance * n).astype(np.int64)
        assert np.allclose(count, self.chance * n, atol=1e-6)
        cells = np.flatnonzero(count)
        return self._cube(cells, count[cells])

    @property
    def shift(self) -> Floats:
        """True shift of accuracy of every group."""
        change = self.share * self.hard * (self.compressed - self.dense)
        by_group: Floats = change.sum(axis=1) / self.share.sum(axis=1)
        return by_group

    @property
    def excess(self) -> Floats:
        """True shift of every group minus the shift of all others."""
        size = self.share.sum(axis=1)
        change = size * self.shift
        rest: Floats = (change.sum() - change) / (1 - size)
        return self.shift - rest

    def _cube(self, cells: Codes, count: NDArray[np.int64]) -> Cube:
        group, label, first, second = np.unravel_index(cells, self.shape)
        return cube(group, label, np.stack([first, second], axis=1), count=count)


def world(
    groups: int,
    labels: int,
    *,
    hard: ArrayLike = HARD,
    dense: ArrayLike = 0.5,
    compressed: ArrayLike = 0.5,
    share: ArrayLike | None = None,
) -> World:
    """A world; arguments broadcast over (groups, labels), and groups are equally large.

    Wrong answers prefer near classes: weight 1 / distance, which makes classes differ in their
    false positives. With two classes there is only one way to be wrong.
    """
    shape = (groups, labels)
    sizes = np.broadcast_to(1.0 if share is None else np.asarray(share, float), shape)
    distance = np.abs(np.arange(labels)[:, None] - np.arange(labels)).astype(float)
    weight = np.where(distance > 0, 1 / np.maximum(distance, 1), 0.0)
    return World(
        share=sizes / sizes.sum(),
        hard=np.broadcast_to(np.asarray(hard, float), shape),
        dense=np.broadcast_to(np.asarray(dense, float), shape),
        compressed=np.broadcast_to(np.asarray(compressed, float), shape),
        confusion=weight / weight.sum(axis=1, keepdims=True),
    )


def cube(
    group: Codes,
    label: Codes,
    prediction: Codes,
    *,
    count: NDArray[np.int64] | None = None,
    weight: Floats | None = None,
    cluster: Codes | None = None,
) -> Cube:
    """A cube of examples (or cells with counts) with one column `group`."""
    size = len(label)
    names = tuple(str(i) for i in range(int(max(label.max(), prediction.max())) + 1))
    count = np.ones(size, dtype=np.int64) if count is None else count
    clusters = 0 if cluster is None else int(cluster.max()) + 1
    return Cube(
        members=(CubeMember("dense"), CubeMember("compressed")),
        label_classes=names,
        other_classes=(),
        columns=(
            GroupColumn(
                "group",
                tuple(str(i) for i in range(int(group.max()) + 1)),
                group.astype(np.int32),
            ),
        ),
        tasks=(),
        label=label.astype(np.int32),
        prediction=prediction.astype(np.int32),
        count=count,
        n_examples=int(count.sum()),
        weight=weight,
        unit=cluster,
        unit_names=tuple(str(i) for i in range(clusters)),
        unit_is_cluster=cluster is not None,
    )


def compared(
    sample: Cube, seed: int, *, n_boot: int = 199, positive: int | None = None
) -> Comparison:
    """The comparison that an audit of this cube makes.

    `seed` must differ between audits: with equal random numbers their errors would be alike.
    """
    options = Options(n_boot=n_boot, random_state=seed)
    return comparison(
        sample,
        baseline="dense",
        variant="compressed",
        task=None,
        grouping_names=("group",),
        positive=positive,
        options=options,
        signs=draw_signs(sample, "dense", ("compressed",), ("group",), options),
    )
