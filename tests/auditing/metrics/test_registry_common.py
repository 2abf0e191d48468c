"""Properties that every metric of the registry must have, and tests of these tests.

The metrics are called as a user calls them, on rows of a table, so that counting and formula are
tested together. Each check is a plain function, so that it can be shown to fail on a wrong metric.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight import metrics as public
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import metric, metrics, register, unregister
from fairweight.auditing.metrics.amplification import Sides
from fairweight.auditing.metrics.outcomes import OUTCOMES
from fairweight.auditing.metrics.registry import Metric
from fairweight.auditing.metrics.scores import ScoreColumn

# The names of the results contract, without `label_interrelation`, which belongs to a later part.
_CONTRACT = """
accuracy error_rate recall precision f1 fpr fnr selection_rate balanced_accuracy kappa
top5_accuracy
auc ece ece_top_label calibration_error_sq calibration_gap brier uncertainty tcb bias
bias_amplification worst_case_bias_amplification class_gap class_shortfall group_gap worst_group
group_std disparate_impact ppv_ratio
demographic_parity_difference equal_opportunity_difference equalized_odds_difference
predictive_parity_difference
flips harmful_flips helpful_flips worst_group_shift excess_shift_standardised heterogeneity
heterogeneity_within_classes concentration abstention_rate cev sde cev_pp sde_pp
normalized_error_change normalized_fpr_change normalized_fnr_change class_impact
correct failed outcome cost
total_variation kl_divergence first_choice_agreement
"""
CONTRACT = _CONTRACT.split()
GAPS = [
    f"{name}_group_gap"
    for name in (
        "recall",
        "precision",
        "fpr",
        "fnr",
        "error_rate",
        "selection_rate",
        "balanced_accuracy",
        "kappa",
    )
]
# Outcomes take neither labels nor predictions; tests/auditing/metrics/test_outcomes.py has them.
NAMES = [name for name in public.names() if metric(name).kind != "outcome"]
BINARY_ONLY = [m.name for m in metrics() if {"positive", "binary"} & m.needs]


def test_the_registry_is_the_contract() -> None:
    assert sorted(m.name for m in metrics()) == sorted(CONTRACT + GAPS)


def test_every_metric_can_be_called_on_arrays_or_belongs_to_an_audit() -> None:
    assert {m.name for m in metrics()} - set(NAMES) == {
        "heterogeneity",
        "heterogeneity_within_classes",
        "class_impact",
        "total_variation",  # of class probabilities, without labels
        "kl_divergence",
        "first_choice_agreement",
        *OUTCOMES,
    }


@pytest.mark.parametrize("entry", metrics(), ids=lambda m: m.name)
def test_every_metric_is_documented(entry: Metric) -> None:
    for text in (entry.summary, entry.formula, entry.source, entry.undefined):
        assert text.strip()
    assert entry.low < entry.high
    assert entry.by
    assert entry.function.__doc__
    if entry.kind != "outcome":  # of which shares are events, and numbers are not
        assert (entry.event is not None) == (entry.kind == "rate")
    if entry.name not in GAPS:  # made by one function, whose example is `level_range`
        assert ">>>" in entry.function.__doc__


# -- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A small prediction table; every class occurs as a label and every level has rows."""

    label: list[str]
    before: list[str | None]
    after: list[str | None]
    level: list[str]
    score: list[float]
    positive: str | None

    def taken(self, order: list[int]) -> Rows:
        columns = ("label", "before", "after", "level", "score")
        return replace(self, **{c: [getattr(self, c)[i] for i in order] for c in columns})

    def renamed(self, names: dict[str, str]) -> Rows:
        def new(values: list[Any]) -> list[Any]:
            return [None if v is None else names[v] for v in values]

        return replace(
            self,
            label=new(self.label),
            before=new(self.before),
            after=new(self.after),
            positive=None if self.positive is None else names[self.positive],
        )


@st.composite
def rows(draw: st.DrawFn, classes: str) -> Rows:
    # Tenths, so that ties in the scores are common.
    row = st.tuples(
        st.sampled_from(classes),
        st.sampled_from([*classes, None]),
        st.sampled_from([*classes, None]),
        st.sampled_from("uv"),
        st.integers(0, 10).map(lambda tenth: tenth / 10),
    )
    listed = draw(st.lists(row, min_size=1, max_size=25))
    listed += [(c, c, c, level, 0.5) for c in classes for level in "uv"]
    label, before, after, level, score = (list(column) for column in zip(*listed, strict=True))
    return Rows(label, before, after, level, score, classes[0] if len(classes) == 2 else None)


BINARY, MULTICLASS = rows(classes="ab"), rows(classes="abc")


def table_of(name: str) -> st.SearchStrategy[Rows]:
    return BINARY if name in BINARY_ONLY else st.one_of(BINARY, MULTICLASS)


def call(name: str, table: Rows) -> float | pd.Series[float]:
    """The public function on a table, with the arguments that its signature asks for."""
    function = getattr(public, name)
    wanted = inspect.signature(function).parameters
    values: dict[str, Any] = {
        "y_true": table.label,
        "y_pred": table.after,
        "y_pred_baseline": table.before,
        "y_pred_compressed": table.after,
        "y_score": table.score,
        "label_rank": [int(10 * s) + 1 for s in table.score],
        "sensitive_features": table.level,
        "filters": False,
        "positive": table.positive,
    }
    return function(**{key: value for key, value in values.items() if key in wanted})


def assert_same(first: float | pd.Series[float], second: float | pd.Series[float]) -> None:
    assert type(first) is type(second)
    if isinstance(first, pd.Series) and isinstance(second, pd.Series):
        assert list(first.index) == list(second.index)
    np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-12, equal_nan=True)


# -- checks on rows ----------------------------------------------------------------------------


def check_row_order(name: str, table: Rows) -> None:
    order = list(range(len(table.label)))[::-1]
    assert_same(call(name, table), call(name, table.taken(order)))


def check_class_names(name: str, table: Rows) -> None:
    # The new names sort in another order, so positions change while meanings do not.
    assert_same(call(name, table), call(name, table.renamed({"a": "z", "b": "y", "c": "x"})))


def check_level_names(name: str, table: Rows) -> None:
    before = call(name, table)
    renamed = call(name, replace(table, level=[{"u": "z", "v": "b"}[v] for v in table.level]))
    if isinstance(before, pd.Series):
        before = before.rename({"u": "z", "v": "b"}).sort_index()
    assert_same(before, renamed)


def check_scale(name: str, table: Rows) -> None:
    assert_same(call(name, table), call(name, table.taken(list(range(len(table.label))) * 3)))


def check_range(name: str, table: Rows) -> None:
    entry, values = metric(name), np.atleast_1d(call(name, table))
    known = values[~np.isnan(values)]
    assert (known >= entry.low - 1e-12).all()
    assert (known <= entry.high + 1e-12).all()


CHECKS: list[Callable[[str, Rows], None]] = [
    check_row_order,
    check_class_names,
    check_level_names,
    check_scale,
    check_range,
]


# It leaves out one example of each bin, so it knows how many there are: test_calibration.py.
KNOWS_ITS_SIZE = {"calibration_error_sq"}


@pytest.mark.parametrize("name", NAMES)
def test_on_random_tables(name: str) -> None:
    """Every check on the same fifteen tables: to draw them takes longer than to check them."""

    @settings(max_examples=15)
    @given(table_of(name))
    def run(table: Rows) -> None:
        for check in CHECKS:
            if not (name in KNOWS_ITS_SIZE and check is check_scale):
                check(name, table)

    run()


# -- checks on counts --------------------------------------------------------------------------

ON_COUNTS = [
    m for m in metrics() if m.kind in ("rate", "value", "grouping", "identity", "comparison")
]
ON_COUNTS = [m for m in ON_COUNTS if m.name not in ("uncertainty", "top5_accuracy")]
SIDES = Sides(np.array([True, False]), np.array([True, True]), ("", ""), True)


def random_counts(shape: tuple[int, ...], n_classes: int, seed: int) -> Counts:
    """Counts with free leading axes that some table could have."""
    rng = np.random.default_rng(seed)
    confusion = rng.integers(1, 9, (*shape, n_classes, n_classes)).astype(float)
    abstained = rng.integers(0, 3, (*shape, n_classes)).astype(float)
    return Counts(
        label=confusion.sum(axis=-1) + abstained,
        predicted=confusion.sum(axis=-2),
        correct=np.diagonal(confusion, axis1=-2, axis2=-1).copy(),
        abstained=abstained.sum(axis=-1),
        classes=tuple("abcdef"[:n_classes]),
        positive=1 if n_classes == 2 else None,
    )


def of_counts(entry: Metric, base: Counts, after: Counts) -> np.ndarray[Any, Any]:
    if entry.kind == "comparison":
        return np.asarray(entry.function(base, after))
    if entry.kind == "identity":
        return np.asarray(entry.function(after, SIDES))
    if entry.name == "tcb":
        return np.asarray(entry.function(after, 1))
    return np.asarray(entry.function(after))


def at(counts: Counts, index: int) -> Counts:
    return replace(
        counts,
        label=counts.label[index],
        predicted=counts.predicted[index],
        correct=counts.correct[index],
        abstained=counts.abstained[index],
    )


def check_leading_axes(entry: Metric, n_classes: int) -> None:
    base, after = random_counts((3, 2), n_classes, 1), random_counts((3, 2), n_classes, 2)
    base = replace(base, label=after.label)  # the same examples
    together = of_counts(entry, base, after)
    apart = np.stack([of_counts(entry, at(base, r), at(after, r)) for r in range(3)])
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("entry", ON_COUNTS, ids=lambda m: m.name)
def test_leading_axes_equal_loops(entry: Metric, n_classes: int) -> None:
    check_leading_axes(entry, n_classes)


def check_empty(entry: Metric, n_classes: int) -> None:
    """Without any example there is no value: NaN, not 0."""
    empty = random_counts((2,), n_classes, 0)
    zero = np.zeros_like(empty.label)
    empty = Counts(zero, zero, zero, zero[:, 0], empty.classes, empty.positive)
    assert np.isnan(of_counts(entry, empty, empty)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("entry", ON_COUNTS, ids=lambda m: m.name)
def test_empty_slice_is_nan(entry: Metric, n_classes: int) -> None:
    check_empty(entry, n_classes)


@pytest.mark.parametrize("entry", [m for m in metrics() if m.kind == "score"], ids=lambda m: m.name)
def test_empty_slice_of_scores_is_nan(entry: Metric) -> None:
    column = ScoreColumn(np.array([0.2, 0.7]), np.array([0.0, 1.0]), np.array([0, 0]), 2)
    values = entry.function(column, np.ones((3, 2)))
    assert values.shape == (3, 2)
    assert not np.isnan(values[:, 0]).any()
    assert np.isnan(values[:, 1]).all()


@pytest.mark.parametrize(
    "entry", [m for m in metrics() if m.kind == "grouping"], ids=lambda m: m.name
)
def test_one_level_or_an_empty_level_has_no_gap(entry: Metric) -> None:
    counts = random_counts((3,), 2, 5)
    assert not np.isnan(entry.function(counts))
    assert np.isnan(entry.function(counts.levels(np.array([True, False, False]))))
    alive = np.array([[1.0], [1.0], [0.0]])
    with_empty = replace(
        counts,
        label=counts.label * alive,
        predicted=counts.predicted * alive,
        correct=counts.correct * alive,
        abstained=counts.abstained * alive[:, 0],
    )
    assert np.isnan(entry.function(with_empty))


# -- the checks find what they are made for ----------------------------------------------------


@pytest.fixture
def wrong() -> Iterator[Callable[[Callable[..., Any]], str]]:
    """Registers a wrong metric for one test."""
    added: list[str] = []

    def add(function: Callable[..., Any], kind: str = "value") -> str:
        name = f"wrong_{len(added)}"
        register(
            name=name,
            kind=kind,
            by=("overall",),
            better="higher",
            low=0,
            high=1,
            summary="a wrong metric",
            formula="wrong",
            source="this test",
            undefined="never",
        )(function)
        added.append(name)
        return name

    yield add
    for name in added:
        unregister(name)


TABLE = Rows(
    label=["a", "a", "b", "b", "b"],
    before=["a", "b", "b", "b", "a"],
    after=["a", "a", "b", "a", "a"],
    level=["u", "v", "u", "v", "v"],
    score=[0.1, 0.2, 0.3, 0.4, 0.5],
    positive="a",
)


def test_a_metric_of_the_first_class_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: counts.correct[..., 0] / counts.label[..., 0])
    with pytest.raises(AssertionError):
        check_class_names(name, TABLE)


def test_a_metric_of_the_first_level_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: counts.correct.sum(-1)[..., 0] / counts.n[..., 0], "grouping")
    with pytest.raises(AssertionError):
        check_level_names(name, TABLE)


def test_a_metric_that_depends_on_size_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: (counts.correct.sum(-1) + 1) / (counts.n + 2))
    with pytest.raises(AssertionError):
        check_scale(name, TABLE)


def test_a_value_outside_the_stated_range_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: counts.n)
    with pytest.raises(AssertionError):
        check_range(name, TABLE)


def test_a_metric_that_depends_on_row_order_is_found(
    wrong: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = wrong(lambda counts: counts.n)
    monkeypatch.setattr(public, "first_row", lambda y_true: float(y_true[0] == "a"), raising=False)
    with pytest.raises(AssertionError):
        check_row_order("first_row", TABLE)
    check_row_order(first, TABLE)


def test_zero_for_nothing_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: counts.correct.sum(-1) / np.maximum(counts.n, 1))
    with pytest.raises(AssertionError):
        check_empty(metric(name), 2)


def test_a_metric_that_mixes_replicates_is_found(wrong: Callable[..., str]) -> None:
    name = wrong(lambda counts: counts.correct.sum(-1) / counts.n.max())
    with pytest.raises(AssertionError):
        check_leading_axes(metric(name), 2)
