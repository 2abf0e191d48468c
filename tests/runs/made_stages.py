"""Stage functions of the tests: tiny, and each leaves a trace of every time it runs."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairweight.runs import store_layout
from fairweight.runs.executor import StageContext
from fairweight.runs.stage import Stage, digest, key_of

Spec = dict[str, Any]
Inputs = dict[str, Path]


def stage(
    name: str,
    inputs: Sequence[Stage] = (),
    function: str = "mix",
    *,
    work: float = 0.0,
    **fields: Any,
) -> Stage:
    """A stage of one of the functions below."""
    spec = {"name": name, **fields}
    keys = tuple(i.key for i in inputs)
    key = key_of(function, spec, keys)
    return Stage(key, function, f"made_stages:{function}", spec, keys, name, work)


def diamond() -> list[Stage]:
    """One above, two beside each other, one below."""
    top = stage("top")
    left, right = stage("left", [top], work=1), stage("right", [top], work=2)
    return [top, left, right, stage("bottom", [left, right])]


def study(chains: int = 8, rounds: int = 4, pause: float = 0.02) -> list[Stage]:
    """Chains of stages as of iterative pruning, and one that needs the ends of all."""
    stages: list[Stage] = []
    ends: list[Stage] = []
    for chain in range(chains):
        before: list[Stage] = []
        for number in range(rounds):
            before = [stage(f"{chain}.{number}", before, pause=pause, steps=1 + chain % 3)]
            stages += before
        ends += before
    return [*stages, stage("all", ends)]


def runs_of(data: Path) -> list[str]:
    """Names of the stages that were run, in the order of their beginnings."""
    log = data / "log"
    return log.read_text().splitlines() if log.exists() else []


def outputs_of(root: Path, stages: Sequence[Stage]) -> dict[str, str]:
    return {s.label: (store_layout.stage(root, s.key) / "out.txt").read_text() for s in stages}


def mix(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    """A digest of the name and of all inputs, after some steps that survive an interruption."""
    _note(spec["name"], context)
    steps, step = spec.get("steps", 1), context.work / "step"
    begun = int(step.read_text()) if step.exists() else 0
    for number in range(begun, steps):
        time.sleep(spec.get("pause", 0))
        _append(context, "steps", f"{spec['name']} {number}")
        # As checkpoints are: whole or not at all.
        step.with_suffix(".new").write_text(str(number + 1))
        step.with_suffix(".new").replace(step)
        context.progress(number + 1, steps, f"step {number + 1}")
    above = [(folder / "out.txt").read_text() for folder in inputs.values()]
    (room / "out.txt").write_text(digest("\n".join([spec["name"], *above])))


def fails(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    _note(spec["name"], context)
    raise ZeroDivisionError(f"{spec['name']} cannot be divided")


def leaves(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    raise SystemExit(3)


def killed(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    """Its process is killed the first `times` times."""
    _note(spec["name"], context)
    assert context.data is not None
    if runs_of(context.data).count(spec["name"]) <= spec["times"]:
        os.kill(os.getpid(), signal.SIGKILL)
    (room / "out.txt").write_text("survived")


def unhurried(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    """Does not look at the clock."""
    _note(spec["name"], context)
    time.sleep(60)


def full_disk(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def facts(spec: Spec, inputs: Inputs, room: Path, context: StageContext) -> None:
    """What a stage sees of its process."""
    print("words that nobody should see")
    seen = os.environ["OMP_NUM_THREADS"], os.getsid(0) == os.getpid()
    (room / "out.txt").write_text(" ".join(map(str, seen)))


def _note(name: str, context: StageContext) -> None:
    root, key = context.work.parent.parent, context.work.name
    again = " though it was done" if store_layout.manifest(root, key).exists() else ""
    _append(context, "log", name + again)


def _append(context: StageContext, file: str, line: str) -> None:
    assert context.data is not None
    descriptor = os.open(context.data / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)
