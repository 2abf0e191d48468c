"""`fw.metrics`: single metrics on arrays, as scikit-learn and fairlearn users call them."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight import metrics
from fairweight.errors import InputError

Y = [1, 1, 0, 0]
P = [1, 0, 0, 1]
SEX = ["f", "f", "m", "m"]


def test_reached_from_the_package() -> None:
    assert fw.metrics.recall(Y, P) == 0.5
    assert type(fw.metrics.recall(Y, P)) is float


def test_by_group_is_a_series_with_the_levels_names() -> None:
    series = metrics.accuracy(Y, [1, 0, 0, 0], sensitive_features=pd.Series(SEX, name="sex"))
    assert isinstance(series, pd.Series)
    assert series.to_dict() == {"f": 0.5, "m": 1.0}
    assert series.index.name == "sex"


def test_groups_are_keyed_by_name_when_one_is_absent() -> None:
    """A batch without group "f" must not credit the counts of "m" to it."""
    all_groups = metrics.accuracy(Y, P, sensitive_features=SEX)
    only_m = metrics.accuracy(Y[2:], P[2:], sensitive_features=SEX[2:])
    assert list(only_m.index) == ["m"]
    assert only_m["m"] == all_groups["m"]


def test_accuracy_is_never_tp_plus_tn_over_n_by_class() -> None:
    # class "a": 1 of 2 right. One-vs-rest accuracy would be 3/4 and hide it.
    counts = metrics.balanced_accuracy(["a", "a", "b", "c"], ["a", "b", "b", "c"])
    assert counts == pytest.approx((1 / 2 + 1 + 1) / 3)


def test_multiclass_is_the_unweighted_mean_over_classes() -> None:
    y, p = ["a", "a", "a", "b", "c"], ["a", "a", "b", "b", "b"]
    assert metrics.recall(y, p) == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert metrics.fpr(y, p) == pytest.approx((0 + 2 / 4 + 0) / 3)
    # "c" is never predicted: its precision is undefined, and so is the mean
    assert np.isnan(metrics.precision(y, p))


def test_a_class_without_examples_in_a_group_is_left_out_of_its_mean() -> None:
    y, p = ["a", "b", "c", "a", "b"], ["a", "b", "c", "a", "a"]
    recalls = metrics.recall(y, p, sensitive_features=["x", "x", "x", "y", "y"])
    assert recalls.to_dict() == {"x": 1.0, "y": 0.5}


def test_group_metrics_leave_out_the_missing_level() -> None:
    y, p, sex = [1, 0, 1, 0, 1], [1, 0, 1, 1, 0], ["f", "f", "m", "m", None]
    assert metrics.group_gap(y, p, sensitive_features=sex) == 0.5  # f 1, m .5; missing 0
    assert list(metrics.accuracy(y, p, sensitive_features=sex).index) == ["f", "m", "(missing)"]


def test_comparisons_take_two_predictions() -> None:
    base, after = [1, 0, 0, 1], [0, 0, 0, 1]
    assert metrics.normalized_error_change(Y, base, after) == pytest.approx(50)  # 2 to 3 errors
    assert metrics.worst_group_shift(Y, base, after, sensitive_features=SEX) == -0.5
    changes = metrics.normalized_error_change(Y, base, after, sensitive_features=SEX)
    assert changes.to_dict() == {"f": 100.0, "m": 0.0}


def test_zero_baseline_is_an_option_of_cev() -> None:
    y = ["a", "a", "b", "b", "c", "c"]
    base, after = ["a", "b", "b", "a", "c", "c"], ["a", "b", "b", "b", "c", "a"]
    assert np.isfinite(metrics.cev(y, base, after))
    with pytest.raises(InputError, match="class 'c'"):
        metrics.cev(y, base, after, zero_baseline="raise")


def test_scores_take_probabilities() -> None:
    y, s = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    assert metrics.auc(y, s) == 0.75
    assert metrics.uncertainty(y, [0.05, 0.5, 0.95, 0.2]) == 0.5
    assert metrics.ece_top_label(y, [0.9, 0.9, 0.6, 0.8], y_pred=[0, 1, 1, 1]) == pytest.approx(
        2 / 4 * abs(0.9 - 0.5) + 1 / 4 * 0.4 + 1 / 4 * 0.2
    )
    by_group = metrics.auc(y, s, sensitive_features=["x", "y", "x", "y"])
    assert by_group.to_dict() == {"x": 1.0, "y": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.recall([1, 0], [1]), "y_pred has 1 values but y_true has 2"),
        (lambda: metrics.recall([], []), "y_true is empty"),
        (lambda: metrics.recall([[1, 0]], [1, 0]), "y_true has 2 dimensions"),
        (lambda: metrics.recall([1, None], [1, 0]), "missing labels"),
        (lambda: metrics.recall(["a", "b"], ["a", "b"]), "needs a positive class; pass positive="),
        (lambda: metrics.recall([0, 1], [0, 1], positive=2), "Positive class '2' does not exist"),
        (lambda: metrics.selection_rate([0, 1, 2], [0, 1, 2]), "selection_rate needs binary"),
        (lambda: metrics.group_gap(Y, P, sensitive_features=None), "pass sensitive_features="),
        (lambda: metrics.auc([0, 1], [0.1, 1.2]), r"y_score has values outside \[0, 1\]"),
        (lambda: metrics.auc([0, 1], [0.1, float("nan")]), "y_score has values outside"),
        (lambda: metrics.auc([0, 1], ["a", "b"]), "y_score must be numbers"),
        (lambda: metrics.auc([0, 1], [0.1]), "y_score has 1 values"),
        (lambda: metrics.auc([0, 1, 2], [0.1, 0.2, 0.3]), "auc needs binary labels"),
        (lambda: metrics.flips(Y, P, P[:2]), "y_pred_compressed has 2 values"),
        (lambda: metrics.cev(Y, P[:2], P), "y_pred_baseline has 2 values"),
        (lambda: metrics.top5_accuracy([0, 1]), "label_rank must be 1"),
    ],
)
def test_bad_input_gets_a_sentence(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_misspelt_metric_is_an_attribute_error_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'recall'"):
        _ = metrics.recal
    with pytest.raises(AttributeError, match="in the results of"):
        _ = metrics.heterogeneity
    assert not hasattr(metrics, "__path__")


def test_names_and_dir() -> None:
    assert {"recall", "cev", "auc", "group_gap"} <= set(metrics.names())
    assert {"register", "names", *metrics.names()} == set(dir(metrics)) - {"unregister"}


@pytest.mark.parametrize("name", metrics.names())
def test_help_teaches(name: str) -> None:
    function = getattr(metrics, name)
    assert function.__name__ == name
    assert function is getattr(metrics, name)  # made once
    for heading in ("Formula:", "Range:", "Undefined:", "Source:", ">>> fw.metrics."):
        assert heading in function.__doc__
    assert "entry" not in inspect.signature(function).parameters
    examples = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(examples) == doctest.TestResults(failed=0, attempted=2)


def test_a_users_own_metric() -> None:
    @metrics.register(
        name="share_of_zebras",
        kind="value",
        by=("overall", "group"),
        better="none",
        low=0,
        high=1,
        summary="share of labels that are zebras",
        formula="N(label = zebra) / n",
        source="this test",
        undefined="no examples",
    )
    def share_of_zebras(counts):
        return counts.label[..., counts.classes.index("zebra")] / counts.n

    try:
        y = ["zebra", "horse", "horse", "horse"]
        assert metrics.share_of_zebras(y, y) == 0.25
        by_group = metrics.share_of_zebras(y, y, sensitive_features=SEX)
        assert by_group.to_dict() == {"f": 0.5, "m": 0.0}
        assert "share of labels that are zebras".capitalize() in metrics.share_of_zebras.__doc__
        with pytest.raises(InputError, match="registered already"):
            metrics.register(
                name="share_of_zebras", kind="value", by=(), better="none", low=0, high=1,
                summary="", formula="", source="", undefined="",
            )(len)  # fmt: skip
    finally:
        metrics.unregister("share_of_zebras")
    assert "share_of_zebras" not in metrics.names()


def test_counting_needs_numpy_only() -> None:
    """A float from `fw.metrics` costs no import of pandas, scipy or DuckDB."""
    code = (
        "import sys, fairweight.metrics as m; m.recall([1, 0], [1, 0]); "
        "print([name for name in ('pandas', 'scipy', 'duckdb', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
