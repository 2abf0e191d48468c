"""Which kinds of stages a plan has: what is left of a stage when the numbers are taken away."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairweight.runs.plan import StudyPlan
from fairweight.runs.stage import Stage

# What a shortened study changes, and what says which model of many it is.
NUMBERS = {
    "epochs", "warmup_epochs", "milestones", "initial_epochs", "sparsity", "seed", "n_boot",
    "initial", "start", "every", "end", "variant", "models", "compared",
}  # fmt: skip


def kinds(plan: StudyPlan) -> set[str]:
    """Every kind of stage of a plan, as text."""
    return {kind_of(stage, plan) for stage in plan.stages.values()}


def kind_of(stage: Stage, plan: StudyPlan) -> str:
    """A stage without its numbers, with the model that it began with and what it was given."""
    spec: Any = _bare(stage.spec)
    if stage.kind in ("classes", "settings"):
        spec = None  # of all experiments together
    told = {"kind": stage.kind, "spec": spec}
    if stage.kind in ("train", "compress", "predict", "similarity"):
        given = [plan.stages[key] for key in stage.inputs]
        told["given"] = [[one.kind, _bare(made_by(one))] for one in given]
        told["model"] = _bare(first_of(stage, plan).spec)
    return json.dumps(told, sort_keys=True)


def made_by(stage: Stage) -> Mapping[str, Any]:
    """How a model was compressed and taught."""
    names = ("pruning", "method", "finetune", "rewind", "distill")
    return {name: stage.spec[name] for name in names if name in stage.spec}


def first_of(stage: Stage, plan: StudyPlan) -> Stage:
    """The training from which a stage's (first) model comes."""
    while stage.kind != "train":
        stage = plan.stages[stage.inputs[0]]
    return stage


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _bare(held) for name, held in value.items() if name not in NUMBERS}
    if isinstance(value, list | tuple):
        return [_bare(held) for held in value]
    return value
