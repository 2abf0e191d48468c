"""Small studies on disk, one of them with the worst names that a file can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import fairweight as fw
from fairweight.data.codecs import png

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "../../etc/passwd",
    "null\x00byte",
    "x" * 10_000,
    "right\u202eto left",
    "{{ 7 * 7 }} ${7*7} %s",
    "' OR 1=1 --",
)
REPORT = "<!doctype html><title>stored</title><script>window.ran = 1</script>"


def rows(n: int = 60, names: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> pd.DataFrame:
    """Three dense and three pruned models; the pruned ones lose class `b` of one group."""
    rng = np.random.default_rng(3)
    ids = [f"id-{i:03d}" for i in range(n)]
    for place, name in enumerate(names):
        ids[place] = name
    label = np.array(["a", "b", "c"])[np.arange(n) % 3]
    group = np.array(names or ("old", "young"))[np.arange(n) % len(names or "12")]
    parts = []
    for task in tasks or (None,):
        for variant, wrong in (("dense", 0.1), ("pruned", 0.3)):
            for seed in range(3):
                harmed = (label == "b") & (np.arange(n) % 2 == 0)
                lost = rng.random(n) < np.where(harmed, 2 * wrong, wrong / 2)
                part = pd.DataFrame(
                    {
                        "example_id": ids,
                        "variant": variant,
                        "seed": seed,
                        "label": label,
                        "prediction": np.where(lost, "c", label),
                        "score": np.where(lost, 0.6, 0.95) - seed / 100,
                        "age": group,
                    }
                )
                parts.append(part if task is None else part.assign(task=task))
    return pd.concat(parts, ignore_index=True)


def write_study(folder: Path, table: pd.DataFrame, *, images: bool = True) -> Path:
    """Predictions, images, an audit and a report as `fairweight demo` leaves them."""
    folder.mkdir(parents=True)
    table.to_parquet(folder / "predictions.parquet")
    ids = table["example_id"].unique()
    if images:
        gradient = np.linspace(0, 255, 64).astype(np.uint8).reshape(8, 8)
        shown = pd.DataFrame({"example_id": ids, "image": [png(gradient)] * len(ids)})
        shown.to_parquet(folder / "examples.parquet")
    audit = fw.audit_table(table, n_boot=20, random_state=0)
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.json").write_text(audit.to_json(), encoding="utf-8")
    (folder / "audit" / "report.html").write_text(REPORT, encoding="utf-8")
    return folder
