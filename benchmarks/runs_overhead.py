"""What the runner adds to the stages that it runs: on one worker, on two, on Ray."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds, seconds
from fairweight.runs.executor import StageContext
from fairweight.runs.runner import run as run_stages
from fairweight.runs.stage import Stage, key_of
from fairweight.runs.store import Store

TITLE = "Running stages"
SETTING = (
    "Stages that compute checksums on one core and write 1 MB, each run into an empty store. What "
    "the runner adds (claim, process, files forced to disk, manifest) is the time of a run of "
    "stages that compute nothing, per stage; the first one waits for its process to start. Two "
    "workers and Ray run stages of about four seconds of work, medians of wall time in turns; "
    "Ray's cluster of two cores is started before. Speed-ups need cores that nothing else uses: on "
    "a busy machine the processor time beside them tells whether the workers hinder each other."
)
TRAINING = 60.0  # seconds of the stage that the runner's share is compared with
BYTES = 1_000_000


def run(settings: Settings) -> list[Line]:
    full = settings.full_size
    empty, stages, loops = (50, 8, 6_000_000) if full else (3, 2, 1_000)
    first = min(seconds(lambda: _run(1, 0, workers=1)) for _ in range(settings.rounds))
    many = min(seconds(lambda: _run(1 + empty, 0, workers=1)) for _ in range(settings.rounds))
    added = max(many - first, 0.0) / empty
    what = f"a stage of {TRAINING:.0f} s in a worker"
    lines = [
        Line(what, TRAINING + added, "by itself", TRAINING, target=1.02),
        Line(f"{what}, first of its process", TRAINING + first, "by itself", TRAINING, target=1.02),
    ]
    one, two = ({"workers": 1}, {"workers": 2})
    with _cluster() as ray:
        jobs = {"one": one, "two": two, **({"ray": ray} if ray else {})}
        if ray:
            _run(stages, 0, **ray)  # its processes have started then
        taken = interleaved(_calls(jobs, stages, loops), settings.rounds)
    processor = interleaved(
        _calls({"one": one, "two": two}, stages, loops), settings.rounds, processor_seconds
    )
    what = f"{stages} stages of four seconds"
    lines += [
        Line(f"{what}, two workers", taken["two"], "one worker", taken["one"], target=1.8,
             faster=True),
        Line(f"{what}, two workers: processor time", processor["two"], "one worker",
             processor["one"]),
    ]  # fmt: skip
    if ray:
        lines.append(Line(f"{what}, Ray", taken["ray"], "two workers", taken["two"], target=1.1))
    return lines


def _calls(
    jobs: Mapping[str, Mapping[str, Any]], stages: int, loops: int
) -> dict[str, Callable[[], None]]:
    return {name: partial(_run, stages, loops, **how) for name, how in jobs.items()}


def checksums(
    spec: dict[str, Any], inputs: dict[str, Path], room: Path, context: StageContext
) -> None:
    """A stage that keeps one core busy."""
    found = str(spec["number"]).encode()
    for _ in range(spec["loops"]):
        found = hashlib.sha256(found).digest()
    (room / "out.bin").write_bytes(found.ljust(BYTES, b"\0"))


def _run(stages: int, loops: int, **how: Any) -> None:
    made = []
    for number in range(stages):
        spec = {"number": number, "loops": loops}
        key = key_of("checksums", spec)
        function = "benchmarks.runs_overhead:checksums"
        made.append(Stage(key, "checksums", function, spec, (), f"checksums {number}"))
    with TemporaryDirectory() as folder:
        outcome = run_stages(made, Store(folder), **how)
    if not outcome.complete:
        raise RuntimeError(f"Stages failed: {outcome}")


@contextmanager
def _cluster() -> Iterator[dict[str, Any]]:
    """How to run on Ray, on a cluster that outlives a run; empty where there is no Ray."""
    if find_spec("ray") is None:
        yield {}
        return
    from fairweight.runs.ray_pool import cluster

    with cluster("local", cpus=2):
        yield {"ray": "local"}
