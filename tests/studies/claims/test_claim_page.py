"""Claims as people read them: needs, verdicts of several lines, the summary, escaped cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairweight.auditing.schema import column_names
from fairweight.specs.claims import Claims
from fairweight.studies.claims import ClaimedValue, frame, judged
from fairweight.studies.claims_page import markdown, needed, summary, told

from .published import claim, judge, results


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "down (0.02 matters)"),
        ({"direction": "not-up"}, "not up (0.02 matters)"),
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
    asked = Claims(paper="The paper", written="before", claim=(claim(), lines))
    text = markdown(asked, judged(asked, tmp_path))
    assert text.startswith("The paper. The claims were written down before.\n\n2 claims in 3 lines")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 6 for line in table)
    assert table[2] == (
        "| It falls. (1) `c` | accuracy | down (0.02 matters): two in a hundred | "
        "−0.0500 [−0.0700, −0.0300] (models); retraining alone up to 0.0100 | **reproduces** |"
    )
    assert table[3] == (
        "| It \\| falls\\nmore. (1) `lines` | accuracy *together* | down (0.02 matters): two in a "
        "hundred; in some line | | **reproduces** (lines: 1 reproduce, 1 unclear) |"
    )
    assert table[5] == (
        "| | pruned-95 | | — | cannot tell at this scale: these results have no such row |"
    )


def test_the_summary_counts_claims_and_lines(tmp_path: Path) -> None:
    results(tmp_path, {})
    found = [
        judge(tmp_path), judge(tmp_path, smallest=0.08), judge(tmp_path, direction="up"),
        judge(tmp_path, folder="other"), judge(tmp_path, corrected=True),
    ]  # fmt: skip
    assert summary(found) == (
        "5 claims in 5 lines: 3 reproduce (1 of them smaller than what matters), 1 do not, "
        "1 cannot be told at this scale. Every line is judged on its own, not corrected for their "
        "number but for 1 line marked *together*: of lines without any effect about one in forty "
        "would reproduce a change by chance."
    )


def test_the_frame(tmp_path: Path) -> None:
    results(tmp_path, {})
    made = frame([judge(tmp_path), judge(tmp_path, folder="other")])
    assert tuple(made.columns) == column_names("claims")
    assert made["verdict"].tolist() == ["reproduces", "cannot tell at this scale"]
    assert made["reason"].tolist() == ["", "these results have no other"]
    assert made["low"].tolist()[0] == -0.07
    assert made["low"].isna().tolist() == [False, True]
