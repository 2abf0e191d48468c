"""From a study to its stages: every piece of work once, whoever needs it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fairweight.errors import InputError, UnknownNameError
from fairweight.runs.grid import copies_of, experiments_of, spread
from fairweight.runs.key import canonical, key_of
from fairweight.runs.stage import Stage
from fairweight.specs.study import Copy, Experiment, Study

FUNCTIONS = {
    "train": "fairweight.runs.stages:train",
    "compress": "fairweight.runs.stages:compress",
    "predict": "fairweight.runs.stages:predict",
    "audit": "fairweight.studies.audit_stage:run",
    "classes": "fairweight.studies.class_stage:run",
}
DENSE = "dense"


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """One member of one variant, and the stages that make and ask it."""

    experiment: str
    variant: str
    seed: int
    made_by: str
    asked_by: str
    parent: str | None  # `dense:3`


@dataclass
class Plan:
    """All stages of a study in an order in which they can be done."""

    study: Study
    stages: dict[str, Stage] = field(default_factory=dict)
    models: list[PlannedModel] = field(default_factory=list)
    audits: dict[str, str] = field(default_factory=dict)  # experiment → key
    classes: str | None = None  # the stage that explains classes
    experiments: dict[str, Experiment] = field(default_factory=dict)
    _texts: dict[int, tuple[Mapping[str, Any], str]] = field(default_factory=dict, repr=False)

    def add(self, kind: str, spec: Mapping[str, Any], inputs: tuple[str, ...], label: str) -> str:
        """The key of a stage, which is added if nobody needed it before."""
        # Thousands of stages share a spec (rounds, members), and most of the time is its text.
        held, text = self._texts.get(id(spec), (None, ""))
        if held is not spec:
            text = canonical(spec)
            self._texts[id(spec)] = (spec, text)
        key = key_of(kind, text, inputs)
        if key not in self.stages:
            self.stages[key] = Stage(key, kind, FUNCTIONS[kind], spec, inputs, label)
        return key

    def of(self, experiment: str) -> list[PlannedModel]:
        """The models of one experiment."""
        return [model for model in self.models if model.experiment == experiment]


def plan(study: Study) -> Plan:
    """The stages of a study; nothing is read, built or trained for it."""
    made = Plan(study)
    for written in study.experiment:
        for experiment in experiments_of(written):
            if experiment.name in made.experiments:
                raise InputError(f"The study has two experiments named '{experiment.name}'.")
            made.experiments[experiment.name] = experiment
            _plan_experiment(made, experiment)
    if study.classes:
        _plan_classes(made)
    return made


def _plan_experiment(made: Plan, experiment: Experiment) -> None:
    training = asdict(experiment.training)
    base: dict[str, Any] = {"data": asdict(experiment.data), "model": asdict(experiment.model)}
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.members)
    questions: dict[str, dict[str, Any]] = {}
    dense: dict[int, str] = {}

    def asked(variant: str, seed: int, key: str, parent: str | None) -> None:
        label = f"{experiment.name}: asking {variant}, seed {seed}"
        question = questions.setdefault(
            variant, {"part": "test", "scores": experiment.scores, "variant": variant}
        )
        answer = made.add("predict", question, (key,), label)
        made.models.append(PlannedModel(experiment.name, variant, seed, key, answer, parent))

    for seed in seeds:
        label = f"{experiment.name}: {DENSE}, seed {seed}"
        spec = {**base, "training": {**training, "seed": seed}, "pruning": None}
        dense[seed] = made.add("train", spec, (), label)
        asked(DENSE, seed, dense[seed], None)
    taken = {DENSE}
    for copy in (one for given in experiment.copies for one in spread(given)):
        for variant, method in _variants(copy):
            names = _rounds(copy, variant)
            if taken & set(names):
                raise InputError(
                    f"The experiment '{experiment.name}' has two variants named '{names[0]}'; give "
                    'them names of their own, with the fields that differ: name = "x-{sparsity}".'
                )
            taken |= set(names)
            for seed in seeds[: copy.members]:
                label = f"{experiment.name}: {variant}, seed {seed}"
                if copy.start == "first-weights":
                    own = training if copy.finetune is None else asdict(copy.finetune)
                    spec = {**base, "training": {**own, "seed": seed}, "pruning": method}
                    asked(variant, seed, made.add("train", spec, (), label), None)
                    continue
                spec = {**_treatment(copy, seed), "method": method}
                key, parent = dense[seed], DENSE
                for name in names:
                    key = made.add("compress", spec, (key,), label)
                    asked(name, seed, key, f"{parent}:{seed}")
                    parent = name
    if experiment.audit and experiment.copies:
        _plan_audit(made, experiment)


def _treatment(copy: Copy, seed: int) -> dict[str, Any]:
    return {
        "finetune": None if copy.finetune is None else {**asdict(copy.finetune), "seed": seed},
        "rewind": copy.rewind,
        "remove_channels": copy.remove_channels,
    }


def _rounds(copy: Copy, variant: str) -> list[str]:
    """The variants of a copy: one, or one for each round."""
    if copy.rounds is None:
        return [variant]
    return [f"{variant}-r{number}" for number in range(1, copy.rounds + 1)]


def _variants(copy: Copy) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and full specs of what a copy's grid asks for; defaults are written out."""
    from fairweight.lab.compress.registry import fields_of, spec_of
    from fairweight.lab.make.variant_name import variant_name
    from fairweight.specs.quantization import Int8Dynamic, Int8Static

    for fields in copies_of(copy):
        given = {**fields, "schedule": {"kind": "one-shot", "of": "remaining"}}
        spec = spec_of(copy.method, **(fields if copy.rounds is None else given))
        if copy.name is not None:
            name = _filled(copy.name, fields)
        elif isinstance(spec, Int8Static | Int8Dynamic):
            name = copy.method
        else:
            name = variant_name(copy.method, spec)
        yield name, json.loads(json.dumps(fields_of(spec)))


def _filled(name: str, fields: Mapping[str, Any]) -> str:
    """A name with fields in braces; sparsities in per cent.

    >>> _filled("pruned-{sparsity}", {"sparsity": 0.9})
    'pruned-90'
    """
    shown = {n: f"{100 * v:.6g}" if n == "sparsity" else v for n, v in fields.items()}
    try:
        return name.format(**shown)
    except (KeyError, IndexError, ValueError):
        raise InputError(
            f"The name '{name}' cannot be filled in; it may use these fields in braces: "
            f"{', '.join(fields) or 'none'}."
        ) from None


def _plan_audit(made: Plan, experiment: Experiment) -> None:
    models = _audited(made, experiment)
    spec = {
        "groups": experiment.groups,
        "cluster": experiment.cluster,
        "positive": experiment.positive,
        "tasks": bool(experiment.data.tasks),
        "scores": experiment.scores,
        "n_boot": experiment.n_boot,
        "explain": experiment.explain,
        "individual_group": experiment.individual_group,
        "data": asdict(experiment.data),
        "figures": experiment.figures,
        "models": [[one.variant, one.seed, one.parent] for one in models],
    }
    dense = next(one for one in models if one.variant == DENSE)
    inputs = (dense.made_by, *(one.asked_by for one in models))
    made.audits[experiment.name] = made.add("audit", spec, inputs, f"{experiment.name}: audit")


def _audited(made: Plan, experiment: Experiment) -> list[PlannedModel]:
    models = made.of(experiment.name)
    if experiment.audited is None:
        return models
    known = dict.fromkeys(one.variant for one in models if one.variant != DENSE)
    for name in experiment.audited:
        if name not in known:
            raise UnknownNameError(
                f"In `audited` of the experiment '{experiment.name}', the variant", name, known
            )
    return [one for one in models if one.variant in (DENSE, *experiment.audited)]


def _plan_classes(made: Plan) -> None:
    experiments: list[dict[str, Any]] = []
    inputs: dict[str, None] = {}
    for name, experiment in made.experiments.items():
        models = made.of(name)
        dense = next(one for one in models if one.variant == DENSE)
        experiments.append(
            {
                "name": name,
                "data": asdict(experiment.data),
                "dense": dense.made_by,
                "asked_by": [one.asked_by for one in models],
                "models": [[one.variant, one.seed, one.parent] for one in models],
            }
        )
        inputs |= dict.fromkeys((dense.made_by, *(one.asked_by for one in models)))
    made.classes = made.add("classes", {"experiments": experiments}, tuple(inputs), "classes")


def with_work(made: Plan, seconds: Mapping[str, float]) -> list[Stage]:
    """The stages with what each is expected to take."""
    return [replace(stage, work=seconds.get(key, 0.0)) for key, stage in made.stages.items()]
