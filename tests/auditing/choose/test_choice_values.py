"""Objectives, requirements and weights as they are written, and what they come to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.choose.objectives import (
    MET,
    MISSED,
    NEAR,
    NEARLY,
    costs,
    nearest_miss,
    numeric_columns,
    read_objective,
    read_requirement,
    read_weights,
    standings,
    weights_of,
    winning_ranges,
)
from fairweight.errors import InputError

COLUMNS = ["sparsity", "size_bytes", "items_per_s"]


@pytest.mark.parametrize(
    ("text", "aim", "metric", "place"),
    [
        ("accuracy", "max", "accuracy", ""),
        ("accuracy:min", "min", "accuracy", ""),
        ("unfairness", "min", "class_gap", ""),
        ("class_shortfall", "min", "class_shortfall", ""),
        ("cev_pp", "min", "cev_pp", ""),
        ("worst_group@sex", "max", "worst_group", "sex"),
        ("recall@class=3", "max", "recall", "class=3"),
        ("accuracy@sex=F:max", "max", "accuracy", "sex=F"),
        ("bias_amplification@sex=F", "zero", "bias_amplification", "sex=F"),
        ("disparate_impact", "one", "disparate_impact", ""),
        ("size_bytes", "min", None, ""),
        ("sparsity", "max", None, ""),
        ("items_per_s", "max", None, ""),
        ("sparsity:min", "min", None, ""),
    ],
)
def test_objectives(text: str, aim: str, metric: str | None, place: str) -> None:
    found = read_objective(text, COLUMNS)
    assert (found.aim, found.term.metric, found.term.place) == (aim, metric, place)
    assert found.term.noisy == (metric is not None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("acuracy", "Did you mean 'accuracy'"),
        ("size", "Did you mean 'size_bytes'"),
        ("accuracy:up", "end it with :min or :max"),
        ("selection_rate", "no better direction"),
        ("heterogeneity", "cannot be an objective"),
        ("", "--objective is empty"),
    ],
)
def test_objectives_that_cannot_be_used(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_objective(text, COLUMNS)


def test_which_way_is_better() -> None:
    values = np.array([-0.5, 0.25, 2.0])
    assert read_objective("size_bytes", COLUMNS).oriented(values).tolist() == [0.5, -0.25, -2.0]
    zero = read_objective("bias_amplification", COLUMNS)
    assert zero.oriented(values).tolist() == [-0.5, -0.25, -2.0]
    assert read_objective("disparate_impact", []).oriented(values).tolist() == [-1.5, -0.75, -1.0]


def test_requirements() -> None:
    at_least = read_requirement("worst_group_shift >= -0.02", [])
    assert (at_least.term.metric, at_least.sign, at_least.limit) == (
        "worst_group_shift",
        ">=",
        -0.02,
    )
    values = np.array([-0.02, -0.05, np.nan])
    assert at_least.met(values).tolist() == [True, False, False]
    assert at_least.shortfall(values)[:2] == pytest.approx([0.0, 0.03])
    below = read_requirement("size_bytes<2e5", COLUMNS)
    assert below.met(np.array([2e5, 1e5])).tolist() == [False, True]


@pytest.mark.parametrize(
    "text",
    ["accuracy", "accuracy>=", ">=0.9", "accuracy=0.9", "accuracy>=high", "accuracy>=nan", ""],
)
def test_requirements_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_requirement(text, [])


def test_noise_may_turn_a_requirement_round() -> None:
    """Replicates on the other side: none, 10 of 100, none, 10 of 100."""
    requirement = read_requirement("accuracy>=0.9", [])
    replicates = np.tile([0.95, 0.91, 0.8, 0.89], (100, 1))
    replicates[:10, 1], replicates[:10, 3] = 0.85, 0.92
    found = standings(requirement, np.array([0.95, 0.91, 0.8, 0.89]), replicates)
    assert found == [MET, NEAR, MISSED, NEARLY]


def test_the_nearest_miss_is_counted_in_spreads() -> None:
    """The second lacks .01 of .05 spread, the first 100 bytes of about 47 spread."""
    requirements = [
        read_requirement("accuracy>=0.9", []),
        read_requirement("size_bytes<=100", COLUMNS),
    ]
    values = np.array([[0.95, 200.0], [0.89, 100.0], [0.83, 100.0]])
    best, short = nearest_miss(requirements, values)
    assert best == 1
    assert short == pytest.approx([0.01, 0.0])


def test_weights() -> None:
    objectives = [read_objective("sparsity", COLUMNS), read_objective("unfairness", COLUMNS)]
    found = weights_of(objectives, read_weights(["unfairness=100"]))
    assert found is not None
    assert found.tolist() == [1.0, 100.0]
    assert weights_of(objectives, {}) is None
    alone = weights_of(objectives[:1], {})
    assert alone is not None
    assert alone.tolist() == [1.0]


@pytest.mark.parametrize("text", ["accuracy", "accuracy=", "=3", "accuracy=-1", "accuracy=inf"])
def test_weights_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="--worth"):
        read_weights([text])


def test_weights_for_nothing() -> None:
    objectives = [read_objective("accuracy", [])]
    with pytest.raises(InputError, match="is for no objective"):
        weights_of(objectives, {"kappa": 1.0})
    with pytest.raises(InputError, match="is 0 for every objective"):
        weights_of(objectives, {"accuracy": 0.0})
    with pytest.raises(InputError, match="twice"):
        read_weights(["accuracy=1", "accuracy=2"])


def test_ranges_of_weights_agree_with_trying_weights() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.integers(0, 8, (int(rng.integers(1, 12)), 2)).astype(float)
        ranges = winning_ranges(points)
        assert ranges[0].low == 0
        assert ranges[-1].high == np.inf
        assert all(a.high == b.low for a, b in pairwise(ranges))
        for ratio in rng.uniform(0, 6, 20):
            value = points @ [1.0, ratio]
            winner = next(r.variant for r in ranges if r.low <= ratio <= r.high)
            assert value[winner] == pytest.approx(value.max())


def test_costs_are_means_over_members() -> None:
    table = pd.DataFrame(
        {"variant": ["a", "a", "b"], "seed": [0, 1, 0], "size_bytes": [10, 30, 5], "method": "x"}
    )
    assert numeric_columns(table) == ["size_bytes"]
    assert costs(table, "size_bytes", ["b", "a"]).tolist() == [5.0, 20.0]
    with pytest.raises(InputError, match="no row for 'c'"):
        costs(table, "size_bytes", ["a", "c"])
    with pytest.raises(InputError, match="no size_bytes for 'b'"):
        costs(table.assign(size_bytes=[1.0, 2.0, np.nan]), "size_bytes", ["a", "b"])
