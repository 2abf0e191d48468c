"""An audit of ten classes with everything that can be asked of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import fairweight as fw
from fairweight.auditing.choose.choice import Wishes, choice_from
from fairweight.auditing.choose.tables import as_result
from fairweight.auditing.explain.class_rows import class_covariates
from fairweight.auditing.explain.explanations import ExplainRequest
from fairweight.auditing.explain.images import measure
from fairweight.specs.audit import AuditOptions
from fairweight.studies.demo import Halves, load, softmax
from fairweight.tables.spec import TableSpec, sources_of
from gallery_data.networks import Model, population

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult
    from fairweight.base.types import Floats
    from fairweight.data import Images

RARE = {8: 0.5, 3: 0.7}  # of these digits only so many training images are kept
N_BOOT = 60  # few: a gallery shows what a figure looks like, and nothing is concluded from it


def pixels(images: Images) -> Floats:
    """(images, pixels), from 0 to 1."""
    return np.asarray(images.images).reshape(len(images), -1) / 255.0


def down_sampled(halves: Halves) -> Halves:
    """The halves with few training images of two digits, as in the imbalanced data of SS."""
    rng = np.random.default_rng(0)
    share = np.array([RARE.get(int(digit), 1.0) for digit in halves.train.labels])
    kept = np.flatnonzero(rng.random(len(share)) < share)
    return replace(halves, train=halves.train.select(kept))


def answers(models: list[Model], images: Images) -> pd.DataFrame:
    """What every model answers, and how sure it is."""
    parts = []
    for model in models:
        probability = softmax(model.network.logits(pixels(images)))
        parts.append(
            pd.DataFrame(
                {
                    "example_id": images.example_id, "variant": model.variant, "seed": model.seed,
                    "label": images.labels, "prediction": probability.argmax(axis=1),
                    "score": probability.max(axis=1),
                }
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def described(models: list[Model], images: Images) -> pd.DataFrame:
    """The variants table."""
    shown = pixels(images)
    dense = [model.dense for model in models if model.variant == "dense"]
    other = {id(one): dense[(at + 1) % len(dense)] for at, one in enumerate(dense)}
    return pd.DataFrame([model.row(shown, other[id(model.dense)]) for model in models])


def with_writers(examples: pd.DataFrame, images: Images) -> pd.DataFrame:
    """The bundled digits do not say who wrote them: writers are made up, by slant and ink."""
    rng = np.random.default_rng(3)
    slant = np.select([examples["slant"] == "left", examples["slant"] == "right"], [0, 2], 1)
    order = np.argsort(slant + 1.2 * rng.standard_normal(len(slant)))
    writer = np.empty(len(order), dtype=int)
    writer[order] = np.arange(len(order)) // 18
    hand = np.where(writer % 2 == 0, "left-handed", "right-handed")
    return examples.assign(writer=[f"w{number:02d}" for number in writer], hand=hand)


def audit_of_classes() -> AuditResult:
    """Ten classes, groups, exemplars with images, individuals, classes, distances, a choice."""
    halves = down_sampled(load(0))
    models = list(population(pixels(halves.train), halves.train.labels))
    tables = halves.tables(answers(models, halves.test), described(models, halves.test))
    covariates = class_covariates(
        np.asarray(halves.train.images), halves.train.labels, halves.train.classes
    )
    given = {"examples": with_writers(tables.examples, halves.test), "variants": tables.variants}
    groups = ["slant", "ink"]
    made = fw.audit_table(
        tables.predictions, **given, train=tables.train, groups=[*groups, "hand"], cluster="writer",
        n_boot=N_BOOT,
        explain=ExplainRequest(
            parts=("exemplars", "individuals", "classes", "similarity"), group="hand",
            measure=measure(halves.test, halves.train), images=halves.test,
            covariates={"digits": covariates},
        ),
    )  # fmt: skip
    choice = choice_from(
        TableSpec(sources_of(tables.predictions), groups=groups, **given),
        Wishes(objectives=("sparsity", "unfairness", "accuracy"), requirements=("accuracy>=0.6",)),
        AuditOptions(n_boot=N_BOOT),
    )
    chosen = as_result(choice).explanations
    return replace(made.result, explanations={**made.explanations, **chosen})
