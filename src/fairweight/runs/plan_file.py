"""The list of a study's stages on disk: looking at it needs neither torch nor the planner."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, TypeAlias

from fairweight.runs.key import FORMAT, canonical, digest
from fairweight.runs.plan import plan
from fairweight.runs.stage import Stage
from fairweight.specs.study import Study
from fairweight.tables.write import atomic_file


class Listing(NamedTuple):
    """What is known of a stage without its spec; 0 seconds where no run has estimated them."""

    kind: str
    label: str
    seconds: float


Listed: TypeAlias = dict[str, Listing]  # by key


def listed(study: Study, root: Path) -> Listed:
    """Every stage of a study, from the file if the study was planned."""
    try:
        rows = json.loads(_file(study, root).read_text("utf-8"))
        return {key: Listing(kind, label, seconds) for key, kind, label, seconds in rows}
    except (OSError, ValueError):
        pass
    stages = plan(study).stages.values()
    save(study, stages, root)
    return {stage.key: Listing(stage.kind, stage.label, stage.work) for stage in stages}


def save(study: Study, stages: Iterable[Stage], root: Path) -> None:
    """Write the list."""
    rows = [[stage.key, stage.kind, stage.label, stage.work] for stage in stages]
    with atomic_file(_file(study, root)) as stream:
        stream.write(json.dumps(rows))


def _file(study: Study, root: Path) -> Path:
    from fairweight import __version__

    # A default of a method may change with the version, and then the keys do.
    name = digest(f"{FORMAT}\n{__version__}\n{canonical(asdict(study))}")
    return root / "plans" / f"{name}.json"
