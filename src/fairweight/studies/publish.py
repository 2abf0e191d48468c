"""What a study has found so far, where people look: tables that `audit` reads, and reports."""

from __future__ import annotations

import shutil
from pathlib import Path

from fairweight.runs.plan import Plan, on_own_data
from fairweight.runs.stages import PREDICTIONS, TRAINING
from fairweight.runs.store import Store
from fairweight.studies.audit_stage import distances_in, gather, link
from fairweight.studies.experiment_file import write_experiment


def publish(plan: Plan, store: Store, out: Path) -> list[Path]:
    """Write a folder for every experiment that has predictions; returns them.

    A folder holds `predictions/VARIANT/SEED.parquet`, `variants.parquet`, `train.parquet`,
    `study.json` (what the experiment is about), where they were asked for
    `validation/VARIANT/SEED.parquet`, and the audit's report once there is one.
    What was found about classes goes into `classes`, what was set side by side into `settings`.
    """
    done = store.done()
    folders = []
    for name, experiment in plan.experiments.items():
        finished = [model for model in plan.of(name) if model.asked_by in done]
        if not finished:
            continue
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        rows = [[model.variant, model.seed, model.parent] for model in finished]
        distances = [
            distances_in(store.folder(model.compared_by)) if model.compared_by in done else {}
            for model in finished
        ]
        gather(rows, [store.folder(model.asked_by) for model in finished], folder, distances)
        trained = (m for m in finished if on_own_data(experiment, m) and m.made_by in done)
        write_experiment(plan.study.name, experiment, folder)
        first = next(trained, None)
        if first is not None:
            link(store.folder(first.made_by) / TRAINING, folder / TRAINING)
        for model in finished:
            if model.validated_by in done:
                answers = store.folder(str(model.validated_by)) / PREDICTIONS
                link(answers, folder / "validation" / model.variant / f"{model.seed}.parquet")
        audit = plan.audits.get(name)
        if audit is not None and audit in done:
            _copy_outputs(store.folder(audit), folder / "audit")
        folders.append(folder)
    for name, key in (("classes", plan.classes), ("settings", plan.settings)):
        if key is not None and key in done:
            folder = out / name
            shutil.rmtree(folder, ignore_errors=True)
            _copy_outputs(store.folder(key), folder)
            folders.append(folder)
    return folders


def _copy_outputs(stage: Path, folder: Path) -> None:
    shutil.copytree(stage, folder, ignore=shutil.ignore_patterns("stage.json", ".*"))
