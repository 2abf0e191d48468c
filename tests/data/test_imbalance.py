"""Rare classes: exact shares, only where asked, and the rule that chooses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.data import Images
from fairweight.data.imbalance import SIMON_SAYS, STEPS, imbalanced, least_changed
from fairweight.errors import InputError


@pytest.fixture
def many() -> Images:
    """Forty training and twenty test images of two classes in turn."""
    n = 60
    return Images(
        name="many",
        images=np.zeros((n, 1, 1, 1), dtype=np.uint8),
        labels=np.arange(n, dtype=np.int64) % 2,
        classes=("even", "odd"),
        groups={},
        example_id=np.array([f"{i:02d}" for i in range(n)]),
        split=np.array(["train"] * 40 + ["test"] * 20),
    )


def sizes(images: Images) -> dict[tuple[str, str], int]:
    return {
        (split, name): int(((images.split == split) & (images.labels == i)).sum())
        for split in ("train", "test")
        for i, name in enumerate(images.classes)
    }


def test_shares_are_of_the_training_split_only(many: Images) -> None:
    assert sizes(imbalanced(many, {"odd": 0.1}, 0)) == {
        ("train", "even"): 20, ("train", "odd"): 2, ("test", "even"): 10, ("test", "odd"): 10,
    }  # fmt: skip
    everywhere = sizes(imbalanced(many, {"odd": 0.25}, 0, split=None))
    assert everywhere["train", "odd"] + everywhere["test", "odd"] == 8  # 30 / 4 = 7.5
    assert sizes(imbalanced(many, {"odd": 0.0, "even": 1.0}, 0))["train", "odd"] == 0


def test_what_is_drawn_belongs_to_the_class_and_the_seed(many: Images) -> None:
    def odd(images: Images) -> list[str]:
        return images.example_id[images.labels == 1].tolist()

    once = imbalanced(many, {"odd": 0.5}, 3)
    assert odd(imbalanced(many, {"even": 0.2, "odd": 0.5}, 3)) == odd(once)
    assert odd(imbalanced(many, {"odd": 0.5}, 4)) != odd(once)


def test_bad_arguments(many: Images) -> None:
    with pytest.raises(InputError, match="Class 'od' does not exist"):
        imbalanced(many, {"od": 0.5}, 0)
    with pytest.raises(InputError, match="share of 'odd' is 10; give a number from 0 to 1"):
        imbalanced(many, {"odd": 10}, 0)
    with pytest.raises(InputError, match="Split 'val' does not exist"):
        imbalanced(many, {"odd": 0.5}, 0, split="val")
    tasks = replace(many, labels=np.zeros((60, 2), dtype=np.int64))
    with pytest.raises(InputError, match="has tasks"):
        imbalanced(tasks, {"odd": 0.5}, 0)


def test_the_classes_of_the_paper() -> None:
    assert len(SIMON_SAYS) == 15
    assert STEPS == (0.1,) * 5 + (0.2,) * 5 + (0.5,) * 5
    assert SIMON_SAYS["sweet_pepper"] == 0.1  # printed as shrew


def table(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["metric", "class", "baseline", "compressed"])
    return frame.assign(scope="model", by="class")


def test_least_changed_by_hand() -> None:
    frame = table(
        ("recall", "a", 0.8, 0.8), ("fpr", "a", 0.10, 0.13), ("fnr", "a", 0.2, 0.2),  # .3, 0
        ("recall", "b", 0.8, 0.7), ("fpr", "b", 0.10, 0.10), ("fnr", "b", 0.2, 0.3),  # 0, .5
        ("recall", "c", 0.5, 0.6), ("fpr", "c", 0.10, 0.20), ("fnr", "c", 0.5, 0.4),  # 1, .2
        ("recall", "d", 0.9, 0.8), ("fpr", "d", 0.00, 0.01), ("fnr", "d", 0.1, 0.2),  # from 0
    )  # fmt: skip
    # c has become better; then a (mean .15) and b (mean .25); d's FPR rose from nothing.
    assert least_changed(frame, [0.1, 0.2, 0.5]) == {"c": 0.1, "a": 0.2, "b": 0.5}
    elsewhere = frame.assign(scope="method", compressed=0.0)
    assert least_changed(pd.concat([frame, elsewhere]), [0.1]) == {"c": 0.1}


def test_least_changed_of_an_audit() -> None:
    label = np.repeat(["a", "b", "c"], 40)
    dense = np.where(np.arange(120) % 10 == 0, np.roll(label, 40), label)
    pruned = np.where((label == "b") & (np.arange(120) % 3 == 0), "c", dense)
    audit = fw.audit(label, {"dense": dense, "pruned": pruned}, n_boot=20, random_state=0)
    assert list(least_changed(audit.by_class, [0.1])) == ["a"]
    with pytest.raises(InputError, match="of 3 classes, for 15 shares"):
        least_changed(audit.by_class)
    with pytest.raises(InputError, match="Column of by_class 'by' does not exist"):
        least_changed(pd.DataFrame({"x": [1]}))
