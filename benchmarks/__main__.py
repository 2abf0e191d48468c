"""`python -m benchmarks`: run them, print ratios, and write them down with --out."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from benchmarks import bootstrap, large, many, populations, startup
from benchmarks.lines import Line, markdown, plain
from benchmarks.measure import Settings

BENCHMARKS: dict[str, ModuleType] = {
    "bootstrap": bootstrap,
    "large": large,
    "startup": startup,
    "many": many,
    "populations": populations,
}
VERSIONS = ("duckdb", "numpy", "scipy", "pandas", "pyarrow", "fairlearn")


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"One of {', '.join(BENCHMARKS)}.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1_000, help="At most so many rows; targets are not judged.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of which the best or median is.")] = 3,
    n_boot: Annotated[int, typer.Option(min=20, help="Bootstrap replicates.")] = 2000,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Write the results as a page too.")
    ] = None,
) -> None:
    """Measure speed and memory beside peers and limits, in one run."""
    chosen = only or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]}; use one of {', '.join(BENCHMARKS)}")
    settings = Settings(rows=rows, rounds=rounds, n_boot=n_boot)
    load = os.getloadavg()[0]
    found: dict[str, list[Line]] = {}
    for number, name in enumerate(chosen, start=1):
        print(f"[{number}/{len(chosen)}] {name} …", end=" ", file=sys.stderr, flush=True)
        start = time.perf_counter()
        found[name] = BENCHMARKS[name].run(settings)
        print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    for name, lines in found.items():
        print(f"\n{BENCHMARKS[name].TITLE}\n{plain(lines, judged=settings.full_size)}")
    if out is not None:
        out.write_text(page(found, settings, load), encoding="utf-8")


def page(found: dict[str, list[Line]], settings: Settings, load: float) -> str:
    """The results as Markdown, with what is needed to read them."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("fairweight", *VERSIONS))
    sizes = "" if settings.full_size else f" --rows {settings.rows} --n-boot {settings.n_boot}"
    parts = [
        "# Benchmarks",
        f"Written by `python -m benchmarks{sizes} --out docs/benchmarks.md` (`make bench` prints "
        "the same). Each ratio compares two things measured in one run on one machine; absolute "
        "times depend on the machine and on what else it was doing.",
        f"Machine: {os.cpu_count()} cores shared with other work (load {load:.1f} at the start), "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}; "
        f"{versions}.",
        "A ratio is measured ÷ reference and should not exceed its target (≤); for speed-ups it "
        "is reference ÷ measured and should reach it (≥). Lines without a target say where time "
        "and memory go.",
    ]
    if not settings.full_size:
        parts.append("The sizes below were reduced, so the targets are not judged.")
    for name, lines in found.items():
        module = BENCHMARKS[name]
        parts += [
            f"## {module.TITLE}",
            module.SETTING,
            markdown(lines, judged=settings.full_size),
        ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    typer.run(main)
