"""A billion rows on one machine: each file counted by itself, cubes audited, and parts on Ray.

    python -m benchmarks.billion FOLDER

FOLDER takes 5 GB of Parquet, which is made on first use, and the cubes. Not part of `make bench`:
it takes minutes, and docs/scale.md has what it gave once.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import ROOT
from benchmarks.tables import Shape, parquet

GROUPS, CLASSES = 100, 10
COMMAND = "from fairweight.cli import main; main()"


def main(
    folder: Annotated[Path, typer.Argument(help="Where files and cubes are kept.")],
    rows: Annotated[int, typer.Option(min=1_000, help="Rows in all.")] = 1_000_000_000,
    files: Annotated[int, typer.Option(min=1, help="Files of as many rows each.")] = 10,
    parts: Annotated[int, typer.Option(min=1, help="Parts that are counted on Ray.")] = 4,
) -> None:
    """Measure counting file by file, the audit of the cubes, and counting by parts on Ray."""
    folder.mkdir(parents=True, exist_ok=True)
    share = rows // files
    begun = time.perf_counter()
    tables = [
        parquet(folder, Shape(share, GROUPS, CLASSES, first=number * share))
        for number in range(files)
    ]
    size = sum(table.stat().st_size for table in tables) / 1e9
    print(f"{rows:,} rows in {files} files, {size:.1f} GB: {time.perf_counter() - begun:.0f} s")
    cubes = folder / "cubes"
    cubes.mkdir(exist_ok=True)
    begun = time.perf_counter()
    for number, table in enumerate(tables):
        cube = str(cubes / f"{number}.parquet")
        command("count", str(table), "--groups", "grp", "--out", cube, "--overwrite")
    told("files counted one after the other", begun)
    begun = time.perf_counter()
    held = sorted(map(str, cubes.glob("*.parquet")))
    command("audit", *held, "--out", str(folder / "audit"), "--overwrite")
    told("audit of the cubes", begun)
    begun = time.perf_counter()
    whole = str(folder / "ray.parquet")
    places = [str(table) for table in tables]
    command("count", *places, "--groups", "grp", "--parts", str(parts), "--workers", str(parts),
            "--ray", "local", "--out", whole, "--overwrite")  # fmt: skip
    told(f"{parts} parts by {parts} workers on Ray", begun)
    begun = time.perf_counter()
    command("audit", whole, "--out", str(folder / "audit-ray"), "--overwrite")
    told("audit of that cube", begun)


def command(*words: str) -> None:
    """A command in a fresh process; what it prints is not shown."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"fairweight {words[0]} ended with {done.returncode}:\n{done.stderr}")


def told(what: str, begun: float) -> None:
    """Wall time, processor time of all commands so far, and the most memory of any of them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{what}: {time.perf_counter() - begun:.1f} s; so far {used.ru_utime + used.ru_stime:.0f} "
        f"CPU s, at most {used.ru_maxrss / 1024:,.0f} MB in one process",
        flush=True,
    )


if __name__ == "__main__":
    typer.run(main)
