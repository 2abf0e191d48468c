"""Answers: the same examples whatever they are made from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.counts.group_by import count
from fairweight.auditing.prediction_matrix import from_aligned, from_arrays, from_cube, tasks_of
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

TABLE = pd.DataFrame(
    {
        "example_id": ["b", "a", "c", "d"],
        "label": [1, 0, 1, 2],
        "pred_dense": [1, 0, 2, 2],
        "pred_small": [0.0, 0.0, 3.0, None],
        "site": ["x", "y", None, "x"],
        "tilt": [0.5, -1.0, np.nan, 2.0],
        "image_path": ["b.png", "a.png", "c.png", "d.png"],
    }
)


def test_rows_stand_in_the_order_of_their_identity_with_their_measurements():
    with align(TableSpec(sources_of(TABLE)), further=True) as aligned:
        found = from_aligned(aligned)
    assert list(found.example_id) == ["a", "b", "c", "d"]
    assert found.classes == ("0", "1", "2", "3")
    assert found.n_label_classes == 3
    assert found.label.tolist() == [0, 1, 1, 2]
    assert found.of("dense").tolist() == [[0, 1, 2, 2]]
    assert found.of("small").tolist() == [[0, 0, 3, 4]]  # 4: no answer
    assert found.correct("dense").tolist() == [[True, True, False, True]]
    assert found.columns[0].values == ("x", "y", None)
    assert found.columns[0].code.tolist() == [1, 0, 2, 0]
    np.testing.assert_array_equal(found.numbers["tilt"], [-1.0, 0.5, np.nan, 2.0])
    assert found.texts["image_path"].tolist() == ["a.png", "b.png", "c.png", "d.png"]
    assert found.prediction.dtype == np.uint8


def test_further_columns_come_from_the_examples_table_and_not_where_they_vary():
    long = pd.DataFrame(
        {
            "example_id": [1, 2, 1, 2],
            "variant": ["dense", "dense", "int8", "int8"],
            "label": [0, 1, 0, 1],
            "prediction": [0, 1, 0, 0],
            "loss": [0.1, 0.2, 0.3, 0.4],
        }
    )
    examples = {"example_id": [2, 1], "ink": [7.5, 3.25]}
    with align(TableSpec(sources_of(long), examples=examples), further=True) as aligned:
        found = from_aligned(aligned)
    assert {k: v.tolist() for k, v in found.numbers.items()} == {"ink": [3.25, 7.5]}


def test_a_measurement_beyond_the_whole_numbers_of_a_double_is_rounded():
    """2^53 + 1 lies between two doubles; the even one is taken."""
    table = TABLE.assign(serial=[2**53 + 1, 3, 2, 1])
    with align(TableSpec(sources_of(table), groups=["site"]), further=True) as aligned:
        found = from_aligned(aligned)
    assert sorted(found.numbers["serial"]) == [1, 2, 3, 2.0**53]


def test_a_cube_gives_the_same_answers_without_identities():
    with align(TableSpec(sources_of(TABLE))) as aligned:
        rows, cells = from_aligned(aligned), from_cube(count(aligned), "dense")
    order = np.lexsort((rows.of("small")[0], rows.of("dense")[0], rows.label))
    again = np.lexsort((cells.of("small")[0], cells.of("dense")[0], cells.label))
    assert cells.example_id is None
    assert cells.variants == ("small",)
    np.testing.assert_array_equal(rows.prediction[:, order], cells.prediction[:, again])


def test_arrays_with_seeds():
    found = from_arrays(
        ["cat", "dog"],
        {"dense": [["cat", "dog"], ["cat", "cat"]], "int8": ["dog", "dog"]},
        groups={"home": ["in", None]},
        cluster=[9, 4],
    )
    assert [m.seed for m in found.members] == ["0", "1", "0"]
    assert found.of("dense").tolist() == [[0, 0], [1, 0]]
    assert found.columns[0].values == ("in", None)
    assert found.cluster.tolist() == [1, 0]


def test_tasks_are_looked_at_one_at_a_time():
    table = {
        "example_id": [1, 1, 2, 2],
        "task": ["hat", "coat", "hat", "coat"],
        "label": [0, 1, 1, 1],
        "pred_dense": [0, 1, 1, 1],
        "pred_small": [1, 1, 1, 0],
    }
    with align(TableSpec(sources_of(table))) as aligned:
        assert tasks_of(aligned) == ("coat", "hat")
        assert from_aligned(aligned, "coat").correct("small").tolist() == [[True, False]]
        found = from_aligned(aligned, "hat")
        with pytest.raises(InputError, match="2 tasks"):
            from_aligned(aligned)
    assert found.correct("small").tolist() == [[False, True]]


def test_one_variant_alone_only_where_it_is_asked_for():
    table = {"example_id": [1, 2], "label": [0, 1], "pred_dense": [0, 1]}
    with pytest.raises(InputError, match="no compressed variant"):
        align(TableSpec(sources_of(table)))
    with align(TableSpec(sources_of(table)), alone=True) as aligned:
        assert from_aligned(aligned).variants == ()


def test_scores_and_vectors():
    table = {
        "example_id": [2, 1],
        "label": [0, 1],
        "pred_dense": [0, 1],
        "pred_small": [0, 0],
        "scores_dense": [[0.75, 0.25], [0.5, 0.5]],
        "scores_small": [[1.0, 0.0], [0.875, 0.125]],
    }
    with align(
        TableSpec(
            sources_of(table),
            predictions={"dense": "pred_dense", "small": "pred_small"},
            scores={"dense": "scores_dense", "small": "scores_small"},
        )
    ) as aligned:
        found = from_aligned(aligned)
    assert found.score_classes == ("0", "1")
    assert found.scores.tolist() == [[[0.5, 0.5], [0.75, 0.25]], [[0.875, 0.125], [1.0, 0.0]]]
