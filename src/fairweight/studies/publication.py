"""The results of a study so far, as folders: tables that `audit` reads, and reports.

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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairweight.base.files import MANIFEST, InTheWayError, atomic_directory, atomic_file, finish
from fairweight.errors import InputError, OutputError
from fairweight.runs.stage import PREDICTIONS, SIMILARITY, TRAINING, VARIANT
from fairweight.runs.store import Store
from fairweight.specs.data import Data
from fairweight.specs.study import Experiment
from fairweight.specs.toml import read_spec
from fairweight.tables.annotation_store import NAME, move_out, place_for

if TYPE_CHECKING:
    from fairweight.runs.plan import StudyPlan

# What a published experiment is about: whoever opens the folder later finds the images and the
# groups with it.
EXPERIMENT_FILE = "study.json"
MARKED = "backdoor.json"
VARIANTS = "variants.parquet"


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


def distances_in(folder: Path) -> dict[str, Any]:
    """The columns that a stage of similarity wrote."""
    found: dict[str, Any] = json.loads((folder / SIMILARITY).read_text(encoding="utf-8"))
    return found


def gather(
    models: list[list[Any]],
    folders: list[Path],
    place: Path,
    further: list[dict[str, Any]] | None = None,
) -> None:
    """A folder that `fairweight audit` reads: predictions by variant and seed, variants beside.

    Files are linked where the file system can, so that nothing is stored twice. `further` are
    more columns of the variants table, by model.
    """
    rows = []
    columns = further or [{}] * len(models)
    for (variant, seed, parent), folder, more in zip(models, folders, columns, strict=True):
        row = json.loads((folder / VARIANT).read_text(encoding="utf-8")) | more
        rows.append({**row, "variant": variant, "seed": seed, "parent": parent})
        link(folder / PREDICTIONS, place / "predictions" / variant / f"{seed}.parquet")
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    with atomic_file(place / VARIANTS, "wb") as file:
        pq.write_table(table, file)


def link(source: Path, target: Path) -> None:
    """The same file at a second place, or a copy of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


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
    plan: StudyPlan,
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
    for name in plan.experiments:
        if any(model.asked_by in done for model in plan.of(name)):
            makers[name] = partial(_write_results, plan, name, store, done)
    for name, key in (("classes", plan.classes), ("settings", plan.settings)):
        if key is not None and key in done:
            makers[name] = partial(_copy_stage, store.folder(key))
    refused: list[OutputError] = []
    for name, make in makers.items():
        try:
            publish_folder(out / name, make, overwrite=overwrite, tell=tell)
        except InTheWayError as error:  # the others are published all the same
            refused.append(error)
    if refused:
        raise refused[0]
    return [out / name for name in makers]


def publish_folder(
    folder: Path, make: Callable[[Path], None], *, overwrite: bool, tell: Callable[[str], None]
) -> None:
    """Let `make` write a folder that replaces what was published there."""
    for held in (folder, folder / "audit"):
        _, said = move_out(held / NAME, place_for(held)[0])
        if said is not None:
            tell(said)
    finish(folder)
    # The first version had no list of what it wrote.
    earlier = folder.exists() and not os.path.lexists(folder / MANIFEST)
    try:
        with atomic_directory(folder, completion=COMPLETION, overwrite=overwrite) as unfinished:
            make(unfinished)
    except InTheWayError:
        if not earlier:
            raise
        number, aside = 1, folder.with_name(f"{folder.name}.earlier")
        while os.path.lexists(aside):
            number += 1
            aside = folder.with_name(f"{folder.name}.earlier-{number}")
        os.rename(folder, aside)
        tell(f"'{folder}' was published by an earlier version; it is '{aside}' now.")
        publish_folder(folder, make, overwrite=overwrite, tell=tell)


def _write_results(plan: StudyPlan, name: str, store: Store, done: set[str], folder: Path) -> None:
    """What is finished of an experiment."""
    finished = [model for model in plan.of(name) if model.asked_by in done]
    gather(
        [[model.variant, model.seed, model.parent] for model in finished],
        [store.folder(model.asked_by) for model in finished],
        folder,
        [
            distances_in(store.folder(model.compared_by)) if model.compared_by in done else {}
            for model in finished
        ],
    )
    made = [store.manifest(model.made_by) for model in finished if model.made_by in done]
    begun = [datetime.fromisoformat(one.finished) - timedelta(seconds=one.seconds) for one in made]
    began = min(begun, default=None)
    write_experiment(plan.study.name, plan.experiments[name], folder, began)
    trained = (model for model in finished if plan.on_own_data(model) and model.made_by in done)
    if (first := next(trained, None)) is not None:
        link(store.folder(first.made_by) / TRAINING, folder / TRAINING)
    for model in finished:
        if model.validated_by in done:
            answers = store.folder(str(model.validated_by)) / PREDICTIONS
            link(answers, folder / "validation" / model.variant / f"{model.seed}.parquet")
    audit = plan.audits.get(name)
    if audit is not None and audit in done:
        _copy_stage(store.folder(audit), folder / "audit")


def _copy_stage(stage: Path, folder: Path) -> None:
    """Copy the outputs of a stage."""
    hidden = shutil.ignore_patterns("stage.json", ".*")
    shutil.copytree(stage, folder, ignore=hidden, dirs_exist_ok=True)
