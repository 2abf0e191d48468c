"""Goldens of the comparative study: kappa, accuracy, recall and FPR of its Table 1.

CIFAR-10's test classes are equally large, so that recalls and precisions fix the counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics.rates import accuracy, fpr, kappa

PER_CLASS = 1000.0


def counts_of(sg: dict[str, np.ndarray]) -> Counts:
    """Counts of (before, 50 %, 80 %; classes) that have these recalls and precisions."""
    correct = PER_CLASS * sg["recall"]
    label = np.full(correct.shape, PER_CLASS)
    classes = tuple(str(i) for i in range(correct.shape[1]))
    return Counts(label, correct / sg["precision"], correct, np.zeros(len(correct)), classes)


def test_g13_kappa_follows_from_neither_accuracy_nor_recall(printed: dict[str, Any]) -> None:
    sg = printed["sg"]
    from_accuracy = (sg["accuracy"] - 0.1) / 0.9
    assert from_accuracy.round(4).tolist() == [0.8467, 0.8278, 0.8067]
    # Chance agreement is 1/10 with equally large classes, whatever is predicted.
    from_recall = kappa(counts_of(sg))
    assert from_recall == pytest.approx([0.8524, 0.8377, 0.8361], abs=2e-4)
    assert (abs(from_accuracy - sg["kappa"])[1:] > 0.01).all()
    assert abs(from_recall - sg["kappa"])[0] > 0.005


def test_g14_accuracy_is_not_the_mean_recall(printed: dict[str, Any]) -> None:
    sg = printed["sg"]
    made = accuracy(counts_of(sg))
    assert made.round(4).tolist() == [0.8672, 0.8539, 0.8525]
    assert (abs(made - sg["accuracy"]) > 0.005).all()


def test_g15_the_row_called_fpr_is_none(printed: dict[str, Any]) -> None:
    sg = printed["sg"]
    made = fpr(counts_of(sg)).mean(axis=-1)
    assert round(float(made[0]), 4) == 0.0153
    assert (1 - sg["accuracy"][0]) / 9 == pytest.approx(0.0153, abs=5e-5)
    assert round(float(sg["FPR"][0].mean()), 4) == 0.1415
    assert (sg["FPR"].mean(axis=1) > 8 * made).all()
