"""Whether the data of a study's experiments are there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fairweight.data.registry import dataset
from fairweight.errors import InputError
from fairweight.specs.study import Experiment, Study


def available(study: Study, data: str | None) -> tuple[Study, list[str]]:
    """The study without optional experiments whose data are not there, and their names."""
    absent = [one.name for one in study.experiment if one.optional and not _there(one, data)]
    if not absent:
        return study, []
    kept = tuple(one for one in study.experiment if one.name not in absent)
    return replace(study, experiment=kept), absent


def require_data(experiments: Iterable[Experiment], data: str | None) -> None:
    """Before anything is made: the data of all experiments must be there."""
    for one in experiments:
        if not _there(one, data):
            raise InputError(
                f"The experiment '{one.name}' needs the data set '{one.data.name}', whose files "
                "are not there; name the folder that holds them: --data DIR, or the variable "
                f"FAIRWEIGHT_DATA (`fairweight datasets {one.data.name}` lists them)."
            )


def _there(experiment: Experiment, data: str | None) -> bool:
    root = data if data is not None else os.environ.get("FAIRWEIGHT_DATA")
    known = dataset(experiment.data.name)
    if not known.layout:
        return True
    folder = known.root(None if root is None else Path(root))
    return folder is not None and known.found_in(folder)[0] != "no"
