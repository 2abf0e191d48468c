"""Goldens of Prune responsibly: prunings, rows of its regression.

Weights of LeNet are in tests/lab/models, writers and class counts in tests/data, the formula of
the regression in tests/auditing/explain.
"""

from __future__ import annotations

import pytest

from fairweight.lab.compression.schedules import iterative

WEIGHTS_OF_LENET = 59_838  # 28 × 28 pixels, without biases


def test_g16_nineteen_prunings_leave_about_800_weights() -> None:
    assert round(iterative(19), 5) == 0.98559
    assert round(iterative(20), 5) == 0.98847
    left = [round(WEIGHTS_OF_LENET * (1 - iterative(prunings))) for prunings in (19, 20)]
    assert left == [862, 690]
    # Printed: about 98.6 % and about 800.
    assert round(100 * iterative(19), 1) == 98.6 != round(100 * iterative(20), 1)


def test_g21_there_are_fewer_rows_than_classes_of_models() -> None:
    rows, models, least_classes = 949_298, 120_906, 10
    assert rows / models == pytest.approx(7.85, abs=0.005)
    assert rows < least_classes * models
