"""What a study has found so far, where people look: tables that `audit` reads, and reports.

Publishing replaces what was published before and nothing else: other people's files stay, and so
does a file of ours that somebody changed, unless it is asked for. A process that is killed leaves
the earlier results or the new ones.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fairweight.base.files import MANIFEST, InTheWayError, atomic_directory, atomic_file, finish
from fairweight.errors import InputError, OutputError
from fairweight.runs.plan import Plan, on_own_data
from fairweight.runs.stages import PREDICTIONS, TRAINING
from fairweight.runs.store import Store
from fairweight.specs.data import Data
from fairweight.specs.study import Experiment
from fairweight.specs.toml import read_spec
from fairweight.studies.stages import distances_in, gather, link
from fairweight.tables.annotation_store import NAME, move_out, place_for

# What a published experiment is about: its data set, and what its audit asked.
#
# Whoever opens the folder later finds the images and the groups with it.

EXPERIMENT_FILE = "study.json"
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
    began: datetime | None = None  # when its first model was begun


def write_experiment(
    study: str, experiment: Experiment, folder: Path, began: datetime | None = None
) -> None:
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
        "began": None if began is None else began.isoformat(timespec="seconds"),
    }
    with atomic_file(folder / EXPERIMENT_FILE, "w") as file:
        json.dump(held, file, indent=1, sort_keys=True)


def read_experiment(folder: Path) -> Published | None:
    """What `write_experiment` wrote there; None where there is no such file."""
    path = folder / EXPERIMENT_FILE
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
            began=_moment(held.get("began")),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{path}' does not describe an experiment ({error}); publish the study again "
            "(fairweight study run), or remove the file."
        ) from error


def _moment(text: str | None) -> datetime | None:
    """A moment with its time zone; files of earlier versions have none."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"began = {text!r} has no time zone")
    return found


COMPLETION = ("audit/report.html", "audit/audit.json", "study.json")


def publish(
    plan: Plan,
    store: Store,
    out: Path,
    *,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write a folder for every experiment that has predictions; returns them.

    A folder holds `predictions/VARIANT/SEED.parquet`, `variants.parquet`, `train.parquet`,
    `study.json` (what the experiment is about), where they were asked for
    `validation/VARIANT/SEED.parquet`, and the audit's report once there is one.
    What was found about classes goes into `classes`, what was set side by side into `settings`.

    Parameters
    ----------
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    tell
        Called with what there is to say about files of earlier versions.
    """
    done = store.done()
    makers: dict[str, Callable[[Path], None]] = {}
    for name, experiment in plan.experiments.items():
        if any(model.asked_by in done for model in plan.of(name)):
            makers[name] = _maker(plan, store, done, name, experiment)
    for name, key in (("classes", plan.classes), ("settings", plan.settings)):
        if key is not None and key in done:
            makers[name] = _copier(store.folder(key))
    refused: list[OutputError] = []
    for name, make in makers.items():
        try:
            _publish(out / name, make, overwrite, tell)
        except InTheWayError as error:  # the others are published all the same
            refused.append(error)
    if refused:
        raise refused[0]
    return [out / name for name in makers]


def _publish(
    folder: Path, make: Callable[[Path], None], overwrite: bool, tell: Callable[[str], None]
) -> None:
    for held in (folder, folder / "audit"):
        _, said = move_out(held / NAME, place_for(held)[0])
        if said is not None:
            tell(said)
    finish(folder)
    ours = not folder.exists() or os.path.lexists(folder / MANIFEST)
    try:
        _write(folder, make, overwrite)
    except InTheWayError:
        if ours:
            raise
        # Published by the first version, which kept no list of what it wrote.
        aside = _free_name(folder)
        os.rename(folder, aside)
        tell(f"'{folder}' was published by an earlier version; it is '{aside}' now.")
        _write(folder, make, overwrite)


def _write(folder: Path, make: Callable[[Path], None], overwrite: bool) -> None:
    with atomic_directory(folder, completion=COMPLETION, overwrite=overwrite) as room:
        make(room)


def _free_name(folder: Path) -> Path:
    number, place = 1, folder.with_name(f"{folder.name}.earlier")
    while os.path.lexists(place):
        number += 1
        place = folder.with_name(f"{folder.name}.earlier-{number}")
    return place


def _maker(
    plan: Plan, store: Store, done: set[str], name: str, experiment: Experiment
) -> Callable[[Path], None]:
    """What writes the folder of an experiment."""

    def make(folder: Path) -> None:
        finished = [model for model in plan.of(name) if model.asked_by in done]
        rows = [[model.variant, model.seed, model.parent] for model in finished]
        distances = [
            distances_in(store.folder(model.compared_by)) if model.compared_by in done else {}
            for model in finished
        ]
        gather(rows, [store.folder(model.asked_by) for model in finished], folder, distances)
        trained = (m for m in finished if on_own_data(experiment, m) and m.made_by in done)
        made = [store.manifest(m.made_by) for m in finished if m.made_by in done]
        begun = [datetime.fromisoformat(m.finished) - timedelta(seconds=m.seconds) for m in made]
        write_experiment(plan.study.name, experiment, folder, min(begun, default=None))
        first = next(trained, None)
        if first is not None:
            link(store.folder(first.made_by) / TRAINING, folder / TRAINING)
        for model in finished:
            if model.validated_by in done:
                answers = store.folder(str(model.validated_by)) / PREDICTIONS
                link(answers, folder / "validation" / model.variant / f"{model.seed}.parquet")
        audit = plan.audits.get(name)
        if audit is not None and audit in done:
            _copier(store.folder(audit))(folder / "audit")

    return make


def _copier(stage: Path) -> Callable[[Path], None]:
    """What copies the outputs of a stage into a folder."""

    def copy(folder: Path) -> None:
        hidden = shutil.ignore_patterns("stage.json", ".*")
        shutil.copytree(stage, folder, ignore=hidden, dirs_exist_ok=True)

    return copy
