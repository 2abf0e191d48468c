"""What a choice is made on: counts of tables or of cubes, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.choose.known import Asked
from fairweight.auditing.choose.measured import Setting
from fairweight.auditing.choose.objectives import needs_scores
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.compare.comparison import Options
    from fairweight.auditing.counts.cube import Cube
    from fairweight.tables.align import Aligned


@dataclass(frozen=True)
class Counted:
    """Answers of all members, counted, and how they are to be measured."""

    cube: Cube
    setting: Setting
    notes: tuple[str, ...]


def of_tables(
    aligned: Aligned, asked: Asked, options: Options, positive: Any, force: bool = False
) -> Counted:
    """Count aligned tables, with scores where something that is wanted needs them."""
    from fairweight.auditing.compare.training import Training
    from fairweight.auditing.counts.count import count, has_scores, training_table

    scores = _wants_scores(asked, there=has_scores(aligned), where="the predictions")
    cube = count(aligned, scores=scores)
    training = training_table(aligned, cube.label_classes)
    return _counted(
        cube,
        aligned.baseline,
        aligned.groupings,
        options,
        positive,
        None if training is None else Training(training),
        aligned.notes,
        force,
    )


def of_cubes(
    paths: Sequence[str],
    tables: Mapping[str, Any],
    asked: Asked,
    options: Options,
    positive: Any,
    force: bool = False,
) -> Counted:
    """Read cubes that `fairweight count` wrote."""
    from fairweight.auditing.counts.groupings import chosen_groupings
    from fairweight.auditing.counts.store import read_cubes

    _wants_scores(asked, there=False, where="cubes")
    cube, stored, groupings = read_cubes(paths)
    baseline = canonical(tables.get("baseline")) or stored
    names = list(dict.fromkeys(member.variant for member in cube.members))
    if baseline not in names:
        raise UnknownNameError("The baseline", baseline, names)
    groups = tables.get("groups")
    if groups is not None:
        groupings = chosen_groupings(cube, groups)
    return _counted(cube, baseline, groupings, options, positive, None, (), force)


def models_beside_cubes(tables: Mapping[str, Any]) -> pd.DataFrame | None:
    """The variants table; options that concern columns were needed when counting."""
    from fairweight.auditing.audited import OF_TABLES, read_models, refuse_table_options

    refuse_table_options({told: tables.get(name) for name, told in OF_TABLES.items()})
    found = read_models(
        tables.get("variants"), tables.get("variant", "variant"), tables.get("seed", "seed")
    )
    return None if found is None else found[0]


def _counted(
    cube: Cube,
    baseline: str,
    groupings: Sequence[str],
    options: Options,
    positive: Any,
    training: Any,
    notes: Sequence[str],
    force: bool,
) -> Counted:
    from fairweight.auditing.pipeline import positives
    from fairweight.auditing.vocabulary import of_cube

    said = [*notes, *cube.notes, *of_cube(cube).check(baseline, force=force)]
    setting = Setting(
        baseline=baseline,
        groupings=tuple(groupings),
        positive=positives(cube, cube.tasks or (None,), positive),
        options=options,
        training=training,
    )
    return Counted(cube, setting, tuple(said))


def _wants_scores(asked: Asked, *, there: bool, where: str) -> bool:
    wanted = [term.name for term in asked.terms if needs_scores([term])]
    if wanted and not there:
        raise InputError(
            f"'{wanted[0]}' needs scores, and {where} have none; give a table with a score column, "
            "or choose by something else."
        )
    return bool(wanted)
