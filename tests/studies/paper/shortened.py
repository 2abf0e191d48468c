"""A study made short: two epochs, which are two steps on files that are small enough.

Everything stays as the preset says but numbers: epochs, and what is counted in them or in steps
(milestones, warm-up, schedules of pruning), levels of sparsity (the highest stays), rounds (two)
and members (two of the first experiment, else one).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, assert_never

from fairweight.lab.compression.registry import spec_of
from fairweight.runs.plan import experiments_of, spread
from fairweight.specs.compression import (
    AGP,
    GMP,
    Iterative,
    OneShot,
    Polynomial,
    Pruning,
    Schedule,
    ZhuGupta,
)
from fairweight.specs.study import Copy, Experiment, Study
from fairweight.specs.training import Training

EPOCHS = 2
ROUNDS = 2
MEMBERS = 2


def shortened(study: Study) -> Study:
    """The study with all kinds of stages that it has, and little of each."""
    written = [one for given in study.experiment for one in experiments_of(given)]
    made = [_experiment(one, first=one is written[0]) for one in written]
    return replace(study, experiment=tuple(made))


def in_pairs(short: Study) -> Study:
    """Of all combinations of a network, a data set and a copy so many that any two of them meet.

    For sweeps of thousands of models; an experiment that is audited is none, and stays whole.
    """
    networks = list(dict.fromkeys(one.model.architecture for one in short.experiment))
    data = list(dict.fromkeys(one.data.name for one in short.experiment))

    def kept(one: Experiment) -> tuple[Copy, ...]:
        if one.audit:
            return one.copies
        place = networks.index(one.model.architecture)
        first = data.index(one.data.name)
        return tuple(
            copy
            for number, copy in enumerate(one.copies, start=first)
            if number % len(networks) == place
        )

    experiments = tuple(replace(one, copies=kept(one)) for one in short.experiment)
    return replace(short, experiment=experiments)


def two_steps(schedule: Schedule) -> Schedule:
    """The same kind of schedule within two epochs of one step."""
    match schedule:
        case OneShot():
            return schedule
        case AGP():
            return replace(schedule, start=1, every=1, end=3)
        case GMP():
            return replace(schedule, start=0, every=1, end=2)
        case ZhuGupta():
            return replace(schedule, start=1, every=1, end=2)
        case Polynomial():
            return replace(schedule, start=0, every=1, end=2)
        case Iterative():
            return replace(schedule, epochs=1)
    assert_never(schedule)


def _experiment(one: Experiment, *, first: bool) -> Experiment:
    most = MEMBERS if first else 1
    audited = one.audited
    if audited is not None:  # after the last round
        audited = tuple(re.sub(r"-r\d+$", f"-r{ROUNDS}", name) for name in audited)
    return replace(
        one,
        audited=audited,
        members=min(one.members, most),
        training=_training(one.training),
        copies=tuple(_copy(copy, most) for given in one.copies for copy in spread(given)),
        n_boot=20,
    )


def _training(training: Training) -> Training:
    scale = EPOCHS / training.epochs
    return replace(
        training,
        epochs=EPOCHS,
        warmup_epochs=training.warmup_epochs * scale,
        milestones=tuple(at * scale for at in training.milestones),
    )


def _copy(copy: Copy, most: int) -> Copy:
    grid = {name: (max(v),) if name == "sparsity" else v for name, v in copy.grid.items()}
    fields: dict[str, Any] = dict(copy.fields)
    if copy.rounds is None:
        spec = spec_of(copy.method, **fields, **{name: v[0] for name, v in grid.items()})
        if isinstance(spec, Pruning):
            fields["schedule"] = two_steps(spec.schedule)
    return replace(
        copy,
        grid=grid,
        fields=fields,
        finetune=None if copy.finetune is None else _training(copy.finetune),
        rounds=None if copy.rounds is None else min(copy.rounds, ROUNDS),
        members=None if copy.members is None else min(copy.members, most),
        distill=None if copy.distill is None else replace(copy.distill, initial_epochs=EPOCHS),
    )
