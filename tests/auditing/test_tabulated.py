"""Sweeps that are tabulated and not compared: the same recalls as an audit's."""

from __future__ import annotations

import numpy as np

import fairweight as fw
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.sweep import tabulated


def test_accuracy_recall_and_gap_by_hand() -> None:
    found = tabulated(
        from_arrays(
            ["a", "a", "b", "b", "b"],
            {"dense": ["a", "a", "b", "b", "a"], "pruned": ["b", "a", "b", "c", "a"]},
        )
    )
    rows = found.per_seed.set_index(["variant", "metric", "class"])["value"]
    assert rows["dense", "accuracy"].iloc[0] == 4 / 5
    assert rows["pruned", "recall", "a"] == 1 / 2
    assert rows["pruned", "recall", "b"] == 1 / 3
    assert np.isclose(rows["pruned", "class_gap"].iloc[0], 1 / 2 - 1 / 3)
    assert found.classes == ("a", "b")  # c is predicted only
    assert found.data["n"].tolist() == [2, 3]


def test_the_same_numbers_as_an_audit() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    dense, small = (np.where(rng.random((60, 2)) < 0.8, y[:, None], 0) for _ in range(2))
    audited = fw.audit(y, {"dense": dense, "small": small}, n_boot=20).per_seed
    made = tabulated(from_arrays(y, {"dense": dense, "small": small})).per_seed
    both = audited.merge(made, on=["variant", "seed", "metric", "by", "class"])
    assert len(both) == 4 * (1 + 1 + 3)
    np.testing.assert_allclose(both["value_x"], both["value_y"])
