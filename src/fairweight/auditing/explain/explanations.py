"""Which examples, and why: everything that is looked for beyond the audit, as tables.

Nothing here computes a number: each part is a call into the module that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from fairweight.auditing.exemplars.enrichment import enrichment
from fairweight.auditing.exemplars.exemplars import find, stacked
from fairweight.auditing.exemplars.largest_losses import largest_losses
from fairweight.auditing.exemplars.risk import risk
from fairweight.auditing.explain.attributes import (
    attribute_values,
    bias_regression,
    label_interrelation,
)
from fairweight.auditing.explain.class_regression import explain_classes
from fairweight.auditing.explain.class_rows import class_rows
from fairweight.auditing.explain.images import exemplar_images, places, tilt_example
from fairweight.auditing.explain.individuals import individual_fits, individuals
from fairweight.auditing.explain.properties import example_properties
from fairweight.auditing.explain.similarity import similarity, similarity_points
from fairweight.auditing.explain.slices.search import find_slices
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.result import AuditResult
from fairweight.base.types import Progress
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError

PARTS = ("exemplars", "slices", "properties", "individuals", "classes", "similarity")
OF_NUMBERS = ("exemplars", "slices")  # what numbers in the place of predictions allow


@dataclass(frozen=True)
class ExplainRequest:
    """What to look for.

    Parameters
    ----------
    parts
        Of PARTS.
    percentiles
        Cuts of the exemplars' distance.
    by
        Whose examples belong to one individual: `cluster`, or a column.
    group
        A column by which individuals are compared.
    tie_rule, fill
        Of exemplars, as for `find`.
    measure
        From the answers of a task to properties of their images, in the same order; none by
        default.
    images
        Where images of exemplars are taken from, to be looked at.
    gallery
        Of so many exemplars, over all tasks.
    covariates
        `class_covariates` of the training images by data set, for the classes; or a function that
        makes them once the answers are known.
    """

    parts: tuple[str, ...] = PARTS
    percentiles: tuple[float, ...] = (90, 95, 99)
    by: str = "cluster"
    group: str | None = None
    tie_rule: str = "disjoint"
    fill: str | None = None
    measure: Callable[[Answers], Mapping[str, ArrayLike]] | None = None
    images: Images | None = None
    gallery: int = 200
    covariates: (
        Mapping[str, pd.DataFrame] | Callable[[Answers], Mapping[str, pd.DataFrame]] | None
    ) = None
    alpha: float = 0.05
    random_state: int = 0

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in PARTS:
                raise UnknownNameError("In explain=, the part", part, PARTS)


@dataclass
class _Tables:
    """What was made so far, by the name of its table, and what is to be said of it."""

    parts: dict[str, list[pd.DataFrame]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, table: pd.DataFrame) -> None:
        self.parts.setdefault(name, []).append(table)
        self.notes += [str(note) for note in table.attrs.get("notes", ())]


def explained(
    result: AuditResult, tasks: Sequence[Answers], asked: ExplainRequest, progress: Progress
) -> AuditResult:
    """The result with the requested tables and their notes."""
    made = _Tables()
    if any(answers.outcome is not None for answers in tasks):
        # A number is not right or wrong, which the other parts ask.
        role = tasks[0].outcome
        if role is not None and (left := [p for p in asked.parts if p not in OF_NUMBERS]):
            made.notes.append(
                f"Not looked at: {', '.join(left)}, which ask which predictions are right, and "
                f"'{role.name}' is a number."
            )
        asked = replace(asked, parts=tuple(p for p in asked.parts if p in OF_NUMBERS))
    parts = [part for part in _LOOK if part in asked.parts]
    steps = len(parts) * len(tasks)
    per_task = replace(asked, gallery=max(1, asked.gallery // max(1, len(tasks))))
    for number, answers in enumerate(tasks):
        properties: Mapping[str, Any] = {}
        if asked.measure is not None and {"properties", "individuals", "slices"} & set(parts):
            properties = asked.measure(answers)
        for place, part in enumerate(parts):
            progress(f"looking for {part}", number * len(parts) + place, steps)
            _LOOK[part](answers, per_task, properties, made)
    if len(tasks) > 1 and tasks[0].outcome is None:
        # What can only be said of several attributes together.
        made.add("bias_regression", bias_regression(result.results))
        interrelation = None
        try:
            interrelation = label_interrelation({str(t.task): t for t in tasks})
            made.add("label_interrelation", interrelation)
        except InputError as error:
            made.notes.append(f"Label interrelation is undefined: {error}")
        made.add("attributes", attribute_values(result, interrelation))
    if "classes" in asked.parts:
        progress("looking at classes", steps, steps)
        _classes(result, tasks[0], asked, made)
    if "similarity" in asked.parts:
        points = similarity_points(result)
        if points.empty:
            made.notes.append(
                "Representations were not looked at: the variants table has no distances (columns "
                "svcca.BLOCK or cka.BLOCK)."
            )
        else:
            made.add("similarity_points", points)
            made.add("similarity", similarity(points, alpha=asked.alpha))
    tables = {name: stacked(found) for name, found in made.parts.items()}
    for table in tables.values():
        table.attrs.clear()  # notes stand in the result, and attrs are not written anywhere
    return replace(
        result,
        explanations={**result.explanations, **tables},
        notes=tuple(dict.fromkeys((*result.notes, *made.notes))),
    )


def _exemplars(
    answers: Answers, asked: ExplainRequest, properties: Mapping[str, Any], made: _Tables
) -> None:
    if answers.outcome is not None:
        losses = largest_losses(answers, percentiles=asked.percentiles)
        made.add("largest_losses", losses.rows)
        made.notes += losses.notes
        return
    found = find(
        answers,
        percentiles=asked.percentiles,
        tie_rule=asked.tie_rule,
        fill=asked.fill,
        random_state=asked.random_state,
        alpha=asked.alpha,
    )
    made.add("exemplar_counts", found.counts)
    made.add("exemplar_accuracy", found.accuracy)
    made.add("exemplar_overlap", found.overlap)
    made.add("exemplar_surrogate", found.surrogate)
    made.add("exemplars", found.rows)
    made.notes += found.notes
    made.add(
        "enrichment",
        enrichment(answers, found.masks, alpha=asked.alpha, random_state=asked.random_state),
    )
    made.add("risk", risk(answers, found.masks, alpha=asked.alpha))
    if asked.images is not None:
        modal = {v: found.masks[v, "modal", None] for v in answers.variants}
        rows, seed = places(answers, asked.images), asked.random_state
        images = exemplar_images(
            answers, found.rows, modal, asked.images, rows, seed, asked.gallery
        )
        made.add("exemplar_images", images)


def _slices(
    answers: Answers, asked: ExplainRequest, properties: Mapping[str, Any], made: _Tables
) -> None:
    with_images = replace(answers, numbers={**answers.numbers, **properties})
    for variant in answers.variants:
        table = find_slices(
            with_images, variant, alpha=asked.alpha, random_state=asked.random_state
        )
        named = [f"{variant}: {note}" for note in table.attrs.get("notes", ())]
        made.notes += named
        table.attrs.clear()
        made.add("slices", table)


def _properties(
    answers: Answers, asked: ExplainRequest, properties: Mapping[str, Any], made: _Tables
) -> None:
    if not (properties or answers.numbers or answers.columns):
        made.notes.append(
            "No property of the examples is known: give group columns, numbers or images."
        )
        return
    for variant in answers.variants:
        made.add(
            "example_properties",
            example_properties(answers, variant, properties, alpha=asked.alpha),
        )


def _individuals(
    answers: Answers, asked: ExplainRequest, properties: Mapping[str, Any], made: _Tables
) -> None:
    if asked.by == "cluster" and answers.cluster is None:
        made.notes.append(
            "Individuals were not looked at: no column says whose an example is (--cluster)."
        )
        return
    for variant in answers.variants:
        table = individuals(
            answers,
            variant,
            by=asked.by,
            group=asked.group,
            properties=properties,
            alpha=asked.alpha,
        )
        made.add("individuals", table)
        if properties or answers.numbers:
            made.add("individual_fits", individual_fits(table))
    if asked.images is not None and "tilt" in properties:
        rows = places(answers, asked.images)
        made.add("tilt_example", tilt_example(answers, properties["tilt"], asked.images, rows))


def _classes(result: AuditResult, answers: Answers, asked: ExplainRequest, made: _Tables) -> None:
    if asked.covariates is None:
        made.notes.append(
            "Classes were not explained: their imbalance and entropy are measured on the training "
            "images (--dataset)."
        )
        return
    known = asked.covariates
    try:
        rows = class_rows([result], known(answers) if callable(known) else known)
        found = explain_classes(rows, alpha=asked.alpha, random_state=asked.random_state)
    except InputError as error:
        made.notes.append(f"Classes were not explained: {error}")
        return
    made.add("class_rows", rows)
    made.add("class_coefficients", found.coefficients)
    made.add("class_fits", found.fits)
    made.add("class_residuals", found.residuals)


_LOOK: dict[str, Callable[[Answers, ExplainRequest, Mapping[str, Any], _Tables], None]] = {
    "exemplars": _exemplars,
    "slices": _slices,
    "properties": _properties,
    "individuals": _individuals,
}
