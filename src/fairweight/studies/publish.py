"""What a study has found so far, where people look: tables that `audit` reads, and reports."""

from __future__ import annotations

import shutil
from pathlib import Path

from fairweight.runs.plan import Plan
from fairweight.runs.stages import TRAINING
from fairweight.runs.store import Store
from fairweight.studies.audit_stage import gather, link


def publish(plan: Plan, store: Store, out: Path) -> list[Path]:
    """Write a folder for every experiment that has predictions; returns them.

    A folder holds `predictions/VARIANT/SEED.parquet`, `variants.parquet`, `train.parquet`, and the
    audit's report once there is one.
    """
    done = store.done()
    folders = []
    for name in plan.experiments:
        finished = [model for model in plan.of(name) if model.asked_by in done]
        if not finished:
            continue
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        rows = [[model.variant, model.seed, model.parent] for model in finished]
        gather(rows, [store.folder(model.asked_by) for model in finished], folder)
        dense = next((m for m in finished if m.parent is None and m.made_by in done), None)
        if dense is not None:
            link(store.folder(dense.made_by) / TRAINING, folder / TRAINING)
        audit = plan.audits.get(name)
        if audit is not None and audit in done:
            shutil.copytree(
                store.folder(audit),
                folder / "audit",
                ignore=shutil.ignore_patterns("stage.json", ".*"),
            )
        folders.append(folder)
    return folders
