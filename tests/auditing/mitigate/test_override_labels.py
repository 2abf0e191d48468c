"""Overrides: who comes first, what replaces them, and the whole curve against brute force."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fairweight.auditing.mitigate.apply_overrides as shipped
from fairweight.auditing.metrics import amplification
from fairweight.auditing.metrics.arrays import count_arrays
from fairweight.auditing.mitigate.override_curves import override_curves
from fairweight.auditing.mitigate.overrides import (
    OverrideTable,
    amplified_tasks,
    apply_override_table,
    check_overrides,
    dense_amplification,
    dense_labels,
    human_codes,
    override_table,
    uncertain_order,
)
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError

from .made_pairs import pair


def test_the_least_sure_come_first_by_hand() -> None:
    answers = from_arrays(
        [1, 0, 1, 0],
        {"dense": [1, 0, 1, 1], "small": [0, 0, 0, 0]},
        score={"dense": [0.9, 0.45, 0.75, 0.55], "small": [0.1] * 4},
        ids=["a", "b", "c", "d"],
    )
    # |p − .5| = .4, .05, .25, .05: b and d are equal and keep their order.
    assert uncertain_order(answers).tolist() == [1, 3, 2, 0]
    table = override_table([answers], 0.5)
    assert table.overrides == {"": {"b": "0", "d": "1"}}
    new = apply_override_table(table, answers, "small")
    assert new.name == "small+overrides-50"
    assert new.prediction.tolist() == [[0, 0, 0, 1]]
    again = OverrideTable.from_json(json.loads(json.dumps(table.as_json())))
    assert again == table


def test_dense_labels_are_the_most_frequent_answers() -> None:
    answers = from_arrays([0, 1, 2], {"dense": [[0, 0, 1], [2, 1, 1], [2, 0, 1]], "small": [0] * 3})
    assert dense_labels(answers).tolist() == [0, 1, 2]  # the last is a tie: the first member's


def test_human_labels_are_taken_where_there_are_some() -> None:
    answers = pair(20)
    labels = {str(i): "1" for i in range(10)}
    codes, known = human_codes(answers, labels)
    assert known.sum() == 10
    assert (codes[known] == 1).all()
    table = override_table([answers], 1.0, {None: labels})
    assert table.labels == "human"
    assert set(table.overrides[""]) == set(labels)
    with pytest.raises(InputError, match="other examples"):
        human_codes(answers, {"x": "1"})
    with pytest.raises(InputError, match="'7', which is no class"):
        human_codes(answers, {"0": "7"})


def test_a_table_for_other_examples_is_refused() -> None:
    table = override_table([pair(40)], 0.5)
    with pytest.raises(InputError, match="for other examples"):
        check_overrides(table, [pair(40, first=1000)])
    (note,) = check_overrides(table, [pair(40, first=20)])
    assert "are for examples that are not in these predictions" in note
    assert check_overrides(table, [pair(40)]) == []


def test_what_ships_needs_nothing_but_python(tmp_path: Path) -> None:
    table = override_table([pair(40)], 0.1)
    (tmp_path / "overrides.json").write_text(json.dumps(table.as_json()))
    (tmp_path / "apply_overrides.py").write_text(Path(shipped.__file__).read_text())
    name, label = next(iter(table.overrides[""].items()))
    script = (
        "import sys; from apply_overrides import apply_overrides, read_overrides\n"
        "held = read_overrides('overrides.json')\n"
        f"print(apply_overrides({name}, 'own', held), apply_overrides(-1, 'own', held))\n"
        "assert not {'numpy', 'fairweight'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [label, "own"]


def test_amplification_is_the_audits_own_and_chooses_tasks() -> None:
    answers = pair(600, task="hat")
    expected = _amplification(answers, answers.of("dense")[0])
    assert dense_amplification(answers) == {"sex": pytest.approx(expected)}
    positive = expected > 0
    assert amplified_tasks([answers]) == (("hat",) if positive else ())
    assert amplified_tasks([answers], "age") == ()


def _amplification(answers, prediction) -> float:
    column = answers.columns[0]
    counts = count_arrays(answers.label, prediction, sensitive_features=column.code, positive=1)
    sides = amplification.sides_of(counts, None)
    return float(amplification.bias_amplification(counts, sides).max())


def test_the_curve_is_that_of_brute_force() -> None:
    answers = pair(500)
    budgets = (0.0, 0.05, 0.1, 0.2)
    found = override_curves([answers], ["small"], budgets=budgets, n_boot=40)
    assert tuple(found.columns) == column_names("override_curves")
    order = np.argsort(np.abs(answers.score[0].astype(float) - 0.5), kind="stable")
    man = answers.columns[0].code == 1
    for source, other in (("dense", answers.prediction[0]), ("human", answers.label)):
        for budget in budgets:
            answer = answers.prediction[1].copy()
            first = order[: round(budget * 500)]
            answer[first] = other[first]
            right = answer == answers.label
            lost = right.astype(float) - (answers.prediction[0] == answers.label)
            rows = found[(found["source"] == source) & (found["budget"] == budget)]
            values = rows.set_index("metric")["value"]
            assert values["accuracy"] == pytest.approx(right.mean())
            assert values["bias_amplification"] == pytest.approx(_amplification(answers, answer))
            worst = min(lost[man].mean(), lost[~man].mean())
            assert values["worst_group_shift"] == pytest.approx(worst)
            assert (rows["low"] <= rows["value"] + 1e-9).all()
            assert (rows["high"] >= rows["value"] - 1e-9).all()
    start = found[found["budget"] == 0]
    assert (start["change"] == 0).all()
    assert start["random"].to_numpy() == pytest.approx(start["value"].to_numpy())


def test_random_overrides_are_the_mean_of_random_choices() -> None:
    """Accuracy is linear: at a random tenth, a tenth of the way to the dense model's."""
    answers = pair(500)
    found = override_curves([answers], ["small"], budgets=(0.0, 0.1), n_boot=40)
    rows = found[(found["metric"] == "accuracy") & (found["source"] == "dense")]
    own, dense = (answers.correct(name)[0].mean() for name in ("small", "dense"))
    random = rows[rows["budget"] == 0.1]["random"].item()
    assert random == pytest.approx(0.9 * own + 0.1 * dense, abs=0.01)
    assert random != rows[rows["budget"] == 0.1]["value"].item()


def test_several_tasks_have_a_mean_and_clusters_widen_it() -> None:
    tasks = [pair(400, task="hat"), pair(400, seed=1, task="smile")]
    found = override_curves(tasks, ["small"], budgets=(0.0, 0.1), n_boot=60)
    one = found[(found["metric"] == "accuracy") & (found["source"] == "dense")]
    one = one[one["budget"] == 0.1]
    mean = one[one["task"].isna()]
    assert mean["n_tasks"].item() == 2
    assert mean["value"].item() == pytest.approx(one[one["task"].notna()]["value"].mean())
    label = np.zeros_like(tasks[1].label)
    for level in (0, 1):  # every other one of each sex: no side to lean to
        label[np.flatnonzero(tasks[1].columns[0].code == level)[::2]] = 1
    unrelated = replace(tasks[1], label=label)
    assert dense_amplification(unrelated) == {}
    some = override_curves([tasks[0], unrelated], ["small"], budgets=(0.0, 0.1), n_boot=20)
    some = some[some["metric"] == "bias_amplification"]
    assert some.groupby("task", dropna=False)["n_tasks"].unique().map(list).tolist() == [[1], [1]]
    own, mean = (
        some[mask]["value"].tolist() for mask in (some["task"] == "hat", some["task"].isna())
    )
    assert own == mean
    other = override_curves([tasks[0], pair(300, task="smile")], ["small"], n_boot=20)
    assert other["task"].notna().all()  # different examples have no common draws


def test_budgets_that_do_not_grow_are_refused() -> None:
    with pytest.raises(InputError, match="Budgets must begin with 0"):
        override_curves([pair(40)], ["small"], budgets=(0.1, 0.2))
