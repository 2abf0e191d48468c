"""The most that changed predictions can cost: by hand, and never less than what changes do cost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics.arrays import count_arrays
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import (
    auc_loss,
    brier_loss,
    f1_loss,
    kappa_loss,
    mean_fpr_loss,
    mean_recall_loss,
    metric,
    precision_loss,
    summary_f1_loss,
    summary_precision_loss,
)


def counts(label: list[float], predicted: list[float], correct: list[float], **more: Any) -> Counts:
    names = tuple("abcdef"[: len(label)])
    true, said, right = (np.array([part], dtype=float) for part in (label, predicted, correct))
    return Counts(true, said, right, np.zeros(1), names, **more)


def test_precision_by_hand() -> None:
    """80 of 100 right: 5 more false ones give 80 / 105; 5 right ones gone, 75 / 95 (better)."""
    held = counts([90, 110], [100, 100], [80, 90], positive=0)
    expected = 0.8 - 80 / 105
    assert precision_loss(held, np.array([5.0, 0.0]))[0, 0] == pytest.approx(expected)
    assert summary_precision_loss(held, np.array([5.0]))[0] == pytest.approx(expected)
    # 20 of 100 right: now the right ones that go are worse, (20 − 5) / (100 − 5).
    bad = counts([90, 110], [100, 100], [20, 30], positive=0)
    assert precision_loss(bad, np.array([5.0, 0.0]))[0, 0] == pytest.approx(0.2 - 15 / 95)
    # More changes than right predictions: nothing is left.
    assert precision_loss(bad, np.array([30.0, 0.0]))[0, 0] == pytest.approx(0.2)


def test_f1_by_hand() -> None:
    """80 right of 100 predicted and 90 there: 5 right ones gone leave 150 / 185 of 160 / 190."""
    held = counts([90, 110], [100, 100], [80, 90], positive=0)
    expected = 160 / 190 - 150 / 185
    assert f1_loss(held, np.array([5.0, 0.0]))[0, 0] == pytest.approx(expected)
    assert summary_f1_loss(held, np.array([5.0]))[0] == pytest.approx(expected)
    # Three classes, P + N = 50, 80 and 45, and 7 changes. Of the smallest sum go its 5, 2 × 5 / 45,
    # then 2 of the next, 2 × 2 / 50; all enter where 2 TP / (P + N)² is largest, 2 × 30 / 80².
    many = counts([30, 30, 40], [20, 50, 5], [10, 30, 5])
    leaving, entering = 10 / 45 + 4 / 50, 7 * 60 / 80**2
    assert summary_f1_loss(many, np.array([7.0]))[0] == pytest.approx((leaving + entering) / 3)


def test_mean_precision_by_hand() -> None:
    """Three classes; two changes leave one class and enter another.

    Leaving a, 10 of 20 right: 1/2 − 8/18. Entering c, 5 of 5 right: 2 × 5 / 25. Over three classes.
    """
    held = counts([30, 30, 40], [20, 50, 5], [10, 30, 5])
    expected = ((1 / 2 - 8 / 18) + 2 * 5 / 25) / 3
    assert summary_precision_loss(held, np.array([2.0]))[0] == pytest.approx(expected)


def test_mean_recall_takes_the_smallest_classes_first() -> None:
    """Classes of 80, 20 and 5 of which 72, 16 and 2 are right: 3 changes are 2 of 5 and 1 of 20."""
    held = counts([80, 20, 5], [80, 20, 5], [72, 16, 2])
    assert mean_recall_loss(held, np.array([3.0]))[0] == pytest.approx((2 / 5 + 1 / 20) / 3)


def test_mean_fpr_goes_to_the_largest_class() -> None:
    """100 examples, 80 of them of one class: 4 of the 20 others are predicted as it."""
    held = counts([80, 20], [80, 20], [75, 15])
    assert mean_fpr_loss(held, np.array([4.0]))[0] == pytest.approx(4 / 20 / 2)


def test_kappa_by_hand() -> None:
    """n = 100 in classes of 70 and 30, 60 + 20 right, 70 and 30 predicted, 2 changes.

    p_o = .8, p_e = (70² + 30²) / 100² = .58. After: p_o = .78, p_e = .58 + 2 × 40 / 100² = .588.
    """
    held = counts([70, 30], [70, 30], [60, 20])
    before, after = 1 - 0.2 / 0.42, 1 - 0.22 / 0.412
    assert kappa_loss(held, np.array([2.0]))[0] == pytest.approx(before - after)


def test_scores_by_hand() -> None:
    """20 positives among 100, 3 scores change: 3 / 20 of all pairs, 3 / 100 of the squares."""
    held = counts([80, 20], [80, 20], [80, 20], positive=1)
    assert auc_loss(held, np.array([3.0]))[0] == pytest.approx(3 / 20)
    assert auc_loss(held, np.array([30.0]))[0] == 1.0
    assert brier_loss(held, np.array([3.0]))[0] == pytest.approx(3 / 100)
    many = counts([80, 15, 5], [80, 15, 5], [80, 15, 5])
    # one against the rest: the smaller sides are 20, 15 and 5
    assert auc_loss(many, np.array([3.0]))[0] == pytest.approx((3 / 20 + 3 / 15 + 3 / 5) / 3)
    assert brier_loss(many, np.array([3.0]))[0] == pytest.approx(2 * 3 / 100)


def value(name: str, y: Any, prediction: Any, positive: object) -> float:
    entry = metric(name)
    held = count_arrays(y, prediction, positive=positive)
    return float(summary_of(entry, entry.function(held), held))


LOSSES: dict[str, tuple[Callable[[Counts, Any], Any], int]] = {
    "precision": (summary_precision_loss, 1),
    "f1": (summary_f1_loss, 1),
    "balanced_accuracy": (mean_recall_loss, 1),
    "recall": (mean_recall_loss, 1),
    "fnr": (mean_recall_loss, -1),
    "fpr": (mean_fpr_loss, -1),
    "kappa": (kappa_loss, 1),
}


# Of two classes recall, FNR and FPR are rates of the positive one, with limits of their own.
@pytest.mark.parametrize(
    ("name", "n_classes"),
    [(name, 3) for name in LOSSES]
    + [(name, 2) for name in ("precision", "f1", "balanced_accuracy", "kappa")],
)
def test_no_set_of_changes_costs_more(name: str, n_classes: int) -> None:
    """Every pair of changed predictions of eleven examples, in 8 small tables."""
    loss, sign = LOSSES[name]
    rng = np.random.default_rng(3)
    n, looked = 11, 0
    while looked < 8:
        y, base = rng.integers(0, n_classes, n), rng.integers(0, n_classes, n)
        base = np.where(rng.random(n) < 0.6, y, base)
        if len(set(y)) < n_classes or len(set(base)) < n_classes:
            continue
        looked += 1
        positive = 1 if n_classes == 2 else None
        held = count_arrays(y, base, positive=positive)
        before = value(name, y, base, positive)
        wide = Counts(
            held.label[None], held.predicted[None], held.correct[None], np.zeros(1),
            held.classes, held.positive,
        )  # fmt: skip
        most = float(loss(wide, np.array([2.0]))[0])
        for places in combinations(range(n), 2):
            for moved in product(range(n_classes), repeat=2):
                after = base.copy()
                after[list(places)] = moved
                now = value(name, y, after, positive)
                if not np.isnan(now):
                    assert sign * (before - now) <= most + 1e-12, (y, base, after)


def test_no_changed_scores_cost_more_auc() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(4)
    for _ in range(200):
        n = int(rng.integers(8, 20))
        y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
        score = rng.random(n)
        changed = score.copy()
        places = rng.choice(n, 2, replace=False)
        changed[places] = np.where(y[places] == 1, -1.0, 2.0)  # to the wrong end
        held = count_arrays(y, y, positive=1)
        wide = Counts(
            held.label[None], held.predicted[None], held.correct[None], np.zeros(1),
            held.classes, held.positive,
        )  # fmt: skip
        lost = roc_auc_score(y, score) - roc_auc_score(y, changed)
        assert lost <= float(auc_loss(wide, np.array([2.0]))[0]) + 1e-12
