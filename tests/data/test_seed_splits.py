"""Splits by seed: exact shares, whole groups, no dependence on the order of rows."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.data import Images
from fairweight.data.dataset import group_split, split_by_seed, stratified_split
from fairweight.errors import InputError

SHARES = {"train": 0.5, "validation": 0.25, "test": 0.25}


def members(images: Images) -> dict[str, set[str]]:
    return {
        split: set(images.example_id[images.split == split].tolist())
        for split in set(images.split.tolist())
    }


def test_shares_are_exact_where_they_can_be(small: Images) -> None:
    parts = members(split_by_seed(small, SHARES, 0))
    assert {split: len(ids) for split, ids in parts.items()} == {
        "train": 6, "validation": 3, "test": 3,
    }  # fmt: skip
    assert set.union(*parts.values()) == set(small.example_id.tolist())


def test_the_seed_decides_and_the_order_of_rows_does_not(small: Images) -> None:
    turned = small.select(np.arange(12)[::-1])
    assert members(split_by_seed(small, SHARES, 1)) == members(split_by_seed(turned, SHARES, 1))
    assert members(split_by_seed(small, SHARES, 1)) != members(split_by_seed(small, SHARES, 2))


def test_one_split_is_divided_and_the_others_stay(small: Images) -> None:
    made = split_by_seed(small, {"train": 2 / 3, "val": 1 / 3}, 0, within="train")
    assert made.split[9:].tolist() == ["test"] * 3
    assert sorted(made.split[:9].tolist()) == ["train"] * 6 + ["val"] * 3
    assert made.images is small.images  # nothing is copied


def test_groups_stay_whole(small: Images) -> None:
    made = group_split(small, "writer", SHARES, 0)  # four writers of three
    per_writer = [set(made.split[i : i + 3].tolist()) for i in range(0, 12, 3)]
    assert all(len(splits) == 1 for splits in per_writer)
    assert sorted(min(splits) for splits in per_writer) == ["test", "train", "train", "validation"]
    turned = group_split(small.select(np.arange(12)[::-1]), "writer", SHARES, 0)
    assert members(turned) == members(made)
    others = [members(group_split(small, "writer", SHARES, seed)) for seed in range(1, 6)]
    assert any(other != members(made) for other in others)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ({"train": 0.8, "val": 0.1}, "add up to 1"),
        ({"train": 1.2, "val": -0.2}, "above 0"),
        ({}, "add up to 1"),
        ({"train": 0.99, "val": 0.01}, "'val' would be empty: 12 examples are too few"),
    ],
)
def test_shares_that_cannot_be(small: Images, shares: dict[str, float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        split_by_seed(small, shares, 0)


def test_other_bad_arguments(small: Images) -> None:
    with pytest.raises(InputError, match="random_state is -1"):
        split_by_seed(small, SHARES, -1)
    with pytest.raises(InputError, match=r"Group column 'writers' .*'writer'"):
        group_split(small, "writers", SHARES, 0)
    with pytest.raises(InputError, match="'test' would be empty: 4 writers are too few"):
        group_split(small, "writer", {"train": 0.9, "test": 0.1}, 0)
    small.groups["writer"][:2] = ""
    with pytest.raises(InputError, match="'writer' has 2 missing values"):
        group_split(small, "writer", SHARES, 0)


def test_every_cell_is_divided_alike(small: Images) -> None:
    halves = {"train": 0.5, "test": 0.5}
    made = stratified_split(small, ["writer"], halves, 0)
    cells = list(zip(small.labels.tolist(), small.groups["writer"].tolist(), strict=True))
    for cell in {*cells}:
        parts = [s for c, s in zip(cells, made.split.tolist(), strict=True) if c == cell]
        assert abs(parts.count("train") - parts.count("test")) <= 1
    turned = stratified_split(small.select(np.arange(12)[::-1]), ["writer"], halves, 0)
    assert members(turned) == members(made)
    with pytest.raises(InputError, match="'author'"):
        stratified_split(small, ["author"], halves, 0)
