"""Accuracies of all classes of all experiments, explained together: one stage of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.runs.context import Context
from fairweight.runs.stages import TRAINING
from fairweight.studies.audit_stage import BASELINE, TABLES, gather
from fairweight.studies.drawings import draw_all

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

OF_SWEEPS = ("PA-F3a", "PA-F3b", "PA-F3c", "PA-F6")
OF_REGRESSIONS = ("PA-T2", "PA-F14", "PA-F15")


def run(spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context) -> None:
    """Tabulate every experiment, fit the regressions of all, draw both."""
    from fairweight.auditing.explain.class_explanation import explain_classes
    from fairweight.auditing.explain.class_rows import class_rows
    from fairweight.report.tables import write_frames

    results: list[AuditResult] = []
    covariates: dict[str, pd.DataFrame] = {}
    experiments = spec["experiments"]
    for number, one in enumerate(experiments):
        context.progress(number, len(experiments), one["name"])
        place = context.work / one["name"]
        folders = [inputs[key] for key in one["asked_by"]]
        gather(one["models"], folders, place)
        result = _tabulated(place, inputs[one["dense"]] / TRAINING)
        results.append(result)
        name = one["data"]["name"]
        if name not in covariates:
            covariates[name] = _covariates(one["data"], context)
        draw_all(result, OF_SWEEPS, [None], room / "figures" / one["name"])
    context.progress(len(experiments), len(experiments), "regressions")
    rows = class_rows(results, covariates)
    found = explain_classes(rows)
    tables = {
        "class_rows": rows,
        "class_coefficients": found.coefficients,
        "class_fits": found.fits,
        "class_residuals": found.residuals,
    }
    write_frames(tables, room / "tables")
    together = replace(results[0], explanations=tables)
    draw_all(together, OF_REGRESSIONS, [None], room / "figures" / "all")


def _tabulated(place: Path, training: Path) -> AuditResult:
    from fairweight.auditing.answers import from_aligned
    from fairweight.auditing.tabulated import tabulated
    from fairweight.tables.align import align

    with align(
        str(place / "predictions" / "*" / "*.parquet"),
        baseline=BASELINE,
        groups=[],
        train=str(training),
        variants=str(place / TABLES["variants"]),
    ) as aligned:
        return tabulated(from_aligned(aligned, scores=False))


def _covariates(data: Mapping[str, Any], context: Context) -> pd.DataFrame:
    import numpy as np

    from fairweight.auditing.explain.covariates import class_covariates
    from fairweight.lab.prepared_data import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.read_spec import read_spec

    train = prepare(read_spec(Data, data, "The data"), context.data).train
    return class_covariates(np.asarray(train.images), train.labels, train.classes)
