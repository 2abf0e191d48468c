"""Plain arrays to counts: canonical names, abstentions, weights, the positive class, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairweight.auditing.counts.groupings import resolve_positive
from fairweight.auditing.metrics.arrays import code_levels, count_arrays
from fairweight.errors import InputError, UnknownNameError


def test_by_hand() -> None:
    counts = count_arrays(["a", "a", "a", "b", "b"], ["a", "b", None, "b", "zebra"])
    assert counts.classes == ("a", "b")
    assert counts.label.tolist() == [3, 2]
    assert counts.predicted.tolist() == [1, 2]  # the zebra is nobody's
    assert counts.correct.tolist() == [1, 1]
    assert counts.abstained == 1
    assert counts.n == 5


@pytest.mark.parametrize(
    "predictions",
    [
        [1, 0, 1],
        [1.0, 0.0, 1.0],
        ["1", "0", "1"],
        ["1.0", "0", "1"],
        np.array([True, False, True]),
        pd.Series([1, 0, 1], dtype="Int64"),
        pd.Series(["1", "0", "1"]),
        pl.Series([1, 0, 1]),
        np.array([1, 0, 1], dtype=object),
    ],
    ids=lambda p: f"{type(p).__name__}-{getattr(p, 'dtype', type(p[0]).__name__)}",
)
def test_one_class_however_written(predictions: Any) -> None:
    counts = count_arrays([1, 0, 0], predictions)
    assert counts.classes == ("0", "1")
    assert counts.correct.tolist() == [1, 1]


@pytest.mark.parametrize(
    "predictions",
    [
        [1, None, 0],
        [1.0, float("nan"), 0.0],
        ["1", None, "0"],
        ["1", float("nan"), "0"],  # numpy would make this the text "nan"
        pd.Series([1, None, 0], dtype="Int64"),
        pd.Series(["1", None, "0"]),
        pl.Series([1, None, 0]),
        [True, None, False],
    ],
    ids=lambda p: f"{type(p).__name__}-{getattr(p, 'dtype', type(p[0]).__name__)}",
)
def test_missing_predictions_are_abstentions(predictions: Any) -> None:
    counts = count_arrays([1, 1, 0], predictions)
    assert counts.abstained == 1
    assert counts.predicted.tolist() == [1, 1]


def test_levels_are_keyed_by_name_and_missing_is_a_level() -> None:
    counts = count_arrays([1, 0, 1, 0], [1, 0, 0, 0], ["m", "f", None, "m"])
    assert code_levels(["m", "f", None, "m"]).names == ("f", "m", "(missing)")
    assert counts.label.tolist() == [[1, 0], [1, 1], [0, 1]]
    assert counts.correct.tolist() == [[1, 0], [1, 1], [0, 0]]
    # without the first row's group the others keep their own counts
    assert count_arrays([0, 1, 0], [0, 1, 0], ["f", "f", "m"]).label.tolist() == [[1, 1], [1, 0]]


def test_weights_replace_numbers() -> None:
    counts = count_arrays([1, 0, 1], [1, 0, None], sample_weight=[2, 0.5, 3])
    assert counts.label.tolist() == [0.5, 5]
    assert counts.correct.tolist() == [0.5, 2]
    assert counts.abstained == 3


def test_equal_to_counting_row_by_row() -> None:
    rng = np.random.default_rng(0)
    label, pred = rng.integers(0, 4, 300), rng.integers(0, 5, 300)  # 4 is never a label
    level = rng.integers(0, 3, 300)
    counts = count_arrays(label, pred, level)
    for g in range(3):
        for c in range(4):
            assert counts.label[g, c] == ((level == g) & (label == c)).sum()
            assert counts.predicted[g, c] == ((level == g) & (pred == c)).sum()
            assert counts.correct[g, c] == ((level == g) & (label == c) & (pred == c)).sum()


def test_positive_class() -> None:
    assert count_arrays([0, 1], [0, 1]).positive == 1
    assert count_arrays([True, False], [True, True]).positive == 1
    assert count_arrays(["no", "yes"], ["no", "yes"]).positive == 1
    assert count_arrays(["cat", "dog"], ["cat", "dog"]).positive is None
    assert count_arrays(["cat", "dog"], ["cat", "dog"], positive="cat").positive == 0
    assert count_arrays([0, 1], [0, 1], positive=True).positive == 1
    assert count_arrays([0, 1], [0, 1], positive=0.0).positive == 0
    assert count_arrays([0, 1, 2], [0, 1, 2]).positive is None
    assert resolve_positive(("1", "true")) is None  # both could be meant
    assert resolve_positive(("1",), 1) is None  # one class has no opposite


def test_positive_class_that_cannot_be() -> None:
    with pytest.raises(UnknownNameError, match=r"Positive class 'dgo' does not exist.*'dog'"):
        count_arrays(["cat", "dog"], ["cat", "dog"], positive="dgo")
    with pytest.raises(InputError, match="needs binary labels, but there are 3 classes"):
        count_arrays([0, 1, 2], [0, 1, 2], positive=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1]), "y_pred has 1 values but y_true has 2"),
        (([], []), "y_true is empty"),
        (([[1, 0], [0, 1]], [1, 0]), r"y_true has 2 dimensions \(shape \(2, 2\)\)"),
        (([[1, 0], [0]], [1, 0]), "y_true is not one value per example"),
        (([1, None], [1, 0]), "y_true has 1 missing labels among 2"),
        (([1.0, float("nan")], [1, 0]), "y_true has 1 missing labels"),
        ((["a", float("nan")], ["a", "a"]), "y_true has 1 missing labels"),
        (([1, 0], [1, 0], ["f"]), "sensitive_features has 1 values but y_true has 2"),
        (([1, 0], [1, 0], None, [1, -1]), "sample_weight has negative"),
        (([1, 0], [1, 0], None, [1]), "sample_weight has 1 values"),
        ((["a", "b"], ["A", "B"]), r"\('A', 'B'\) is equal to any label in y_true \('a', 'b'\)"),
    ],
)
def test_bad_input_gets_a_sentence(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        count_arrays(*arguments)
