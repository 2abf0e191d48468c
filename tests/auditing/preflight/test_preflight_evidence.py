"""The evidence of past studies: how it is made, chosen across studies, and read."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.scripts import loaded

from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.preflight.evidence import (
    CHOSEN,
    ScoreWorth,
    best_score,
    evidence_frame,
    hindsight,
    read_evidence,
    support,
    with_choices,
)
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("docs/results/preflight_evidence.py")


def study(seed: int, *, members: int = 1, n: int = 3000, foretold: bool = True) -> Answers:
    """Ten classes; what is near the boundary is lost, or (not foretold) anything."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 10, n)
    distance = 1.2 - 0.08 * label + rng.standard_normal(n)
    margin = distance[:, None] + 0.3 * rng.standard_normal((n, members))
    harm = 0.5 if foretold else np.where(rng.random((n, 1)) < 0.1, 9.0, 0.0)

    def answers(of: Any) -> Any:
        return np.where(of > 0, label[:, None], (label[:, None] + 1) % 10)

    score = 1 / (1 + np.exp(-2 * np.abs(margin)))
    return from_arrays(
        label,
        {"dense": answers(margin), "small": answers(margin - harm)},
        score={"dense": score, "small": score},
    )


def values(found: list[ScoreWorth], members: str = "one") -> dict[tuple[str, str], float]:
    return {(row.level, row.score): row.value for row in found if row.members == members}


def test_scores_that_foretell_are_worth_something() -> None:
    found = values(hindsight("a", [study(0)]))
    assert found["example", "low_confidence"] > 0.9
    assert found["class", "error_rate"] > 0.3
    assert ("group", "error_rate") not in found  # no groups


def test_scores_that_do_not_foretell_are_worth_nothing() -> None:
    found = values(hindsight("a", [study(0, foretold=False)]))
    assert 0.4 < found["example", "low_confidence"] < 0.6


def test_one_member_and_several_are_judged_apart() -> None:
    found = hindsight("a", [study(0, members=4)])
    assert ("example", "disagreement") not in values(found)
    assert values(found, "several")["example", "disagreement"] > 0.6


def test_without_losses_there_is_no_evidence() -> None:
    label = np.arange(100) % 4
    assert hindsight("a", [from_arrays(label, {"dense": label, "small": label})]) == []


def made(values: list[float], measure: str = "auc") -> pd.DataFrame:
    rows = [
        ScoreWorth(f"s{i}", "example", "one", "x", measure, value, 1)
        for i, value in enumerate(values)
    ]
    return evidence_frame(rows)


def test_support_is_a_t_interval_over_studies() -> None:
    found = support(made([0.7, 0.8, 0.9]), "example", "one", "x")
    reach = 4.302652729911275 * 0.1 / np.sqrt(3)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, 0.8 - reach, 1.0))
    assert found.reason == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [([], "no study"), ([0.9, 0.9], "only 2 of 3"), ([0.4, 0.9, 0.5], "not foretell")],
)
def test_support_says_why_it_cannot_tell(given: list[float], told: str) -> None:
    assert told in support(made(given), "example", "one", "x").reason


def test_the_choice_has_not_seen_the_study_it_is_judged_on() -> None:
    rows = [
        ScoreWorth("a", "class", "one", "x", "rank_correlation", 1.0, 1),
        ScoreWorth("a", "class", "one", "y", "rank_correlation", 0.0, 1),
        ScoreWorth("b", "class", "one", "x", "rank_correlation", 0.1, 1),
        ScoreWorth("b", "class", "one", "y", "rank_correlation", 0.2, 1),
    ]
    chosen = {row.study: row for row in with_choices(rows) if row.score == CHOSEN}
    assert (chosen["a"].choice, chosen["a"].value) == ("y", 0.0)
    assert (chosen["b"].choice, chosen["b"].value) == ("x", 0.1)
    assert best_score(evidence_frame(rows), "class", "one", ["x", "y", "z"]) == "x"
    assert best_score(evidence_frame(rows), "group", "one", ["x"]) is None


def test_the_table_of_the_package_can_be_read() -> None:
    assert tuple(read_evidence().columns) == column_names("evidence")


def test_the_script_reads_folders_of_results(script: ModuleType, tmp_path: Path) -> None:
    for name in "abc":
        answers = study(ord(name), n=1200)
        place = tmp_path / name / "experiment" / "predictions"
        for variant in ("dense", "small"):
            (place / variant).mkdir(parents=True)
            pd.DataFrame(
                {
                    "example_id": np.arange(1200),
                    "variant": variant,
                    "seed": 0,
                    "label": answers.label,
                    "prediction": answers.of(variant)[0],
                    "score": answers.score[answers.rows(variant)][0],
                }
            ).to_parquet(place / variant / "0.parquet")
    out = tmp_path / "evidence.csv"
    script.main([*(f"{name}={tmp_path / name}" for name in "abc"), "--out", str(out)])
    frame = pd.read_csv(out, keep_default_na=False)
    assert tuple(frame.columns) == column_names("evidence")
    assert set(frame["study"]) == {"a", "b", "c"}
    assert support(frame, "example", "one", CHOSEN).low > 0.8


def test_the_script_refuses_folders_without_experiments(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no experiment"):
        script.main([f"a={tmp_path}"])
    with pytest.raises(InputError, match="STUDY=FOLDER"):
        script.main([str(tmp_path)])
