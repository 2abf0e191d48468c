"""An audit in an experiment tracker: MLflow or Weights & Biases, of which neither is required.

Numbers go where a tracker plots them, the report and its tables go with the run as artefacts.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight import __version__
from fairweight.auditing.result import is_ok, records
from fairweight.base.wording import real, text
from fairweight.errors import InputError
from fairweight.report.html import save

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

FOLDER = "fairweight"  # in front of every name, and the folder of artefacts
_TRACKED = (("accuracy", "overall"), ("accuracy", "group"), ("recall", "class"))
_COLUMNS = {"baseline": "baseline", "compressed": "compressed", "shift": "shift",
            "ci_low": "shift_low", "ci_high": "shift_high"}  # fmt: skip
_FORBIDDEN = re.compile(r"[^\w.\- ]")  # MLflow refuses the rest, and a slash makes a folder


def tracked_numbers(result: AuditResult) -> dict[str, float]:
    """Accuracy overall and by group, recall by class: both sides, the shift and its limits.

    Named `fairweight/VARIANT/METRIC/GROUP/shift`. What is undefined, or rests on too few examples,
    is left out.
    """
    found: dict[str, float] = {}
    rows = result.results
    for metric, by in _TRACKED:
        chosen = rows[(rows["metric"] == metric) & (rows["by"] == by) & (rows["scope"] == "model")]
        for row in records(chosen[is_ok(chosen)]):
            places = [text(row[key]) for key in ("task", "group", "class")]
            parts = [FOLDER, row["variant"], metric, *(part for part in places if part is not None)]
            name = "/".join(_FORBIDDEN.sub("_", part) for part in parts)
            stem, again = name, 2
            while f"{name}/shift" in found:  # two names that differ in forbidden characters alone
                name, again = f"{stem}_{again}", again + 1
            for column, word in _COLUMNS.items():
                if (value := real(row[column])) == value:
                    found[f"{name}/{word}"] = value
    return found


def tracked_tags(result: AuditResult, verdict: Verdict | None) -> dict[str, str]:
    """What was compared, and the verdict of a gate."""
    tags = {"version": __version__, "baseline": result.baseline}
    if verdict is not None:
        tags["verdict"] = verdict.outcome
        tags |= {f"verdict.{name}": outcome for name, outcome in verdict.variants.items()}
    return {f"{FOLDER}.{_FORBIDDEN.sub('_', name)}": value for name, value in tags.items()}


def log_to(result: AuditResult, run: Any, verdict: Verdict | None = None) -> None:
    """Log numbers, tags and the report to a run of a tracker; which one, its type says."""
    package = type(run).__module__.partition(".")[0]
    if package not in TRACKERS:
        raise InputError(
            f"log_to cannot use {type(run).__module__}.{type(run).__qualname__}; give a run of "
            "MLflow (mlflow.active_run(), or mlflow.start_run()) or of Weights & Biases "
            "(wandb.init())."
        )
    numbers, tags = tracked_numbers(result), tracked_tags(result, verdict)
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held, FOLDER)
        save(result, folder, verdict)
        TRACKERS[package](run, numbers, tags, folder)


def _to_mlflow(run: Any, numbers: dict[str, float], tags: dict[str, str], folder: Path) -> None:
    """Into the store that MLflow is set to (`mlflow.set_tracking_uri`)."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, RunTag

    client, run_id, now = MlflowClient(), run.info.run_id, int(1000 * time.time())
    metrics = [Metric(name, value, now, 0) for name, value in numbers.items()]
    for start in range(0, max(1, len(metrics)), _BATCH):
        labels = [RunTag(key, value) for key, value in tags.items()] if start == 0 else []
        client.log_batch(run_id, metrics=metrics[start : start + _BATCH], tags=labels)
    client.log_artifacts(run_id, str(folder), FOLDER)


_BATCH = 900  # MLflow takes 1,000 at a time, tags among them


def _to_wandb(run: Any, numbers: dict[str, float], tags: dict[str, str], folder: Path) -> None:
    """Into the run's history and summary, with an artefact of the type `fairweight-audit`."""
    import wandb

    run.log(dict(numbers))
    run.summary.update(tags)
    artifact = wandb.Artifact(f"{FOLDER}-{run.id}", type="fairweight-audit", metadata=dict(tags))
    artifact.add_dir(str(folder))
    run.log_artifact(artifact)


Tracker = Callable[[Any, dict[str, float], dict[str, str], Path], None]
TRACKERS: dict[str, Tracker] = {"mlflow": _to_mlflow, "wandb": _to_wandb}
