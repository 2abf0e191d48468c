"""The arrays of a data set stay aligned, and are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairweight.data import Images
from fairweight.errors import InputError


def test_a_split_holds_its_examples(small: Images) -> None:
    test = small.of_split("test")
    assert len(test) == 3
    assert test.images.ravel().tolist() == [9, 10, 11]
    assert test.labels.tolist() == [0, 1, 2]  # 9 % 3, 10 % 3, 11 % 3
    assert test.groups["writer"].tolist() == ["w3"] * 3
    assert test.example_id.tolist() == ["id-9", "id-10", "id-11"]


def test_neighbouring_rows_share_memory_and_others_are_copied(small: Images) -> None:
    assert np.shares_memory(small.of_split("train").images, small.images)
    apart = small.select(np.array([5, 0]))
    assert apart.example_id.tolist() == ["id-5", "id-0"]
    assert not np.shares_memory(apart.images, small.images)


def test_a_mask_and_its_rows_select_the_same(small: Images) -> None:
    mask = small.labels == 1
    assert small.select(mask).example_id.tolist() == ["id-1", "id-4", "id-7", "id-10"]
    assert len(small.select(np.zeros(12, dtype=bool))) == 0
    with pytest.raises(InputError, match=r"shape \(3,\) for 12 examples"):
        small.select(np.array([True, False, True]))


def test_an_unknown_split_names_those_that_exist(small: Images) -> None:
    with pytest.raises(InputError, match="Split 'tests' does not exist; there are: 'test', 'tr"):
        small.of_split("tests")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"images": np.zeros((12, 1, 1), np.uint8)}, "must be uint8 of shape"),
        ({"images": np.zeros((12, 1, 1, 1), np.float32)}, "float32"),
        ({"split": np.array(["train"] * 11)}, "'split' has 11 values for 12 images"),
        ({"groups": {"sex": np.array(["f"])}}, "'sex' has 1 values"),
        ({"example_id": np.array(["x"] * 12)}, "example_id repeat"),
        ({"labels": np.full(12, 3)}, "from 0 to 2"),
        ({"labels": np.full((12, 3), 2)}, "0 or 1 in 3 columns"),
        ({"labels": np.zeros((12, 2), np.int64)}, "0 or 1 in 3 columns"),
    ],
)
def test_what_does_not_fit_is_refused(small: Images, change: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        replace(small, **change)


def test_tasks_have_two_axes(small: Images) -> None:
    assert not small.multi_label
    assert replace(small, labels=np.ones((12, 3), np.int64)).multi_label
