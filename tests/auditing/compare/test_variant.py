"""Both scopes of every row: which rows there are, what they say, and why `method` may be empty."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import fairweight as fw
from fairweight.auditing.metrics.registry import metric
from fairweight.auditing.result import RESULT_COLUMNS
from fairweight.errors import InputError

from ..strategies import row
from .made_populations import (
    Population,
    audit,
    audit_with_seeds,
    independent_population,
    paired_population,
    population,
)
from .scope_rows import ESTIMATES, KEYS, LIMITS, keys, same

Matrix = NDArray[Any]


@pytest.mark.parametrize("which", [paired_population, independent_population])
def test_every_row_exists_in_both_scopes(which: Any) -> None:
    _, audited = which()
    results = audited.results
    assert tuple(results.columns) == RESULT_COLUMNS
    assert set(results["scope"]) == {"model", "method"}
    assert keys(results, "model") == keys(results, "method")
    assert len(keys(results, "model")) == len(set(keys(results, "model")))
    assert set(results[results["metric"] == "class_impact"]["scope"]) == {"method"}


def test_one_pair_has_no_method() -> None:
    made, _ = independent_population()
    assert set(audit(made.of([0], [0])).results["scope"]) == {"model"}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (([0], [0, 1, 2, 3]), "one baseline model"),
        (([0, 1], [0, 1, 2]), "fewer than 3 members per side"),
        (([0, 1, 2], [0, 1]), "fewer than 3 members per side"),
    ],
)
def test_too_few_members_leave_the_estimates(
    members: tuple[list[int], list[int]], reason: str
) -> None:
    made, _ = independent_population()
    results = audit(made.of(*members)).results
    assert keys(results, "model") == keys(results, "method")
    assert set(results[results["metric"] == "class_impact"]["scope"]) == {"method"}
    frame = results[results["metric"] != "class_impact"].fillna({"group": "", "class": ""})
    model, method = (
        frame[frame["scope"] == scope].set_index(KEYS).sort_index() for scope in ("model", "method")
    )
    same(model, method, ESTIMATES)
    assert method[LIMITS].isna().all(axis=None)
    assert not method["status"].eq("ok").any()
    known = method[model["status"].eq("ok").to_numpy()]
    assert len(known) > 80
    assert set(known["status"]) == {f"not_estimable: {reason}"}


def test_too_few_parents_leave_the_estimates() -> None:
    made, _ = independent_population()
    parents: list[str | None] = [f"dense:{p}" for p in (0, 0, 1, 1, 1, 0)]
    results = audit_with_seeds(made, [0, 1, 2], list(range(6)), parents).results
    found = row(results, "accuracy", scope="method")
    assert found["status"] == "not_estimable: fewer than 3 distinct parents"
    method = results[(results["scope"] == "method") & (results["metric"] != "class_impact")]
    assert method[LIMITS].isna().all(axis=None)


@pytest.mark.parametrize("which", [paired_population, independent_population])
def test_limits_hold_their_value_and_the_metrics_range(which: Any) -> None:
    _, audited = which()
    results = audited.results
    method = results[(results["scope"] == "method") & (results["status"] == "ok")]
    two_way = method[method["interval"].astype(object).fillna("").str.startswith("two-way")]
    value = two_way["shift"].fillna(two_way["compressed"])
    assert len(two_way) > 40
    assert two_way["ci_low"].notna().all()
    assert (two_way["ci_low"] <= value + 1e-12).all()
    assert (value <= two_way["ci_high"] + 1e-12).all()
    low, high = (
        two_way["metric"].map(lambda m, e=e: getattr(metric(m), e)) for e in ("low", "high")
    )
    for side in ("baseline", "compressed"):
        assert not (two_way[f"{side}_low"] < low - 1e-12).any()
        assert not (two_way[f"{side}_high"] > high + 1e-12).any()


def test_a_few_undefined_draws_do_not_take_the_limits() -> None:
    """The dense models predict 1 on 4 of 300 examples: 2 % of the draws have none, below 5 %."""
    rng = np.random.default_rng(0)
    label = np.array(["0"] * 150 + ["1"] * 150)
    dense = np.full((300, 4), "0")
    dense[[0, 1, -1, -2]] = "1"
    small = np.where(rng.random((300, 4)) < np.where(label == "1", 0.3, 0.1)[:, None], "1", "0")
    results = audit(Population(label, dense, small, {}), n_boot=400).results
    for scope in ("model", "method"):
        found = row(results, "precision", scope=scope)
        assert found["status"] == "ok"
        assert found["ci_low"] < found["shift"] < found["ci_high"]
        assert 0 < found["p_value"] <= 1


def test_where_no_draw_differs_both_scopes_say_so() -> None:
    """Precision of b is 1 in all members and all draws: 60 examples prove no such certainty."""
    label = np.array(["a", "b"] * 30)
    dense = np.stack([label] * 4, axis=1)
    small = dense.copy()
    small[:6] = "a"
    results = audit(Population(label, dense, small, {})).results
    for scope in ("model", "method"):
        found = row(results, "precision", "class", cls="b", scope=scope)
        assert found["compressed"] == 1.0
        # no limits, or limits of some width: never a point
        assert found["ci_low"] != found["ci_high"]


@cache
def two_tasks() -> fw.Audit:
    """Five and five members that answer two questions about every example."""
    made = [population(seed, n=60, members=(5, 5), classes="01") for seed in (31, 32)]
    parts = [
        pd.DataFrame(
            {
                "example_id": np.arange(60),
                "task": f"task {t}",
                "variant": variant,
                "seed": seed,
                "label": one.label,
                "prediction": column,
                "site": made[0].groups["site"],
            }
        )
        for t, one in enumerate(made)
        for variant, side in (("dense", one.dense), ("small", one.small))
        for seed, column in enumerate(side.T)
    ]
    return fw.audit_table(
        pd.concat(parts), baseline="dense", task="task", groups=["site"], n_boot=50
    )


def test_every_row_of_every_task_and_of_their_mean_is_there_twice() -> None:
    results = two_tasks().results.fillna({"task": "mean"})
    for task in ("task 0", "task 1", "mean"):
        part = results[results["task"] == task]
        assert keys(part, "model") == keys(part, "method"), task


def test_the_mean_over_tasks_has_the_mean_of_the_estimates() -> None:
    results = two_tasks().results
    for scope in ("model", "method"):
        each = [row(results, "accuracy", task=f"task {t}", scope=scope) for t in (0, 1)]
        mean = row(results, "accuracy", task=None, scope=scope)
        for name in ("baseline", "compressed", "shift"):
            assert mean[name] == pytest.approx((each[0][name] + each[1][name]) / 2, abs=1e-12)
        assert mean["ci_low"] < mean["shift"] < mean["ci_high"]
        assert mean["noise_floor"] > 0
    # nobody named clusters: what is sampled are members and examples with their tasks
    assert row(results, "accuracy", task=None, scope="method")["interval"] == (
        "two-way t over members and examples"
    )


def test_the_mean_over_tasks_has_the_context_of_composites() -> None:
    """Relabelling needs no interval, so that CEV has its p about the method."""
    results = two_tasks().results
    for name in ("cev_pp", "sde_pp"):
        mean = row(results, name, task=None, scope="method")
        assert mean["p_retraining"] >= 1 / 32
        assert mean["noise_floor"] > 0


def test_pandas_objects_are_put_in_one_order_by_their_index() -> None:
    table = pd.DataFrame(
        {"y": ["cat", "dog"] * 50, "p": ["cat", "dog"] * 50, "sex": ["F"] * 50 + ["M"] * 50},
        index=[f"e{i}" for i in range(100)],
    )
    mixed = table.sample(frac=1, random_state=3)
    audit = fw.audit(
        table["y"],
        {"dense": table["p"], "small": mixed["p"]},
        sensitive_features=mixed[["sex"]],
        n_boot=50,
    )
    assert row(audit.results, "accuracy", by="overall")["shift"] == 0
    assert row(audit.results, "accuracy", "group", group="sex=F")["n"] == 50
    with pytest.raises(InputError, match="different indexes"):
        fw.audit(table["y"], {"dense": table["p"], "small": table["p"].reset_index(drop=True)})
