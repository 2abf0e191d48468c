"""How many changes a number rests on, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.influence import Changed, Influence, changed_predictions
from fairweight.auditing.counts.group_by import count
from fairweight.auditing.metrics.registry import Event
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

from ..strategies import row

RIGHT_BY_LABEL = Event("correct", "label")


def compared(
    rows: list[tuple[int, Any, Any, Any, str]], members: int = 1, **columns: Any
) -> Comparison:
    """Rows (how many, label, baseline, compressed, group); members repeat the compressed column."""
    table = pd.DataFrame(
        [r[1:] for r in rows for _ in range(r[0])], columns=["label", "a", "b", "g"]
    )
    table["example_id"] = np.arange(len(table))
    for name, values in columns.items():
        table[name] = values
    named = {"weight": "w"} if "w" in columns else {}
    named |= {"cluster": "person"} if "person" in columns else {}
    view = align(
        TableSpec(
            sources_of(table), baseline="a", predictions={"a": "a", "b": "b"}, groups=["g"], **named
        )
    )
    try:
        cube = count(view)
    finally:
        view.close()
    return comparison(
        cube, baseline="a", variant="b", task=None, grouping_names=("g",), positive=1,
        options=Options(),
    )  # fmt: skip


# Eight positives and forty negatives; 1 positive and 10 negatives change, in group x all but one.
UNEVEN = [
    (7, 1, 1, 1, "x"),
    (1, 1, 1, 0, "x"),
    (30, 0, 0, 0, "y"),
    (9, 0, 0, 1, "x"),
    (1, 0, 1, 0, "y"),
]


def test_every_changed_prediction_counts_one() -> None:
    c = compared(UNEVEN)
    found = changed_predictions(c, None, [c.whole])
    assert found.number("change").tolist() == [11]
    by_group = changed_predictions(c, None, [c.groupings[0]])
    assert by_group.number("change").tolist() == [10, 1]
    assert by_group.examples().tolist() == [10, 1]
    assert by_group.reasons().tolist() == [None, "too few changed predictions (1)"]


def test_a_mean_over_classes_counts_in_units_of_its_rarest_class() -> None:
    # a lost positive adds 1/8, a negative 1/40: (1/8² + 10/40²) / (1/8²) = 1 + 10/25
    c = compared(UNEVEN)
    found = changed_predictions(c, RIGHT_BY_LABEL, [c.whole], mean=True)
    assert found.number("change") == pytest.approx([1.4])
    assert found.reasons().tolist() == ["11 changed predictions count as 1"]
    # of the positive class alone there is one change
    alone = changed_predictions(c, RIGHT_BY_LABEL, [c.whole])
    assert alone.number("change").tolist() == [1]


def test_an_excess_counts_in_units_of_the_smaller_side() -> None:
    # x: 10 changes of 17, y: 1 of 31; (10/17² + 1/31²) / (1/17²) = 10 + (17/31)²
    c = compared(UNEVEN)
    found = changed_predictions(c, None, [c.groupings[0]])
    expected = 10 + (17 / 31) ** 2
    assert found.number("excess") == pytest.approx([expected, expected])


def test_precision_counts_what_enters_and_leaves_the_class() -> None:
    rows = [(20, 0, 0, 0, "x"), (5, 0, 0, 2, "x"), (4, 2, 1, 2, "x"), (20, 1, 1, 1, "x"),
            (20, 2, 2, 2, "x")]  # fmt: skip
    c = compared(rows)
    found = changed_predictions(c, Event("predicted"), [c.whole], by_class=True)
    assert found.number("change").tolist() == [5, 4, 9]
    # false predictions of the baseline: 4 of class 1; of the compressed: 5 of class 2
    assert found.number("baseline").tolist() == [0, 4, 0]
    assert found.number("compressed").tolist() == [0, 0, 5]
    # an example that leaves one class for another is one example
    everyone = changed_predictions(c, Event("predicted"), [c.whole], mean=True)
    assert everyone.examples().tolist() == [9]


def test_changes_of_one_cluster_count_together() -> None:
    rows = [(30, 0, 0, 0, "x"), (12, 0, 0, 1, "x")]
    person = [*range(30), *[30] * 9, 31, 32, 33]  # nine changes of one person, three of others
    c = compared(rows, person=person)
    found = changed_predictions(c, None, [c.whole])
    assert found.examples().tolist() == [12]
    # (9² + 3)² / (9⁴ + 3)
    assert found.number("change") == pytest.approx([84**2 / (9**4 + 3)])
    assert found.reasons().tolist() == ["12 changed predictions count as 1"]


def test_heavy_weights_count_for_the_others() -> None:
    rows = [(30, 0, 0, 0, "x"), (12, 0, 0, 1, "x")]
    c = compared(rows, w=[1.0] * 30 + [10.0, 10.0] + [1.0] * 10)
    # (2 · 100 + 10)² / (2 · 10⁴ + 10)
    found = changed_predictions(c, None, [c.whole]).number("change")
    assert found == pytest.approx([210**2 / 20_010])


def test_members_count_by_how_far_the_two_sides_differ() -> None:
    """Five compressed members: twelve examples lost by all, ten by one of them each."""
    label = np.zeros(100, dtype=int)
    label[50:] = 1
    small = np.stack([label] * 5, axis=1)
    small[:12] = 1
    small[np.arange(12, 22), np.arange(10) % 5] = 1
    results = fw.audit(label, {"dense": label, "small": small}, n_boot=50).results
    # (12 + 10/25)² / (12 + 10/625): the ten hardly count
    assert row(results, "kappa")["status"] == "ok"
    few = small.copy()
    few[:5] = 0
    results = fw.audit(label, {"dense": label, "small": few}, n_boot=50).results
    # (7 + 10/25)² / (7 + 10/625) = 7.8
    assert row(results, "kappa")["status"] == "not_estimable: 17 changed predictions count as 7"


def test_rows_of_tasks_add_up() -> None:
    tables = [Changed(np.full((4, 3, 2), value), np.full((2, 2), 10.0)) for value in (1.0, 2.0)]
    rows = [np.array([0, 2]), np.array([2, 1])]
    uses = [np.array([True, True]), np.array([True, False])]
    found = Changed.added(tables, rows, uses, 3)
    assert found.table[0, 0].tolist() == [1, 0, 3]


def test_the_variance_of_a_mean_is_the_textbook_one() -> None:
    """Three clusters of 2, 1 and 3 examples: G / (G − 1) Σ (their residual sums / n)²."""
    c = compared([(6, 0, 0, 0, "x")], person=[0, 0, 1, 2, 2, 2])
    # cells of one cluster merge: 0, 0 → count 2, …
    order = np.argsort(c.cube.count)
    value = np.empty(3)
    value[order] = [4.0, 1.0, 2.0]  # of the clusters of one, two and three examples
    mean = (1 * 4 + 2 * 1 + 3 * 2) / 6
    gaps = [np.zeros(3), value - mean]
    influence = Influence.of(c, np.zeros(3, dtype=np.int64), 1, gaps)
    sums = [4 - mean, 2 * (1 - mean), 3 * (2 - mean)]
    expected = 3 / 2 * sum((s / 6) ** 2 for s in sums)
    assert influence.variance(np.array([-1.0, 1.0])) == pytest.approx([expected])
    assert influence.variance(np.array([1.0, 0.0])).tolist() == [0]
