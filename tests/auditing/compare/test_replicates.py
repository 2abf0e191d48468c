"""A bootstrap over cells is the bootstrap over rows, and the swap of cells the swap of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import fairweight as fw
from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.estimands import estimands
from fairweight.auditing.compare.replicates import Replicated, replicate
from fairweight.auditing.counts.cube import compact

from ..counts.test_cube_identity import cube_of
from ..strategies import Predictions, random_table

DRAWS = 4_000
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # label, dense, small, sex


def compared(table: Predictions, *, n_boot: int = DRAWS, positive: int | None = None,
             **options: Any) -> Comparison:  # fmt: skip
    frame = table.frame()
    if "cluster" in options:
        frame["person"] = options.pop("cluster")
        options["cluster"] = "person"
    return comparison(
        cube_of(frame, groups=["sex"], **options),
        baseline="dense",
        variant="small",
        task=None,
        grouping_names=("sex",),
        positive=positive,
        options=Options(n_boot=n_boot),
    )


def replicated(c: Comparison, metric: str, by: str) -> Replicated:
    wanted = [q for q in estimands(c, None) if q.metric.name == metric and q.slots.by == by]
    assert len(wanted) == 1
    return replicate(c, wanted)[0]


def precision_shift(label: Any, dense: Any, small: Any, sex: Any) -> float:
    """Macro precision, small − dense."""

    def value(prediction: Any) -> float:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.mean([np.mean(label[prediction == k] == k) for k in "012"]))

    return value(small) - value(dense)


def gap_shift(label: Any, dense: Any, small: Any, sex: Any) -> float:
    def value(prediction: Any) -> float:
        right = prediction == label
        return abs(right[sex == "F"].mean() - right[sex == "M"].mean())

    return value(small) - value(dense)


def cev_points(label: Any, dense: Any, small: Any, sex: Any) -> float:
    changes = []
    for k in "012":
        fpr = [np.mean((p == k)[label != k]) for p in (dense, small)]
        fnr = [np.mean((p != k)[label == k]) for p in (dense, small)]
        changes.append((100 * (fpr[1] - fpr[0]), 100 * (fnr[1] - fnr[0])))
    return float(np.var(changes, axis=0).mean())


CASES: list[tuple[str, str, Callable[..., float]]] = [
    ("precision", "overall", precision_shift),
    ("group_gap", "grouping", gap_shift),
    ("cev_pp", "overall", cev_points),
]


def arrays(table: Predictions) -> Arrays:
    return tuple(np.array(c) for c in (table.label, table.dense, table.small, table.groups["sex"]))  # type: ignore[return-value]


def assert_same_distribution(first: NDArray[Any], second: NDArray[Any]) -> None:
    """Quantiles agree within five standard errors of a simulated quantile of each side."""
    for q in QUANTILES:
        a, b = np.quantile(first, q), np.quantile(second, q)
        # error of a quantile: its rank is off by sqrt(q (1 - q) / draws)
        reach = 5 * np.sqrt(q * (1 - q) * (1 / len(first) + 1 / len(second)))
        low, high = np.quantile(second, [max(0, q - reach), min(1, q + reach)])
        assert low - 1e-12 <= a <= high + 1e-12, (q, a, b)


@pytest.mark.parametrize(("metric", "by", "plain"), CASES, ids=[c[0] for c in CASES])
def test_bootstrap_over_cells_is_bootstrap_over_rows(
    metric: str, by: str, plain: Callable[..., float]
) -> None:
    table = random_table(11, 150)
    found = replicated(compared(table), metric, by).bootstrap
    ours = found.compressed[:, 0] - (0 if found.baseline is None else found.baseline[:, 0])
    data, rng = arrays(table), np.random.default_rng(0)
    theirs = np.empty(1_500)
    for r in range(len(theirs)):
        rows = rng.integers(0, 150, 150)
        theirs[r] = plain(*(column[rows] for column in data))
    assert_same_distribution(ours, theirs)


@pytest.mark.parametrize(("metric", "by", "plain"), CASES, ids=[c[0] for c in CASES])
def test_swap_of_cells_is_swap_of_rows(metric: str, by: str, plain: Callable[..., float]) -> None:
    table = random_table(12, 150)
    found = replicated(compared(table), metric, by).swapped
    assert found is not None
    ours = found.compressed[:, 0] - (0 if found.baseline is None else found.baseline[:, 0])
    label, dense, small, sex = arrays(table)
    rng = np.random.default_rng(1)
    theirs = np.empty(1_500)
    for r in range(len(theirs)):
        turn = rng.random(150) < 0.5
        theirs[r] = plain(label, np.where(turn, small, dense), np.where(turn, dense, small), sex)
    assert_same_distribution(ours, theirs)


def test_clusters_are_drawn_whole() -> None:
    table = random_table(13, 150)
    person = np.random.default_rng(2).integers(0, 25, 150)
    c = compared(table, cluster=person)
    found = replicated(c, "group_gap", "grouping").bootstrap
    assert found.baseline is not None
    ours = found.compressed[:, 0] - found.baseline[:, 0]
    data, rng = arrays(table), np.random.default_rng(3)
    members = [np.flatnonzero(person == k) for k in np.unique(person)]
    theirs = np.empty(1_500)
    for r in range(len(theirs)):
        drawn = rng.integers(0, len(members), len(members))
        rows = np.concatenate([members[k] for k in drawn])
        theirs[r] = gap_shift(*(column[rows] for column in data))
    assert_same_distribution(ours, theirs)


def test_clusters_are_swapped_whole() -> None:
    table = random_table(14, 150)
    person = np.random.default_rng(2).integers(0, 25, 150)
    found = replicated(compared(table, cluster=person), "group_gap", "grouping").swapped
    assert found is not None
    ours = found.change[:, 0]
    label, dense, small, sex = arrays(table)
    rng = np.random.default_rng(4)
    theirs = np.empty(1_500)
    for r in range(len(theirs)):
        turn = (rng.random(25) < 0.5)[person]
        theirs[r] = gap_shift(
            label, np.where(turn, small, dense), np.where(turn, dense, small), sex
        )
    assert_same_distribution(ours, theirs)


def test_the_order_of_cells_does_not_reach_the_draws() -> None:
    """Cells stand in one canonical order, so replicates are equal number by number."""
    table = random_table(15, 100)
    order = np.random.default_rng(5).permutation(100)
    first, second = (
        replicated(compared(t, n_boot=60), "precision", "overall").bootstrap
        for t in (table, table.taken(list(order)))
    )
    np.testing.assert_array_equal(first.compressed, second.compressed)
    again = compared(table, n_boot=60)
    assert compact(again.cube).n_cells == again.cube.n_cells


def test_more_draws_begin_with_the_same_draws() -> None:
    """Batches have generators of their own: neither memory nor threads change a draw."""
    table = random_table(16, 100)
    few, many = (
        replicated(compared(table, n_boot=n), "precision", "overall").bootstrap.compressed
        for n in (50, 100)
    )
    np.testing.assert_array_equal(few, many[:50])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("metric", "by", "plain"), CASES, ids=[c[0] for c in CASES])
def test_bootstrap_over_cells_at_many_tables(
    metric: str, by: str, plain: Callable[..., float], seed: int
) -> None:
    table = random_table(100 + seed, 60 + 40 * seed, errors=(0.3, 0.4))
    found = replicated(compared(table), metric, by).bootstrap
    ours = found.compressed[:, 0] - (0 if found.baseline is None else found.baseline[:, 0])
    data, rng = arrays(table), np.random.default_rng(seed)
    n = len(table)
    theirs = np.array(
        [plain(*(column[rows] for column in data)) for rows in rng.integers(0, n, (6_000, n))]
    )
    assert_same_distribution(ours, theirs)


@pytest.fixture(scope="module")
def many() -> dict[str, pd.DataFrame]:
    """One table of 2 × 2,600 groups and classes, drawn in part, drawn whole, and with a policy."""
    rng = np.random.default_rng(3)
    label = np.repeat(np.arange(1_300), 4)
    dense = np.where(rng.random(len(label)) < 0.2, rng.integers(0, 1_300, len(label)), label)
    small = np.where(rng.random(len(label)) < 0.1, rng.integers(0, 1_300, len(label)), dense)
    table = {
        "example_id": np.arange(len(label)), "label": label, "pred_dense": dense,
        "pred_small": small, "sex": np.where(rng.random(len(label)) < 0.4, "f", "m"),
        "age": np.where(rng.random(len(label)) < 0.3, "old", "young"),
    }  # fmt: skip
    asked: dict[str, dict[str, Any]] = {
        "some": {},
        "all": {"drawn_limits": "all"},
        "named": {"confirmatory": [("kappa", "group")]},
    }
    return {
        name: fw.audit_table(table, groups=["sex", "age"], n_boot=60, **options).results
        for name, options in asked.items()
    }


def of(frame: pd.DataFrame, metric: str, by: str) -> pd.DataFrame:
    return frame[(frame["metric"] == metric) & (frame["by"] == by)]


def test_many_groups_and_classes_are_drawn_in_part(many: dict[str, pd.DataFrame]) -> None:
    some, every = many["some"], many["all"]
    columns = [
        "metric",
        "by",
        "group",
        "class",
        "baseline",
        "compressed",
        "shift",
        "excess_shift",
        "n",
    ]
    pd.testing.assert_frame_equal(some[columns], every[columns], rtol=1e-12)
    left = some["interval"].fillna("").str.startswith("none: many groups and classes")
    names = set(zip(some.loc[left, "metric"], some.loc[left, "by"], strict=True))
    assert ("kappa", "group") in names
    assert ("recall_group_gap", "grouping") in names
    assert {by for _, by in names} == {"group", "grouping"}
    assert some.loc[left, ["ci_low", "ci_high", "sim_low"]].isna().all(axis=None)
    assert every.loc[left, "ci_low"].notna().any()
    # What is in closed form is the same number; what is drawn from classes or the gaps of accuracy
    # has limits of the same bootstrap.
    closed = ~left & ~some["interval"].fillna("").str.contains("bootstrap")
    pd.testing.assert_frame_equal(some[closed], every[closed])
    for metric, by in (("kappa", "overall"), ("group_gap", "grouping"), ("precision", "overall")):
        one, other = of(some, metric, by), of(every, metric, by)
        pd.testing.assert_frame_equal(one, other, rtol=1e-9)


def test_what_a_policy_names_is_drawn(many: dict[str, pd.DataFrame]) -> None:
    named, every = of(many["named"], "kappa", "group"), of(many["all"], "kappa", "group")
    assert named["ci_low"].notna().all()
    pd.testing.assert_frame_equal(
        named[["ci_low", "ci_high", "p_value"]], every[["ci_low", "ci_high", "p_value"]]
    )
    assert of(many["named"], "balanced_accuracy", "group")["ci_low"].isna().all()
