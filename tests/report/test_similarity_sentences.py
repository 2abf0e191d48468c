from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from fairweight.auditing.explain.similarity import regress, similarity
from fairweight.auditing.result import AuditResult
from fairweight.report.examples import explanation
from fairweight.report.explanation_sentences import sentences_by_variant
from fairweight.report.view_model import view

DISTANCES, CEV = (0.05, 0.06, 0.09, 0.11, 0.14), (100.0, 180.0, 150.0, 260.0, 400.0)


def said_of(audit: AuditResult, points: pd.DataFrame) -> list[str]:
    tables = {"similarity_points": points, "similarity": similarity(points)}
    return sentences_by_variant(replace(audit, explanations=tables))[None]


def made() -> pd.DataFrame:
    names = [f"v{i}" for i in range(5)]
    return pd.DataFrame(
        {"measure": "cka", "block": "block1", "variant": names, "distance": DISTANCES,
         "floor": 0.04, "cev": CEV, "sde": np.nan, "accuracy": 0.9, "sparsity": 0.5}
    )  # fmt: skip


def test_an_association_is_told_with_its_number_of_variants(population: AuditResult) -> None:
    line = regress(DISTANCES, CEV)
    ends = f"[{line.correlation_low:.2f}, {line.correlation_high:.2f}]".replace("-", "−")
    assert said_of(population, made()) == [
        "CKA distances of the variants' representations to their dense models: 0.0500 to 0.140 in "
        "block1 (between dense models: 0.0400).",
        f"Over 5 variants, the correlation of CEV with the CKA distance is {line.correlation:.2f} "
        f"{ends} in block1.",
        "How SDE goes with the CKA distance in block1: cannot tell (0 variants, 4 are needed "
        "(left out for want of a distance or SDE: v0, v1, v2 and 2 more)).",
        "These are associations over variants, which share dense models and differ in more than "
        "their distances; they name no cause.",
    ]


def test_too_few_variants_are_no_evidence(population: AuditResult) -> None:
    few = said_of(population, made().head(3).assign(floor=np.nan, sde=1.0))
    assert few == [
        "CKA distances of the variants' representations to their dense models: 0.0500 to 0.0900 in "
        "block1 (between dense models: not known).",
        "How CEV goes with the CKA distance in block1: cannot tell (3 variants, 4 are needed).",
        "How SDE goes with the CKA distance in block1: cannot tell (3 variants, 4 are needed).",
    ]


def test_the_floor_of_a_distance_is_no_share(population: AuditResult) -> None:
    distant = replace(population, explanations={"similarity_points": made()})
    page = explanation(distant, view(distant), {})
    assert page is not None
    (table,) = page.tables.values()
    shown = dict(zip(table.headings, (cell.shown for cell in table.rows[0]), strict=True))
    assert (shown["floor"], shown["accuracy"]) == ("0.0400", "90.0 %")
