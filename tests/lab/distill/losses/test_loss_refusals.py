"""Every input that a loss cannot use gets a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fairweight.lab.distillation.losses  # noqa: F401  (registers them)
from fairweight.errors import InputError
from fairweight.lab.distillation.registry import LossSetting, loss

Shapes = dict[str, tuple[int, ...]]


def refused(name: str, student: Shapes, teacher: Shapes, **options: Any) -> str:
    """The sentence with which a loss refuses features of these shapes."""
    mine, theirs = (
        {key: torch.ones(shape) for key, shape in shapes.items()} for shapes in (student, teacher)
    )
    with pytest.raises(InputError) as caught:
        loss(name).function(mine, theirs, **options)
    sentence = str(caught.value)
    assert sentence.startswith(("The loss '", "The option "))
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("value", [0, -4.0, float("nan"), float("inf"), "4", True, None])
def test_temperatures(value: Any) -> None:
    logits = {"logits": (2, 3)}
    sentence = refused("kd", logits, logits, temperature=value)
    assert f"temperature of the loss 'kd' must be a number above 0, not {value!r}" in sentence


@pytest.mark.parametrize(
    ("option", "value", "need"),
    [
        ("negatives", 0, "a whole number from 1"),
        ("negatives", 2.5, "a whole number from 1"),
        ("negatives", float("inf"), "a whole number from 1"),
        ("dimension", -1, "a whole number from 1"),
        ("temperature", 0.0, "a number above 0"),
        ("momentum", -0.1, "a number from 0 to 1"),
        ("momentum", 1.5, "a number from 0 to 1"),
    ],
)
def test_options_of_crd(option: str, value: float, need: str) -> None:
    pooled = {"pooled": torch.ones(2, 3)}
    setting = LossSetting(torch.tensor([0, 1]), pooled, pooled, 0, 2)
    with pytest.raises(InputError, match=f"{option} of the loss 'crd' must be {need}, not"):
        loss("crd").function(setting, **{option: value})


@pytest.mark.parametrize("name", ["sp", "pkt"])
def test_a_batch_of_one_example(name: str) -> None:
    one = {"pooled": (1, 3)}
    assert "a batch has 1; choose a batch_size of 2 or more" in refused(name, one, one)


@pytest.mark.parametrize("name", ["at", "fsp"])
def test_features_that_are_no_maps(name: str) -> None:
    rows = {"block1": (2, 3, 4, 4), "block2": (2, 3)}
    sentence = refused(name, rows, rows)
    assert "feature 'block2', which is (2, 3) in the student and (2, 3)" in sentence
    assert "needs maps" in sentence


@pytest.mark.parametrize("name", ["hint", "max-pool-hint", "fsp"])
def test_other_numbers_of_channels(name: str) -> None:
    student = {"block1": (2, 3, 4, 4), "block2": (2, 5, 4, 4)}
    teacher = {"block1": (2, 3, 4, 4), "block2": (2, 1, 4, 4)}  # would be broadcast
    sentence = refused(name, student, teacher)
    assert "'block2', which is (2, 5, 4, 4) in the student and (2, 1, 4, 4)" in sentence
    assert "same number of channels" in sentence


@pytest.mark.parametrize("name", ["hint", "max-pool-hint"])
def test_other_sizes(name: str) -> None:
    sentence = refused(name, {"block1": (2, 3, 4, 4)}, {"block1": (2, 3, 1, 1)})
    assert "(2, 3, 4, 4) in the student and (2, 3, 1, 1)" in sentence
    assert "same size" in sentence


def test_maps_of_which_none_is_the_larger() -> None:
    sentence = refused("at", {"block1": (2, 3, 4, 8)}, {"block1": (2, 3, 8, 4)})
    assert "'block1' of shape (2, 3, 4, 8) is neither the larger nor the smaller" in sentence
    flat = {"stem": (2, 3, 4, 8), "block1": (2, 3, 8, 4)}
    assert "'stem' of shape (2, 3, 4, 8)" in refused("fsp", flat, flat)


@pytest.mark.parametrize("name", ["kd", "at", "sp", "fsp", "pkt", "hint", "max-pool-hint"])
def test_other_numbers_of_examples(name: str) -> None:
    student, teacher = {"block1": (4, 3, 2, 2)}, {"block1": (1, 3, 2, 2)}
    sentence = refused(name, student, teacher)
    assert "(4, 3, 2, 2) in the student and (1, 3, 2, 2) in the teacher" in sentence
    assert "the same examples" in sentence
    assert "the same examples" in refused(name, {"block1": (4,)}, {"block1": (4,)})


@pytest.mark.parametrize("name", ["at", "hint", "max-pool-hint", "sp"])
def test_other_numbers_of_features(name: str) -> None:
    one = {"block1": (2, 3, 2, 2)}
    two = {**one, "block2": (2, 3, 2, 2)}
    sentence = refused(name, one, two)
    assert "the student gives 'block1', the teacher 'block1', 'block2'" in sentence
    assert "the student gives none, the teacher none" in refused(name, {}, {})


@pytest.mark.parametrize("name", ["kd", "sp", "pkt"])
def test_several_features_where_one_is_read(name: str) -> None:
    two = {"block1": (2, 3), "block2": (2, 3)}
    assert "compares one feature, and got 'block1', 'block2'" in refused(name, two, two)


def test_one_feature_has_no_flow() -> None:
    one = {"block1": (2, 3, 2, 2)}
    assert "got 'block1' alone; give it two or more" in refused("fsp", one, one)


def test_other_classes() -> None:
    sentence = refused("kd", {"logits": (2, 10)}, {"logits": (2, 1)})
    assert "(2, 10) in the student and (2, 1) in the teacher" in sentence
    assert "at least two classes" in refused("kd", {"logits": (2, 1)}, {"logits": (2, 1)})
    maps = {"logits": (2, 5, 4, 4)}
    assert "(examples, classes)" in refused("kd", maps, maps)
