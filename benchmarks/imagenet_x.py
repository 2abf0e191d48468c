"""ImageNet-X, real predictions: 999 classes and 16 factors, from the file to the report.

python -m benchmarks.imagenet_x
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.lines import Line, plain
from benchmarks.measure import ROOT, Settings, interleaved, processor_seconds, python
from benchmarks.timed_audit import command_in_fresh_process

TITLE = "ImageNet-X"
SETTING = (
    "48,868 images, 999 classes, 16 factors, predictions of ResNet-50 against one and against "
    "three other models (facebookresearch/imagenetx): `fairweight audit` in a fresh process with "
    "default options. Processor time, the peak of its memory, the size of the folder. The page is "
    "opened in a fresh Chromium without a screen, until it has run its scripts and drawn what is "
    "in view: wall time, beside the same of an empty page."
)
FACTORS = (
    "multiple_objects,background,color,brighter,darker,style,larger,smaller,object_blocking,"
    "person_blocking,partial_view,pattern,pose,shape,subcategory,texture"
)
MODELS = ("ResNet50", "ViT", "DINO", "SimCLR")
ONE_S, THREE_S, FOLDER_MB, MEMORY_MB, PAGE_MB, PAGE_S = 12.0, 25.0, 8.0, 600.0, 4.0, 2.0
LIBRARIES = "import pandas, duckdb, scipy.special, pyarrow"
EMPTY = "<!doctype html><title>empty</title>"


def predictions() -> Path | None:
    """The file, below FAIRWEIGHT_REAL or beside the project; None where it is not here."""
    folder = Path(os.environ.get("FAIRWEIGHT_REAL", ROOT.parent / "shared" / "real"))
    path = folder / "imagenet-x" / "predictions.parquet"
    return path if path.is_file() else None


def run(settings: Settings) -> list[Line] | str:
    table = predictions()
    if table is None:
        return "Not measured: imagenet-x/predictions.parquet is not in FAIRWEIGHT_REAL."
    libraries = interleaved(
        {"libraries": lambda: python("-c", LIBRARIES)}, settings.rounds, processor_seconds
    )["libraries"]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        for title, models, limit in (("one pair", MODELS[:2], ONE_S), ("three", MODELS, THREE_S)):
            out = Path(name, title.replace(" ", "-"))
            found = command_in_fresh_process(audit(table, models, out, settings.n_boot))
            size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
            lines += [
                Line(f"{title}: processor time", found["cpu"], "limit", limit, target=1.0),
                Line(f"{title}: processor time", found["cpu"], LIBRARIES, libraries),
            ]
            if len(models) == 2:
                page = out / "report.html"
                lines += [
                    Line(f"{title}: memory", found["peak_mb"], "limit", MEMORY_MB, "MB",
                         target=1.0),
                    Line(f"{title}: folder", size, "limit", FOLDER_MB, "MB", target=1.0),
                    Line("page", page.stat().st_size / 1e6, "limit", PAGE_MB, "MB", target=1.0),
                    *_opened(page, settings.rounds),
                ]  # fmt: skip
    return lines


def audit(table: Path, models: tuple[str, ...], out: Path, n_boot: int) -> tuple[str, ...]:
    chosen = [word for m in models for word in ("--prediction", f"{m}=pred_{m}")]
    return (
        "audit", str(table), "--id", "file_name", "--baseline", models[0], "--groups", FACTORS,
        *chosen, "--n-boot", str(n_boot), "--out", str(out),
    )  # fmt: skip


def _opened(page: Path, rounds: int) -> list[Line]:
    """How long Chromium takes for the page; nothing where there is no Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return []
    empty = page.with_name("empty.html")
    empty.write_text(EMPTY)
    taken: dict[str, list[float]] = {"page": [], "empty": []}
    processor: dict[str, list[float]] = {"page": [], "empty": []}

    def opening(path: Path) -> object:
        words = (chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom")
        return subprocess.run([*words, path.as_uri()], capture_output=True, check=True)

    for _ in range(rounds):
        for name, path in (("page", page), ("empty", empty)):
            start = time.perf_counter()
            processor[name].append(processor_seconds(partial(opening, path)))
            taken[name].append(time.perf_counter() - start)
    opened, bare = min(taken["page"]), min(taken["empty"])
    used, least = min(processor["page"]), min(processor["empty"])
    return [
        Line("page in Chromium: processor time", used, "empty page", least),
        Line("page in Chromium, beyond an empty one", max(opened - bare, 1e-3), "limit", PAGE_S,
             target=1.0),
        Line("page in Chromium", opened, "empty page", bare),
    ]  # fmt: skip


if __name__ == "__main__":
    made = run(Settings())
    print(made if isinstance(made, str) else plain(made, judged=True))
