"""The report page of 1,000 classes and of 200 thumbnails: time and size.

python -m benchmarks.report_page
"""

from __future__ import annotations

import base64
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.lines import Line, plain
from benchmarks.measure import Settings
from benchmarks.tables import Shape, parquet

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

TITLE = "The report page"
SETTING = (
    "The page of an audit of 1,000 classes × 10 groups on 50,000 rows, and of one with 200 "
    "exemplars as photographs of 64 pixels; CPU time in one process, the chart bundle cached."
)
ROWS, CLASSES = 50_000, 1_000
THUMBNAILS, PIXELS = 200, 64
SECONDS, MEGABYTES = 10.0, 5.0


def run(settings: Settings) -> list[Line]:
    from fairweight.api import audit_table
    from fairweight.report.html import javascript

    javascript()
    rows = settings.rows_or(ROWS)
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        table = parquet(Path(name), Shape(rows, 10, CLASSES * rows // ROWS))
        made = audit_table(str(table), n_boot=settings.n_boot)
    return [
        *_lines(f"{CLASSES * rows // ROWS:,} classes", made.result),
        *_lines(f"{THUMBNAILS} thumbnails", _with_thumbnails()),
    ]


def _lines(name: str, result: AuditResult) -> list[Line]:
    from fairweight.report.html import render

    start = time.process_time()
    page = render(result)
    taken = time.process_time() - start
    size = len(page.encode()) / 1e6
    return [
        Line(f"{name}: page", taken, "limit", SECONDS, target=1.0),
        Line(f"{name}: size", size, "limit", MEGABYTES, "MB", target=1.0),
    ]


def _with_thumbnails() -> AuditResult:
    """An audit of 2,000 examples with exemplars and their pictures, noisy as photographs are."""
    import fairweight as fw
    from fairweight.data.codecs import png

    rng = np.random.default_rng(0)
    label = rng.integers(10, size=2_000)
    wrong = (label + 1) % 10
    dense = np.where(rng.random((2_000, 4)) < 0.95, label[:, None], wrong[:, None])
    pruned = np.where(rng.random((2_000, 4)) < 0.7, label[:, None], wrong[:, None])
    result = fw.audit(
        label,
        {"dense": dense, "pruned": pruned},
        sensitive_features={"site": rng.choice(["a", "b"], 2_000)},
        n_boot=50,
        explain=["exemplars"],
    ).result
    exemplars = result.explanations["exemplars"].head(THUMBNAILS)
    kept = [c for c in ("variant", "task", "example_id", "label", "modal_baseline",
                        "modal_compressed") if c in exemplars.columns]  # fmt: skip
    pictures = exemplars[kept].assign(part="gallery", image=[
        "data:image/png;base64," + base64.b64encode(png(_photograph(rng))).decode()
        for _ in range(len(exemplars))
    ])  # fmt: skip
    return replace(result, explanations={**result.explanations, "exemplar_images": pictures})


def _photograph(rng: np.random.Generator) -> np.ndarray:
    """Smooth areas with a little noise."""
    coarse = rng.integers(0, 256, size=(8, 8, 3))
    smooth = np.kron(coarse, np.ones((PIXELS // 8, PIXELS // 8, 1)))
    noise = rng.integers(-4, 5, size=smooth.shape)
    return np.clip(smooth + noise, 0, 255).astype(np.uint8)


def main() -> None:
    """Print time and size."""
    print(plain(run(Settings(n_boot=200)), judged=True))


if __name__ == "__main__":
    main()
