"""The list of a study's stages on disk: looking at it needs neither torch nor the planner."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from fairweight.runs.key import FORMAT, canonical, digest
from fairweight.runs.plan import Plan, plan
from fairweight.specs.study import Study
from fairweight.tables.write import atomic_file

Listed: TypeAlias = dict[str, tuple[str, str]]  # key → kind, label


def listed(study: Study, root: Path) -> Listed:
    """Every stage of a study with its kind and label, from the file if the study was planned."""
    from fairweight import __version__

    # A default of a method may change with the version, and then the keys do.
    name = digest(f"{FORMAT}\n{__version__}\n{canonical(asdict(study))}")
    file = root / "plans" / f"{name}.json"
    try:
        return {key: (kind, label) for key, kind, label in json.loads(file.read_text("utf-8"))}
    except (OSError, ValueError):
        pass
    made = plan(study)
    save(made, file)
    return {key: (stage.kind, stage.label) for key, stage in made.stages.items()}


def save(made: Plan, file: Path) -> None:
    """Write the list."""
    rows = [[key, stage.kind, stage.label] for key, stage in made.stages.items()]
    with atomic_file(file) as stream:
        stream.write(json.dumps(rows))
