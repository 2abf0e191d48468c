"""Draws in single precision give the very numbers of double precision, or are not used."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.auditing.counts import counts as module
from fairweight.auditing.counts.counts import Tally
from fairweight.auditing.counts.cube import Cube, CubeMember, GroupColumn
from fairweight.auditing.counts.groupings import groupings, whole


def made(weight: np.ndarray | None = None) -> Tally:
    rng = np.random.default_rng(1)
    n = 500
    cube = Cube(
        members=(CubeMember("dense"), CubeMember("a")),
        label_classes=("0", "1", "2"),
        other_classes=(),
        columns=(GroupColumn("sex", ("f", "m"), rng.integers(0, 2, n).astype(np.int32)),),
        tasks=(),
        label=rng.integers(0, 3, n).astype(np.int32),
        prediction=rng.integers(-1, 3, (n, 2)).astype(np.int32),
        count=rng.integers(1, 5, n),
        n_examples=n,
        weight=weight,
    )
    return Tally(cube, (whole(cube), *groupings(cube, ("sex",))), (0, 1), positive=None)


def test_whole_numbers_are_exact() -> None:
    draws = np.random.default_rng(2).integers(0, 20_000, (7, 500))
    tally = made()
    found = tally.flat(draws)
    assert found.dtype == np.float64
    assert (found == tally.flat(draws.astype(np.float64))).all()


@pytest.mark.parametrize("largest", [2**24 - 1, 2**24, 2**25 + 1])
def test_sums_that_single_precision_cannot_hold_are_made_in_double(largest: int) -> None:
    draws = np.zeros((1, 500), dtype=np.int64)
    draws[0, :2] = largest - 1, 1
    tally = made()
    assert (tally.flat(draws) == tally.flat(draws.astype(np.float64))).all()
    assert tally.flat(draws).max() <= largest


def test_weights_stay_in_double_precision() -> None:
    weight = np.random.default_rng(3).random(500)
    tally = made(weight)
    draws = np.ones((1, 500), dtype=np.int64)
    assert tally.flat(draws)[0].sum() == tally.flat(draws.astype(np.float64))[0].sum()


@pytest.mark.parametrize("n_possible", [40, 10_000])
def test_keys_are_numbered_alike_with_and_without_sorting(n_possible: int) -> None:
    keys = np.random.default_rng(4).integers(0, 40, 300)
    used, number = module.numbered(keys, n_possible)
    assert used.tolist() == sorted(set(keys.tolist()))
    assert (used[number] == keys).all()
