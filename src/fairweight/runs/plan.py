"""From a study to its stages: every piece of work once, whoever needs it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from fairweight.base.files import atomic_file
from fairweight.base.trust import plain_name, require_module
from fairweight.base.wording import shown
from fairweight.errors import InputError, UnknownNameError
from fairweight.runs import stages as _stages  # noqa: F401  registers what a plan is made of
from fairweight.runs.stage import FORMAT, STAGES, Stage, canonical, digest, key_of
from fairweight.specs.fields import recorded
from fairweight.specs.study import Copy, Experiment, Grid, Study
from fairweight.specs.toml import read_spec

# Combinations of values: a spec with a grid becomes one spec for each of them.

SPREAD = ("method", "rewind", "distill")  # of a copy, not of its method
PLAIN = "plain"  # no distillation
MOST = 100_000  # combinations of one grid


def combinations(grid: Grid) -> Iterator[dict[str, Any]]:
    """Every choice of one value per name, the last name fastest.

    >>> list(combinations({"a": (1, 2), "b": ("x",)}))
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    number = math.prod(len(values) for values in grid.values())
    if number > MOST:
        raise InputError(f"A grid has {number:,} combinations; give at most {MOST:,}.")
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def experiments_of(experiment: Experiment) -> list[Experiment]:
    """One experiment for each combination of its grid, named by the values.

    Fields are dotted: `model.width`, `training.lr`.
    """
    if not experiment.grid:
        return [experiment]
    made = []
    for chosen in combinations(experiment.grid):
        fields = asdict(replace(experiment, grid={}))
        for path, value in chosen.items():
            _put(fields, path, value, experiment.name)
        words = [_plain(value) for value in chosen.values()]
        named = "-".join([experiment.name, *words])
        fields["name"] = plain_name(named, f"An experiment of the grid of '{experiment.name}'")
        made.append(read_spec(Experiment, fields, f"The experiment '{fields['name']}'"))
    return made


def spread(copy: Copy) -> Iterator[Copy]:
    """One copy for each method and treatment that its grid names; the rest of the grid stays."""
    own = {name: values for name, values in copy.grid.items() if name in SPREAD}
    rest = {name: values for name, values in copy.grid.items() if name not in own}
    for chosen in combinations(own):
        name = copy.name
        if name is not None and chosen:
            shown = {**chosen, "rewind": "rewind" if chosen.get("rewind") else "finetune"}
            for field, value in shown.items():
                name = name.replace(f"{{{field}}}", _plain(value))
        fields = {**asdict(copy), **chosen, "grid": rest, "name": name}
        if "distill" in chosen:
            fields["distill"] = _distillation(copy, str(chosen["distill"]))
        yield read_spec(Copy, fields, "The copies") if chosen else copy


def _distillation(copy: Copy, losses: str) -> dict[str, Any] | None:
    """The copy's own distillation with other losses; none for `plain`.

    Of its weights and options those stay that belong to these losses.
    """
    if losses == PLAIN:
        return None
    fields = {} if copy.distill is None else asdict(copy.distill)
    named = {"ce", *(name.strip() for name in losses.split("+"))}
    for table in ("weights", "options"):
        given = fields.get(table, {})
        fields[table] = {name: value for name, value in given.items() if name in named}
    return {**fields, "losses": losses}


def copies_of(copy: Copy) -> Iterator[dict[str, Any]]:
    """The method's fields for each variant."""
    for chosen in combinations(copy.grid):
        yield {**copy.fields, **chosen}


def _put(fields: dict[str, Any], path: str, value: Any, name: str) -> None:
    *tables, last = path.split(".")
    place: Any = fields
    for table in tables:
        place = place.get(table) if isinstance(place, Mapping) else None
    if not isinstance(place, dict) or (last not in place and tables[-1:] != ["options"]):
        raise InputError(
            f"The experiment '{name}': the grid names '{shown(path, 60)}', which it "
            "has not; use a dotted field, such as model.width or training.lr."
        )
    place[last] = value


def _plain(value: Any) -> str:
    """A value as a part of a name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(value)).strip("-") or "x"


DENSE = "dense"
MOST_STAGES = 500_000  # the largest paper has 120,000


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """One member of one variant, and the stages that make and ask it."""

    experiment: str
    variant: str
    seed: int
    made_by: str
    asked_by: str
    parent: str | None  # `dense:3`
    compared_by: str | None = None  # with the dense member that it comes from
    validated_by: str | None = None  # asked about the validation examples


@dataclass
class Plan:
    """All stages of a study in an order in which they can be done."""

    study: Study
    stages: dict[str, Stage] = field(default_factory=dict)
    models: list[PlannedModel] = field(default_factory=list)
    audits: dict[str, str] = field(default_factory=dict)  # experiment → key
    classes: str | None = None  # the stage that explains classes
    settings: str | None = None  # the stage that sets experiments side by side
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
            if len(self.stages) >= MOST_STAGES:
                raise InputError(
                    f"The study has more than {MOST_STAGES:,} stages; divide it into several."
                )
            found = STAGES[kind]
            for one in inputs:
                if self.stages[one].kind not in found.reads:
                    raise ValueError(f"A stage '{kind}' cannot read a '{self.stages[one].kind}'.")
            self.stages[key] = Stage(key, kind, found.address, spec, inputs, label)
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
            plain_name(experiment.name, "An experiment's name, with its grid,")
            if ":" in experiment.model.architecture:
                require_module(experiment.model.architecture, f"The study '{study.name}'")
            made.experiments[experiment.name] = experiment
            _plan_experiment(made, experiment)
    if study.classes:
        _plan_classes(made)
    _plan_settings(made)
    return made


def _plan_experiment(made: Plan, experiment: Experiment) -> None:
    from fairweight.lab.compression.registry import base_method

    training = recorded(experiment.training)
    data = recorded(experiment.data)
    base: dict[str, Any] = {"data": data, "model": recorded(experiment.model)}
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.members)
    questions: dict[tuple[str, str], dict[str, Any]] = {}
    dense = _dense(made, experiment, seeds)
    compared = None if experiment.similarity is None else recorded(experiment.similarity)

    def asked(variant: str, seed: int, key: str, parent: str | None, near: str | None) -> None:
        def answered(part: str) -> str:
            question = questions.setdefault(
                (variant, part), {"part": part, "scores": experiment.scores, "variant": variant}
            )
            label = f"{experiment.name}: asking {variant}, seed {seed}"
            return made.add("predict", question, (key,), label)

        validated = answered("validation") if experiment.ask_validation else None
        distance = None
        if compared is not None and near is not None:
            label = f"{experiment.name}: comparing {variant}, seed {seed}"
            distance = made.add("similarity", compared, (key, near), label)
        made.models.append(
            PlannedModel(
                experiment=experiment.name,
                variant=variant,
                seed=seed,
                made_by=key,
                asked_by=answered("test"),
                parent=parent,
                compared_by=distance,
                validated_by=validated,
            )
        )

    for seed, following in zip(seeds, [*seeds[1:], seeds[0]], strict=True):
        # Dense against dense is how far apart retraining alone puts two models.
        near = dense[following] if following != seed else None
        asked(DENSE, seed, dense[seed], None, near)
    taken = {DENSE}
    for copy in (one for given in experiment.copies for one in spread(given)):
        found = base_method(copy.method)
        if found.trains == "must" and copy.finetune is None:
            raise InputError(
                f"The experiment '{experiment.name}': {copy.method} trains models further; say how "
                "(finetune)."
            )
        for variant, method in _variants(copy):
            names = _rounds(copy, plain_name(variant, f"In '{experiment.name}', a copy's name"))
            if taken & set(names):
                raise InputError(
                    f"The experiment '{experiment.name}' has two variants named '{names[0]}'; give "
                    'them names of their own, with the fields that differ: name = "x-{sparsity}".'
                )
            taken |= set(names)
            for seed in _seeds(experiment, copy):
                source = seed if copy.from_seed is None else copy.from_seed
                label = f"{experiment.name}: {variant}, seed {seed}"
                near = None if found.acts_on == "file" else dense[source]
                lesson = {} if copy.distill is None else {"distill": recorded(copy.distill)}
                if copy.start == "first-weights":
                    own = training if copy.finetune is None else recorded(copy.finetune)
                    spec = {**base, "training": {**own, "seed": seed}, "pruning": method, **lesson}
                    teacher = (dense[source],) if lesson else ()
                    asked(variant, seed, made.add("train", spec, teacher, label), None, near)
                    continue
                spec = {**_treatment(copy, seed), "method": method, **lesson}
                if experiment.teachers is not None:
                    spec["data"] = data
                key, parent = dense[source], f"{DENSE}:{source}"
                for name in names:
                    teacher = (dense[source],) if lesson and key != dense[source] else ()
                    key = made.add("compress", spec, (key, *teacher), label)
                    asked(name, seed, key, parent, near)
                    parent = f"{name}:{seed}"
    if experiment.audit and experiment.copies:
        _plan_audit(made, experiment)


def _dense(made: Plan, experiment: Experiment, seeds: range) -> dict[int, str]:
    """The stages that train the dense members: the experiment's own, or those of its teachers."""
    source = experiment
    if experiment.teachers is not None:
        if experiment.teachers not in made.experiments or experiment.teachers == experiment.name:
            raise UnknownNameError(
                f"In `teachers` of the experiment '{experiment.name}', the experiment before it",
                experiment.teachers,
                [name for name in made.experiments if name != experiment.name],
            )
        source = made.experiments[experiment.teachers]
    base = {"data": recorded(source.data), "model": recorded(source.model)}
    training = recorded(source.training)
    return {
        seed: made.add(
            "train",
            {**base, "training": {**training, "seed": seed}, "pruning": None},
            (),
            f"{source.name}: {DENSE}, seed {seed}",
        )
        for seed in seeds
    }


def _seeds(experiment: Experiment, copy: Copy) -> range:
    """The seeds of a copy's members."""
    first, dense = experiment.first_seed, experiment.members
    if copy.from_seed is None:
        return range(first, first + min(copy.members or dense, dense))
    if copy.from_seed not in range(first, first + dense):
        raise InputError(
            f"The experiment '{experiment.name}': from_seed = {copy.from_seed} is no dense "
            f"member's seed; those are {first} to {first + dense - 1}."
        )
    return range(first, first + (copy.members or dense))


def _treatment(copy: Copy, seed: int) -> dict[str, Any]:
    return {
        "finetune": None if copy.finetune is None else {**recorded(copy.finetune), "seed": seed},
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
    from fairweight.lab.compression.registry import fields_of, spec_of

    for fields in copies_of(copy):
        given = {**fields, "schedule": {"kind": "one-shot", "of": "remaining"}}
        spec = spec_of(copy.method, **(fields if copy.rounds is None else given))
        name = spec.variant(copy.method) if copy.name is None else _filled(copy.name, fields)
        yield name, json.loads(json.dumps(fields_of(spec)))


def _filled(name: str, fields: Mapping[str, Any]) -> str:
    """A name with fields in braces; sparsities in per cent.

    >>> _filled("pruned-{sparsity}", {"sparsity": 0.9})
    'pruned-90'
    """
    try:
        # Not `str.format`: a field such as {x.__class__} or {x:>999999999} is no name.
        filled = re.sub(r"\{([^{}]*)\}", lambda part: _shown(part[1], fields[part[1]]), name)
    except (KeyError, TypeError, ValueError):
        filled = "{"
    if "{" in filled or "}" in filled:
        raise InputError(
            f"The name '{name[:200]}' cannot be filled in; it may use these fields in braces: "
            f"{', '.join(fields) or 'none'}."
        )
    return filled


def _shown(field: str, value: Any) -> str:
    return f"{100 * value:.6g}" if field == "sparsity" else str(value)


def _plan_audit(made: Plan, experiment: Experiment) -> None:
    models = _audited(made, experiment)
    parents = _audited_parents(models, made.of(experiment.name))
    spec: dict[str, Any] = {
        "groups": experiment.groups,
        "cluster": experiment.cluster,
        "positive": experiment.positive,
        "tasks": bool(experiment.data.tasks),
        "scores": experiment.scores,
        "n_boot": experiment.n_boot,
        "explain": experiment.explain,
        "individual_group": experiment.individual_group,
        "data": recorded(experiment.data),
        "figures": experiment.figures,
        "models": [[one.variant, one.seed, parents[one]] for one in models],
    }
    if experiment.fixed_side is not None:
        spec["fixed_side"] = experiment.fixed_side
    trained = next(one for one in models if on_own_data(experiment, one))
    inputs = (trained.made_by, *(one.asked_by for one in models))
    distances = [one.compared_by for one in models]
    if any(distances):
        spec["compared"] = [distance is not None for distance in distances]
        inputs = (*inputs, *(distance for distance in distances if distance is not None))
    made.audits[experiment.name] = made.add("audit", spec, inputs, f"{experiment.name}: audit")


def on_own_data(experiment: Experiment, model: PlannedModel) -> bool:
    """Whether a model was trained on its experiment's data: teachers were on those of another."""
    return (model.variant == DENSE) == (experiment.teachers is None)


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


def _audited_parents(
    audited: list[PlannedModel], all_models: list[PlannedModel]
) -> dict[PlannedModel, str | None]:
    """The nearest ancestor that is audited too: rounds in between are not in its tables."""
    parent_of = {f"{one.variant}:{one.seed}": one.parent for one in all_models}
    names = {f"{one.variant}:{one.seed}" for one in audited}
    found: dict[PlannedModel, str | None] = {}
    for one in audited:
        parent = one.parent
        while parent in parent_of and parent not in names:
            parent = parent_of[parent]
        found[one] = parent
    return found


def _plan_classes(made: Plan) -> None:
    experiments: list[dict[str, Any]] = []
    inputs: dict[str, None] = {}
    for name, experiment in made.experiments.items():
        models = made.of(name)
        dense = next(one for one in models if one.variant == DENSE)
        experiments.append(
            {
                "name": name,
                "data": recorded(experiment.data),
                "dense": dense.made_by,
                "asked_by": [one.asked_by for one in models],
                "models": [[one.variant, one.seed, one.parent] for one in models],
            }
        )
        inputs |= dict.fromkeys((dense.made_by, *(one.asked_by for one in models)))
    made.classes = made.add("classes", {"experiments": experiments}, tuple(inputs), "classes")


def _plan_settings(made: Plan) -> None:
    """Experiments with a setting, as far as they are audited, side by side."""
    settings = {
        name: made.experiments[name].setting
        for name in made.audits
        if made.experiments[name].setting is not None
    }
    if len(settings) > 1:
        inputs = tuple(made.audits[name] for name in settings)
        spec = {"settings": [list(pair) for pair in settings.items()]}
        made.settings = made.add("settings", spec, inputs, "settings side by side")


def with_work(made: Plan, seconds: Mapping[str, float]) -> list[Stage]:
    """The stages with what each is expected to take."""
    return [replace(stage, work=seconds.get(key, 0.0)) for key, stage in made.stages.items()]


# The list of a study's stages on disk: looking at it needs neither torch nor the planner.


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
        pass
    stages = plan(study).stages.values()
    save(study, stages, root)
    return {stage.key: StageListing(stage.kind, stage.label, stage.work) for stage in stages}


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
