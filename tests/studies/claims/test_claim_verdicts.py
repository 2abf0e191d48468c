"""Verdicts on intervals, and on claims of several lines."""

from __future__ import annotations

from itertools import product
from math import nan

import pytest

from fairweight.studies.claims import (
    CANNOT_TELL,
    DOES_NOT,
    REPRODUCES,
    SMALLER,
    of_all_lines,
    verdict,
)

from .published import claim

INTERVALS = [(low / 10, high / 10) for low, high in product(range(-9, 10), repeat=2) if low <= high]


@pytest.mark.parametrize(
    ("direction", "low", "high", "expected"),
    [
        ("up", 0.01, 0.3, REPRODUCES),
        ("up", 0.01, 0.1, SMALLER),
        ("up", -0.1, 0.1, DOES_NOT),
        ("up", -0.3, -0.1, DOES_NOT),
        ("up", -0.1, 0.3, CANNOT_TELL),
        ("up", 0.0, 0.3, CANNOT_TELL),
        ("up", -0.1, 0.2, CANNOT_TELL),
        ("down", -0.3, -0.01, REPRODUCES),
        ("down", -0.1, 0.1, DOES_NOT),
        ("not-up", -0.3, 0.1, REPRODUCES),
        ("not-up", 0.01, 0.1, REPRODUCES),
        ("not-up", 0.01, 0.3, DOES_NOT),
        ("not-up", -0.1, 0.3, CANNOT_TELL),
        ("not-down", -0.3, -0.01, DOES_NOT),
        ("not-down", -0.1, 0.9, REPRODUCES),
        ("none", -0.1, 0.1, REPRODUCES),
        ("none", 0.01, 0.1, REPRODUCES),
        ("none", -0.3, -0.1, DOES_NOT),
        ("none", -0.1, 0.3, CANNOT_TELL),
        ("up", nan, 0.3, CANNOT_TELL),
        ("none", -0.1, nan, CANNOT_TELL),
    ],
)
def test_one_interval(direction: str, low: float, high: float, expected: str) -> None:
    assert verdict(direction, low, high, 0.2) == expected  # type: ignore[arg-type]


def test_down_is_up_mirrored_and_not_is_the_negation() -> None:
    for low, high in INTERVALS:
        up = verdict("up", low, high, 0.25)
        assert verdict("down", -high, -low, 0.25) == up
        denied = verdict("not-up", low, high, 0.25)
        assert verdict("not-down", -high, -low, 0.25) == denied
        negation = {REPRODUCES: DOES_NOT, DOES_NOT: REPRODUCES, SMALLER: REPRODUCES}
        assert denied == negation.get(up, CANNOT_TELL)


def test_no_change_is_none_upwards_and_none_downwards() -> None:
    for low, high in INTERVALS:
        both = {verdict("not-up", low, high, 0.25), verdict("not-down", low, high, 0.25)}
        expected = REPRODUCES if both == {REPRODUCES} else None
        told = verdict("none", low, high, 0.25)
        assert (told == REPRODUCES) == (expected == REPRODUCES)
        assert (told == DOES_NOT) == (DOES_NOT in both)


@pytest.mark.parametrize(
    ("needs", "lines", "expected"),
    [
        ("all", [REPRODUCES, REPRODUCES], REPRODUCES),
        ("all", [REPRODUCES, SMALLER], SMALLER),
        ("all", [REPRODUCES, CANNOT_TELL], CANNOT_TELL),
        ("all", [REPRODUCES, CANNOT_TELL, DOES_NOT], DOES_NOT),
        ("most", [REPRODUCES, REPRODUCES, DOES_NOT], REPRODUCES),
        ("most", [REPRODUCES, SMALLER, DOES_NOT], SMALLER),
        ("most", [REPRODUCES, DOES_NOT], CANNOT_TELL),
        ("most", [REPRODUCES, DOES_NOT, DOES_NOT], DOES_NOT),
        ("some", [DOES_NOT, REPRODUCES], REPRODUCES),
        ("some", [DOES_NOT, SMALLER], SMALLER),
        ("some", [DOES_NOT, CANNOT_TELL], CANNOT_TELL),
        ("some", [DOES_NOT, DOES_NOT], DOES_NOT),
        ("all", [], CANNOT_TELL),
    ],
)
def test_several_lines(needs: str, lines: list[str], expected: str) -> None:
    assert of_all_lines(claim(needs=needs, corrected=True), lines) == expected
