"""Outputs become predictions, probabilities and ranks; what is unclear is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.prediction_rows import kind_of_outputs, label_ranks, read_outputs


def read(outputs: object, **options: object) -> Any:
    array = np.asarray(outputs)
    chosen: dict[str, Any] = {
        "n": len(array),
        "tasks": None,
        "kind": None,
        "shown": "The model 'x'",
    } | options
    return read_outputs(array, **chosen)[0]


def test_logits() -> None:
    # softmax of (0, ln 3) is (1/4, 3/4)
    answers = read([[0.0, np.log(3)], [np.log(3), 0.0]])
    assert answers.predicted.tolist() == [1, 0]
    np.testing.assert_allclose(answers.probabilities, [[0.25, 0.75], [0.75, 0.25]])


def test_large_logits_do_not_overflow() -> None:
    answers = read([[1e4, -1e4, 0.0]])
    assert answers.probabilities.tolist() == [[1.0, 0.0, 0.0]]
    answers = read([1e4, -1e4])
    assert answers.probabilities.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_probabilities_are_recognised() -> None:
    rows = np.array([[0.2, 0.8], [1.0, 0.0]], dtype=np.float32)
    assert kind_of_outputs(rows, tasks=False, shown="it") == "probabilities"
    np.testing.assert_allclose(read(rows).probabilities, rows)
    assert kind_of_outputs(rows * 0.9, tasks=False, shown="it") == "logits"
    assert kind_of_outputs(rows - [[0.5, -0.5]], tasks=False, shown="it") == "logits"


def test_a_single_output() -> None:
    # sigmoid(ln 3) = 3/4
    answers = read([[np.log(3)], [-np.log(3)]])
    assert answers.predicted.tolist() == [1, 0]
    np.testing.assert_allclose(answers.probabilities, [[0.25, 0.75], [0.75, 0.25]])


@pytest.mark.parametrize("tasks", [None, 2])
def test_single_outputs_that_could_be_both(tasks: int | None) -> None:
    outputs = [[0.2, 0.7]] if tasks else [0.2, 0.7]
    with pytest.raises(InputError, match="could be logits or probabilities; say outputs="):
        read(outputs, tasks=tasks)
    decided = read(outputs, tasks=tasks, kind="probabilities").predicted
    assert decided.reshape(-1).tolist() == [0, 1]
    assert read(outputs, tasks=tasks, kind="logits").predicted.reshape(-1).tolist() == [1, 1]


def test_predictions_as_they_are() -> None:
    assert read([2, 0]).predicted.tolist() == [2, 0]
    assert read([2, 0]).probabilities is None
    assert read(["a", "b"]).predicted.tolist() == ["a", "b"]
    assert read([True, False]).predicted.tolist() == [1, 0]


def test_outputs_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\) for 4 examples"):
        read(np.zeros((2, 3)), n=4)
    with pytest.raises(InputError, match=r"do not fit the labels; they must be \(2, 5\)"):
        read(np.zeros((2, 3)), tasks=5)
    with pytest.raises(InputError, match=r"must be \(2, classes\)"):
        read(np.zeros((2, 3, 4)))
    with pytest.raises(InputError, match="one predicted class per example"):
        read(np.zeros((2, 3), dtype=int))
    with pytest.raises(InputError, match=r"not finite .* first in row 1"):
        read([[0.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(InputError, match="outside"):
        read([[0.0, 1.5]], kind="probabilities")


def test_ranks_by_hand() -> None:
    shares = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    labels, predicted = np.array([0, 2, 0, 1]), np.array([0, 0, 0, 0])
    assert label_ranks(shares, labels, predicted).tolist() == [1, 3, 1, 2]


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=8))
def test_rank_one_is_a_right_prediction(rows: list[list[int]]) -> None:
    """Also among ties, of which int8 models have many; and ranks of all labels are 1 to 4."""
    outputs = np.array(rows, dtype=float)
    answers = read(outputs, kind="logits")
    shares: NDArray[np.float64] = answers.probabilities
    ranks = np.stack(
        [label_ranks(shares, np.full(len(rows), label), answers.predicted) for label in range(4)],
        axis=1,
    )
    assert (np.sort(ranks, axis=1) == [1, 2, 3, 4]).all()
    assert (ranks.argmin(axis=1) == answers.predicted).all()
