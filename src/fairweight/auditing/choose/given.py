"""From tables and words to a choice, for the command line and for studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from fairweight.auditing.choose.chosen import Choice, choose
from fairweight.auditing.choose.constraints import read_requirement
from fairweight.auditing.choose.costs import numeric_columns
from fairweight.auditing.choose.counted import Counted, models_beside_cubes, of_cubes, of_tables
from fairweight.auditing.choose.held_out import compare_rows, split
from fairweight.auditing.choose.known import Asked, metrics_of
from fairweight.auditing.choose.measured import Progress
from fairweight.auditing.choose.objectives import is_bounded, read_objective
from fairweight.auditing.choose.values import read_weights, weights_of
from fairweight.auditing.streams import stream
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.compare.comparison import Options
    from fairweight.tables.align import Aligned

MARGIN = 0.02  # 2 points


@dataclass(frozen=True)
class Wishes:
    """What is wanted, as it is written: `accuracy`, `size_bytes<=2e5`, `unfairness=100`."""

    objectives: Sequence[str] = ()
    requirements: Sequence[str] = ()
    weights: Sequence[str] = ()
    excluded: Sequence[str] = ()
    margin: float | None = None  # None: 2 points, where the value is a share


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
    asked = Asked(
        objectives=objectives,
        requirements=tuple(read_requirement(text, columns) for text in wishes.requirements),
        weights=weights_of(objectives, weights),
        excluded=tuple(wishes.excluded),
    )
    return replace(asked, margin=_margin(asked, wishes.margin))


def _margin(asked: Asked, given: float | None) -> float | None:
    """How far below the best is near it: as given, or 2 points of a single share."""
    if given is not None and not (isfinite(given) and given >= 0):
        raise InputError(f"--margin {given:g} cannot be used; give a number of at least 0.")
    if asked.weights is None:
        if given is not None:
            raise InputError(
                "--margin says how far from the best a variant may be, and several objectives "
                "without weights have no single best; give --weight too, or leave --margin out."
            )
        return None
    if given is None and len(asked.objectives) == 1 and is_bounded(asked.objectives[0].term):
        return MARGIN * float(asked.weights[0])
    return given


def choice_from(
    source: Any,
    tables: Mapping[str, Any],
    wishes: Wishes,
    options: Options,
    *,
    positive: Any = None,
    confirm: Any = None,
    confirm_share: float | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Choice:
    """Choose among the variants of prediction tables or cubes.

    Parameters
    ----------
    source, tables
        As `fairweight.auditing.audited.audited` takes them.
    confirm
        Predictions of the same variants on other examples.
    confirm_share
        Instead of another table: the share of the examples (clusters) held out to confirm on.
    force
        Take labels and predictions that do not look like classes as they are.
    """
    from fairweight.auditing.audited import cube_paths

    _check_confirming(confirm, confirm_share)
    cubes = cube_paths(source)
    if cubes and confirm is not None:
        raise InputError(
            "--confirm cannot be used with cubes, which do not say which examples they hold; hold "
            "a share of them out: --confirm-share 0.5."
        )
    with ExitStack() as opened:
        if cubes:
            models = models_beside_cubes(tables)
            asked = read_wishes(wishes, models)
            found = of_cubes(cubes, tables, asked, options, positive, force)
        else:
            from fairweight.tables.align import align

            aligned = opened.enter_context(align(source, **tables))
            models = aligned.variants_table
            asked = read_wishes(wishes, models)
            found = of_tables(aligned, asked, options, positive, force)
        if (confirm is not None or confirm_share is not None) and not metrics_of(asked):
            raise InputError(
                "--confirm and --confirm-share look at metrics again, and there is none among the "
                "objectives and requirements; add one (--require 'accuracy>=0.9'), or leave them "
                "out."
            )
        held: Counted | None = None
        if confirm is not None:
            given = {**tables, "baseline": aligned.baseline, "groups": list(aligned.groupings)}
            other = opened.enter_context(align(confirm, **given))
            _same_variants(aligned, other)
            said = compare_rows(aligned, other)
            held = of_tables(other, asked, options, positive, force)
            found = replace(found, notes=(*found.notes, *said))
        elif confirm_share is not None:
            rng = stream(options.random_state, "choose", "confirm")
            own, out = split(found.cube, confirm_share, rng)
            found, held = replace(found, cube=own), replace(found, cube=out)
        return choose(found, asked, models, confirm=held, progress=progress)


def _check_confirming(confirm: Any, share: float | None) -> None:
    if confirm is not None and share is not None:
        raise InputError("--confirm and --confirm-share were both given; give one of them.")
    if share is not None and not 0 < share < 1:
        raise InputError(f"--confirm-share {share:g} cannot be used; give a share between 0 and 1.")


def _same_variants(aligned: Aligned, other: Aligned) -> None:
    lacking = [name for name in aligned.variants if name not in other.variants]
    if lacking:
        raise InputError(
            f"--confirm has no predictions of '{lacking[0]}'; give the same variants there."
        )
