"""The re-audit: who gains and who loses by a mitigation, both named, corrected for families."""

from __future__ import annotations

from math import nan

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.mitigate.reaudit import Reaudit, reaudit, verdict
from fairweight.auditing.schema import column_names
from fairweight.report.explanation_sentences import mitigation_sentences
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

NEW = "small+thresholds"


def table() -> pd.DataFrame:
    """Three towns of 100; the dense model errs on the last 10 of each, the small one on 30.

    After the mitigation north gains 20 of its answers and loses none, south loses 20 and gains
    none, and in the west 1 is gained and 1 lost.
    """
    place = np.tile(np.arange(100), 3)
    town = np.repeat(["north", "south", "west"], 100)
    right = {"dense": place < 90, "small": place < 70}
    moved = ((town == "north") & (place >= 70) & (place < 90)) | ((town == "west") & (place == 70))
    lost = ((town == "south") & (place < 20)) | ((town == "west") & (place == 0))
    right[NEW] = (right["small"] | moved) & ~lost
    label = place % 2
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "example_id": np.arange(300),
                    "variant": variant,
                    "label": label,
                    "prediction": np.where(correct, label, 1 - label),
                    "town": town,
                }
            )
            for variant, correct in right.items()
        ],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def again() -> Reaudit:
    return reaudit(
        table(), [(NEW, "small")], TableSpec((), baseline="dense", groups=["town"]),
        AuditOptions(n_boot=40),
    )  # fmt: skip


def accuracies(made: Reaudit, against: str) -> pd.DataFrame:
    rows = made.mitigation
    kept = rows[(rows["metric"] == "accuracy") & (rows["against"] == against)]
    return kept[kept["by"] == "group"].set_index("group")


def test_who_gains_and_who_loses_is_named(again: Reaudit) -> None:
    assert tuple(again.mitigation.columns) == column_names("mitigation")
    rows = accuracies(again, "small")
    assert rows["before"].tolist() == pytest.approx([0.7, 0.7, 0.7])
    assert rows["after"].to_dict() == pytest.approx(
        {"town=north": 0.9, "town=south": 0.5, "town=west": 0.7}
    )
    assert rows["verdict"].to_dict() == {
        "town=north": "better",
        "town=south": "worse",
        "town=west": "cannot tell",
    }
    helped, worse, left = mitigation_sentences(again.mitigation, "thresholds")
    assert helped.startswith(f"{NEW} against small: no clear improvement of threshold bias")
    assert "town=south: accuracy 70.0 % → 50.0 %" in worse
    assert "north" not in worse.split("overall")[0].split(";")[0]
    assert left.startswith(f"{NEW} against dense: worse in")
    assert "town=south: accuracy 90.0 % → 50.0 %" in left


def test_verdicts_are_corrected_for_the_family(again: Reaudit) -> None:
    rows = accuracies(again, "small")
    assert set(rows["n_family"]) == {3}
    assert (rows["sim_low"] < rows["low"]).all()
    assert (rows["sim_high"] > rows["high"]).all()
    # Mid-p McNemar of 20 against 0: 2 · ½ · ½²⁰ · … = ½²⁰; Holm: three times the least.
    assert rows["p_value"]["town=south"] == pytest.approx(0.5**20)
    assert rows["p_adjusted"]["town=south"] == pytest.approx(3 * 0.5**20)
    assert rows["p_adjusted"]["town=west"] == 1.0


def test_it_stands_against_the_dense_model_too(again: Reaudit) -> None:
    rows = accuracies(again, "dense")
    assert rows["shift"].to_dict() == pytest.approx(
        {"town=north": 0.0, "town=south": -0.4, "town=west": -0.2}
    )
    assert rows["verdict"]["town=south"] == rows["verdict"]["town=west"] == "worse"
    assert again.result.baseline == "dense"
    assert again.result.variants == ("small", NEW)
    assert again.result.explanations["mitigation"] is again.mitigation


@pytest.mark.parametrize(
    ("after", "change", "middle", "told"),
    [
        (0.95, (0.3, 0.4), (0.72, 0.82), "better"),
        (1.3, (0.65, 0.75), (0.9, 0.98), "better"),  # beyond 1, and still nearer than .6
        (1.6, (0.9, 1.1), (1.04, 1.2), "worse"),
        (1.3, (0.65, 0.75), (0.9, 1.02), "cannot tell"),
        (0.95, (0.3, 0.4), (nan, nan), "cannot tell"),
        (0.65, (-0.1, 0.2), (0.55, 0.7), "cannot tell"),
    ],
)
def test_nearer_to_a_best_value_needs_both_limits(
    after: float, change: tuple[float, float], middle: tuple[float, float], told: str
) -> None:
    assert verdict("tcb", 0.6, after, change, middle) == told


def test_a_cascade_that_asks_the_dense_model_of_everything_is_no_help(again: Reaudit) -> None:
    renamed = again.mitigation.replace({"variant": {NEW: "small+cascade-1"}})
    first = mitigation_sentences(renamed, "cascade")[0]
    assert first == (
        "small+cascade-1 against small: every input goes to the dense model, so this cascade is "
        "no help."
    )
