from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.explanation_sentences import explanation_sentences


def said_of(audit: AuditResult, variant: str, word: str) -> list[str]:
    """The sentences about one variant that hold a word."""
    return [s for s in explanation_sentences(audit) if s.startswith(f"{variant}: ") and word in s]


def with_table(audit: AuditResult, name: str, **values: Any) -> AuditResult:
    frame = audit.explanations[name].assign(**values)
    return replace(audit, explanations={name: frame})


def test_an_ordinary_audit_has_no_such_sentences(population: AuditResult) -> None:
    assert explanation_sentences(population) == []


def test_exemplars_are_counted_against_the_floor(explained: AuditResult) -> None:
    (few,) = said_of(explained, "int8", "typical compressed model")
    assert few == (
        "int8: on 40 of 4,000 examples (1.0 %) the typical compressed model disagrees with the "
        "typical dense one; with fewer members: 1.1 %, retraining alone 1.1 % [0.8 %, 1.6 %]; not "
        "shown to be more than retraining (p = 0.40)."
    )
    (many,) = said_of(explained, "pruned-90", "typical compressed model")
    assert many.endswith("; more than retraining (p = 0.004).")
    unknown = with_table(explained, "exemplar_counts", floor=None, status="no noise floor: few")
    (said,) = said_of(unknown, "int8", "typical compressed model")
    assert said.endswith("; cannot be compared with retraining: too few dense models.")
    alone = with_table(
        explained, "exemplar_counts", n_exemplars=None, status="not_estimable: one model"
    )
    assert said_of(alone, "int8", "exemplars") == ["int8: exemplars: cannot tell (one model)."]


def test_enrichment_is_named_only_beyond_retraining(explained: AuditResult) -> None:
    (said,) = said_of(explained, "int8", "common among exemplars")
    assert said == (
        "int8: age=old is more common among exemplars (Taxicab, top 10 %) than with retraining "
        "alone: odds ratio 1.80 [1.26, 2.52], n = 30; with as many members 1.64 [1.31, 2.05] times "
        "that of retraining (1.10), p = 0.001 corrected."
    )
    same = with_table(explained, "enrichment", p_adjusted=0.06)
    assert explanation_sentences(same)[0] == (
        "int8: groups among exemplars (Taxicab, top 10 %): no more than retraining alone shows."
    )
    unknown = with_table(explained, "enrichment", p_adjusted=None)
    assert "may reflect difficulty alone" in explanation_sentences(unknown)[0]
    few = with_table(
        explained, "enrichment", p_adjusted=None, status="may reflect difficulty alone: one model"
    )
    assert explanation_sentences(few)[0].endswith(
        "cannot be compared with retraining alone (one model); their shares may reflect difficulty "
        "alone."
    )


def test_slices_are_told_on_the_other_half(explained: AuditResult) -> None:
    (said,) = said_of(explained, "int8", "not searched")
    assert said == (
        "int8: sex=Female differs from the rest by −5.0 points [−8.0, −2.0] in the half of the "
        "data that was not searched (n = 600, p = 0.001)."
    )
    none = said_of(explained, "pruned-90", "slice")
    assert none == ["pruned-90: no slice lost clearly more than the rest."]
    why = "Slices were not searched: there is no column to make them of."
    unsearched = replace(explained, notes=(f"pruned-90: {why}",))
    assert said_of(unsearched, "pruned-90", "slice") == [
        "pruned-90: slices were not searched: there is no column to make them of."
    ]
    lost = with_table(explained, "slices", status="not confirmed")
    assert said_of(lost, "int8", "slices") == [
        "int8: 1 of 1 slices found in one half of the data were not confirmed in the other."
    ]


def test_individuals_by_their_shrunken_shifts(explained: AuditResult) -> None:
    people = explained.explanations["individuals"].head(2)
    people = people.assign(shift_shrunk=[-0.12, 0.03], shift_high=[-0.01, 0.08])
    audit = replace(explained, explanations={"individuals": people})
    assert explanation_sentences(audit) == [
        "int8: 2 individuals change by −12.0 points to +3.0 points (shrunken); a loss is shown for "
        "1."
    ]


def test_properties_are_associations_with_intervals(explained: AuditResult) -> None:
    found = said_of(explained, "int8", " lost ")
    assert found[-2:] == [
        "int8: absolute tilt: examples that the dense models got right are lost more often; log "
        "odds +0.40 [+0.25, +0.55] per standard deviation, p < 0.001 corrected.",
        "int8: no clear link with lost predictions: ink (mean pixel).",
    ]


def test_coefficients_speak_with_clustered_errors_where_they_are_known(
    explained: AuditResult,
) -> None:
    frame = explained.explanations["class_coefficients"]
    audit = replace(explained, explanations={"class_coefficients": frame})
    imbalance, entropy, _ = explanation_sentences(audit)
    assert imbalance == (
        "The accuracy of a class is associated with its share of the training data: coefficient "
        "1.24 [0.883, 1.60] (errors clustered on lineages, other terms held constant)."
    )
    assert entropy.startswith("No clear link of class accuracy with the entropy")
    hac = replace(explained, explanations={"class_coefficients": frame[frame["fit"] == "ols-hac"]})
    assert "[1.12, 1.36] (HAC errors" in explanation_sentences(hac)[0]


@pytest.mark.parametrize("word", ["cause", "because of", " fair", "biased", "due to"])
def test_no_sentence_claims_too_much(word: str, explained: AuditResult) -> None:
    assert word not in " ".join(explanation_sentences(explained)).lower()


def test_empty_tables_and_hostile_names(hostile_explained: AuditResult) -> None:
    said = explanation_sentences(hostile_explained)
    assert len(said) == 24
    assert not any("\x1b" in sentence for sentence in said)
    empty = {name: frame.iloc[:0] for name, frame in hostile_explained.explanations.items()}
    short = explanation_sentences(replace(hostile_explained, explanations=empty))
    assert len(short) == 2  # the search for slices found none, in either variant
    assert all(sentence.endswith("no slice lost clearly more than the rest.") for sentence in short)


def test_tasks_are_named(explained: AuditResult) -> None:
    frame = explained.explanations["exemplar_counts"]
    both = pd.concat([frame.assign(task="Blond"), frame.assign(task="Smiling")])
    audit = replace(explained, explanations={"exemplar_counts": both})
    said = said_of(audit, "int8", "typical compressed model")
    assert ["(Blond)" in said[0], "(Smiling)" in said[1]] == [True, True]
