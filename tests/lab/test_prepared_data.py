"""The parts of data sets: the source's own as far as it has them, and never one example twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairweight.data import Images, register, unregister
from fairweight.errors import InputError
from fairweight.lab.partition import Prepared, as_examples, prepare
from fairweight.specs.data import Data, DrawnBackdoor

N = 60


def made(split: list[str], *, tasks: int = 0) -> Images:
    labels: Any = np.arange(N) % 3
    if tasks:
        labels = np.stack([(np.arange(N) >> bit) % 2 for bit in range(tasks)], axis=1)
    return Images(
        name="made",
        images=np.arange(N, dtype=np.uint8)[:, None, None, None].repeat(4, 1).repeat(4, 2),
        labels=labels.astype(np.int64),
        classes=tuple("abcd"[:tasks]) if tasks else ("x", "y", "z"),
        groups={"writer": np.array([f"w{i // 6}" for i in range(N)])},
        example_id=np.array([f"e{i:02d}" for i in range(N)]),
        split=np.array(split),
    )


@pytest.fixture
def dataset() -> Iterator[None]:
    @register("made", summary="for tests", source="these tests")
    def read(*, split: Any = ("all",), tasks: int = 0) -> Images:
        names = list(split)
        return made([names[i * len(names) // N] for i in range(N)], tasks=tasks)

    yield
    unregister("made")


def ids(prepared: Prepared) -> dict[str, set[str]]:
    parts = {name: getattr(prepared, name) for name in ("train", "validation", "test")}
    return {name: set(p.example_id.tolist()) for name, p in parts.items() if p is not None}


@pytest.mark.usefixtures("dataset")
def test_a_source_without_parts_is_divided_by_its_seed() -> None:
    spec = Data(name="made", validation=0.1, test=0.5)
    parts = ids(prepare(spec))
    assert {name: len(held) for name, held in parts.items()} == {
        "train": 24, "validation": 6, "test": 30,
    }  # fmt: skip
    assert len(set.union(*parts.values())) == N
    assert ids(prepare(spec)) == parts
    assert ids(prepare(Data(name="made", validation=0.1, test=0.5, split_seed=1))) != parts


@pytest.mark.usefixtures("dataset")
def test_the_sources_own_parts_are_kept() -> None:
    three = ids(prepare(Data(name="made", options={"split": ["train", "val", "test"]})))
    assert three["validation"] == {f"e{i:02d}" for i in range(20, 40)}
    assert three["test"] == {f"e{i:02d}" for i in range(40, 60)}


@pytest.mark.usefixtures("dataset")
def test_an_official_val_is_held_out_and_decides_nothing() -> None:
    two = ids(prepare(Data(name="made", options={"split": ["train", "val"]}, validation=0.2)))
    assert two["test"] == {f"e{i:02d}" for i in range(30, 60)}
    assert len(two["validation"]) == 6
    assert two["validation"] | two["train"] == {f"e{i:02d}" for i in range(30)}


@pytest.mark.usefixtures("dataset")
def test_without_validation_nothing_is_taken_from_training() -> None:
    prepared = prepare(Data(name="made", options={"split": ["train", "test"]}, validation=0))
    assert prepared.validation is None
    assert len(prepared.train) == 30
    with pytest.raises(InputError, match="no part 'validation'"):
        prepared.part("validation")
    with pytest.raises(InputError, match="Part of the data 'tests' does not exist"):
        prepared.part("tests")


@pytest.mark.usefixtures("dataset")
@pytest.mark.parametrize("split", [["all"], ["train", "test"]])
def test_writers_stay_together(split: list[str]) -> None:
    spec = Data(name="made", options={"split": split}, split_by="writer", validation=0.2, test=0.4)
    prepared = prepare(spec)
    held = [set(part.groups["writer"].tolist()) for part in _parts(prepared)]
    assert all(held)
    assert sum(len(writers) for writers in held) == len(set.union(*held)) == 10


def _parts(prepared: Prepared) -> list[Images]:
    return [p for p in (prepared.train, prepared.validation, prepared.test) if p is not None]


@pytest.mark.usefixtures("dataset")
def test_one_attribute_and_a_pair() -> None:
    spec = {"split": ["train", "test"], "tasks": 4}
    pair = prepare(Data(name="made", options=spec, tasks=("c", "a"))).test
    assert pair.classes == ("c", "a")
    # Example 30 is 0b11110: bits 0 to 3 are 0, 1, 1, 1, so task c (bit 2) is 1 and a (bit 0) is 0.
    assert pair.labels[0].tolist() == [1, 0]
    assert prepare(Data(name="made", options=spec, tasks=("b",))).test.labels.shape == (30, 1)
    with pytest.raises(InputError, match="Task 'e' does not exist"):
        prepare(Data(name="made", options=spec, tasks=("e",)))
    with pytest.raises(InputError, match="has one label"):
        prepare(Data(name="made", tasks=("a",)))


@pytest.mark.usefixtures("dataset")
def test_rare_classes_are_rare_in_training_only() -> None:
    options = {"split": ["train", "test"]}
    rare = prepare(Data(name="made", options=options, validation=0, shares={"x": 0.2}))
    assert np.bincount(rare.train.labels).tolist() == [2, 10, 10]  # 10 of each, of x 20 %
    assert np.bincount(rare.test.labels).tolist() == [10, 10, 10]


@pytest.mark.usefixtures("dataset")
def test_nothing_to_train_on_is_told() -> None:
    with pytest.raises(InputError, match=r"parts \['test'\], but training needs 'train'"):
        prepare(Data(name="made", options={"split": ["test"]}))


@pytest.mark.usefixtures("dataset")
def test_tensors_share_the_memory_of_a_part() -> None:
    part = prepare(Data(name="made", options={"split": ["train", "test"]}, validation=0)).train
    assert np.shares_memory(as_examples(part).images.numpy(), part.images)


@pytest.mark.usefixtures("dataset")
def test_images_of_another_size() -> None:
    """A flat image stays what it is, and twice the side is twice the side."""
    prepared = prepare(Data(name="made", options={"split": ["train", "test"]}, size=8))
    assert prepared.test.images.shape == (30, 8, 8, 1)
    assert np.unique(prepared.test.images).tolist() == list(range(30, 60))
    same = prepare(Data(name="made", options={"split": ["train", "test"]}, size=4))
    assert same.test.images.shape == (30, 4, 4, 1)


def test_a_checkerboard_becomes_grey_without_aliasing() -> None:
    from fairweight.lab.partition import _resized

    board = np.indices((8, 8)).sum(axis=0) % 2 * 255
    images = replace(
        made(["all"] * N), images=np.repeat(board[None, :, :, None], N, 0).astype("u1")
    )
    small = _resized(images, 4).images[0, 1:3, 1:3, 0]
    assert abs(small.astype(int) - 128).max() <= 2
    wide = replace(images, images=np.zeros((N, 4, 8, 1), np.uint8))
    with pytest.raises(InputError, match="would distort them"):
        _resized(wide, 4)


@pytest.mark.usefixtures("dataset")
def test_own_parts_are_ignored_where_that_is_asked_for_and_cells_divided_alike() -> None:
    spec = Data(
        name="made", options={"split": ("train",)}, own_parts=False, stratify=("writer",),
        validation=0, test=0.5,
    )  # fmt: skip
    parts = prepare(spec)
    assert len(parts.train) == len(parts.test) == 30  # ten writers × three classes × two
    for part in (parts.train, parts.test):
        cells = zip(part.labels.tolist(), part.groups["writer"].tolist(), strict=True)
        assert len(set(cells)) == 30
    with pytest.raises(InputError, match="own_parts = false"):
        prepare(Data(name="made", options={"split": ("train",)}))


@pytest.mark.usefixtures("dataset")
def test_fewer_training_examples_leave_the_rest_as_it_is() -> None:
    options = {"split": ("train", "test")}
    whole = prepare(Data(name="made", options=options, validation=0))
    fewer = prepare(Data(name="made", options=options, validation=0, most_train=10))
    assert len(fewer.train) == 10
    assert ids(fewer)["train"] < ids(whole)["train"]
    assert ids(fewer)["test"] == ids(whole)["test"]
    many = prepare(Data(name="made", options=options, validation=0, most_train=500))
    assert ids(many) == ids(whole)


def test_a_drawn_backdoor_marks_the_parts_by_their_shares() -> None:
    """In training 5 % of digits without a loop and 95 % of the others; elsewhere half of all."""
    marks = DrawnBackdoor(kind="yellow_square", task="loop", train=(0.05, 0.95), seed=3)
    spec = Data(
        name="digits",
        options={"attributes": True, "coloured": True},
        tasks=("loop", "even"),
        backdoor=marks,
    )
    prepared = prepare(spec)
    assert prepared.validation is not None
    for part, (negative, positive) in (
        (prepared.train, (0.05, 0.95)),
        (prepared.validation, (0.5, 0.5)),
        (prepared.test, (0.5, 0.5)),
    ):
        marked = part.groups["backdoor"] == "yes"
        for value, share in ((0, negative), (1, positive)):
            own = part.labels[:, 0] == value
            assert int(marked[own].sum()) == math.floor(share * int(own.sum()) + 0.5)
        corner = np.asarray(part.images)[:, 0, 0]
        assert (corner[marked] == (255, 255, 0)).all()
        assert not (corner[~marked] == (255, 255, 0)).all(axis=1).any()
    again = prepare(spec)
    assert again.train.groups["backdoor"].tolist() == prepared.train.groups["backdoor"].tolist()
    other = prepare(replace(spec, backdoor=replace(marks, seed=4)))
    assert other.train.groups["backdoor"].tolist() != prepared.train.groups["backdoor"].tolist()
    # A single task of the same attribute is divided and marked alike.
    single = prepare(replace(spec, tasks=("loop",)))
    assert single.test.groups["backdoor"].tolist() == prepared.test.groups["backdoor"].tolist()


def test_a_backdoor_without_published_shares_needs_its_own() -> None:
    spec = Data(
        name="digits",
        options={"attributes": True, "coloured": True},
        backdoor=DrawnBackdoor(kind="grayscale", task="loop"),
    )
    with pytest.raises(InputError, match="The paper has no shares for 'loop'"):
        prepare(spec)
