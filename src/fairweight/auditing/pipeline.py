"""The audit from end to end; read this file first.

aligned view → cube → per task and variant: comparison → rows → frames. Nothing here computes a
number: every step is a call into the module that does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import Comparison, Options, Training, comparison
from fairweight.auditing.compare.estimate import Block, bounds_frame, frame, per_seed
from fairweight.auditing.compare.lead import lead_table
from fairweight.auditing.compare.simultaneous import Signs, draw_signs
from fairweight.auditing.compare.task_mean import task_mean_rows
from fairweight.auditing.compare.variant import Compared, compare
from fairweight.auditing.counts.confusion import confusion, data_table, left_out_table
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import resolve_positive
from fairweight.auditing.pairing import Parents
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.auditing.vocabulary import of_cube, some
from fairweight.base.types import Progress
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical
from fairweight.tables.names import known_group, level_name, split_grouping

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.explain.explanations import Asked
    from fairweight.auditing.result import AuditResult
    from fairweight.tables.align import Aligned
    from fairweight.tables.sources import Source


def silent(what: str, done: int, total: int) -> None:
    """A progress that says nothing."""


@dataclass(frozen=True)
class Request:
    """What is asked of an audit beyond the data."""

    baseline: str
    variants: tuple[str, ...]
    groupings: tuple[str, ...]
    options: Options
    positive: Any = None
    filters: bool = True  # the skip rules of bias amplification
    fixed_side: str | None = None  # the level whose side is always watched (backdoors)
    force: bool = False  # audit labels and predictions that do not look like classes
    command: str | None = None
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, Any], ...] = field(default_factory=tuple)
    test_set: str | None = None  # its fingerprint, where it was asked for


def run(
    cube: Cube,
    request: Request,
    *,
    scored: Cube | None = None,
    training: pd.DataFrame | None = None,
    variants_table: pd.DataFrame | None = None,
    progress: Progress = silent,
) -> AuditResult:
    """Audit a cube (and, where there are scores, the cube that tells them apart)."""

    from fairweight import __version__
    from fairweight.tables.companions import leak_notes, leaks, parents
    from fairweight.tables.joins import left_out_note

    lineage = parents(variants_table)
    # A leak comes first: the terminal shows only some notes.
    notes = leak_notes(leaks(variants_table, request.variants))
    notes += [*_member_notes(cube, request, variants_table), *request.notes, *cube.notes]
    notes += left_out_note(cube.left_out)  # of a cube; tables have said so already
    notes += of_cube(cube).check(request.baseline, force=request.force)
    request = replace(request, fixed_side=_fixed_side(cube, request.fixed_side))
    tasks: tuple[str | None, ...] = cube.tasks or (None,)
    positive = positives(cube, tasks, request.positive)
    train = None if training is None else Training(training)
    progress("random signs", 0, 1)
    signs = draw_signs(cube, request.baseline, request.variants, request.groupings, request.options)
    made: list[Compared] = []
    steps = len(tasks) * len(request.variants)
    done = 0
    for task in tasks:
        for variant in request.variants:
            progress(f"{variant}{'' if task is None else f' on {task}'}", done, steps)
            made.append(
                _compare(
                    cube, scored, request, variant, task, positive[task], train, lineage, signs
                )
            )
            done += 1
    blocks = [b for part in made for b in part.blocks]
    if cube.tasks:
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
                filters=request.filters,
                fixed_side=request.fixed_side,
                parents=lineage,
                signs=signs,
            )
    progress("tables", steps, steps)
    for part in made:
        notes += part.notes
    if scored is not None:
        reliability = _reliability(scored, request, positive)
    else:
        reliability = schema.frame("reliability")
    results = frame(blocks)
    if len(reliability):
        from fairweight.auditing.compare.reliability import beside_calibrated

        results = beside_calibrated(results, reliability, request.baseline)
    notes += _general_notes(cube, request, positive)
    if scored is not None:
        notes += _score_notes(scored, positive)
    notes += _sign_notes(request, positive, training)
    notes += _reversed_notes(cube, blocks, positive)
    return AuditResult(
        baseline=request.baseline,
        variants=request.variants,
        classes=cube.label_classes,
        positive=_named_positive(cube, positive),
        tasks=cube.tasks,
        groupings=request.groupings,
        single_columns=tuple(name for name in request.groupings if len(split_grouping(name)) == 1),
        n_examples=cube.n_examples,
        results=results,
        per_seed=per_seed([(part.members, part.blocks) for part in made], request.baseline),
        confusion=confusion(cube),
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
            options=asdict(request.options)
            | {
                "positive": None if request.positive is None else str(request.positive),
                "filters": request.filters,
                "fixed_side": request.fixed_side,
            },
        ),
        variants_table=variants_table,
        bounds=bounds_frame(blocks),
        lead=lead_table(made, signs, request.options.alpha),
        left_out=left_out_table(cube, request.groupings),
        test_set=request.test_set,
        cube=cube,
        pairing={
            variant: part.pairing
            for variant, part in zip(request.variants * len(tasks), made, strict=True)
        },
    )


def _compare(
    cube: Cube,
    scored: Cube | None,
    request: Request,
    variant: str,
    task: str | None,
    positive: int | None,
    training: Training | None,
    parents: Parents,
    signs: Signs,
) -> Compared:
    found = comparison(
        cube,
        baseline=request.baseline,
        variant=variant,
        task=task,
        grouping_names=request.groupings,
        positive=positive,
        options=request.options,
        parents=parents,
        signs=signs,
    )
    made = compare(found, training, filters=request.filters, fixed_side=request.fixed_side)
    made.blocks += _score_blocks(found, scored, request, made.notes)
    return made


def _score_blocks(
    found: Comparison, scored: Cube | None, request: Request, notes: list[str]
) -> list[Block]:
    from fairweight.auditing.compare.scores import no_score_rows, score_rows, with_scores_only

    if scored is None:
        return list(no_score_rows(found))
    with_scores = comparison(
        scored,
        baseline=request.baseline,
        variant=found.variant,
        task=found.task,
        grouping_names=request.groupings,
        positive=found.positive,
        options=request.options,
        keep_scores=True,
        parents=found.parents,
    )
    kept, left_out = with_scores_only(with_scores)
    if left_out:
        notes.append(
            f"Score metrics of {found.variant} leave out {left_out:,} examples on which a model "
            "abstains or has no score."
        )
    if not kept.cube.n_cells:
        return list(no_score_rows(found))
    return list(score_rows(kept))


def _reliability(
    scored: Cube, request: Request, positive: dict[str | None, int | None]
) -> pd.DataFrame:
    from fairweight.auditing.compare.reliability import reliability_table

    return reliability_table(
        scored, (request.baseline, *request.variants), request.groupings, positive, request.options
    )


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


def _named_positive(cube: Cube, positive: dict[str | None, int | None]) -> str | None:
    for task, index in positive.items():
        if index is not None:
            return cube.of_task(task).label_classes[index]
    return None


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


def _member_notes(cube: Cube, request: Request, variants_table: pd.DataFrame | None) -> list[str]:
    """What members are taken to be, where nothing but the user's word says it."""
    from fairweight.tables.companions import members_in

    if len({member.variant for member in cube.members}) == len(cube.members):
        return []
    if request.options.members == "repeated":
        return [
            "Members are runs of the same models (--members repeated): what is said beyond these "
            "runs is about running the models again, not about training or compressing again."
        ]
    if {(m.variant, m.seed) for m in cube.members} <= members_in(variants_table):
        return []
    return [
        "Several members of a variant (seeds) are taken to be models that were trained again. If "
        "they are runs of one model (decoding repeats, checkpoints), use --members repeated "
        "(members='repeated'); a variants table that names every member confirms them."
    ]


def _general_notes(
    cube: Cube, request: Request, positive: dict[str | None, int | None]
) -> list[str]:
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
    for column in cube.columns:
        if None in column.values:
            missing = int(cube.count[column.code == column.values.index(None)].sum())
            notes.append(
                f"{missing:,} rows have no value in '{column.name}'; they are a group of their "
                "own, outside gaps and families."
            )
        if len(column.values) > 50 and all(_is_number(v) for v in column.values if v is not None):
            notes.append(
                f"'{column.name}' has {len(column.values):,} different numbers, each a group of "
                "its own; bin them into a few ranges to learn more about each."
            )
        elif len(column.values) > 1_000:
            notes.append(
                f"'{column.name}' has {len(column.values):,} values; all of them are in the "
                "tables, most are too small to tell anything."
            )
    return notes


def _reversed_notes(
    cube: Cube, blocks: list[Block], positive: dict[str | None, int | None]
) -> list[str]:
    """Scores that rank worse than chance are most likely those of the other class."""
    for b in blocks:
        if b["metric"][0] != "auc" or b["by"][0] != "overall" or "baseline" not in b:
            continue
        task, value = b["task"][0], float(b["baseline"][0])
        index = positive.get(task)
        if value < 0.5 and index is not None:
            name = cube.of_task(task).label_classes[index]
            return [
                f"The baseline's scores rank worse than chance (AUC {value:.2f}): are they the "
                f"probability of the other class than '{name}'? Scores of binary labels are read "
                "as the probability of the positive class."
            ]
    return []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _score_notes(scored: Cube, positive: dict[str | None, int | None]) -> list[str]:
    bins = scored.scores.bins if scored.scores is not None else None
    if bins is None:
        return []
    from fairweight.auditing.compare.scores import most_tied_share

    tied = most_tied_share(scored, positive)
    return [
        f"There are more than a million distinct scores, so they were rounded to {bins:,} bins: "
        f"AUC is off by at most {tied / 2:.1g}, calibration errors by at most {0.5 / bins:.1g}, "
        f"Brier scores by at most {1 / bins:.1g}."
    ]


def _sign_notes(
    request: Request, positive: dict[str | None, int | None], training: pd.DataFrame | None
) -> list[str]:
    """Where bias amplification had to take its sign from."""
    if all(index is None for index in positive.values()) or not request.groupings:
        return []
    if training is None:
        return [
            "No training table was given: the sign of bias amplification and the rarer value of "
            "TCB come from the test labels."
        ]
    absent = [
        name
        for name in request.groupings
        if any(column not in training for column in split_grouping(name))
    ]
    if not absent:
        return []
    return [
        f"The training table has no column for {some(absent)}: there the sign of bias "
        "amplification comes from the test labels."
    ]


# From given tables (or cubes) to the result of an audit, for `fw.audit_table` and for studies.

# What a cube cannot be asked any more.
OF_TABLES = {
    "cluster": "cluster", "weight": "weight", "examples": "examples", "train": "train",
    "task": "task", "predictions": "prediction", "scores": "score", "count": "count",
}  # fmt: skip

# Ids of more rows are read for a fingerprint of the test set only where there is a policy: a
# million takes 0.6 s, as long as the audit of them.
FINGERPRINT_ROWS = 200_000

DEFAULTS: dict[str, Any] = {
    "alpha": 0.05, "n_boot": 2000, "correction": "holm", "min_group": 10, "random_state": None,
    "zero_baseline": "drop", "margin": 0.02, "group_error": 0.0, "exact": False,
    "members": "retrained", "confirmatory": (),
}  # fmt: skip


def audited(
    source: Any,
    tables: Mapping[str, Any],
    options: Mapping[str, Any],
    asked: Mapping[str, Any],
    progress: Progress | None = None,
    explain: Asked | None = None,
) -> AuditResult:
    """Audit prediction tables, or cubes.

    Parameters
    ----------
    source
        As for `fairweight.audit_table`.
    tables
        Keyword arguments of `fairweight.tables.align.align`.
    options
        Fields of `Options` other than their defaults, checked here; `random_state` may be None.
    asked
        Further fields of `Request`: positive, filters, fixed_side, force, command.
    explain
        Which examples and why: what to look for beyond the audit.
    """

    checked = _options(**(DEFAULTS | dict(options)))
    report = progress or silent
    cubes = cube_paths(source)
    if cubes:
        refuse_table_options({told: tables.get(name) for name, told in OF_TABLES.items()})
        models = read_models(
            tables.get("variants"), tables.get("variant", "variant"), tables.get("seed", "seed")
        )
        return _audit_cubes(
            cubes,
            tables.get("baseline"),
            tables.get("groups"),
            models,
            checked,
            dict(asked),
            report,
            explain,
        )
    from fairweight.tables.align import align

    report("reading", 0, 1)
    with align(source, **tables, further=explain is not None) as aligned:
        result = _audit_aligned(aligned, checked, dict(asked), report)
        if explain is None:
            return result
        from fairweight.auditing.explain.explanations import explained
        from fairweight.auditing.prediction_matrix import from_aligned, tasks_of

        if aligned.has_count:  # without identities, as a cube is
            from fairweight.auditing.counts.group_by import count
            from fairweight.auditing.prediction_matrix import from_cube

            return explained(result, [from_cube(count(aligned), aligned.baseline)], explain, report)
        tasks = [
            from_aligned(aligned, task, positive=_positive_of(asked, aligned))
            for task in tasks_of(aligned)
        ]
        return explained(result, tasks, explain, report)


def _positive_of(asked: Mapping[str, Any], aligned: Aligned) -> Any:
    """The positive class that was named; tasks may not all have it, and then it is looked up."""
    return None if aligned.has_task else asked.get("positive")


def _audit_aligned(
    aligned: Aligned, options: Any, asked: dict[str, Any], progress: Progress
) -> AuditResult:
    from fairweight.auditing.counts.group_by import (
        count,
        has_scores,
        of_cells,
        of_rows,
        training_table,
    )
    from fairweight.tables.sources import provenance

    progress("counting", 0, 1)
    cube = count(aligned)
    known = None
    if options.confirmatory or aligned.n_rows <= FINGERPRINT_ROWS:
        known = of_rows(aligned) or of_cells(cube)
    scored = count(aligned, scores=True) if has_scores(aligned) else None
    request = Request(
        baseline=aligned.baseline,
        variants=aligned.variants,
        groupings=aligned.groupings,
        options=options,
        notes=aligned.notes,
        inputs=provenance(aligned.inputs),
        test_set=known,
        **asked,
    )
    return run(
        cube,
        request,
        scored=scored,
        training=training_table(aligned, cube.label_classes),
        variants_table=aligned.variants_table,
        progress=progress,
    )


def _audit_cubes(
    paths: list[str],
    baseline: str | None,
    groups: str | Sequence[str] | None,
    models: tuple[pd.DataFrame, Source] | None,
    options: Any,
    asked: dict[str, Any],
    progress: Progress,
    explain: Asked | None,
) -> AuditResult:
    from fairweight.auditing.counts.cube_file import read_cubes
    from fairweight.auditing.counts.group_by import of_cells
    from fairweight.auditing.counts.groupings import chosen_groupings
    from fairweight.errors import UnknownNameError
    from fairweight.tables.companions import parents, stray_note
    from fairweight.tables.sources import Source, provenance

    cube, stored_baseline, groupings = read_cubes(paths)
    chosen = canonical(baseline) or stored_baseline
    names = list(dict.fromkeys(member.variant for member in cube.members))
    if chosen not in names:
        raise UnknownNameError("The baseline", chosen, names)
    if groups is not None:
        groupings = chosen_groupings(cube, groups)
    table, beside = (None, []) if models is None else (models[0], [models[1]])
    stray = stray_note(parents(table), ((m.variant, m.seed) for m in cube.members))
    inputs = [Source(path, "", {}, cube.n_cells, (Path(path),)) for path in paths]
    request = Request(
        baseline=chosen,
        variants=tuple(name for name in names if name != chosen),
        groupings=groupings,
        options=options,
        notes=() if stray is None else (stray,),
        inputs=provenance([*inputs, *beside]),
        test_set=of_cells(cube),
        **asked,
    )
    result = run(cube, request, variants_table=table, progress=progress)
    if explain is None:
        return result
    from fairweight.auditing.explain.explanations import explained
    from fairweight.auditing.prediction_matrix import from_cube

    tasks = [from_cube(cube, chosen, task) for task in cube.tasks or (None,)]
    return explained(result, tasks, explain, progress)


def read_models(given: Any, variant: str, seed: str) -> tuple[pd.DataFrame, Source] | None:
    from fairweight.tables.companions import read_variants
    from fairweight.tables.layout import Names

    return None if given is None else read_variants(given, Names(variant=variant, seed=seed))


def cube_paths(source: Any) -> list[str]:
    """Paths of cubes, globs expanded; [] if the source is anything else."""
    from glob import glob

    from fairweight.tables.sources import is_cube

    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given or not all(isinstance(item, str | Path) for item in given):
        return []
    paths = [
        path
        for item in given
        for path in (sorted(glob(str(item))) if not Path(item).exists() else [str(item)])
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


def refuse_table_options(given: Mapping[str, Any]) -> None:
    """A cube is counted already: what concerns columns must be said when counting."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"--{name} cannot be applied to a cube, which is counted already; say it when "
                f"counting: fairweight count FILE --{name} ... --out cube.parquet"
            )


def _options(**given: Any) -> Any:
    """Checked options; every message names the argument, what was given and what is allowed."""
    from fairweight.auditing.compare.comparison import Options
    from fairweight.auditing.metrics.changes import ZERO_BASELINE_POLICIES

    state = given.pop("random_state")
    seed = 0 if state is None else state

    def need(ok: bool, name: str, rule: str) -> None:
        if not ok:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} ({name}=) cannot be {given.get(name, seed)!r}; {rule}.")

    def number(value: Any, low: float, high: float) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low < value < high

    def whole(value: Any, least: int) -> bool:
        return hasattr(value, "__index__") and not isinstance(value, bool) and value >= least

    need(number(given["alpha"], 0, 1), "alpha", "give a level between 0 and 1, such as 0.05")
    need(whole(given["n_boot"], 20), "n_boot", "give a whole number of at least 20")
    need(given["correction"] in ("holm", "bh", "none"), "correction", "use holm, bh or none")
    need(given["members"] in ("retrained", "repeated"), "members", "use retrained or repeated")
    need(whole(given["min_group"], 1), "min_group", "give a whole number of at least 1")
    need(whole(seed, 0), "random_state", "give a whole number of at least 0")
    policies = ", ".join(ZERO_BASELINE_POLICIES)
    need(
        given["zero_baseline"] in ZERO_BASELINE_POLICIES, "zero_baseline", f"use one of {policies}"
    )
    points = given["margin"]
    hint = f" (did you mean {points / 100:g}?)" if number(points, 0.999, 100) else ""
    need(number(points, 0, 1), "margin", f"give a fraction between 0 and 1, such as 0.02{hint}")
    need(
        given["group_error"] == 0 or number(given["group_error"], 0, 0.5),
        "group_error",
        "give a share of wrong labels below 0.5",
    )
    return Options(random_state=int(seed), **given)
