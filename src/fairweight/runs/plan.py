"""From a study to its stages; work that several models need is planned once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from fairweight.base.trust import plain_name, require_module
from fairweight.base.wording import shown
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression.registry import base_method, fields_of, spec_of
from fairweight.runs import cost as _cost  # noqa: F401  registers what a plan is made of
from fairweight.runs.stage import DENSE, STAGES, Stage, canonical, key_of
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
            *tables, last = path.split(".")
            place: Any = fields
            for table in tables:
                place = place.get(table) if isinstance(place, Mapping) else None
            if not isinstance(place, dict) or (last not in place and tables[-1:] != ["options"]):
                raise InputError(
                    f"The experiment '{experiment.name}': the grid names '{shown(path, 60)}', "
                    "which it has not; use a dotted field, such as model.width or training.lr."
                )
            place[last] = value
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
            fields["distill"] = None
            if (losses := str(chosen["distill"])) != PLAIN:
                # The copy's own distillation, with the weights and options of these losses.
                lesson: dict[str, Any] = {} if copy.distill is None else asdict(copy.distill)
                named = {"ce", *(part.strip() for part in losses.split("+"))}
                for table in ("weights", "options"):
                    given: dict[str, Any] = lesson.get(table, {})
                    lesson[table] = {loss: held for loss, held in given.items() if loss in named}
                fields["distill"] = {**lesson, "losses": losses}
        yield read_spec(Copy, fields, "The copies") if chosen else copy


def _plain(value: Any) -> str:
    """A value as a part of a name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(value)).strip("-") or "x"


ALL_MEMBERS = 10**9  # stages of all members come after those of each
MOST_STAGES = 500_000  # the largest paper has 120,000


@dataclass(frozen=True, slots=True)
class PlannedModel:
    """One member of one variant, and the stages that make it and run it."""

    experiment: str
    variant: str
    seed: int
    made_by: str
    asked_by: str
    parent: str | None  # `dense:3`
    compared_by: str | None = None  # with the dense member that it comes from
    validated_by: str | None = None  # asked about the validation examples


@dataclass
class StudyPlan:
    """All stages of a study in an order in which they can be done."""

    study: Study
    stages: dict[str, Stage] = field(default_factory=dict)
    models: list[PlannedModel] = field(default_factory=list)
    audits: dict[str, str] = field(default_factory=dict)  # experiment → key
    classes: str | None = None  # the stage that explains classes
    settings: str | None = None  # the stage that sets experiments side by side
    experiments: dict[str, Experiment] = field(default_factory=dict)
    _texts: dict[int, tuple[Mapping[str, Any], str]] = field(default_factory=dict, repr=False)

    def add(
        self,
        kind: str,
        spec: Mapping[str, Any],
        inputs: tuple[str, ...],
        label: str,
        *,
        member: int = ALL_MEMBERS,
    ) -> str:
        """The key of a stage; the stage is added to the plan if it is new."""
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
            self.stages[key] = Stage(key, kind, found.function, spec, inputs, label, member=member)
        return key

    def of(self, experiment: str) -> list[PlannedModel]:
        """The models of one experiment."""
        return [model for model in self.models if model.experiment == experiment]

    def stages_of(self, experiments: Collection[str]) -> dict[str, Stage]:
        """The stages that make, run and audit the models of some experiments."""
        for name in experiments:
            if name not in self.experiments:
                raise UnknownNameError("experiment", name, self.experiments)
        wanted = [key for name, key in self.audits.items() if name in experiments]
        for model in self.models:
            if model.experiment in experiments:
                keys = (model.asked_by, model.validated_by, model.compared_by)
                wanted += [key for key in keys if key is not None]
        needed: set[str] = set()
        while wanted:
            key = wanted.pop()
            if key not in needed:
                needed.add(key)
                wanted += self.stages[key].inputs
        return {key: stage for key, stage in self.stages.items() if key in needed}

    def on_own_data(self, model: PlannedModel) -> bool:
        """Whether a model was trained on its experiment's data; some teachers were not."""
        return (model.variant == DENSE) == (self.experiments[model.experiment].teachers is None)


def plan(study: Study) -> StudyPlan:
    """The stages of a study; nothing is read, built or trained for it."""
    made = StudyPlan(study)
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
    # Experiments with a setting, as far as they are audited, side by side.
    settings = [
        [name, made.experiments[name].setting]
        for name in made.audits
        if made.experiments[name].setting is not None
    ]
    if len(settings) > 1:
        inputs = tuple(made.audits[str(name)] for name, _ in settings)
        spec = {"settings": settings}
        made.settings = made.add("settings", spec, inputs, "settings side by side")
    return made


def _plan_experiment(made: StudyPlan, experiment: Experiment) -> None:
    training = recorded(experiment.training)
    data = recorded(experiment.data)
    base: dict[str, Any] = {"data": data, "model": recorded(experiment.model)}
    seeds = range(experiment.first_seed, experiment.first_seed + experiment.members)
    questions: dict[tuple[str, str], dict[str, Any]] = {}
    dense = _dense(made, experiment, seeds)
    compared = None if experiment.similarity is None else recorded(experiment.similarity)

    def add_model(variant: str, seed: int, key: str, parent: str | None, near: str | None) -> None:
        def answered(part: str) -> str:
            question = questions.setdefault(
                (variant, part), {"part": part, "scores": experiment.scores, "variant": variant}
            )
            label = f"{experiment.name}: asking {variant}, seed {seed}"
            return made.add("predict", question, (key,), label, member=seed - seeds[0])

        validated = answered("validation") if experiment.ask_validation else None
        distance = None
        if compared is not None and near is not None:
            label = f"{experiment.name}: comparing {variant}, seed {seed}"
            # Dense members are compared with the next one, the last with the first.
            member = seed - seeds[0] + (variant == DENSE)
            distance = made.add("similarity", compared, (key, near), label, member=member)
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
        add_model(DENSE, seed, dense[seed], None, near)
    taken = {DENSE}
    for copy in (one for given in experiment.copies for one in spread(given)):
        found = base_method(copy.method)
        if found.trains == "must" and copy.finetune is None:
            raise InputError(
                f"The experiment '{experiment.name}': {copy.method} trains models further; say how "
                "(finetune)."
            )
        members = min(copy.members or len(seeds), len(seeds))
        if copy.from_seed is not None:
            members = copy.members or len(seeds)
            if copy.from_seed not in seeds:
                raise InputError(
                    f"The experiment '{experiment.name}': from_seed = {copy.from_seed} is no dense "
                    f"member's seed; those are {seeds[0]} to {seeds[-1]}."
                )
        for chosen in combinations(copy.grid):
            fields = {**copy.fields, **chosen}
            given = {**fields, "schedule": {"kind": "one-shot", "of": "remaining"}}
            whole = spec_of(copy.method, **(fields if copy.rounds is None else given))
            pattern = copy.name
            variant = (
                whole.variant(copy.method) if pattern is None else filled_name(pattern, fields)
            )
            method = json.loads(json.dumps(fields_of(whole)))  # defaults are written out
            plain_name(variant, f"In '{experiment.name}', a copy's name")
            names = [variant]
            if copy.rounds is not None:
                names = [f"{variant}-r{number}" for number in range(1, copy.rounds + 1)]
            if taken & set(names):
                raise InputError(
                    f"The experiment '{experiment.name}' has two variants named '{names[0]}'; give "
                    'them names of their own, with the fields that differ: name = "x-{sparsity}".'
                )
            taken |= set(names)
            for seed in range(seeds.start, seeds.start + members):
                source = seed if copy.from_seed is None else copy.from_seed
                label = f"{experiment.name}: {variant}, seed {seed}"
                near = None if found.acts_on == "file" else dense[source]
                lesson = {} if copy.distill is None else {"distill": recorded(copy.distill)}
                if copy.start == "first-weights":
                    own = training if copy.finetune is None else recorded(copy.finetune)
                    spec = {**base, "training": {**own, "seed": seed}, "pruning": method, **lesson}
                    teacher = (dense[source],) if lesson else ()
                    key = made.add("train", spec, teacher, label, member=seed - seeds[0])
                    add_model(variant, seed, key, None, near)
                    continue
                spec = {
                    "finetune": None,
                    "rewind": copy.rewind,
                    "remove_channels": copy.remove_channels,
                    "method": method,
                    **lesson,
                }
                if copy.finetune is not None:
                    spec["finetune"] = {**recorded(copy.finetune), "seed": seed}
                if experiment.teachers is not None:
                    spec["data"] = data
                key, parent = dense[source], f"{DENSE}:{source}"
                for name in names:
                    teacher = (dense[source],) if lesson and key != dense[source] else ()
                    key = made.add("compress", spec, (key, *teacher), label, member=seed - seeds[0])
                    add_model(name, seed, key, parent, near)
                    parent = f"{name}:{seed}"
    if experiment.audit and experiment.copies:
        _plan_audit(made, experiment)


def _dense(made: StudyPlan, experiment: Experiment, seeds: range) -> dict[int, str]:
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
            member=seed - seeds[0],
        )
        for seed in seeds
    }


def filled_name(name: str, fields: Mapping[str, Any]) -> str:
    """A name with fields in braces; sparsities in per cent.

    >>> filled_name("pruned-{sparsity}", {"sparsity": 0.9})
    'pruned-90'
    """
    try:
        shown = dict(fields)
        if "{sparsity}" in name:
            shown["sparsity"] = f"{100 * fields['sparsity']:.6g}"
        # Not `str.format`: a field such as {x.__class__} or {x:>999999999} is no name.
        filled = re.sub(r"\{([^{}]*)\}", lambda part: str(shown[part[1]]), name)
    except (KeyError, TypeError, ValueError):
        filled = "{"
    if "{" in filled or "}" in filled:
        raise InputError(
            f"The name '{name[:200]}' cannot be filled in; it may use these fields in braces: "
            f"{', '.join(fields) or 'none'}."
        )
    return filled


def _plan_audit(made: StudyPlan, experiment: Experiment) -> None:
    all_models = made.of(experiment.name)
    models = all_models
    if experiment.audited is not None:
        known = dict.fromkeys(one.variant for one in all_models if one.variant != DENSE)
        for name in experiment.audited:
            if name not in known:
                raise UnknownNameError(
                    f"In `audited` of the experiment '{experiment.name}', the variant", name, known
                )
        models = [one for one in all_models if one.variant in (DENSE, *experiment.audited)]
    # The nearest ancestor that is audited too: rounds in between are not in its tables.
    parent_of = {f"{one.variant}:{one.seed}": one.parent for one in all_models}
    audited = {f"{one.variant}:{one.seed}" for one in models}
    rows: list[list[Any]] = []
    for one in models:
        parent = one.parent
        while parent in parent_of and parent not in audited:
            parent = parent_of[parent]
        rows.append([one.variant, one.seed, parent])
    spec: dict[str, Any] = {
        "groups": experiment.groups,
        "cluster": experiment.cluster,
        "positive": experiment.positive,
        "scores": experiment.scores,
        "n_boot": experiment.n_boot,
        "explain": experiment.explain,
        "individual_group": experiment.individual_group,
        "data": recorded(experiment.data),
        "figures": experiment.figures,
        "models": rows,
    }
    for name in ("fixed_side", "audited_tasks", "fill"):
        if (value := getattr(experiment, name)) is not None:
            spec[name] = value
    if experiment.tie_rule != "disjoint":
        spec["tie_rule"] = experiment.tie_rule
    inputs = tuple(one.asked_by for one in models)
    distances = [one.compared_by for one in models]
    if any(distances):
        spec["compared"] = [distance is not None for distance in distances]
        inputs = (*inputs, *(distance for distance in distances if distance is not None))
    made.audits[experiment.name] = made.add("audit", spec, inputs, f"{experiment.name}: audit")


def _plan_classes(made: StudyPlan) -> None:
    experiments: list[dict[str, Any]] = []
    inputs: dict[str, None] = {}
    for name, experiment in made.experiments.items():
        models = made.of(name)
        experiments.append(
            {
                "name": name,
                "data": recorded(experiment.data),
                "asked_by": [one.asked_by for one in models],
                "models": [[one.variant, one.seed, one.parent] for one in models],
            }
        )
        inputs |= dict.fromkeys(one.asked_by for one in models)
    made.classes = made.add("classes", {"experiments": experiments}, tuple(inputs), "classes")


def with_work(stages: Mapping[str, Stage], seconds: Mapping[str, float]) -> list[Stage]:
    """Stages with what each is expected to take."""
    return [replace(stage, work=seconds.get(key, 0.0)) for key, stage in stages.items()]
