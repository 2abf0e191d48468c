"""Starting: the help, the import, and a small file from process start to report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds, python

TITLE = "Starting"
SETTING = (
    "Wall time of fresh processes (processor time where it says so), medians of interleaved runs. "
    "The file: 10,000 rows of CSV, 10 classes, 3 group columns, scores of both models; the chart "
    "bundle is cached."
)
ROWS, CLASSES = 10_000, 10
COMMAND = "from fairweight.cli import main; main()"
CACHE_BUNDLE = "from fairweight.report.html import javascript; javascript()"
LIBRARIES = "import pandas, duckdb, scipy.special, pyarrow"


def run(settings: Settings) -> list[Line]:
    rounds = 7 if settings.full_size else settings.rounds
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as name:
        folder = Path(name)
        table = _csv(folder / "predictions.csv", settings.rows_or(ROWS))
        python("-c", CACHE_BUNDLE)
        audit = _audit(table, folder, settings.n_boot)
        processor: list[float] = []
        libraries: list[float] = []
        taken = interleaved(
            {
                "help": lambda: python("-c", COMMAND, "--help"),
                "fairweight": lambda: python("-c", "import fairweight"),
                "numpy": lambda: python("-c", "import numpy"),
                "libraries": lambda: libraries.append(
                    processor_seconds(lambda: python("-c", LIBRARIES))
                ),
                "audit": lambda: processor.append(processor_seconds(audit)),
            },
            rounds,
        )
    return [
        Line("fairweight --help", taken["help"], "limit", 0.3, target=1.0),
        Line("import fairweight", taken["fairweight"], "import numpy", taken["numpy"], target=0.25),
        Line("CSV to report: processor time", median(processor), "limit", 2.0, target=1.0),
        Line("CSV to report: processor time", median(processor), LIBRARIES, median(libraries),
             target=2.5),
        Line("CSV to report: processor time", median(processor), "its wall time", taken["audit"]),
    ]  # fmt: skip


def _audit(table: Path, folder: Path, n_boot: int) -> Callable[[], str]:
    arguments = (
        "audit", str(table), "--groups", "site,age,device",
        "--score", "dense=score_dense", "--score", "int8=score_int8",
        "--out", str(folder / "audit"), "--n-boot", str(n_boot),
    )  # fmt: skip
    return lambda: python("-c", COMMAND, *arguments)


def _csv(path: Path, rows: int) -> Path:
    import pandas as pd

    rng = np.random.default_rng(0)
    label = rng.integers(CLASSES, size=rows)
    table: dict[str, object] = {"example_id": np.arange(rows), "label": label}
    wrong = rng.random(rows)
    for name, rate in (("dense", 0.05), ("int8", 0.08)):
        guess = rng.integers(CLASSES, size=rows)
        table[f"pred_{name}"] = np.where(wrong < rate, guess, label)
        table[f"score_{name}"] = (0.5 + 0.5 * rng.beta(5, 1, rows)).round(4)
    for name, levels in (("site", 8), ("age", 5), ("device", 3)):
        table[name] = [f"{name} {level}" for level in rng.integers(levels, size=rows)]
    pd.DataFrame(table).to_csv(path, index=False)
    return path
