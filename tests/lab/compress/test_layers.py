"""Patterns that choose layers."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from torch import nn

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.masks import chosen

MODEL = nn.Sequential(
    OrderedDict(
        stem=nn.Conv2d(3, 4, 3),
        norm=nn.BatchNorm2d(4),
        block=nn.Sequential(nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)),
        hidden=nn.Linear(4, 4),
        head=nn.Linear(4, 2),
    )
)
ALL = ["stem", "block.0", "block.2", "hidden", "head"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (None, ALL),
        (("*",), ALL),
        (("block.*",), ["block.0", "block.2"]),
        (("block",), ["block.0", "block.2"]),
        (("block.2.weight",), ["block.2"]),
        (("*", "!@last"), ALL[:-1]),
        (("!@first",), ALL[1:]),
        (("@conv",), ["stem", "block.0", "block.2"]),
        (("@linear", "!head"), ["hidden"]),
        (("head", "stem"), ["stem", "head"]),  # in the order of the model
    ],
)
def test_patterns_choose(patterns: tuple[str, ...] | None, expected: list[str]) -> None:
    assert list(chosen(MODEL, patterns)) == expected


def test_what_fits_nothing_gets_a_sentence() -> None:
    with pytest.raises(UnknownNameError, match="'blok' does not exist"):
        chosen(MODEL, ["blok"])
    with pytest.raises(UnknownNameError, match=r"'@lats' does not exist.*'@last'"):
        chosen(MODEL, ["@lats"])
    with pytest.raises(UnknownNameError, match="'norm' does not exist"):
        chosen(MODEL, ["norm"])  # nothing in it can be pruned
    with pytest.raises(InputError, match="leaves no layer to prune; the model has: stem"):
        chosen(MODEL, ["head", "!@last"])
    with pytest.raises(InputError, match="no convolution and no linear layer"):
        chosen(nn.ReLU())
