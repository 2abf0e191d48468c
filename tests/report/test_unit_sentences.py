"""What is said of units: what comes back, what it costs, and that nothing stands out."""

from __future__ import annotations

import pandas as pd

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import frame
from fairweight.report.unit_sentences import unit_sentences


def test_what_comes_back_and_what_it_costs(explained: AuditResult) -> None:
    table = explained.explanations["sensitivity"]
    own = table[table["variant"] == explained.variants[0]]
    assert list(unit_sentences(own)) == [
        "Of the 12.0 points that sex=Female loses, 9.0 [5.0, 13.0] come back when stem is not "
        "compressed; that costs 1.2 % of the size saved and 0.25 ms per example."
    ]


def test_what_comes_back_may_be_nothing(explained: AuditResult) -> None:
    table = explained.explanations["sensitivity"]
    own = table[table["variant"] == explained.variants[0]].assign(recovered_low=-0.01)
    (said,) = unit_sentences(own)
    assert (
        "9.0 [−1.0, 13.0] come back when stem is not compressed: more than with the other" in said
    )
    assert "but perhaps nothing; that costs 1.2 %" in said


def test_nothing_stands_out(explained: AuditResult) -> None:
    table = explained.explanations["sensitivity"]
    own = table[table["variant"] == explained.variants[0]].assign(stands_out=False)
    (said,) = unit_sentences(own)
    assert said.startswith(
        "No single unit explains the loss: of the 12.0 points that sex=Female loses, leaving out "
        "stem gives back most, 9.0 [5.0, 13.0], no more than other units do beyond chance. The "
        "next thing to try is "
    )
    assert list(unit_sentences(own.assign(shift=0.01))) == [
        "No group loses in the half that judges, so no unit is named."
    ]


def test_the_sentence_is_about_a_group_that_is_shown_to_lose(explained: AuditResult) -> None:
    """Another one that loses more in the judged half, by chance, is not named."""
    table = explained.explanations["sensitivity"]
    one = table[table["variant"] == explained.variants[0]].assign(stands_out=False)
    other = one[one["group"] == "sex=Female"].assign(group="sex=Male", shift=-0.02)
    own = pd.concat([one, other])
    (said,) = unit_sentences(own, ["sex=Male"])
    assert "of the 2.0 points that sex=Male loses" in said
    (said,) = unit_sentences(own, ["elsewhere=1"])
    assert "of the 12.0 points that sex=Female loses" in said


def test_units_that_were_not_reached_are_counted(explained: AuditResult) -> None:
    table = explained.explanations["sensitivity"]
    own = table[table["variant"] == explained.variants[0]].copy()
    own.loc[own["unit"] == "fc", "status"] = "not_estimable: not reached within the budget"
    assert list(unit_sentences(own))[-1] == "1 of 2 units were not reached within the budget."
    assert list(unit_sentences(frame("sensitivity"))) == list(unit_sentences(None)) == []
