"""A study's stages as a list on disk, and the progress of each.

The list is written when the study is planned, so that looking at it loads no torch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fairweight import __version__
from fairweight.base.files import atomic_file
from fairweight.runs.stage import FORMAT, Stage, canonical, digest
from fairweight.runs.store import Store
from fairweight.specs.study import Study


class StageListing(NamedTuple):
    """What is known of a stage without its spec; 0 seconds where no run has estimated them."""

    kind: str
    label: str
    seconds: float


Listed: TypeAlias = dict[str, StageListing]  # by key


def listed(study: Study, root: Path) -> Listed:
    """Every stage of a study, from the file if the study was planned."""
    try:
        rows = json.loads(_file(study, root).read_text("utf-8"))
        return {key: StageListing(kind, label, seconds) for key, kind, label, seconds in rows}
    except (OSError, ValueError):
        pass  # not planned before, or by another version
    from fairweight.runs.plan import plan  # with torch

    stages = plan(study).stages.values()
    save(study, stages, root)
    return {stage.key: StageListing(stage.kind, stage.label, stage.work) for stage in stages}


def save(study: Study, stages: Iterable[Stage], root: Path) -> None:
    """Write the list."""
    rows = [[stage.key, stage.kind, stage.label, stage.work] for stage in stages]
    with atomic_file(_file(study, root)) as stream:
        stream.write(json.dumps(rows))


def _file(study: Study, root: Path) -> Path:
    # A default of a method may change with the version, and then the keys do.
    name = digest(f"{FORMAT}\n{__version__}\n{canonical(asdict(study))}")
    return root / "plans" / f"{name}.json"


@dataclass(frozen=True)
class StudyProgress:
    """Numbers of stages by state; `left` are neither done, running nor failed."""

    done: Counter[str]
    running: Counter[str]
    failed: Counter[str]
    left: Counter[str]
    seconds_left: float  # of one core, as estimated; 0 where nothing was estimated yet

    @property
    def total(self) -> int:
        return sum(part.total() for part in (self.done, self.running, self.failed, self.left))

    @property
    def finished(self) -> bool:
        return self.done.total() == self.total


def status(stages: Listed, store: Store) -> StudyProgress:
    """Look at the store: a few listings, however many stages there are."""
    done, running, failed = store.done(), store.running(), store.failed()
    found: dict[str, Counter[str]] = {n: Counter() for n in ("done", "running", "failed", "left")}
    seconds = 0.0
    for key, (kind, _, work) in stages.items():
        if key in done:
            found["done"][kind] += 1
            continue
        seconds += 0.0 if key in failed else work
        which = "running" if key in running else "failed" if key in failed else "left"
        found[which][kind] += 1
    return StudyProgress(**found, seconds_left=seconds)
