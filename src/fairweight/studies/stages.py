"""The audit of an experiment as a stage: predictions of all its models in, a report out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairweight.base.files import atomic_file
from fairweight.errors import UnknownNameError
from fairweight.runs.cost import Cost, Unit
from fairweight.runs.executor import StageContext
from fairweight.runs.stage import stage_kind
from fairweight.runs.stages import PREDICTIONS, SIMILARITY, TRAINING, VARIANT
from fairweight.specs.audit import AuditOptions
from fairweight.tables.sources import CLASSES_KEYS
from fairweight.tables.spec import SourceRef, TableSpec, sources_of

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.auditing.result import AuditResult


# Figures of a stage as SVG files.


def draw_all(
    result: AuditResult, ids: Sequence[str], variants: Sequence[str | None], folder: Path
) -> None:
    """Draw figures of variants into `ID-VARIANT.svg`, those of all variants together into `ID.svg`.

    A figure that this result has no numbers for is left out.
    """
    from fairweight.base.trust import inside
    from fairweight.report.figures import draw, figures
    from fairweight.report.figures.export import rendered

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


BASELINE = "dense"
TABLES = {"variants": "variants.parquet"}
# Seconds of an audit. Of each attribute and variant, with exemplars: 1.7 s for three members, 1,200
# examples and 100 replicates, more for more of them.
AUDIT, SCORED_AUDIT, TASK_AUDIT = 8.0, 30.0, 3.0


def _audit_cost(spec: Mapping[str, Any], unit: Unit) -> Cost:
    """Of several attributes each is audited by itself, for every variant."""
    variants = len({variant for variant, _, _ in spec["models"]}) - 1
    once = SCORED_AUDIT if spec["scores"] else AUDIT
    return Cost(once + TASK_AUDIT * variants * len(spec["data"]["tasks"]), 5e6)


@stage_kind("audit", reads=("predict", "similarity"), cost=_audit_cost)
def audit(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """Audit what the inputs' models answered; the report goes into the room."""
    from fairweight.auditing.pipeline import audited
    from fairweight.report.html import save

    place = context.work / "tables"
    models, folders = spec["models"], list(inputs.values())
    gather(models, folders[: len(models)], place, _distances(spec, folders[len(models) :]))
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
        variants=SourceRef(str(place / TABLES["variants"])),
        positive=spec["positive"],
        # The lab's own predictions are classes, whatever a model that has not learned says.
        force=True,
    )
    result = audited(
        tables,
        AuditOptions(n_boot=spec["n_boot"], **_watched(spec)),
        explain=_looked_for(spec, context),
        progress=lambda words, done, total: context.progress(done, total, words),
    )
    save(result, room)
    draw_all(result, spec["figures"], result.variants, room / "figures")


def _looked_for(spec: Mapping[str, Any], context: StageContext) -> ExplainRequest | None:
    """What the experiment asks for beyond the audit; images are measured where that needs them."""
    parts = tuple(spec["explain"])
    if not parts:
        return None
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.auditing.explain.images import measure
    from fairweight.lab.partition import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.toml import read_spec

    prepared = prepare(read_spec(Data, spec["data"], "The data"), context.data)
    measured = {"properties", "individuals"} & set(parts)
    return ExplainRequest(
        parts=parts,
        group=spec["individual_group"],
        tie_rule=spec.get("tie_rule", "disjoint"),
        fill=spec.get("fill"),
        measure=measure(prepared.test, prepared.train) if measured else None,
        images=prepared.test,
    )


def write_training(data: Mapping[str, Any], context: StageContext, place: Path) -> Path:
    """The labels and groups of the training examples as a table."""
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import training_table, write_table
    from fairweight.specs.data import Data
    from fairweight.specs.toml import read_spec

    train = prepare_once(read_spec(Data, data, "The data"), context.data).train
    return Path(write_table(training_table(train), place / TRAINING))


def keep_tasks(path: Path, tasks: Sequence[str]) -> None:
    """Leave only these attributes in a table; one alone becomes its label, with no and yes."""
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


def _watched(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Bias amplification towards one side, whatever the data say; by default as they say."""
    side = spec.get("fixed_side")
    return {} if side is None else {"fixed_side": side, "filters": False}


def _distances(spec: Mapping[str, Any], folders: list[Path]) -> list[dict[str, Any]]:
    """Of every model the columns that compare it with its dense member; none where it was not."""
    left = iter(folders)
    return [
        distances_in(next(left)) if compared else {}
        for compared in spec.get("compared", [False] * len(spec["models"]))
    ]


def distances_in(folder: Path) -> dict[str, Any]:
    """The columns that a stage of similarity wrote."""
    found: dict[str, Any] = json.loads((folder / SIMILARITY).read_text(encoding="utf-8"))
    return found


def gather(
    models: list[list[Any]],
    folders: list[Path],
    place: Path,
    further: list[dict[str, Any]] | None = None,
) -> None:
    """A folder that `fairweight audit` reads: predictions by variant and seed, variants beside.

    Files are linked where the file system can, so that nothing is stored twice. `further` are
    more columns of the variants table, by model.
    """
    rows = []
    columns = further or [{}] * len(models)
    for (variant, seed, parent), folder, more in zip(models, folders, columns, strict=True):
        row = json.loads((folder / VARIANT).read_text(encoding="utf-8")) | more
        rows.append({**row, "variant": variant, "seed": seed, "parent": parent})
        link(folder / PREDICTIONS, place / "predictions" / variant / f"{seed}.parquet")
    _write_rows(rows, place / TABLES["variants"])


def link(source: Path, target: Path) -> None:
    """The same file at a second place, or a copy of it."""
    import shutil

    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _write_rows(rows: list[dict[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    with atomic_file(path, "wb") as file:
        pq.write_table(table, file)


# Accuracies of all classes of all experiments, explained together: one stage of a study.

OF_SWEEPS = ("PA-F3a", "PA-F3b", "PA-F3c", "PA-F6")
OF_REGRESSIONS = ("PA-T2", "PA-F14", "PA-F15")


def _classes_cost(spec: Mapping[str, Any], unit: Unit | None) -> Cost:
    """Tables, regressions and figures of all experiments: 174 s for 1,668 models."""
    models = sum(len(one["models"]) for one in spec["experiments"])
    return Cost(AUDIT + 0.1 * models, 5e6 + 2e3 * models)


@stage_kind("classes", reads=("predict",), cost=_classes_cost)
def classes(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """Tabulate every experiment, fit the regressions of all, draw both."""
    from fairweight.auditing.explain.class_regression import explain_classes
    from fairweight.auditing.explain.class_rows import class_rows
    from fairweight.auditing.table_files import write_frames

    results: list[AuditResult] = []
    covariates: dict[str, pd.DataFrame] = {}
    experiments = spec["experiments"]
    for number, one in enumerate(experiments):
        context.progress(number, len(experiments), one["name"])
        place = context.work / one["name"]
        folders = [inputs[key] for key in one["asked_by"]]
        gather(one["models"], folders, place)
        result = _tabulated(place, write_training(one["data"], context, place))
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
    from fairweight.auditing.prediction_matrix import from_aligned
    from fairweight.auditing.sweep import tabulated
    from fairweight.tables.align import align

    tables = TableSpec(
        sources_of(str(place / "predictions" / "*" / "*.parquet")),
        baseline=BASELINE,
        groups=(),
        train=SourceRef(str(training)),
        variants=SourceRef(str(place / TABLES["variants"])),
    )
    with align(tables) as aligned:
        return tabulated(from_aligned(aligned, scores=False))


def _covariates(data: Mapping[str, Any], context: StageContext) -> pd.DataFrame:
    import numpy as np

    from fairweight.auditing.explain.class_rows import class_covariates
    from fairweight.lab.partition import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.toml import read_spec

    train = prepare(read_spec(Data, data, "The data"), context.data).train
    return class_covariates(np.asarray(train.images), train.labels, train.classes)


# Experiments of a study that differ in one thing, side by side: one stage of a study.

FIGURES = ("IO-F3", "IO-F4")


@stage_kind("settings", reads=("audit",), cost=lambda spec, unit: Cost(AUDIT, 1e6))
def settings(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """Put the attributes of all audits into one table, and draw it."""
    from fairweight.auditing.archive import load
    from fairweight.auditing.explain.attributes import settings_table
    from fairweight.auditing.table_files import write_frames

    audits = []
    for number, ((name, setting), folder) in enumerate(
        zip(spec["settings"], inputs.values(), strict=True)
    ):
        context.progress(number, len(inputs), name)
        audits.append((setting, load(folder)))
    tables = {"settings": settings_table(audits)}
    write_frames(tables, room / "tables")
    together = replace(audits[0][1], explanations=tables)
    draw_all(together, FIGURES, [None], room / "figures")
