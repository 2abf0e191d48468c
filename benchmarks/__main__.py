"""`python -m benchmarks`: run them, print ratios, and write them down with --out."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeAlias

import typer

from benchmarks import (
    bootstrap,
    choose,
    exemplars,
    imagenet_x,
    lab_distillation,
    lab_processes,
    lab_pruning,
    lab_runtime,
    lab_training,
    lab_units,
    large,
    many,
    overrides,
    populations,
    report_page,
    runs_overhead,
    similarity,
    slices,
    startup,
    tasks,
    view_readers,
    votes,
)
from benchmarks.lines import Line, markdown, plain
from benchmarks.measure import Settings

BENCHMARKS: dict[str, ModuleType] = {
    "bootstrap": bootstrap,
    "large": large,
    "startup": startup,
    "imagenet-x": imagenet_x,
    "report": report_page,
    "many": many,
    "tasks": tasks,
    "populations": populations,
    "slices": slices,
    "choose": choose,
    "exemplars": exemplars,
    "overrides": overrides,
    "votes": votes,
    "view-readers": view_readers,
    "similarity": similarity,
    "lab-training": lab_training,
    "lab-processes": lab_processes,
    "lab-pruning": lab_pruning,
    "lab-runtime": lab_runtime,
    "lab-units": lab_units,
    "lab-distillation": lab_distillation,
    "runs": runs_overhead,
}
VERSIONS = (
    "duckdb",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "fairlearn",
    "torch",
    "onnxruntime",
    "ray",
)

Found: TypeAlias = list[Line] | str  # measured lines, or why there are none


def main(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(BENCHMARKS)}; lab: all of the lab."),
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
    chosen = chosen_names(only)
    settings = Settings(rows=rows, rounds=rounds, n_boot=n_boot)
    load = os.getloadavg()[0]
    found: dict[str, Found] = {}
    for number, name in enumerate(chosen, start=1):
        print(f"[{number}/{len(chosen)}] {name} …", end=" ", file=sys.stderr, flush=True)
        start = time.perf_counter()
        found[name] = lines_or_reason(name, settings)
        print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    for name, lines in found.items():
        shown = lines if isinstance(lines, str) else plain(lines, judged=settings.full_size)
        print(f"\n{BENCHMARKS[name].TITLE}\n{shown}")
    if out is not None:
        out.write_text(page(found, settings, load), encoding="utf-8")


def chosen_names(only: list[str] | None) -> list[str]:
    """The benchmarks of these names; the first word of several names stands for all of them."""
    if not only:
        return list(BENCHMARKS)
    chosen: list[str] = []
    for given in only:
        fitting = [name for name in BENCHMARKS if given in (name, name.partition("-")[0])]
        if not fitting:
            raise typer.BadParameter(f"{given}; use one of {', '.join(BENCHMARKS)}")
        chosen += [name for name in fitting if name not in chosen]
    return chosen


def lines_or_reason(name: str, settings: Settings) -> Found:
    """What a benchmark measures, or why it cannot here."""
    module = BENCHMARKS[name]
    missing = [package for package in getattr(module, "NEEDS", ()) if find_spec(package) is None]
    if missing:
        return (
            f"Not measured: {', '.join(missing)} not installed; "
            "`pip install 'fairweight[lab]'` installs it."
        )
    found: Found = module.run(settings)
    return found


def page(found: dict[str, Found], settings: Settings, load: float) -> str:
    """The results as Markdown, with what is needed to read them."""
    versions = ", ".join(_versions())
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
            lines if isinstance(lines, str) else markdown(lines, judged=settings.full_size),
        ]
    return "\n\n".join(parts) + "\n"


def _versions() -> Iterator[str]:
    for name in ("fairweight", *VERSIONS):
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


if __name__ == "__main__":
    typer.run(main)
