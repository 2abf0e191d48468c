"""From tables and words to a choice, for the command line and for studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.choose.chosen import Choice, choose
from fairweight.auditing.choose.constraints import read_requirement
from fairweight.auditing.choose.costs import numeric_columns
from fairweight.auditing.choose.known import Asked
from fairweight.auditing.choose.measured import Progress, Setting
from fairweight.auditing.choose.objectives import needs_scores, read_objective
from fairweight.auditing.choose.values import read_weights, weights_of
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.compare.comparison import Options
    from fairweight.auditing.counts.cube import Cube
    from fairweight.tables.align import Aligned


@dataclass(frozen=True)
class Wishes:
    """What is wanted, as it is written: `accuracy`, `size_bytes<=2e5`, `unfairness=100`."""

    objectives: Sequence[str] = ()
    requirements: Sequence[str] = ()
    weights: Sequence[str] = ()
    excluded: Sequence[str] = ()


def read_wishes(wishes: Wishes, variants_table: pd.DataFrame | None) -> Asked:
    """Names looked up, limits and weights as numbers; a sentence for what cannot be used."""
    columns = numeric_columns(variants_table)
    weights = read_weights(wishes.weights)
    names = list(dict.fromkeys(wishes.objectives)) or list(weights)
    if not names:
        raise InputError(
            "--objective is missing; name what should be best, such as --objective accuracy "
            "--objective size_bytes."
        )
    objectives = tuple(read_objective(name, columns) for name in names)
    terms = [objective.name for objective in objectives]
    twice = next((name for name in terms if terms.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--objective {twice} was given twice; give it once.")
    return Asked(
        objectives=objectives,
        requirements=tuple(read_requirement(text, columns) for text in wishes.requirements),
        weights=weights_of(objectives, weights),
        excluded=tuple(wishes.excluded),
    )


def choice_from(
    source: Any,
    tables: Mapping[str, Any],
    wishes: Wishes,
    options: Options,
    *,
    positive: Any = None,
    confirm: Any = None,
    confirm_share: float | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose among the variants of prediction tables.

    Parameters
    ----------
    source, tables
        As `fairweight.tables.align.align` takes them.
    confirm
        Predictions of the same variants on other examples.
    confirm_share
        Instead of another table: the share of the examples (clusters) held out to confirm on.
    """
    from fairweight.auditing.choose.held_out import refuse_overlap, split
    from fairweight.auditing.streams import stream
    from fairweight.tables.align import align

    if confirm is not None and confirm_share is not None:
        raise InputError("--confirm and --confirm-share were both given; give one of them.")
    if confirm_share is not None and not 0 < confirm_share < 1:
        raise InputError(
            f"--confirm-share {confirm_share:g} cannot be used; give a share between 0 and 1."
        )
    with ExitStack() as opened:
        aligned = opened.enter_context(align(source, **tables))
        asked = read_wishes(wishes, aligned.variants_table)
        cube = _counted(aligned, asked)
        setting = _setting(aligned, cube, options, positive)
        held: Cube | None = None
        notes = list(aligned.notes)
        if confirm is not None:
            given = {**tables, "baseline": aligned.baseline, "groups": list(aligned.groupings)}
            other = opened.enter_context(align(confirm, **given))
            refuse_overlap(aligned, other)
            _same_variants(aligned, other)
            held = _counted(other, asked)
        elif confirm_share is not None:
            rng = stream(options.random_state, "choose", "confirm")
            cube, held = split(cube, confirm_share, rng)
        return choose(
            cube,
            asked,
            setting,
            aligned.variants_table,
            confirm=held,
            notes=notes,
            progress=progress,
        )


def _counted(aligned: Aligned, asked: Asked) -> Cube:
    from fairweight.auditing.counts.count import count, has_scores

    wanted = [term.name for term in asked.terms if needs_scores([term])]
    if wanted and not has_scores(aligned):
        raise InputError(
            f"'{wanted[0]}' needs scores, and the predictions have none; add a score column, or "
            "choose by something else."
        )
    return count(aligned, scores=bool(wanted))


def _setting(aligned: Aligned, cube: Cube, options: Options, positive: Any) -> Setting:
    from fairweight.auditing.compare.training import Training
    from fairweight.auditing.counts.count import training_table
    from fairweight.auditing.pipeline import positives

    training = training_table(aligned)
    return Setting(
        baseline=aligned.baseline,
        groupings=aligned.groupings,
        positive=positives(cube, cube.tasks or (None,), positive),
        options=options,
        training=None if training is None else Training(training),
    )


def _same_variants(aligned: Aligned, other: Aligned) -> None:
    lacking = [name for name in aligned.variants if name not in other.variants]
    if lacking:
        raise InputError(
            f"--confirm has no predictions of '{lacking[0]}'; give the same variants there."
        )
