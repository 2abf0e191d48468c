"""What a published experiment is about: its data set, and what its audit asked.

Whoever opens the folder later finds the images and the groups with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.specs.read_spec import read_spec
from fairweight.specs.study import Experiment
from fairweight.tables.write import atomic_file

NAME = "study.json"
MARKED = "backdoor.json"


@dataclass(frozen=True)
class Published:
    """What the file of an experiment says."""

    study: str
    experiment: str
    data: Data
    groups: tuple[str, ...] | None
    cluster: str | None
    positive: str | None


def write_experiment(study: str, experiment: Experiment, folder: Path) -> None:
    """Write the file of an experiment into its folder."""
    data = asdict(experiment.data)
    if isinstance(experiment.data.backdoor, str):
        # The folder may go to another machine, and the file of marked examples with it.
        data["backdoor"] = MARKED
        with suppress(FileNotFoundError):
            shutil.copyfile(experiment.data.backdoor, folder / MARKED)
    held = {
        "study": study,
        "experiment": experiment.name,
        "data": data,
        "groups": experiment.groups,
        "cluster": experiment.cluster,
        "positive": experiment.positive,
    }
    with atomic_file(folder / NAME, "w") as file:
        json.dump(held, file, indent=1, sort_keys=True)


def read_experiment(folder: Path) -> Published | None:
    """What `write_experiment` wrote there; None where there is no such file."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        held: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        groups = held["groups"]
        data = read_spec(Data, held["data"], "The data")
        if isinstance(data.backdoor, str):
            data = replace(data, backdoor=str(folder / MARKED))
        return Published(
            study=str(held["study"]),
            experiment=str(held["experiment"]),
            data=data,
            groups=None if groups is None else tuple(str(name) for name in groups),
            cluster=held["cluster"],
            positive=held["positive"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{path}' does not describe an experiment ({error}); publish the study again "
            "(fairweight study run), or remove the file."
        ) from error
