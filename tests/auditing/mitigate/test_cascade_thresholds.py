"""A cascade: the compressed model at 0, the dense one at 1, bit for bit; chosen on other rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight.auditing.mitigate.cascade import (
    Cascade,
    apply_cascade,
    cascade_curve,
    deferred,
    input_confidence,
    recommended,
    threshold_grid,
)
from fairweight.auditing.mitigate.mitigation import rows_seen
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError

from .made_pairs import pair

probability = st.floats(0, 1, width=32)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), probability, probability
        ),
        min_size=2,
        max_size=12,
    )
)
def test_zero_is_the_compressed_model_and_one_the_dense(rows: list[tuple[int, ...]]) -> None:
    label, dense, small, first, second = (list(column) for column in zip(*rows, strict=True))
    answers = from_arrays(
        [0, 1, *label],
        {"dense": [0, 1, *dense], "small": [0, 1, *small]},
        score={"dense": [0.0, 1.0, *first], "small": [0.0, 1.0, *second]},
    )
    for threshold, name in ((0.0, "small"), (1.0, "dense")):
        (new,) = apply_cascade(threshold, [answers], "small")
        assert new.prediction.tobytes() == answers.of(name).tobytes()
        assert new.prediction.dtype == answers.prediction.dtype
        assert new.score is not None
        assert new.score.tobytes() == answers.score[answers.rows(name)].tobytes()


def test_between_them_the_unsure_go() -> None:
    answers = from_arrays(
        [1, 0, 1],
        {"dense": [1, 0, 1], "small": [0, 1, 0]},
        score={"dense": [0.9, 0.1, 0.8], "small": [0.45, 0.9, 0.1]},
    )
    # 2 |p − .5| = .1, .8, .8: only the first is below .5.
    (new,) = apply_cascade(0.5, [answers], "small")
    assert new.name == "small+cascade-0.5"
    assert new.prediction.tolist() == [[1, 1, 0]]
    assert new.score[0] == pytest.approx([0.9, 0.9, 0.1])
    with pytest.raises(InputError, match="threshold 2"):
        deferred(np.zeros(1), 2.0)


def test_an_input_goes_as_a_whole() -> None:
    tasks = [pair(50, task="hat"), pair(50, seed=5, task="smile")]
    sure = input_confidence(tasks, "small")
    each = [2 * np.abs(a.score[1].astype(float) - 0.5) for a in tasks]
    assert sure[0] == pytest.approx(np.minimum(*each))
    with pytest.raises(InputError, match="same examples"):
        input_confidence([tasks[0], pair(40, task="smile")], "small")


def test_the_curve_is_that_of_the_cascades_themselves() -> None:
    variants = pd.DataFrame(
        {"variant": ["dense", "small"], "latency_ms": [40.0, 8.0], "batch_size": [4, 4]}
    )
    answers = replace(pair(500, clusters=True), variants_table=variants)
    grid = threshold_grid(input_confidence([answers], "small"))
    assert (grid[0], grid[-1]) == (0.0, 1.0)
    assert len(grid) == 12
    found = cascade_curve([answers], "small", grid, "judging", n_boot=40)
    assert tuple(found.columns) == column_names("cascade_curve")
    man = answers.columns[0].code == 1
    dense = answers.correct("dense")[0].astype(float)
    for threshold in grid:
        (new,) = apply_cascade(threshold, [answers], "small")
        right = (new.prediction[0] == answers.label).astype(float)
        rows = found[found["threshold"] == threshold].set_index("metric")
        assert rows["value"]["accuracy"] == pytest.approx(right.mean())
        lost = right - dense
        worst = min(lost[man].mean(), lost[~man].mean())
        assert rows["value"]["worst_group_shift"] == pytest.approx(worst)
        share = deferred(input_confidence([answers], "small"), threshold).mean()
        assert rows["share_deferred"]["accuracy"] == pytest.approx(share)
        assert rows["cost_ms"]["accuracy"] == pytest.approx(2 + 10 * share)
    last = found[found["threshold"] == 1.0].set_index("metric")
    assert (last["low"]["worst_group_shift"], last["high"]["worst_group_shift"]) == (0.0, 0.0)


def test_the_least_threshold_that_keeps_everybody_is_recommended() -> None:
    def curve(lows: dict[float, float]) -> pd.DataFrame:
        return pd.DataFrame(
            [{"metric": "worst_group_shift", "task": None, "threshold": t, "low": low}
             for t, low in lows.items()]
        )  # fmt: skip

    lows = {0.0: -0.1, 0.3: -0.019, 0.6: -0.01, 1.0: 0.0}
    assert recommended(curve(lows), 0.02) == 0.3
    assert recommended(curve(lows), 0.0) == 1.0
    with pytest.raises(InputError, match="No group is large enough"):
        recommended(curve({}).reindex(columns=["metric", "task", "threshold", "low"]), 0.02)


def test_without_latencies_the_cost_is_unknown() -> None:
    found = cascade_curve([pair(60)], "small", (0.0, 1.0), "judging", n_boot=20)
    assert found["cost_ms"].isna().all()


def test_a_cascade_is_the_same_after_json() -> None:
    rule = Cascade({"small": 0.35}, 0.02, rows_seen([pair(20)]))
    assert Cascade.from_json(json.loads(json.dumps(rule.as_json()))) == rule


@pytest.mark.parametrize("given", [1.5, -0.1, float("nan"), "high"])
def test_a_threshold_that_is_none_is_not_read(given: object) -> None:
    held = Cascade({"small": 0.35}, 0.02, rows_seen([pair(20)])).as_json()
    with pytest.raises(ValueError, match=r"from 0 to 1|could not convert"):
        Cascade.from_json({**held, "thresholds": {"small": given}})
