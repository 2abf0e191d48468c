"""The audit from end to end; read this file first.

aligned view → cube → per task and variant: comparison → rows → frames. Nothing here computes a
number: every step is a call into the module that does.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.compare.bounds import bounds_frame
from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.pairing import Parents
from fairweight.auditing.compare.per_seed import per_seed
from fairweight.auditing.compare.rows import Block, frame
from fairweight.auditing.compare.task_mean import task_mean_rows
from fairweight.auditing.compare.training import Training
from fairweight.auditing.compare.variant import Compared, compare
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.frames import confusion, data_table
from fairweight.auditing.counts.groupings import level_name
from fairweight.auditing.counts.positive import resolve_positive
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical
from fairweight.tables.names import known_group, split_grouping

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]  # what is being done, how many steps of how many


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
    command: str | None = None
    notes: tuple[str, ...] = ()
    inputs: tuple[dict[str, Any], ...] = field(default_factory=tuple)


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
    import pandas as pd

    from fairweight import __version__
    from fairweight.tables.leaks import leak_notes, leaks
    from fairweight.tables.parents import parents

    lineage = parents(variants_table)
    # A leak comes first: the terminal shows only some notes.
    notes = [*leak_notes(leaks(variants_table, request.variants)), *request.notes, *cube.notes]
    check_answers(cube, notes)
    request = replace(request, fixed_side=_fixed_side(cube, request.fixed_side))
    tasks: tuple[str | None, ...] = cube.tasks or (None,)
    positive = positives(cube, tasks, request.positive)
    train = None if training is None else Training(training)
    made: list[Compared] = []
    steps = len(tasks) * len(request.variants)
    done = 0
    for task in tasks:
        for variant in request.variants:
            progress(f"{variant}{'' if task is None else f' on {task}'}", done, steps)
            made.append(
                _compare(cube, scored, request, variant, task, positive[task], train, lineage)
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
            )
    progress("tables", steps, steps)
    for part in made:
        notes += part.notes
    if scored is not None:
        reliability = _reliability(scored, request, positive)
    else:
        from fairweight.auditing.compare.reliability import RELIABILITY_COLUMNS

        reliability = pd.DataFrame(columns=list(RELIABILITY_COLUMNS))
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
        results=frame(blocks),
        per_seed=per_seed([(part.members, part.blocks) for part in made], request.baseline),
        confusion=confusion(cube),
        reliability=reliability,
        data=data_table(cube, request.groupings, training),
        power=_table([r for p in made for r in p.power], POWER_COLUMNS),
        concentration=_table([r for p in made for r in p.concentration], CONCENTRATION_COLUMNS),
        group_error=_table([r for p in made for r in p.group_error], GROUP_ERROR_COLUMNS),
        notes=tuple(dict.fromkeys(notes)),
        provenance=Provenance(
            version=__version__,
            command=request.command,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=request.inputs,
            options=asdict(request.options)
            | {"positive": None if request.positive is None else str(request.positive)},
        ),
        variants_table=variants_table,
        bounds=bounds_frame(blocks),
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
    )
    made = compare(found, training, filters=request.filters, fixed_side=request.fixed_side)
    made.blocks += _score_blocks(found, scored, request, made.notes)
    return made


def _score_blocks(
    found: Comparison, scored: Cube | None, request: Request, notes: list[str]
) -> list[Block]:
    from fairweight.auditing.compare.scored import no_score_rows, score_rows, with_scores_only

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


def check_answers(cube: Cube, notes: list[str]) -> None:
    """Predictions must speak the labels' language; those that do not are reported."""
    n_labels = len(cube.label_classes)
    for m, member in enumerate(cube.members):
        prediction = cube.prediction[:, m]
        answered = prediction >= 0
        known = answered & (prediction < n_labels)
        if answered.any() and not known.any():
            raise InputError(
                f"No prediction of '{member.variant}' is equal to any label, so their names or "
                f"types differ: labels are {_some(cube.label_classes)}, predictions are "
                f"{_some(cube.other_classes)}. Map one to the other before the audit."
            )
        strange = answered & ~known
        if strange.any():
            names = [cube.classes[i] for i in np.unique(prediction[strange])]
            notes.append(
                f"{int(cube.count[strange].sum()):,} predictions of '{member.variant}' are classes "
                f"that no example has as its label ({_some(names)}); they count as wrong."
            )
        silent_ones = int(cube.count[~answered].sum())
        if silent_ones:
            notes.append(
                f"'{member.variant}' abstains on {silent_ones:,} examples; they count as not right."
            )


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


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in list(names)[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _general_notes(
    cube: Cube, request: Request, positive: dict[str | None, int | None]
) -> list[str]:
    notes = []
    if len(request.variants) > 1:
        notes.append(
            f"{len(request.variants)} compressed variants were audited on the same examples; "
            "corrections hold within a variant, so the best of them looks better than it is."
        )
    for task, index in positive.items():
        part = cube.of_task(task)
        if index is None and len(part.label_classes) == 2:
            notes.append(
                "Metrics of a positive class are not estimable: the labels are "
                f"{_some(part.label_classes)}, and none is named as positive. Name it: --positive "
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
    from fairweight.auditing.compare.scored import most_tied_share

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
        f"The training table has no column for {_some(absent)}: there the sign of bias "
        "amplification comes from the test labels."
    ]


POWER_COLUMNS = (
    "variant", "task", "metric", "by", "group", "class", "n", "discordance", "n_family",
    "min_detectable_shift", "reference_shift", "n_needed", "status",
)  # fmt: skip
CONCENTRATION_COLUMNS = (
    "variant", "task", "column", "part", "n", "share_examples", "lost", "gained",
    "share_lost", "share_gained", "share_lost_poisson",
)  # fmt: skip
GROUP_ERROR_COLUMNS = (
    "variant", "task", "group", "error", "excess_shift", "corrected_low", "corrected_high",
)  # fmt: skip


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))
