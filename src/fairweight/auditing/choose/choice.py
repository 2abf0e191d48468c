"""Choose: measure, require, rank, and say how sure the choice is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing.choose.frontier import sureness
from fairweight.auditing.choose.objectives import (
    is_bounded,
    is_outcome,
    nearest_miss,
    needs_scores,
    numeric_columns,
    read_objective,
    read_requirement,
    read_weights,
    weights_of,
)
from fairweight.auditing.choose.tables import confirmed_frame, frames
from fairweight.auditing.choose.terms import (
    ChoiceRequest,
    Setting,
    measured,
    metrics_of,
    term_values,
)
from fairweight.auditing.compare.comparison import TrainingCounts
from fairweight.auditing.counts import group_by
from fairweight.auditing.counts.cube import Cube, select
from fairweight.auditing.mitigate.mitigation import refuse_overlap, rows_seen
from fairweight.auditing.pipeline import (
    cube_paths,
    models_beside_cubes,
    positives,
    read_chosen_cubes,
)
from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
from fairweight.auditing.vocabulary import of_cube
from fairweight.base.streams import stream
from fairweight.base.types import Progress
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.align import Aligned, align
from fairweight.tables.checks import refuse_two_clusters, refuse_without_classes
from fairweight.tables.spec import OutcomeRole, TableSpec, sources_of

# What a choice is made on: counts of tables or of cubes, and what stands beside them.


@dataclass(frozen=True)
class ChoiceData:
    """Answers of all members, counted, and how they are to be measured."""

    cube: Cube
    setting: Setting
    notes: tuple[str, ...]


def of_tables(
    aligned: Aligned, request: ChoiceRequest, tables: TableSpec, options: AuditOptions
) -> ChoiceData:
    """Count aligned tables, with scores where something that is wanted needs them."""
    scores = _wants_scores(request, there=group_by.has_scores(aligned), where="the predictions")
    cube = group_by.count(aligned, scores=scores)
    training = group_by.training_table(aligned, cube.label_classes)
    return _counted(
        cube,
        aligned.baseline,
        aligned.groupings,
        tables,
        options,
        None if training is None else TrainingCounts(training),
        aligned.notes,
    )


def _counted(
    cube: Cube,
    baseline: str,
    groupings: Sequence[str],
    tables: TableSpec,
    options: AuditOptions,
    training: TrainingCounts | None = None,
    notes: Sequence[str] = (),
) -> ChoiceData:
    """The cube with how it is to be measured; classes and positives are checked."""
    refuse_two_clusters(crossed=cube.second_unit is not None)
    if cube.outcome is not None and cube.outcome.sums is not None:
        raise InputError(
            "The cube holds sums of an outcome, of each variant against the baseline; which "
            "variant is best depends on how they vary together from example to example. Give the "
            "table that it was counted from."
        )
    said = [*notes, *cube.notes]
    if cube.outcome is None:
        refuse_without_classes(None, labelled=cube.labelled)
        said += of_cube(cube).check(baseline, force=tables.force)
    setting = Setting(
        baseline=baseline,
        groupings=tuple(groupings),
        positive=positives(cube, cube.tasks or (None,), tables.positive),
        options=options,
        training=training,
    )
    return ChoiceData(cube, setting, tuple(said))


def _wants_scores(request: ChoiceRequest, *, there: bool, where: str) -> bool:
    """Whether a term needs scores; an error where it does and there are none."""
    wanted = [term.name for term in request.terms if needs_scores([term])]
    if wanted and not there:
        raise InputError(
            f"'{wanted[0]}' needs scores, and {where} have none; give a table with a score column, "
            "or choose by something else."
        )
    return bool(wanted)


@dataclass(frozen=True)
class Choice:
    """What was chosen, how surely, and from what.

    tables  choice, choice_values, choice_requirements,
            choice_weights, choice_confirmed
    """

    chosen: str | None
    qualifying: tuple[str, ...]
    baseline: str
    asked: ChoiceRequest
    n_examples: int
    n_confirmed: int  # examples that were not chosen on; 0: selected on these data
    nearest: tuple[str, dict[str, float]] | None  # who misses least, and by how much, if none may
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...] = ()

    @property
    def none_qualifies(self) -> bool:
        return not self.qualifying


def choose(
    counted: ChoiceData,
    request: ChoiceRequest,
    variants_table: pd.DataFrame | None = None,
    *,
    confirm: ChoiceData | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose among the variants of counted answers, the baseline among them.

    Parameters
    ----------
    confirm
        Answers on other examples, on which the choice is looked at again.
    """
    cube, setting = counted.cube, counted.setting
    found = measured(cube, metrics_of(request), setting, progress)
    known, said = term_values(found, request, variants_table)
    kept = np.ones(len(known.variants), dtype=np.bool_)
    for requirement in request.requirements:
        kept &= requirement.met(known.of(requirement.term)[0])
    if request.verdicts is not None:
        kept &= np.array([request.verdicts.get(name) == "pass" for name in known.variants])
    sure, chosen, nearest = None, None, None
    if kept.any():
        sure = sureness(request, known, kept, setting.options.random_state)
        on = np.flatnonzero(sure.frontier)
        if request.weights is not None:
            chosen = known.variants[int(np.where(kept, sure.value, -np.inf).argmax())]
        elif len(on) == 1:  # without a value function: the frontier, where one is alone on it
            chosen = known.variants[int(on[0])]
    elif request.requirements:
        values = np.stack([known.of(r.term)[0] for r in request.requirements], axis=1)
        best, short = nearest_miss(request.requirements, values)
        missed = {
            r.shown: float(by)
            for r, value, by in zip(request.requirements, values[best], short, strict=True)
            if not r.met(value)
        }
        nearest = (known.variants[best], missed) if missed else None
    tables = dict(frames(request, known, kept, sure, chosen, setting.baseline))
    if confirm is not None:
        again = measured(confirm.cube, metrics_of(request), confirm.setting, progress)
        other, _ = term_values(again, request, variants_table)
        tables["choice_confirmed"] = confirmed_frame(request, other, known, kept)
    return Choice(
        chosen=chosen,
        qualifying=tuple(n for n, ok in zip(known.variants, kept, strict=True) if ok),
        baseline=setting.baseline,
        asked=request,
        n_examples=cube.n_examples,
        n_confirmed=0 if confirm is None else confirm.cube.n_examples,
        nearest=nearest,
        tables=tables,
        notes=(*counted.notes, *found.notes, *said),
    )


# Rows that were not chosen on: a share of the examples or clusters, or another table.

MOST_DIVIDED = 10**9 - 1  # numpy draws hypergeometric numbers of no more


def split(cube: Cube, share: float, rng: np.random.Generator) -> tuple[Cube, Cube]:
    """The cube of the examples to choose on, and that of a share held out.

    Clusters (and examples with several tasks) go to one side whole. Single examples are counted in
    cells, of which a random number is held out: the law of drawing examples one by one.
    """
    if cube.unit is not None:
        n_units = len(cube.unit_names)
        held = np.zeros(n_units, dtype=np.bool_)
        held[rng.permutation(n_units)[: round(share * n_units)]] = True
        out = cube.count * held[cube.unit]
    else:
        total = int(cube.count.sum())
        if total > MOST_DIVIDED:
            raise InputError(
                f"There are {total:,} examples, and --confirm-share (confirm_share=) divides at "
                f"most {MOST_DIVIDED:,}; give a table of other examples (--confirm FILE)."
            )
        out = rng.multivariate_hypergeometric(cube.count, round(share * total), method="marginals")
    parts = cube.count - out, out
    if not all(part.any() for part in parts):
        raise InputError(
            f"--confirm-share {share:g} leaves nothing to choose on or to confirm on; give a share "
            "nearer to 0.5, or more examples."
        )
    return _part(cube, parts[0]), _part(cube, parts[1])


def _part(cube: Cube, count: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Cube:
    """The cells that are left, with their units renumbered so that each is drawn again."""
    kept = select(replace(cube, count=count), count > 0)
    if kept.unit is None:
        return replace(kept, n_examples=int(kept.count.sum()))
    used, unit = np.unique(kept.unit, return_inverse=True)
    names = tuple(cube.unit_names[i] for i in used)
    n_examples = int(kept.count.sum()) if kept.unit_is_cluster and not kept.tasks else len(used)
    return replace(
        kept, unit=unit.reshape(-1).astype(np.int64), unit_names=names, n_examples=n_examples
    )


def compare_rows(chosen_on: Aligned, confirmed_on: Aligned) -> list[str]:
    """Refuse rows and clusters that are in both tables; say what could not be compared."""
    if chosen_on.has_count or confirmed_on.has_count:
        raise InputError(
            "--confirm needs single examples, to see that none was chosen on, and a table is "
            "counted (--count); hold out a share instead: --confirm-share 0.5."
        )

    own, other = (
        [from_aligned(aligned, task, numeric=True) for task in tasks_of(aligned)]
        for aligned in (chosen_on, confirmed_on)
    )
    # Outcomes tell rows apart as scores do.
    own, other = (
        [a if a.numerator is None else replace(a, score=a.numerator.astype("f4")) for a in tasks]
        for tasks in (own, other)
    )
    seen = rows_seen(own)
    return refuse_overlap(
        seen,
        rows_seen(other, seen),
        "--confirm: the choice would be confirmed on rows on which it was made",
    )


# From tables and words to a choice, for the command line and for studies.

MARGIN = 0.02  # 2 points


@dataclass(frozen=True)
class Wishes:
    """What is wanted, as it is written: `accuracy`, `size_bytes<=2e5`, `unfairness=100`."""

    objectives: Sequence[str] = ()
    requirements: Sequence[str] = ()
    weights: Sequence[str] = ()
    excluded: Sequence[str] = ()
    margin: float | None = None  # None: 2 points, where the value is a share
    verdicts: Mapping[str, str] | None = None  # of a policy, by variant


def read_wishes(
    wishes: Wishes, variants_table: pd.DataFrame | None, role: OutcomeRole | None = None
) -> ChoiceRequest:
    """Names looked up, limits and weights as numbers; a sentence for what cannot be used."""
    columns = numeric_columns(variants_table)
    weights = read_weights(wishes.weights)
    names = list(dict.fromkeys(wishes.objectives)) or list(weights)
    if not names:
        raise InputError(
            "--objective is missing; name what should be best, such as --objective accuracy "
            "--objective size_bytes."
        )
    objectives = tuple(read_objective(name, columns, role) for name in names)
    terms = [objective.name for objective in objectives]
    twice = next((name for name in terms if terms.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--objective {twice} was given twice; give it once.")
    request = ChoiceRequest(
        objectives=objectives,
        requirements=tuple(read_requirement(text, columns, role) for text in wishes.requirements),
        weights=weights_of(objectives, weights),
        excluded=tuple(wishes.excluded),
        verdicts=wishes.verdicts,
    )
    margin = wishes.margin
    if margin is not None and not (isfinite(margin) and margin >= 0):
        raise InputError(f"--margin {margin:g} cannot be used; give a number of at least 0.")
    if request.weights is None and margin is not None:
        raise InputError(
            "--margin says how far from the best a variant may be, and several objectives "
            "without weights have no single best; give --worth too, or leave --margin out."
        )
    if request.weights is not None and margin is None and len(objectives) == 1:
        one = objectives[0].term
        width = 1.0 if is_bounded(one) else 0.0
        if is_outcome(one) and role is not None and role.range is not None:
            width = role.range[1] - role.range[0]
        margin = MARGIN * width * float(request.weights[0]) if width else None
    return replace(request, margin=margin)


def choice_from(
    tables: TableSpec,
    wishes: Wishes,
    options: AuditOptions,
    *,
    confirm: Any = None,
    confirm_share: float | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose among the variants of prediction tables or cubes.

    Parameters
    ----------
    confirm
        Predictions of the same variants on other examples.
    confirm_share
        Instead of another table: the share of the examples (clusters) held out to confirm on.
    """
    if confirm is not None and confirm_share is not None:
        raise InputError("--confirm and --confirm-share were both given; give one of them.")
    if confirm_share is not None and not 0 < confirm_share < 1:
        raise InputError(
            f"--confirm-share {confirm_share:g} cannot be used; give a share between 0 and 1."
        )
    cubes = cube_paths(tables)
    if cubes and confirm is not None:
        raise InputError(
            "--confirm cannot be used with cubes, which do not say which examples they hold; hold "
            "a share of them out: --confirm-share 0.5."
        )
    with ExitStack() as opened:
        if cubes:
            beside = models_beside_cubes(tables)
            models = None if beside is None else beside[0]
            cube, baseline, chosen = read_chosen_cubes(cubes, tables)
            role = None if cube.outcome is None else cube.outcome.role
            request = read_wishes(wishes, models, role)
            _wants_scores(request, there=False, where="cubes")
            found = _counted(cube, baseline, chosen, tables, options)
        else:
            aligned = opened.enter_context(align(tables))
            models = aligned.variants_table
            request = read_wishes(wishes, models, aligned.outcome)
            found = of_tables(aligned, request, tables, options)
        if (confirm is not None or confirm_share is not None) and not metrics_of(request):
            raise InputError(
                "--confirm and --confirm-share look at metrics again, and there is none among the "
                "objectives and requirements; add one (--require 'accuracy>=0.9'), or leave them "
                "out."
            )
        held: ChoiceData | None = None
        if confirm is not None:
            again = replace(
                tables,
                sources=sources_of(confirm),
                baseline=aligned.baseline,
                groups=aligned.groupings,
            )
            other = opened.enter_context(align(again))
            lacking = [name for name in aligned.variants if name not in other.variants]
            if lacking:
                raise InputError(
                    f"--confirm has no predictions of '{lacking[0]}'; give the same variants there."
                )
            said = compare_rows(aligned, other)
            held = of_tables(other, request, again, options)
            found = replace(found, notes=(*found.notes, *said))
        elif confirm_share is not None:
            rng = stream(options.random_state, "choose", "confirm")
            own, out = split(found.cube, confirm_share, rng)
            found, held = replace(found, cube=own), replace(found, cube=out)
        return choose(found, request, models, confirm=held, progress=progress)
