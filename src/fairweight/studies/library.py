"""The studies that come with fairweight: one folder each, one TOML file per preset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairweight.data.registry import dataset
from fairweight.errors import InputError, UnknownNameError
from fairweight.runs.stage import STAGES, Cost, ExampleCost, StageKind
from fairweight.specs.claims import Claims, Printed
from fairweight.specs.study import Experiment, Study
from fairweight.specs.toml import read_spec, read_study, read_toml

FOLDER = Path(__file__).parent / "specs"
PRESETS = ("smoke", "quick", "laptop", "paper")  # small ones first
DEFAULT = "laptop"
CLAIMS = "claims.toml"
PRINTED = "printed.toml"


def names() -> list[str]:
    """Every study that comes with fairweight."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def presets(name: str) -> list[str]:
    """The presets of a study, small ones first."""
    return [preset for preset in PRESETS if (_folder(name) / f"{preset}.toml").is_file()]


def text(name: str, preset: str = DEFAULT) -> str:
    """The commented TOML of a study."""
    return _file(name, preset).read_text(encoding="utf-8")


def study(name: str | Mapping[str, Any], preset: str | None = None) -> Study:
    """A study by its name, from the TOML file of that path, or from a dictionary of its keys."""
    if isinstance(name, Mapping):
        return read_study(name)
    if name.endswith(".toml"):
        if preset is not None:
            raise InputError(
                f"--preset {preset} belongs to the studies that come with fairweight; '{name}' is "
                "one whole study."
            )
        return read_study(name)
    return read_study(_file(name, preset or DEFAULT))


def claims(name: str) -> Claims:
    """What the paper of a study claims; of a study of your own what stands in NAME.claims.toml."""
    own = name.endswith(".toml")
    path = Path(name).with_suffix(".claims.toml") if own else _folder(name) / CLAIMS
    if not path.is_file():
        beside = f"write '{path}'" if own else f"those that have: {', '.join(with_claims())}"
        raise InputError(f"The study '{name}' has no claims to judge; {beside}.")
    return read_spec(Claims, read_toml(path, "The claims"), f"The claims '{path.name}'")


def printed(name: str) -> Printed:
    """What the paper of a study prints: its tables and figures."""
    path = _folder(name) / PRINTED
    return read_spec(Printed, read_toml(path, "The paper's tables"), f"The tables of '{name}'")


def with_claims() -> list[str]:
    """The studies whose paper's claims were written down."""
    return [name for name in names() if (FOLDER / name / CLAIMS).is_file()]


def _file(name: str, preset: str) -> Path:
    file = _folder(name) / f"{preset}.toml"
    if not file.is_file():
        raise UnknownNameError(f"The preset of '{name}'", preset, presets(name))
    return file


def _folder(name: str) -> Path:
    if name not in names():
        raise UnknownNameError(
            "Study", name, names(), remedy="A study of your own is the path of its .toml file."
        )
    return FOLDER / name


# Whether the data of a study's experiments are there.


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


def require_weights(experiments: Iterable[Experiment], files: Iterable[str]) -> None:
    """Before anything is made: the pretrained weights of all experiments must be there.

    A study says which weights they are, since they decide what its models become.
    """
    from fairweight.lab.weights import pretrained_file

    given = tuple(files)
    for one in experiments:
        if one.model.init == "random":
            continue
        found = pretrained_file(one.model, given)
        if one.model.weights is None:
            raise InputError(
                f"The experiment '{one.name}' does not say which published weights it starts from; "
                f"write weights = \"{found.sha256}\" into its model, for '{found.path}'."
            )


def _there(experiment: Experiment, data: str | None) -> bool:
    root = data if data is not None else os.environ.get("FAIRWEIGHT_DATA")
    known = dataset(experiment.data.name)
    if not known.layout:
        return True
    folder = known.root(None if root is None else Path(root))
    return folder is not None and known.found_in(folder)[0] != "no"


# What the stages that audit read and cost; studies/stages.py does them.

# Seconds of an audit. Of each attribute and variant, with exemplars: 1.7 s for three members, 1,200
# examples and 100 replicates, more for more of them.
AUDIT, SCORED_AUDIT, TASK_AUDIT = 8.0, 30.0, 3.0


def audit_cost(spec: Mapping[str, Any], unit: ExampleCost) -> Cost:
    """Of several attributes each is audited by itself, for every variant."""
    variants = len({variant for variant, _, _ in spec["models"]}) - 1
    once = SCORED_AUDIT if spec["scores"] else AUDIT
    return Cost(once + TASK_AUDIT * variants * len(spec["data"]["tasks"]), 5e6)


def classes_cost(spec: Mapping[str, Any], unit: ExampleCost | None) -> Cost:
    """Tables, regressions and figures of all experiments: 174 s for 1,668 models."""
    models = sum(len(one["models"]) for one in spec["experiments"])
    return Cost(AUDIT + 0.1 * models, 5e6 + 2e3 * models)


for _name, _reads, _cost in (
    ("audit", ("predict", "similarity"), audit_cost),
    ("classes", ("predict",), classes_cost),
    ("settings", ("audit",), lambda spec, unit: Cost(AUDIT, 1e6)),
):
    STAGES.add(_name, StageKind(f"fairweight.studies.stages:{_name}", _reads, _cost))
