"""The audit from end to end; read this file first.

aligned view → cube → per task and variant: comparison → rows → frames. Nothing here computes a
number: every step is a call into the module that does.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairweight import __version__
from fairweight.auditing import schema
from fairweight.auditing.columns import DIVISORS, SOME_DIVISORS
from fairweight.auditing.compare.comparison import Comparison, TrainingCounts, comparison
from fairweight.auditing.compare.divergence import (
    NO_DISTRIBUTIONS,
    distributions,
    divergence_rows,
)
from fairweight.auditing.compare.estimate import Block, bounds_frame, frame, per_seed
from fairweight.auditing.compare.lead import lead_table
from fairweight.auditing.compare.outcome import largest_loss, mean_outcome_rows
from fairweight.auditing.compare.reliability import beside_calibrated, reliability_table
from fairweight.auditing.compare.scores import (
    most_tied_share,
    no_score_rows,
    score_rows,
    with_scores_only,
)
from fairweight.auditing.compare.simultaneous import Signs, draw_signs
from fairweight.auditing.compare.task_mean import task_mean_rows
from fairweight.auditing.compare.variant import Compared, compare
from fairweight.auditing.counts.confusion import confusion, data_table, left_out_table
from fairweight.auditing.counts.cube import Cube, compact, of_positions, summed
from fairweight.auditing.counts.cube_file import read_cubes
from fairweight.auditing.counts.group_by import count, has_scores, of_cells, of_rows, training_table
from fairweight.auditing.counts.groupings import chosen_groupings, resolve_positive
from fairweight.auditing.counts.sums_table import read_sums
from fairweight.auditing.metrics import metric
from fairweight.auditing.pairing import Parents
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.auditing.vocabulary import as_number, of_cube, some
from fairweight.base.fields import options_of
from fairweight.base.memory import give_back
from fairweight.base.types import Progress
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions, Members
from fairweight.tables.align import align, beside_outcomes
from fairweight.tables.canonical import canonical
from fairweight.tables.companions import (
    leak_notes,
    leaks,
    members_in,
    read_variants,
    stray_note,
)
from fairweight.tables.companions import parents as parents_in
from fairweight.tables.joins import left_out_note
from fairweight.tables.layout import Names
from fairweight.tables.names import grouping_name, known_group, level_name, split_grouping
from fairweight.tables.sources import Source, is_cube, provenance
from fairweight.tables.spec import LabelsAre, TableSpec, are_distant

if TYPE_CHECKING:
    from fairweight.auditing.explain.explanations import ExplainRequest


MANY_COMPARISONS = 50  # variants × tasks: of more, limits at fewer of the gate's levels


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class AuditRequest:
    """The request of one audit, with the names that its tables have settled."""

    tables: TableSpec
    options: AuditOptions
    baseline: str
    variants: tuple[str, ...]
    groupings: tuple[str, ...]
    command: str | None = None
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, Any], ...] = ()
    test_set: str | None = None  # its fingerprint, where it was asked for
    names_task: bool = False  # whether rows name the only task there is

    def to_json(self) -> dict[str, Any]:
        """What is stored with the audit: the tables and the statistics that were asked for."""
        return {"tables": self.tables.to_json(), "options": self.options.to_json()}


def run(
    cube: Cube,
    request: AuditRequest,
    *,
    scored: Cube | None = None,
    predicted: Cube | None = None,
    training: pd.DataFrame | None = None,
    variants_table: pd.DataFrame | None = None,
    progress: Progress = silent,
) -> AuditResult:
    """Audit a cube.

    Parameters
    ----------
    scored
        Where there are scores: the cube that tells them apart.
    predicted
        Where predictions stand beside outcomes: the cube of these, without labels.
    """
    request = replace(request, options=options_for(cube, request.options))
    lineage = parents_in(variants_table)
    # A leak comes first: the terminal shows only some notes.
    notes = leak_notes(leaks(variants_table, request.variants))
    # Of one task the mean over tasks would say everything twice.
    only = None
    if len(cube.tasks) == 1 and not request.names_task:
        only = cube.tasks[0]
        notes.append(f"There is one task, '{only}', so results do not name it.")
        if training is not None and "task" in training:
            training = training[training["task"] == only].drop(columns="task")
        cube = without_task(cube)
        scored = None if scored is None else without_task(scored)
        predicted = None if predicted is None else without_task(predicted)
    notes += [*_member_notes(cube, request, variants_table), *request.notes, *cube.notes]
    notes += left_out_note(cube.left_out)  # of a cube; tables have said so already
    if cube.has_classes:
        notes += of_cube(cube).check(request.baseline, force=request.tables.force)
    side = _fixed_side(cube, request.options.fixed_side)
    tasks: tuple[str | None, ...] = cube.tasks or (None,)
    positive = positives(cube, tasks, request.tables.positive)
    train = None if training is None else TrainingCounts(training)
    asked = request.tables.positive
    progress("random signs", 0, 1)
    signs = draw_signs(cube, request.baseline, request.variants, request.groupings, request.options)
    cube = compact(summed(cube, request.baseline))  # only signs need the numbers of a pair
    made: list[Compared] = []
    steps = len(tasks) * len(request.variants)
    # A policy may ask for any level: those that it declares are confirmatory.
    few = steps > MANY_COMPARISONS and not request.options.confirmatory
    divisors = SOME_DIVISORS if few else DIVISORS
    done = 0
    for task in tasks:
        for variant in request.variants:
            progress(f"{variant}{'' if task is None else f' on {task}'}", done, steps)
            made.append(
                _compare(
                    cube,
                    scored,
                    predicted,
                    request,
                    variant,
                    task,
                    positive[task],
                    train,
                    lineage,
                    signs,
                    side,
                    divisors,
                )
            )
            done += 1
    blocks = [b for part in made for b in part.blocks]
    if cube.tasks and cube.second_unit is not None:
        notes.append(
            "No mean over tasks: it is not estimable with two cluster columns. Give one --cluster "
            "(cluster=) to have it."
        )
    elif cube.tasks and cube.outcome is not None:
        for variant in request.variants:
            parts = [part for part in made if part.variant == variant]
            shared = cube.n_examples < cube.count.sum()  # tasks have examples in common
            rows = [part.confirmatory for part in parts]
            blocks += mean_outcome_rows(parts[0].comparison, rows, shared=shared)
    elif cube.tasks and cube.labelled:
        for variant in request.variants:
            progress(f"{variant}, mean over tasks", done, steps)
            blocks += task_mean_rows(
                cube,
                scored,
                request.baseline,
                variant,
                request.groupings,
                positive,
                request.options,
                train,
                filters=request.options.filters,
                fixed_side=side,
                parents=lineage,
                signs=signs,
                divisors=divisors,
            )
    if request.options.members == Members.REPEATED:  # runs of one pair: no method is sampled
        blocks = [b for b in blocks if b["scope"][0] == "model"]
        for part in made:
            part.confirmatory = [r for r in part.confirmatory if r.scope == "model"]
    progress("tables", steps, steps)
    for part in made:
        notes += part.notes
    if scored is not None and cube.labelled:
        reliability = reliability_table(
            scored,
            (request.baseline, *request.variants),
            request.groupings,
            positive,
            request.options,
        )
    else:
        reliability = schema.frame("reliability")
    notes += _closing_notes(cube, scored, request, positive, training, blocks)
    lead = lead_table(made, signs, request.options.alpha)
    members = per_seed([(part.members, part.blocks) for part in made], request.baseline)
    # Of 10,000 groups every frame is a hundred megabytes: what has become one is let go.
    give_back()
    bounds = bounds_frame(blocks)
    results = frame(blocks)
    give_back()
    if len(reliability):
        results = beside_calibrated(results, reliability, request.baseline)
    named = [cube.of_task(t).label_classes[i] for t, i in positive.items() if i is not None]
    # Of outcomes that are numbers, the largest loss of one example in every variant.
    losses: dict[str, float] = {}
    for part in made:
        outcome = part.comparison.cube.outcome
        if outcome is not None and not outcome.role.binary:
            losses[part.variant] = max(losses.get(part.variant, 0.0), largest_loss(part.comparison))
    return AuditResult(
        baseline=request.baseline,
        variants=request.variants,
        classes=cube.label_classes if cube.has_classes else (),
        outcome=None if cube.outcome is None else cube.outcome.role,
        labelled=cube.labelled,
        largest_losses=losses,
        positive=next(iter(named), None),
        tasks=cube.tasks,
        groupings=request.groupings,
        single_columns=tuple(name for name in request.groupings if len(split_grouping(name)) == 1),
        n_examples=cube.n_examples,
        results=results,
        per_seed=members,
        confusion=confusion(cube) if cube.has_classes else schema.frame("confusion"),
        reliability=reliability,
        data=data_table(cube, request.groupings, training),
        power=schema.frame("power", [r for p in made for r in p.power]),
        concentration=schema.frame("concentration", [r for p in made for r in p.concentration]),
        group_error=schema.frame("group_error", [r for p in made for r in p.group_error]),
        notes=tuple(dict.fromkeys(notes)),
        provenance=Provenance(
            version=__version__,
            command=request.command,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=request.inputs,
            options=request.options.to_json() | {"positive": None if asked is None else str(asked)},
            request=request.to_json(),
        ),
        variants_table=variants_table,
        bounds=bounds,
        lead=lead,
        left_out=left_out_table(cube, request.groupings),
        test_set=request.test_set,
        only_task=only,
        cube=cube,
        pairing={
            variant: part.pairing
            for variant, part in zip(request.variants * len(tasks), made, strict=True)
        },
    )


def without_task(cube: Cube) -> Cube:
    """A cube of one task as one without any: an example is one row again."""
    loose = not cube.unit_is_cluster
    return compact(
        replace(
            cube,
            tasks=(),
            task=None,
            unit=None if loose else cube.unit,
            unit_names=() if loose else cube.unit_names,
            left_out=tuple(replace(part, task=None) for part in cube.left_out),
        )
    )


def options_for(cube: Cube, options: AuditOptions) -> AuditOptions:
    """The options with the margin that these data take: of rates, or in the outcome's unit."""
    if cube.outcome is None or cube.outcome.role.binary:
        return options.for_rates()
    return options.for_numbers(cube.outcome.role.range)


def _compare(
    cube: Cube,
    scored: Cube | None,
    predicted: Cube | None,
    request: AuditRequest,
    variant: str,
    task: str | None,
    positive: int | None,
    training: TrainingCounts | None,
    parents: Parents,
    signs: Signs | None,
    fixed_side: str | None,
    divisors: tuple[int, ...],
) -> Compared:
    """All rows of one variant on one task, those of scores too."""
    compared = partial(
        comparison,
        baseline=request.baseline,
        variant=variant,
        task=task,
        grouping_names=request.groupings,
        positive=positive,
        options=request.options,
        parents=parents,
        divisors=divisors,
    )
    found = compared(cube, signs=signs)
    made = compare(found, training, filters=request.options.filters, fixed_side=fixed_side)
    give_back()
    with_scores: Comparison | None = None
    if scored is not None:
        with_scores, left_out = with_scores_only(compared(scored, keep_scores=True))
        if left_out:
            made.notes.append(
                f"Score metrics of {variant} leave out {left_out:,} examples on which a model "
                "abstains or has no score."
            )
    if predicted is not None:
        # A prediction that changed is one thing, one that became wrong is another.
        churn = compare(compared(predicted), None).blocks
        others = [b for b in made.blocks if metric(b["metric"][0]).pairs != "changed"]
        made.blocks = [*others, *churn]
    if not cube.labelled and with_scores is not None:
        made.blocks += divergence_rows(with_scores)
        made.notes += [] if distributions(with_scores) is not None else [NO_DISTRIBUTIONS]
    if not cube.has_classes:
        return made
    if with_scores is None or not with_scores.cube.n_cells:
        made.blocks += no_score_rows(found)
    else:
        made.blocks += score_rows(with_scores)
    return made


def positives(
    cube: Cube, tasks: tuple[str | None, ...], asked: Any
) -> dict[str | None, int | None]:
    """The positive class of every task; a task without it, or with more classes, has none."""
    classes = {task: cube.of_task(task).label_classes for task in tasks}
    if len(tasks) == 1 or asked is None:
        return {task: resolve_positive(names, asked) for task, names in classes.items()}
    fitting = {
        task: names
        for task, names in classes.items()
        if len(names) == 2 and {canonical(asked), canonical(asked, truth_as_number=True)} & {*names}
    }
    if not fitting:
        raise UnknownNameError(
            "Positive class", str(asked), cube.label_classes, remedy="Name one of the labels."
        )
    return {
        task: resolve_positive(names, asked) if task in fitting else None
        for task, names in classes.items()
    }


def _fixed_side(cube: Cube, level: str | None) -> str | None:
    """The level whose side is always watched must exist; else nothing would be watched."""
    if level is None:
        return None
    levels = [
        level_name(column.name, value)
        for column in cube.columns
        for value in column.values
        if value is not None
    ]
    found = known_group(level, levels)
    if found is None:
        raise UnknownNameError(
            "In --fixed-side (fixed_side=), the level", level, levels, remedy="Write COLUMN=LEVEL."
        )
    return found


def _member_notes(
    cube: Cube, request: AuditRequest, variants_table: pd.DataFrame | None
) -> list[str]:
    """What members are taken to be, where nothing but the user's word says it."""
    if len({member.variant for member in cube.members}) == len(cube.members):
        return []
    if request.options.members == Members.REPEATED:
        return [
            "Members are runs of the same models (--members repeated): they are averaged within "
            "each example, and nothing is said about training or compressing again."
        ]
    if {(m.variant, m.seed) for m in cube.members} <= members_in(variants_table):
        return []
    return [
        "Several members of a variant (seeds) are taken to be models that were trained again. If "
        "they are runs of one model (decoding repeats, checkpoints), use --members repeated "
        "(members='repeated'); a variants table that names every member confirms them."
    ]


def _closing_notes(
    cube: Cube,
    scored: Cube | None,
    request: AuditRequest,
    positive: dict[str | None, int | None],
    training: pd.DataFrame | None,
    blocks: list[Block],
) -> list[str]:
    """What a reader of the results has to know about variants, columns, scores and signs."""
    notes = []
    if len(request.variants) > 1:
        notes.append(
            f"{len(request.variants)} compressed variants were audited on the same examples; "
            "the best of several looks better than it is, so confirm it on others."
        )
    for task, index in positive.items():
        part = cube.of_task(task)
        if index is None and len(part.label_classes) == 2:
            notes.append(
                "Metrics of a positive class are not estimable: the labels are "
                f"{some(part.label_classes)}, and none is named as positive. Name it: --positive "
                f"{shlex.quote(part.label_classes[-1])} (positive=)."
            )
            break
    common = {*cube.unit_names} & {*cube.second_unit_names}
    if common:
        notes.append(
            f"{len(common):,} clusters have the same name in both cluster columns. Examples are "
            "bound by the name in one column or the other, not across: if one person appears in "
            "both, limits are too narrow by what such examples share."
        )
    for column in cube.columns:
        if None in column.values:
            missing = int(cube.count[column.code == column.values.index(None)].sum())
            notes.append(
                f"{missing:,} rows have no value in '{column.name}'; they are a group of their "
                "own, outside gaps and families."
            )
        if len(column.values) > 50 and all(
            v is None or as_number(v) is not None for v in column.values
        ):
            notes.append(
                f"'{column.name}' has {len(column.values):,} different numbers, each a group of "
                "its own; bin them into a few ranges to learn more about each."
            )
        elif len(column.values) > 1_000:
            notes.append(
                f"'{column.name}' has {len(column.values):,} values; all of them are in the "
                "tables, most are too small to tell anything."
            )
    if scored is not None and scored.scores is not None and scored.scores.bins is not None:
        bins, tied = scored.scores.bins, most_tied_share(scored, positive)
        notes.append(
            f"There are more than a million distinct scores, so they were rounded to {bins:,} "
            f"bins: AUC is off by at most {tied / 2:.1g}, calibration errors by at most "
            f"{0.5 / bins:.1g}, Brier scores by at most {1 / bins:.1g}."
        )
    # Where bias amplification had to take its sign from.
    amplified = bool(request.groupings) and any(index is not None for index in positive.values())
    if amplified and training is None:
        notes.append(
            "No training table was given: the sign of bias amplification and the rarer value of "
            "TCB come from the test labels."
        )
    elif amplified and training is not None:
        absent = [
            name
            for name in request.groupings
            if any(column not in training for column in split_grouping(name))
        ]
        if absent:
            notes.append(
                f"The training table has no column for {some(absent)}: there the sign of bias "
                "amplification comes from the test labels."
            )
    # Scores that rank worse than chance are most likely those of the other class.
    for b in blocks:
        entry = metric(b["metric"][0])
        if entry.chance is None or b["by"][0] != "overall" or "baseline" not in b:
            continue
        task, value = b["task"][0], float(b["baseline"][0])
        index = positive.get(task)
        if value < entry.chance and index is not None:
            name = cube.of_task(task).label_classes[index]
            notes.append(
                f"The baseline's scores rank worse than chance ({entry.label} {value:.2f}): are "
                f"they the probability of the other class than '{name}'? Scores of binary labels "
                "are read as the probability of the positive class."
            )
            break
    return notes


# From given tables (or cubes) to the result of an audit, for Python, the command line and studies.

# What a cube cannot be asked any more.
OF_TABLES = ("cluster", "weight", "examples", "train", "task", "predictions", "scores", "count",
             "outcome", "better", "denominator", "range", "repeat", "query", "log_tasks",
             "log_filter", "allow_different", "score_threshold")  # fmt: skip

# Ids of more rows are read for a fingerprint of the test set only where there is a policy: a
# million takes 0.6 s, as long as the audit of them.
FINGERPRINT_ROWS = 200_000


def audited(
    tables: TableSpec,
    options: AuditOptions,
    *,
    explain: ExplainRequest | None = None,
    command: str | None = None,
    progress: Progress | None = None,
    names_task: bool = False,
) -> AuditResult:
    """Audit prediction tables, or cubes.

    Parameters
    ----------
    explain
        Which examples and why: what to look for beyond the audit.
    command
        The command as it was typed, for the report.
    names_task
        Name the task in every row even where there is one alone, for rows that are read beside
        those of other audits.
    """
    report = progress or silent
    if tables.repeat is not None:
        options = replace(options, members=Members.REPEATED)
    cubes = cube_paths(tables)
    if cubes:
        models = models_beside_cubes(tables)
        held = read_chosen_cubes(cubes, tables)
        inputs = [Source(path, "", {}, held[0].n_cells, (Path(path),)) for path in cubes]
        return _audit_cube(held, inputs, models, tables, options, command, report, explain)
    report("reading", 0, 1)
    if tables.outcome is not None and are_distant(tables):
        from fairweight.tables.engines import counted_there

        tables = counted_there(tables)
    summed_table = read_sums(tables)
    if summed_table is not None:
        held = (summed_table.cube, summed_table.baseline, summed_table.groupings)
        models = None
        if tables.variants is not None:
            models = read_variants(tables.variants.given, Names.of(tables))
        inputs = [summed_table.source]
        return _audit_cube(held, inputs, models, tables, options, command, report, explain)
    with align(tables, further=explain is not None) as aligned:
        report("counting", 0, 1)
        cube = count(aligned)
        cube, groupings = as_asked(cube, aligned.groupings, tables)
        known = None
        if options.confirmatory or aligned.n_rows <= FINGERPRINT_ROWS:
            known = of_rows(aligned) or of_cells(cube)
        request = AuditRequest(
            tables=tables,
            options=options,
            baseline=aligned.baseline,
            variants=aligned.variants,
            groupings=groupings,
            command=command,
            notes=aligned.notes,
            inputs=provenance(aligned.inputs),
            test_set=known,
            names_task=names_task,
        )
        predictions = beside_outcomes(aligned)
        result = run(
            cube,
            request,
            scored=count(aligned, scores=True)
            if cube.outcome is None and has_scores(aligned)
            else None,
            predicted=None if predictions is None else count(predictions),
            training=training_table(aligned, cube.label_classes),
            variants_table=aligned.variants_table,
            progress=report,
        )
        if explain is None:
            return result
        from fairweight.auditing.explain.explanations import explained
        from fairweight.auditing.prediction_matrix import answers_of, from_cube

        if aligned.has_count:  # without identities, as a cube is
            return explained(result, [from_cube(cube, aligned.baseline)], explain, report)
        answers = answers_of(aligned, tables.positive, numeric=True)
        if not result.tasks:
            answers = [replace(one, task=None) for one in answers]
        return explained(result, answers, explain, report)


def as_asked(
    cube: Cube, groupings: Sequence[str], tables: TableSpec
) -> tuple[Cube, tuple[str, ...]]:
    """The cube and its groupings; labels that are positions are right or wrong, and a group."""
    if tables.labels_are != LabelsAre.POSITIONS or not cube.has_classes:
        return cube, tuple(groupings)
    return of_positions(cube, tables.label), (*groupings, grouping_name([tables.label]))


def _audit_cube(
    held: tuple[Cube, str, tuple[str, ...]],
    inputs: Sequence[Source],
    models: tuple[pd.DataFrame, Source] | None,
    tables: TableSpec,
    options: AuditOptions,
    command: str | None,
    progress: Progress,
    explain: ExplainRequest | None,
) -> AuditResult:
    cube, baseline, groupings = held
    names = dict.fromkeys(member.variant for member in cube.members)
    table, beside = (None, []) if models is None else (models[0], [models[1]])
    stray = stray_note(parents_in(table), ((m.variant, m.seed) for m in cube.members))
    request = AuditRequest(
        tables=tables,
        options=options,
        baseline=baseline,
        variants=tuple(name for name in names if name != baseline),
        groupings=groupings,
        command=command,
        notes=() if stray is None else (stray,),
        inputs=provenance([*inputs, *beside]),
        test_set=of_cells(cube),
    )
    result = run(cube, request, variants_table=table, progress=progress)
    if explain is None:
        return result
    from fairweight.auditing.explain.explanations import explained
    from fairweight.auditing.prediction_matrix import from_cube

    tasks = [from_cube(cube, baseline, task) for task in cube.tasks or (None,)]
    tasks = tasks if result.tasks else [replace(one, task=None) for one in tasks]
    return explained(result, tasks, explain, progress)


def read_chosen_cubes(paths: Sequence[str], tables: TableSpec) -> tuple[Cube, str, tuple[str, ...]]:
    """The sum of the cubes, its baseline and its groupings: those requested, else those stored."""
    cube, stored, groupings = read_cubes(paths)
    baseline = canonical(tables.baseline) or stored
    names = list(dict.fromkeys(member.variant for member in cube.members))
    if baseline not in names:
        raise UnknownNameError("The baseline", baseline, names)
    if baseline != stored and cube.outcome is not None and cube.outcome.sums is not None:
        raise InputError(
            f"The cube holds sums of changes from '{stored}', so '{baseline}' cannot be its "
            f"baseline; count the table again with --baseline {shlex.quote(baseline)}, or leave "
            "--baseline out."
        )
    if tables.groups is not None:
        groupings = chosen_groupings(cube, tables.groups)
    cube, groupings = as_asked(cube, groupings, tables)
    return cube, baseline, groupings


def models_beside_cubes(tables: TableSpec) -> tuple[pd.DataFrame, Source] | None:
    """The variants table beside cubes; options that only apply when counting are refused."""
    options = options_of(tables)
    for name in OF_TABLES:
        if getattr(tables, name) is not None:
            flag = options[name][1].flag
            raise InputError(
                f"{flag} cannot be applied to a cube, which is counted already; say it when "
                f"counting: fairweight count FILE {flag} ... --out cube.parquet"
            )
    if tables.variants is None:
        return None
    return read_variants(tables.variants.given, Names.of(tables))


def cube_paths(tables: TableSpec) -> list[str]:
    """Paths of cubes, globs expanded; [] if the sources are anything else."""
    given = [ref.path for ref in tables.sources if ref.path is not None and ref.variant is None]
    if len(given) < len(tables.sources):
        return []
    paths = [
        path
        for item in given
        for path in (sorted(glob(item)) if not Path(item).exists() else [item])
    ]
    which = [is_cube(path) for path in paths]
    if not any(which):
        return []
    if not all(which):
        raise InputError(
            "Cubes and prediction tables were given together; audit the cubes alone, or count the "
            "tables too (fairweight count)."
        )
    return paths
