"""Label interrelation against least squares of statsmodels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from fairweight.auditing.explain.attributes import label_interrelation, r_squared
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.errors import InputError


def attributes(values: np.ndarray) -> dict[str, Answers]:
    """A task per column; the model answers with the labels of the next example."""
    return {
        f"t{i}": from_arrays(column, {"dense": np.roll(column, 1), "small": column})
        for i, column in enumerate(values.T)
    }


@pytest.fixture
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    made = rng.integers(0, 2, (60, 4))
    made[:, 3] = made[:, 0] & made[:, 1]
    return made


def test_equals_least_squares(values: np.ndarray) -> None:
    found = r_squared(values.astype(float))
    for i in range(4):
        others = sm.add_constant(np.delete(values, i, axis=1).astype(float))
        assert found[i] == pytest.approx(sm.OLS(values[:, i], others).fit().rsquared)


def test_every_member_and_the_labels(values: np.ndarray) -> None:
    frame = label_interrelation(attributes(values))
    assert list(frame["variant"]) == ["dense"] * 4 + ["small"] * 4
    # All examples moved by one have the same relations, and perfect answers those of the labels.
    assert frame["r2"].to_numpy() == pytest.approx(frame["r2_labels"].to_numpy())
    assert frame["r2"].max() > 0.4


def test_an_attribute_that_is_always_answered_alike_is_undefined(values: np.ndarray) -> None:
    tasks = attributes(values)
    silent = tasks["t1"].prediction.copy()
    silent[1] = 0
    tasks["t1"] = replace(tasks["t1"], prediction=silent)
    frame = label_interrelation(tasks).set_index(["variant", "task"])
    assert np.isnan(frame.loc[("small", "t1"), "r2"])
    assert frame.loc[("small", "t1"), "status"] == "not_estimable: one answer only"
    assert np.isfinite(frame.loc[("small", "t0"), "r2"])


def test_collinear_attributes(values: np.ndarray) -> None:
    values[:, 2] = values[:, 0]
    assert r_squared(values.astype(float))[[0, 2]] == pytest.approx(1)


def test_one_attribute_has_no_rows(values: np.ndarray) -> None:
    assert label_interrelation(attributes(values[:, :1])).empty


def test_other_examples_and_more_classes_are_refused(values: np.ndarray) -> None:
    tasks = attributes(values)
    moved = replace(tasks["t1"], example_id=np.arange(60) + 1)
    with pytest.raises(InputError, match="same examples"):
        label_interrelation({**tasks, "t1": moved})
    many = from_arrays(np.arange(60) % 3, {"dense": np.arange(60) % 3, "small": np.zeros(60, int)})
    with pytest.raises(InputError, match="two classes"):
        label_interrelation({**tasks, "many": many})
