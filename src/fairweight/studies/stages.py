"""The audits of a study as stages: of an experiment, of all classes, of settings side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairweight.auditing.archive import load
from fairweight.auditing.explain.attributes import settings_table
from fairweight.auditing.explain.class_regression import explain_classes
from fairweight.auditing.explain.class_rows import class_covariates, class_rows
from fairweight.auditing.explain.explanations import ExplainRequest
from fairweight.auditing.explain.images import measure
from fairweight.auditing.pipeline import audited
from fairweight.auditing.prediction_matrix import from_aligned
from fairweight.auditing.result import AuditResult
from fairweight.auditing.sweep import tabulated
from fairweight.auditing.table_files import write_frames
from fairweight.base.files import atomic_file
from fairweight.base.trust import inside
from fairweight.errors import UnknownNameError
from fairweight.report.figures import draw, figures
from fairweight.report.figures.export import rendered
from fairweight.report.html import save
from fairweight.runs.executor import StageContext
from fairweight.runs.stage import DENSE, TRAINING
from fairweight.specs.audit import AuditOptions
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec
from fairweight.studies.publication import VARIANTS, distances_in, gather
from fairweight.tables.align import align
from fairweight.tables.sources import CLASSES_KEYS
from fairweight.tables.spec import SourceRef, TableSpec, sources_of

if TYPE_CHECKING:
    from fairweight.lab.partition import Prepared

BASELINE = DENSE
# Figures of the stages that put experiments together.
OF_SWEEPS = ("PA-F3a", "PA-F3b", "PA-F3c", "PA-F6")
OF_REGRESSIONS = ("PA-T2", "PA-F14", "PA-F15")
OF_SETTINGS = ("IO-F3", "IO-F4")


def draw_all(
    result: AuditResult, ids: Sequence[str], variants: Sequence[str | None], folder: Path
) -> None:
    """Draw figures of variants into `ID-VARIANT.svg`, those of all variants together into `ID.svg`.

    A figure that this result has no numbers for is skipped.
    """
    together = {figure.id for figure in figures() if figure.once}
    for id in ids:
        for variant in [None] if id in together else variants:
            drawing = draw(id, result, variant, None)
            if drawing.spec is None:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            path = inside(folder, f"{id}.svg" if variant is None else f"{id}-{variant}.svg")
            with atomic_file(path, "wb") as file:
                file.write(rendered(drawing.spec, path.suffix))


def _prepared(data: Mapping[str, Any], context: StageContext) -> Prepared:
    """The held-out parts of an experiment's data."""
    from fairweight.lab.partition import prepare_once  # with torch

    return prepare_once(read_spec(Data, data, "The data"), context.data)


def audit(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Audit the predictions of the inputs' models; the report goes into the folder."""
    place = context.work / "tables"
    models, folders = spec["models"], list(inputs.values())
    # Columns that compare a model with its dense member; none where it was not compared.
    compared = iter(folders[len(models) :])
    distances = [
        distances_in(next(compared)) if is_compared else {}
        for is_compared in spec.get("compared", [False] * len(models))
    ]
    gather(models, folders[: len(models)], place, distances)
    trained = write_training(spec["data"], context, place)
    wanted = spec.get("audited_tasks")
    if wanted is not None:
        for path in (trained, *place.glob("predictions/*/*.parquet")):
            keep_tasks(path, wanted)
    tables = TableSpec(
        sources_of(str(place / "predictions" / "*" / "*.parquet")),
        baseline=BASELINE,
        groups=spec["groups"],
        cluster=spec["cluster"],
        task="task" if "task" in pq.read_schema(trained).names else None,
        train=SourceRef(str(trained)),
        variants=SourceRef(str(place / VARIANTS)),
        positive=spec["positive"],
        # The lab's own predictions are classes, whatever a model that has not learned says.
        force=True,
    )
    options = AuditOptions(n_boot=spec["n_boot"])
    if spec.get("fixed_side") is not None:
        # Bias amplification towards one side, whatever the data say.
        options = replace(options, fixed_side=spec["fixed_side"], filters=False)
    explain = None
    if spec["explain"]:
        prepared = _prepared(spec["data"], context)
        measured = {"properties", "individuals"} & set(spec["explain"])
        explain = ExplainRequest(
            parts=tuple(spec["explain"]),
            group=spec["individual_group"],
            tie_rule=spec.get("tie_rule", "disjoint"),
            fill=spec.get("fill"),
            measure=measure(prepared.test, prepared.train) if measured else None,
            images=prepared.test,
        )
    result = audited(
        tables,
        options,
        explain=explain,
        progress=lambda words, done, total: context.progress(done, total, words),
        names_task=True,  # one attribute alone stands beside the same one of others
    )
    save(result, folder)
    draw_all(result, spec["figures"], result.variants, folder / "figures")


def write_training(data: Mapping[str, Any], context: StageContext, place: Path) -> Path:
    """The labels and groups of the training examples as a table."""
    from fairweight.lab.prediction import training_table, write_table  # with torch

    return Path(write_table(training_table(_prepared(data, context).train), place / TRAINING))


def keep_tasks(path: Path, tasks: Sequence[str]) -> None:
    """Keep only these attributes of a table; a single one becomes the label, with no and yes."""
    table = pq.read_table(path)
    held = set(table["task"].to_pylist()) if "task" in table.column_names else set()
    for task in tasks:
        if task not in held:
            raise UnknownNameError("In `audited_tasks` of an experiment, the task", task, held)
    table = table.filter(pc.is_in(table["task"], pa.array(tasks)))
    if len(tasks) == 1:
        table = table.drop_columns(["task"])
        for name in {"label", "prediction"} & set(table.column_names):
            values = pa.array(["no", "yes"]).take(table[name])
            table = table.set_column(table.column_names.index(name), name, values)
        order = {CLASSES_KEYS[0]: json.dumps(["no", "yes"])}
        table = table.replace_schema_metadata(order if "scores" in table.column_names else None)
    with atomic_file(path, "wb") as file:
        pq.write_table(table, file)


def classes(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Accuracies of all classes of all experiments: tabulate, fit the regressions, draw both."""
    results: list[AuditResult] = []
    covariates: dict[str, pd.DataFrame] = {}
    experiments = spec["experiments"]
    for number, one in enumerate(experiments):
        context.progress(number, len(experiments), one["name"])
        place = context.work / one["name"]
        gather(one["models"], [inputs[key] for key in one["asked_by"]], place)
        spec_of_tables = TableSpec(
            sources_of(str(place / "predictions" / "*" / "*.parquet")),
            baseline=BASELINE,
            groups=(),
            train=SourceRef(str(write_training(one["data"], context, place))),
            variants=SourceRef(str(place / VARIANTS)),
        )
        with align(spec_of_tables) as aligned:
            result = tabulated(from_aligned(aligned, scores=False))
        results.append(result)
        name = one["data"]["name"]
        if name not in covariates:
            train = _prepared(one["data"], context).train
            covariates[name] = class_covariates(
                np.asarray(train.images), train.labels, train.classes
            )
        draw_all(result, OF_SWEEPS, [None], folder / "figures" / one["name"])
    context.progress(len(experiments), len(experiments), "regressions")
    rows = class_rows(results, covariates)
    found = explain_classes(rows)
    tables = {
        "class_rows": rows,
        "class_coefficients": found.coefficients,
        "class_fits": found.fits,
        "class_residuals": found.residuals,
    }
    write_frames(tables, folder / "tables")
    together = replace(results[0], explanations=tables)
    draw_all(together, OF_REGRESSIONS, [None], folder / "figures" / "all")


def settings(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Experiments that differ in one thing, side by side: one table of their attributes, drawn."""
    audits = []
    for number, ((name, setting), audited_in) in enumerate(
        zip(spec["settings"], inputs.values(), strict=True)
    ):
        context.progress(number, len(inputs), name)
        audits.append((setting, load(audited_in)))
    tables = {"settings": settings_table(audits)}
    write_frames(tables, folder / "tables")
    together = replace(audits[0][1], explanations=tables)
    draw_all(together, OF_SETTINGS, [None], folder / "figures")
