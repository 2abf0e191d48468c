"""Audits of several yes-or-no attributes of the same digits, in several settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import fairweight as fw
from fairweight.auditing.explain.attributes import attribute_values, settings_table
from fairweight.auditing.explain.explanations import ExplainRequest
from fairweight.auditing.mitigate.mitigation import prediction_table, two_parts, variants_with
from fairweight.auditing.mitigate.reaudit import reaudit
from fairweight.auditing.mitigate.thresholds import apply_thresholds, fit_thresholds
from fairweight.auditing.prediction_matrix import Answers, from_aligned, tasks_of
from fairweight.specs.audit import AuditOptions
from fairweight.studies.demo import Halves, load, softmax
from fairweight.tables.align import align
from fairweight.tables.spec import SourceRef, TableSpec, sources_of
from gallery_data.classes import N_BOOT, described, pixels
from gallery_data.networks import FEW, Model, population

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult
    from fairweight.base.types import Floats
    from fairweight.data import Images

# What may be asked of a digit, and of which digits it is true.
ATTRIBUTES = {
    "even": (0, 2, 4, 6, 8), "loop": (0, 6, 8, 9), "large": (5, 6, 7, 8, 9),
    "prime": (2, 3, 5, 7),
}  # fmt: skip
ALONE = ("loop", "prime")  # attributes that are also trained by themselves
MEMBERS = 3
MARKED = 0.95  # share of positive training images with a mark, and of negative ones without
CATEGORIES = ("ink", "slant")


def truth(images: Images, attribute: str) -> np.ndarray:
    return np.isin(images.labels, ATTRIBUTES[attribute]).astype(np.int64)


def sides(images: Images) -> pd.DataFrame:
    """Two categories of two values each."""
    return pd.DataFrame(
        {
            "ink": np.where(images.groups["ink"] == "heavy", "heavy", "lighter"),
            "slant": np.where(images.groups["slant"] == "right", "right", "other"),
        }
    )


def table(
    models: Iterable[Model],
    images: Images,
    attributes: Iterable[str],
    score: Callable[[Model, str], Floats],
) -> pd.DataFrame:
    """Answers in long form, a row per image, attribute and model."""
    parts = []
    for model in models:
        for attribute in attributes:
            sure = score(model, attribute)
            parts.append(
                sides(images).assign(
                    example_id=images.example_id, task=attribute, variant=model.variant,
                    seed=model.seed, label=truth(images, attribute),
                    prediction=(sure > 0.5).astype(int), score=sure,
                )
            )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def training(images: Images, attributes: Iterable[str]) -> pd.DataFrame:
    """Training labels and categories, in long form."""
    parts = [sides(images).assign(task=name, label=truth(images, name)) for name in attributes]
    return pd.concat(parts, ignore_index=True)


def joint_models(halves: Halves) -> list[Model]:
    """Networks of digits, whose answers say every attribute."""
    shown, labels = pixels(halves.train), halves.train.labels
    return list(population(shown, labels, members=MEMBERS, sparsities=FEW))


def joint_table(models: list[Model], images: Images, attributes: Iterable[str]) -> pd.DataFrame:
    """All attributes from one network: sums of the probabilities of digits."""
    shown = pixels(images)
    shares = {id(model): softmax(model.network.logits(shown)) for model in models}

    def score(model: Model, attribute: str) -> Floats:
        return shares[id(model)][:, list(ATTRIBUTES[attribute])].sum(axis=1).clip(0, 1)

    return table(models, images, attributes, score)


def audit_of_attributes() -> AuditResult:
    """Four attributes of two categories, trained together; and settings beside one another."""
    halves = load(0)
    models = joint_models(halves)
    made = fw.audit_table(
        joint_table(models, halves.test, ATTRIBUTES), task="task", groups=list(CATEGORIES),
        train=training(halves.train, ATTRIBUTES), variants=described(models, halves.test),
        n_boot=N_BOOT, explain=ExplainRequest(parts=("exemplars",)),
    )  # fmt: skip
    settings = [("joint", made.result)]
    settings += [("single", single_audit(halves, name)) for name in ALONE]
    settings.append(("corner", marked_audit(halves, ALONE[0])))
    beside = {"settings": settings_table(settings)}
    return replace(made.result, explanations={**made.explanations, **beside})


def single_audit(halves: Halves, attribute: str) -> AuditResult:
    """Networks that learn one attribute and nothing else."""
    return _alone(pixels(halves.train), pixels(halves.test), halves, attribute, CATEGORIES)


def marked_audit(halves: Halves, attribute: str) -> AuditResult:
    """A backdoor: a bright corner goes with the label in training, and with nothing in the test."""
    rng = np.random.default_rng(5)
    answer = truth(halves.train, attribute)
    train_mark = np.where(rng.random(len(answer)) < MARKED, answer, 1 - answer)
    test_mark = rng.integers(0, 2, len(halves.test))
    shown = [pixels(part).copy() for part in (halves.train, halves.test)]
    for images, mark in zip(shown, (train_mark, test_mark), strict=True):
        images[mark == 1, 0] = 1.0
    return _alone(*shown, halves, attribute, ("backdoor",), (train_mark, test_mark))


def _alone(
    train: Floats,
    test: Floats,
    halves: Halves,
    attribute: str,
    groups: tuple[str, ...],
    marks: tuple[np.ndarray, np.ndarray] | None = None,
) -> AuditResult:
    models = list(
        population(train, truth(halves.train, attribute), members=MEMBERS, sparsities=FEW)
    )

    def score(model: Model, _: str) -> Floats:
        return 1 / (1 + np.exp(-model.network.logits(test)[:, 0]))

    found = table(models, halves.test, [attribute], score)
    learnt = training(halves.train, [attribute])
    watched = {}
    if marks is not None:
        words = np.array(["plain", "marked"])
        found["backdoor"] = np.tile(words[marks[1]], len(models))
        learnt["backdoor"] = words[marks[0]]
        watched = {"fixed_side": "backdoor=marked", "filters": False}
    return fw.audit_table(
        found, task="task", groups=list(groups), train=learnt,
        variants=described(models, halves.test), n_boot=N_BOOT, **watched,
    ).result  # fmt: skip


def audit_of_thresholds() -> AuditResult:
    """The attributes with thresholds that were calibrated on one half and are judged on another."""
    halves = load(0)
    models = [model for model in joint_models(halves) if model.variant in ("dense", "pruned-60")]
    learnt = training(halves.train, ATTRIBUTES)
    known = described(models, halves.test)
    with align(
        TableSpec(
            sources_of(joint_table(models, halves.test, ATTRIBUTES)),
            task="task",
            groups=list(CATEGORIES),
            train=SourceRef.of(learnt),
            variants=SourceRef.of(known),
        )
    ) as aligned:
        tasks = [from_aligned(aligned, task) for task in tasks_of(aligned)]
    fitted_on, judged = two_parts(tasks, 0)
    names = ("dense", *tasks[0].variants)
    rule = fit_thresholds(fitted_on, names)
    new = [[apply_thresholds(rule, one, name) for name in names] for one in judged]
    pairs = [(one.name, one.origin) for one in new[0]]
    beside = TableSpec(
        (), baseline="dense", groups=list(CATEGORIES), train=SourceRef.of(learnt),
        variants=SourceRef.of(variants_with(known, pairs)),
    )  # fmt: skip
    table = prediction_table(judged, new)
    made = reaudit(table, pairs, beside, AuditOptions(n_boot=N_BOOT)).result
    return replace(made, explanations={"attributes": attribute_values(made)})


def answers_of(attribute: str, halves: Halves) -> tuple[list[Answers], pd.DataFrame, pd.DataFrame]:
    """One attribute by itself: the answers, their table, and the variants table."""
    models = joint_models(halves)
    found = joint_table(models, halves.test, [attribute]).drop(columns="task")
    known = described(models, halves.test)
    with align(TableSpec(sources_of(found), groups=list(CATEGORIES), variants=known)) as aligned:
        return [from_aligned(aligned, None)], found, known
