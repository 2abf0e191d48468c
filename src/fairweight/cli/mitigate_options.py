"""Options that the mitigations share, and how their tables are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from fairweight.cli import options as o
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.answers import Answers

T = TypeVar("T")
MITIGATION = "Mitigation"
FITTED = "The thresholds would be judged on rows on which they were fitted"

Validation: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Predictions on validation rows, in the layout of FILE; repeat it for one file per "
        "model (`NAME=FILE`). No example or cluster may be in both, under whatever identity.",
        rich_help_panel=MITIGATION,
    ),
]
Variant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Only these variants; by default all but the baseline.",
        rich_help_panel=MITIGATION,
    ),
]
Rule: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.json",
        help="Apply and judge this rule of an earlier run instead of making one.",
        rich_help_panel=MITIGATION,
    ),
]
Alpha: TypeAlias = Annotated[
    float, typer.Option(help="Level of intervals.", rich_help_panel=o.STATISTICS)
]


def read_tasks(given: Sequence[str], values: dict[str, Any]) -> list[Answers]:
    """The answers of every task of these tables."""
    from fairweight.auditing.answers import from_aligned, tasks_of
    from fairweight.auditing.vocabulary import joined, of_answers
    from fairweight.tables.align import align

    source = list(given) if len(given) > 1 else given[0]
    options = o.table_options(values) | {
        "score_classes": o.split_names(values["score_classes"], "--score-classes")
    }
    with align(source, **options) as aligned:
        positive = None if aligned.has_task else values["positive"]
        tasks = [from_aligned(aligned, task, positive=positive) for task in tasks_of(aligned)]
    joined(map(of_answers, tasks)).check(tasks[0].baseline, force=values["force"])
    return tasks


def read_rule(path: str, kind: str, from_json: Callable[[dict[str, Any]], T]) -> T:
    """A rule of an earlier run, checked to be of this kind and whole."""
    import json
    from pathlib import Path

    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--rule '{path}' cannot be read: {error.strerror}.") from None
    except ValueError:
        raise InputError(
            f"--rule '{path}' is no JSON; give the {kind}.json of an earlier run."
        ) from None
    found = held.get("kind") if isinstance(held, dict) else None
    if found != kind:
        raise InputError(
            f"--rule '{path}' is no rule of the kind {kind}"
            + (f", but of the kind {found}." if found else "; give the file of an earlier run.")
        )
    try:
        return from_json(held)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"--rule '{path}' is not whole; give the {kind}.json of an earlier run as it was "
            "written."
        ) from None


def check_out(values: dict[str, Any]) -> None:
    """Before long work, whether the folder may be written."""
    from fairweight.report.save import names
    from fairweight.tables.write import check_folder

    known = ("predictions.parquet", *(f"audit/{name}" for name in names()))
    given = {"inputs": o.inputs(values), "overwrite": values["overwrite"], "names": known}
    check_folder(values["out"], **given)


def check_statistics(values: dict[str, Any]) -> None:
    """Before long work, what the audit would refuse at its end."""
    if not 0 < values["alpha"] < 1:
        raise InputError(
            f"--alpha {values['alpha']:g} cannot be used; give a level between 0 and 1."
        )
    for name, least in (("n_boot", 20), ("min_group", 1), ("random_state", 0)):
        if values[name] < least:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} {values[name]} cannot be used; give at least {least}.")
