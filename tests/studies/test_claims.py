"""Verdicts on intervals, on claims of several lines and parts, regimes, notes."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product
from math import nan
from pathlib import Path
from typing import Any

import pytest
from tests.studies.published import (
    WRITTEN,
    claim,
    claims,
    judge,
    publish,
    results,
)

from fairweight.specs.claims import Regime
from fairweight.studies.claims import (
    CANNOT_TELL,
    DOES_NOT,
    NOT_REACHED,
    REPRODUCES,
    WEAKER,
    frame,
    judged,
    of_all_lines,
    of_all_parts,
    verdict,
)

INTERVALS = [(low / 10, high / 10) for low, high in product(range(-9, 10), repeat=2) if low <= high]


@pytest.mark.parametrize(
    ("direction", "low", "high", "expected"),
    [
        ("up", 0.01, 0.3, REPRODUCES),
        ("up", 0.01, 0.1, WEAKER),
        ("up", -0.1, 0.1, DOES_NOT),
        ("up", -0.3, -0.1, DOES_NOT),
        ("up", -0.1, 0.3, CANNOT_TELL),
        ("up", 0.0, 0.3, CANNOT_TELL),
        ("up", -0.1, 0.2, CANNOT_TELL),
        ("down", -0.3, -0.01, REPRODUCES),
        ("down", -0.1, 0.1, DOES_NOT),
        ("not-up", -0.3, 0.1, REPRODUCES),
        ("not-up", 0.01, 0.1, REPRODUCES),
        ("not-up", 0.01, 0.3, CANNOT_TELL),  # a lower limit just above 0
        ("not-up", 0.21, 0.3, DOES_NOT),
        ("not-up", -0.1, 0.3, CANNOT_TELL),
        ("not-down", -0.3, -0.01, CANNOT_TELL),
        ("not-down", -0.3, -0.21, DOES_NOT),
        ("not-down", -0.1, 0.9, REPRODUCES),
        ("none", -0.1, 0.1, REPRODUCES),
        ("none", 0.01, 0.1, REPRODUCES),
        ("none", -0.3, -0.1, CANNOT_TELL),
        ("none", -0.3, -0.21, DOES_NOT),
        ("none", -0.1, 0.3, CANNOT_TELL),
        ("up", nan, 0.3, CANNOT_TELL),
        ("none", -0.1, nan, CANNOT_TELL),
    ],
)
def test_one_interval(direction: str, low: float, high: float, expected: str) -> None:
    assert verdict(direction, low, high, 0.2) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.5, 0.8, REPRODUCES),  # contains .7
        (0.8, 0.9, REPRODUCES),  # exceeds it
        (0.5, 0.6, WEAKER),  # matters, and is less than stated
        (-0.1, 0.6, CANNOT_TELL),
        (-0.1, 0.1, DOES_NOT),
    ],
)
def test_the_number_that_the_paper_states(low: float, high: float, expected: str) -> None:
    assert verdict("up", low, high, 0.2, says=0.7) == expected
    assert verdict("down", -high, -low, 0.2, says=-0.7) == expected


def test_down_is_up_mirrored_and_not_is_never_both() -> None:
    for low, high in INTERVALS:
        up = verdict("up", low, high, 0.25)
        assert verdict("down", -high, -low, 0.25) == up
        denied = verdict("not-up", low, high, 0.25)
        assert verdict("not-down", -high, -low, 0.25) == denied
        assert (up, denied) not in {(REPRODUCES, REPRODUCES), (DOES_NOT, DOES_NOT)}
        if up == DOES_NOT:
            assert denied == REPRODUCES


def test_no_change_is_none_upwards_and_none_downwards() -> None:
    for low, high in INTERVALS:
        both = {verdict("not-up", low, high, 0.25), verdict("not-down", low, high, 0.25)}
        told = verdict("none", low, high, 0.25)
        assert (told == REPRODUCES) == (both == {REPRODUCES})
        assert (told == DOES_NOT) == (DOES_NOT in both)


@pytest.mark.parametrize(
    ("needs", "lines", "expected"),
    [
        ("all", [REPRODUCES, REPRODUCES], REPRODUCES),
        ("all", [REPRODUCES, WEAKER], WEAKER),
        ("all", [REPRODUCES, CANNOT_TELL], CANNOT_TELL),
        ("all", [REPRODUCES, CANNOT_TELL, DOES_NOT], DOES_NOT),
        ("all", [REPRODUCES, NOT_REACHED], REPRODUCES),
        ("all", [NOT_REACHED, NOT_REACHED], NOT_REACHED),
        ("most", [REPRODUCES, REPRODUCES, DOES_NOT], REPRODUCES),
        ("most", [REPRODUCES, WEAKER, DOES_NOT], WEAKER),
        ("most", [REPRODUCES, DOES_NOT], CANNOT_TELL),
        ("most", [REPRODUCES, DOES_NOT, DOES_NOT], DOES_NOT),
        ("some", [DOES_NOT, REPRODUCES], REPRODUCES),
        ("some", [DOES_NOT, WEAKER], WEAKER),
        ("some", [DOES_NOT, CANNOT_TELL], CANNOT_TELL),
        ("some", [DOES_NOT, DOES_NOT], DOES_NOT),
        ("all", [], CANNOT_TELL),
    ],
)
def test_several_lines(needs: str, lines: list[str], expected: str) -> None:
    assert of_all_lines(claim(needs=needs, corrected=True), lines) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([REPRODUCES, REPRODUCES], REPRODUCES),
        ([REPRODUCES, WEAKER], WEAKER),
        ([WEAKER, CANNOT_TELL], CANNOT_TELL),
        ([CANNOT_TELL, NOT_REACHED], NOT_REACHED),
        ([NOT_REACHED, DOES_NOT], DOES_NOT),
    ],
)
def test_several_parts(parts: list[str], expected: str) -> None:
    assert of_all_parts(parts) == expected


def test_every_part_is_judged(tmp_path: Path) -> None:
    """A similar FPR and a spike of FNR: the spike alone is not enough."""
    fpr = {"metric": "fpr", "shift": 0.2, "ci_low": 0.15, "ci_high": 0.25}
    fnr = {"metric": "fnr", "shift": 0.1, "ci_low": 0.05, "ci_high": 0.15}
    results(tmp_path, fpr, fnr)
    also = {
        "quantity": "FNR", "direction": "up", "smallest": 0.02, "why": "w", "folder": "digits",
        "where": {"metric": "fnr", "variant": "pruned-90"},
    }  # fmt: skip
    found = judge(
        tmp_path, where={"metric": "fpr", "variant": "pruned-90"}, direction="none", also=[also]
    )
    assert [part.verdict for part in found.parts] == [DOES_NOT, REPRODUCES]
    assert found.verdict == DOES_NOT


# Regimes.


def classes(
    recall: dict[str, float], after: dict[str, float], n: dict[str, int], **more: Any
) -> list[dict[str, Any]]:
    """Rows by class: recall and how often each is predicted, of two classes."""
    total = sum(n.values())
    rows = []
    for one, count in n.items():
        (other,) = set(n) - {one}
        predicted = (recall[one] * count + (1 - recall[other]) * n[other]) / total
        key = {"by": "class", "class": one, "n": count, **more}
        rows.append({"metric": "recall", "baseline": recall[one], **key})
        rate = {"metric": "selection_rate", "baseline": predicted, "compressed": after[one]}
        rows.append(rate | key)
    return rows


N = {"no": 870, "yes": 130}
GOOD = {"no": 0.97, "yes": 0.7}
REGIME = (Regime(folder="digits", recall=0.78),)


def test_a_run_in_the_regime_is_judged(tmp_path: Path) -> None:
    results(tmp_path, {}, *classes(GOOD, {"no": 0.9, "yes": 0.1}, N))
    assert judge(tmp_path, regime=REGIME).verdict == REPRODUCES


@pytest.mark.parametrize(
    ("recall", "after", "regime", "reason"),
    [
        ({"no": 0.99, "yes": 0.3}, {"no": 0.9, "yes": 0.1}, Regime(folder="digits", recall=0.78),
         "they recall 30 % of yes, the paper's 78 %"),
        # (870 × .99 + 130 × .2 − 870) / 1000 = 1.7 points above the majority
        ({"no": 0.99, "yes": 0.2}, {"no": 0.9, "yes": 0.1}, Regime(folder="digits"),
         "1.7 points above always answering the largest class"),
        # (130 × .3 + 870 × .01) / 130 = .367 of .9
        ({"no": 0.99, "yes": 0.3}, {"no": 0.9, "yes": 0.1}, Regime(folder="digits", tcb=0.9),
         "they predict yes 0.37 times as often as it is there, the paper's 0.9 times"),
        # yes is predicted for .006 of all, and there in .13: .046 of its frequency
        (GOOD, {"no": 0.994, "yes": 0.006}, Regime(folder="digits", recall=0.78),
         "the compressed models answer one class only"),
    ],
)  # fmt: skip
def test_regimes_that_are_not_reached(
    tmp_path: Path,
    recall: dict[str, float],
    after: dict[str, float],
    regime: Regime,
    reason: str,
) -> None:
    results(tmp_path, {}, *classes(recall, after, N))
    found = judge(tmp_path, regime=(regime,))
    assert found.verdict == NOT_REACHED
    assert found.lines[0].estimate.reason.endswith(reason)


def test_a_collapsed_copy_says_nothing_against_its_dense_models(tmp_path: Path) -> None:
    results(tmp_path, {}, *classes(GOOD, {"no": 1.0, "yes": 0.0}, N))
    assert judge(tmp_path).verdict == NOT_REACHED
    dense = {"where": {"metric": "accuracy"}, "value": "baseline", "null": 1.0}
    assert judge(tmp_path, **dense).verdict == REPRODUCES


def test_without_a_loss_there_is_nothing_to_divide(tmp_path: Path) -> None:
    results(tmp_path, {})  # a loss of .05
    assert judge(tmp_path, total=0.04).verdict == REPRODUCES
    found = judge(tmp_path, total=0.1)
    assert (found.verdict, found.lines[0].estimate.reason) == (
        NOT_REACHED, "accuracy falls by 5.0 points, 10 are needed",
    )  # fmt: skip


def test_a_down_sampled_class_must_be_known_before(tmp_path: Path) -> None:
    row = {"metric": "recall", "by": "class", "class": "yes", "n": 130, "baseline": 0.04}
    other = {"metric": "recall", "by": "class", "class": "no", "n": 130, "baseline": 0.98}
    rate = {"metric": "selection_rate", "by": "class", "n": 130, "baseline": 0.5, "compressed": 0.5}
    results(tmp_path, row, other, rate | {"class": "yes"}, rate | {"class": "no"})
    where = {"metric": "recall", "variant": "pruned-90", "class": "yes"}
    down = (Regime(folder="digits", tcb=0.5, down_sampled=("yes",)),)
    found = judge(tmp_path, regime=down, where=where)
    assert found.lines[0].estimate.reason == "the dense models recall 4 % of yes already"
    assert judge(tmp_path, regime=down, where=where | {"class": "no"}).verdict == REPRODUCES


def test_most_attributes_must_be_in_the_regime(tmp_path: Path) -> None:
    good = classes(GOOD, {"no": 0.9, "yes": 0.1}, N, task="hat")
    bad = classes({"no": 1.0, "yes": 0.1}, {"no": 0.9, "yes": 0.1}, N, task="beard")
    tcb = (Regime(folder="digits", tcb=0.9),)
    results(tmp_path, {}, *good, *bad)
    assert judge(tmp_path, regime=tcb).verdict == REPRODUCES  # one of two
    worse = classes({"no": 1.0, "yes": 0.1}, {"no": 0.9, "yes": 0.1}, N, task="scarf")
    results(tmp_path, {}, *good, *bad, *worse)
    assert judge(tmp_path, regime=tcb).lines[0].estimate.reason == (
        "in 2 of 3 attributes the models are near a constant, or collapsed"
    )


# What stands beside a verdict.


def test_notes_on_noise_scope_and_control(tmp_path: Path) -> None:
    control = {"variant": "control", "shift": -0.03, "ci_low": -0.04, "ci_high": -0.02}
    results(tmp_path, {"noise_floor": 0.06}, control)
    (line,) = judge(tmp_path, control="control").lines
    assert line.notes == (
        "about these models, not the method", "within retraining noise", "the control changes too",
    )  # fmt: skip
    assert line.control is not None
    assert line.control.value == -0.03
    results(tmp_path, {"scope": "method"}, control | {"ci_high": 0.01})
    assert judge(tmp_path, control="control").lines[0].notes == ()
    absent = judge(tmp_path, control="other").lines[0].control
    assert absent is not None
    assert absent.reason == "these results have no such row"


def test_difficulty_stands_beside_exemplars(tmp_path: Path) -> None:
    row = {
        "variant": "pruned-90", "by": "group", "group": "old",
        "odds_ratio": 2.0, "or_low": 1.5, "or_high": 2.5,
        "retraining_odds_ratio": 1.9, "retraining_low": 1.4, "retraining_high": 2.4,
    }  # fmt: skip
    publish(tmp_path, "enrichment", [row])
    (line,) = judge(
        tmp_path, table="enrichment", where={"variant": "pruned-90", "group": "old"},
        value="odds_ratio", null=1.0, direction="up", smallest=0.25,
        difficulty="retraining_odds_ratio",
    ).lines  # fmt: skip
    assert line.difficulty is not None
    assert (line.difficulty.value, line.difficulty.low) == (1.9, 1.4)


def test_claims_are_before_a_run_that_began_later(tmp_path: Path) -> None:
    results(tmp_path, {})
    assert not judge(tmp_path).before  # not known when the run began
    held: dict[str, Any] = {
        "study": "s", "experiment": "digits", "data": {"name": "digits"}, "groups": None,
        "cluster": None, "positive": None,
    }  # fmt: skip
    for hours, before in ((1, True), (-1, False)):
        began = (WRITTEN + timedelta(hours=hours)).isoformat()
        text = json.dumps(held | {"began": began})
        (tmp_path / "digits" / "study.json").write_text(text, encoding="utf-8")
        assert judge(tmp_path).before is before
    later = WRITTEN + timedelta(hours=2)
    assert not judge(tmp_path, written=later.isoformat()).before


def test_without_a_run_there_are_reasons(tmp_path: Path) -> None:
    (found,) = judged(claims(claim()), None)
    assert (found.verdict, found.lines[0].estimate.reason) == (
        CANNOT_TELL, "the run is not made yet",
    )  # fmt: skip
    assert frame([found])["verdict"].tolist() == [CANNOT_TELL]
