"""The index of votes behind the example viewer: built once, then looked up."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, json_of, processor_seconds

TITLE = "Votes of the example viewer"
SETTING = (
    "Two variants of 30 members each, 1,000,000 examples with two groups, ten classes and scores, "
    "as a published study: 60 Parquet files. Building reads them and writes the index, in a fresh "
    "process. Then, in another one: opening it, and what a gallery page needs (a filter, an order, "
    "24 examples with all votes and scores), the slowest of several filters, processor time. "
    "New: nothing is kept of these filters. Again: the next page of the same selection."
)
EXAMPLES, MEMBERS, CLASSES = 1_000_000, 30, 10
BUILD_S, BUILD_MB = 120.0, 3000.0
OPEN_S, PAGE_S, READ_MB = 0.5, 0.02, 1000.0
WORKER = "benchmarks.votes_worker"


def run(settings: Settings) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="fairweight-votes-") as name:
        room = Path(name)
        made = processor_seconds(
            lambda: write_study(room / "study", settings.rows_or(EXAMPLES), MEMBERS)
        )
        built = json_of(WORKER, ["build", str(room / "study"), str(room / "index")])
        read = json_of(WORKER, ["read", str(room / "index")])
    return [
        Line("building", built["seconds"], "limit", BUILD_S, target=1.0),
        Line("building, and writing the study", built["seconds"], "writing alone", made),
        Line("building: memory", built["mb"], "limit", BUILD_MB, "MB", target=1.0),
        Line("opening, and the first page", read["open"], "limit", OPEN_S, target=1.0),
        Line("a page, new", read["new"], "limit", PAGE_S, target=1.0),
        Line("a page, again", read["again"], "limit", PAGE_S, target=1.0),
        Line("a page of pairs", read["pairs"], "limit", PAGE_S, target=1.0),
        Line("reading: memory", read["mb"], "limit", READ_MB, "MB", target=1.0),
    ]


def write_study(folder: Path, rows: int, members: int) -> None:
    """Predictions of two variants: members agree on seven tenths of the examples.

    Most small members have moved to another answer on two in a hundred.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    label = rng.integers(0, CLASSES, rows, dtype=np.uint8)
    hard, moved = rng.random(rows) < 0.3, rng.random(rows) < 0.02
    moved_to = (label + 1) % CLASSES
    shared = {
        "example_id": np.arange(rows),
        "label": label,
        "sex": pa.array(np.array(["female", "male"])[rng.integers(0, 2, rows)]),
        "site": pa.array(np.array([f"site {i:02}" for i in range(20)])[rng.integers(0, 20, rows)]),
    }
    for variant, wrong in (("dense", 0.3), ("small", 0.4)):
        for seed in range(members):
            errs = hard & (rng.random(rows) < wrong)
            other = (label + rng.integers(1, CLASSES, rows, dtype=np.uint8)) % CLASSES
            given = np.where(errs, other, label)
            if variant == "small":
                given = np.where(moved & (rng.random(rows) < 0.7), moved_to, given)
            own = {
                "prediction": given,
                "score": rng.random(rows, dtype=np.float32),
                "variant": pa.array([variant]).dictionary_encode().take(np.zeros(rows, np.int8)),
                "seed": np.full(rows, seed, dtype=np.int16),
            }
            path = folder / "predictions" / variant / f"{seed}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({**shared, **own}), path, compression="zstd")
