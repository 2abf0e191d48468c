"""Claims as people read them: needs, verdicts of several lines, the summary, escaped cells."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.studies.published import claim, claims, judge, results

from fairweight.auditing.schema import column_names
from fairweight.studies.claims import frame, judged
from fairweight.studies.claims_page import markdown, needed, summary, told, written
from fairweight.studies.estimates import ClaimedValue


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "down (0.02 matters)"),
        ({"direction": "not-up"}, "not up (0.02 matters)"),
        ({"says": -0.05}, "down (0.02 matters; the paper has −0.05)"),
        ({"direction": "none"}, "within 0.02 of 0"),
        ({"direction": "up", "null": 1.0, "smallest": 0.25}, "above 1 (1.25 matters)"),
        ({"direction": "not-down", "null": 0.8, "smallest": 0.1}, "not below 0.8 (0.7 matters)"),
    ],
)
def test_what_it_would_take(fields: dict[str, object], expected: str) -> None:
    assert needed(claim(**fields)) == expected


def test_an_estimate_in_words() -> None:
    found = ClaimedValue(-0.05, -0.07, -0.03, "t", "method", 0.01)
    assert told(found) == ("−0.0500 [−0.0700, −0.0300] (method); retraining alone up to 0.0100")
    assert told(ClaimedValue(reason="nothing")) == "—"
    assert told(ClaimedValue(0.5, reason="no interval")) == "0.500"


def test_the_section(tmp_path: Path) -> None:
    results(tmp_path, {}, {"variant": "pruned-99", "ci_low": -0.01, "ci_high": 0.01})
    lines = claim(
        id="lines", statement="It | falls\nmore.", each=["variant"], needs="some",
        corrected=True, where={"metric": "accuracy", "variant": ["pruned-90", "pruned-95"]},
    )  # fmt: skip
    asked = claims(claim(), lines)
    text = markdown(asked, judged(asked, tmp_path))
    assert text.startswith(
        "P, *T*. Written down 17 November 2026, 19:00 UTC (nothing): after the run.\n\n2 claims. "
        "These data allow 2 of them, in 3 lines: 2 reproduce."
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 6 for line in table)
    assert table[2] == (
        "| It falls. (1) `c` *written after the run* | accuracy: down (0.02 matters), two in a "
        "hundred |  | "
        "−0.0500 [−0.0700, −0.0300] (models); retraining alone up to 0.0100 | "
        "**reproduces**: about these models, not the method |"
    )
    assert table[3] == (
        "| It \\| falls\\nmore. (1) `lines` *written after the run* | accuracy *together*: down "
        "(0.02 matters), two in a hundred |  | in some line | **reproduces** (lines: 1 reproduces, "
        "1 cannot be told) |"
    )
    assert table[5] == "|  | pruned-95 |  | — | cannot tell: these results have no such row |"


def test_parts_controls_and_twins_are_shown(tmp_path: Path) -> None:
    control = {"variant": "control", "shift": 0.01, "ci_low": 0.0, "ci_high": 0.02}
    results(tmp_path, {"scope": "method"}, control | {"scope": "method"})
    also = {
        "quantity": "not up", "direction": "not-up", "smallest": 0.02, "why": "w",
        "folder": "digits", "where": {"metric": "accuracy", "variant": "pruned-90"},
    }  # fmt: skip
    asked = claims(claim(control="control", also=[also]), claim(id="twin", twin_of="c"))
    found = judged(asked, tmp_path)
    rows = [line for line in markdown(asked, found).splitlines() if line.startswith("|")][2:]
    assert "; control 0.0100 [0, 0.0200] (method)" in rows[0]
    assert rows[1].startswith("| *and* | not up: not up (0.02 matters), w |")
    assert rows[2] == "|  | *both* |  |  | **reproduces** |"
    assert "`twin` *follows from `c`, not counted*" in rows[3]
    assert summary(found).startswith(
        "1 claim (1 more follow from them). These data allow 1 of them"
    )


def test_the_summary_counts_claims_and_lines(tmp_path: Path) -> None:
    results(tmp_path, {})
    found = [
        judge(tmp_path), judge(tmp_path, smallest=0.08), judge(tmp_path, direction="up"),
        judge(tmp_path, folder="other"), judge(tmp_path, corrected=True),
        judge(tmp_path, total=0.1), judge(tmp_path, folder=None, where={}, unjudged="no"),
    ]  # fmt: skip
    assert summary(found) == (
        "7 claims. These data allow 6 of them, in 6 lines: 2 reproduce, 1 is weaker than claimed, "
        "1 does not reproduce, 1 cannot be told, 1 is in a regime that was not reached. Every line "
        "is judged on its own, not corrected for their number but for 1 line marked *together*: of "
        "lines without any effect about one in forty would reproduce a change by chance."
    )
    assert written(claims(claim()), found[:1]).endswith("after the run.")


def test_the_frame(tmp_path: Path) -> None:
    results(tmp_path, {})
    made = frame([judge(tmp_path), judge(tmp_path, folder="other")])
    assert tuple(made.columns) == column_names("claims")
    assert made["verdict"].tolist() == ["reproduces", "cannot tell"]
    assert made["reason"].tolist() == ["", "these results have no other"]
    assert made["low"].tolist()[0] == -0.07
    assert made["low"].isna().tolist() == [False, True]
