"""One attribute with two answers, a cascade and overrides: what a decision looks at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

import fairweight as fw
from fairweight.auditing.mitigate.cascade import (
    cascade_curve,
    input_confidence,
    recommended,
    threshold_grid,
)
from fairweight.auditing.mitigate.mitigation import two_parts
from fairweight.auditing.mitigate.override_curves import override_curves
from fairweight.studies.demo import load
from gallery_data.attributes import CATEGORIES, answers_of, training
from gallery_data.classes import N_BOOT

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

ATTRIBUTE = "loop"
MARGIN = 0.05


def audit_of_two_answers() -> AuditResult:
    """Populations with a positive class, and the curves of two mitigations."""
    halves = load(0)
    tasks, found, known = answers_of(ATTRIBUTE, halves)
    learnt = training(halves.train, [ATTRIBUTE]).drop(columns="task")
    made = fw.audit_table(
        found, groups=[*CATEGORIES, "*".join(CATEGORIES)], train=learnt, variants=known,
        n_boot=N_BOOT,
    )  # fmt: skip
    choosing, judging = two_parts(tasks, 0)
    curves = []
    for name in tasks[0].variants:
        grid = threshold_grid(input_confidence(choosing, name))
        first = cascade_curve(choosing, name, grid, "choosing", n_boot=N_BOOT)
        second = cascade_curve(judging, name, grid, "judging", n_boot=N_BOOT)
        curve = pd.concat([first, second], ignore_index=True)
        curves.append(curve.assign(recommended=curve["threshold"] == recommended(first, MARGIN)))
    tables = {
        "cascade_curve": pd.concat(curves, ignore_index=True),
        "override_curves": override_curves(tasks, tasks[0].variants, n_boot=N_BOOT),
    }
    return replace(made.result, explanations=tables)
