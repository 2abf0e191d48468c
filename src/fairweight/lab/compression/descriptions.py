"""Methods, the papers' recipes and int8, described in full for `fairweight methods`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args

from pydantic import ValidationError

from fairweight.lab.compression.registry import METHODS, RECIPES, Method
from fairweight.specs.compression import Schedule
from fairweight.specs.toml import SpecField, described, summary_of

# The formulas of the schedules as people read them; a test computes with these very words.


@dataclass(frozen=True)
class Formula:
    """Other names in it are fields of the schedule; `sparsity` is the method's, as asked for."""

    updates: str  # when, with `t` counting epochs, finished steps or rounds
    removed: str  # the share that is gone from this update to the next


FORMULAS: dict[str, Formula] = {
    "one-shot": Formula(
        updates="once, at the start of epoch t = epoch (from 0)", removed="sparsity"
    ),
    "agp": Formula(
        updates="epochs t = range(start, end, every), from 1",
        removed="sparsity + (initial - sparsity) * "
        "(1 - (t - start) / ((end - start - 1) // every * every)) ** 3",
    ),
    "gmp": Formula(
        updates="epochs t = range(start, end, every), from 0; the last one goes to sparsity "
        "(finish)",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** 3",
    ),
    "zhu-gupta": Formula(
        updates="finished steps t = range(start, end + 1, every); the last one goes to sparsity",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** 3",
    ),
    "polynomial": Formula(
        updates="finished steps t = range(start, end + 1, every); the last one goes to sparsity "
        "(finish)",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** power",
    ),
    "iterative": Formula(
        updates="rounds t = 1, 2 …, each after so many epochs as the field says",
        removed="min(sparsity, 1 - (1 - share) ** t)",
    ),
}


_SCHEDULES: tuple[type[Any], ...] = get_args(get_args(Schedule)[0])  # of the union inside


@dataclass(frozen=True)
class ScheduleEntry:
    """A schedule with its formula."""

    name: str
    summary: str
    formula: Formula
    fields: tuple[SpecField, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One thing that `fairweight compress --method` takes."""

    name: str
    kind: Literal["method", "recipe", "int8"]
    method: str  # what a recipe is made of; else its own name
    summary: str
    source: str  # who uses it
    trains: Literal["may", "must", "never"]
    fields: tuple[SpecField, ...]
    schedules: tuple[ScheduleEntry, ...]  # that it can have; of a recipe, the one that it has


@cache
def schedules() -> tuple[ScheduleEntry, ...]:
    """Every schedule with its defaults."""
    found = []
    for kind in _SCHEDULES:
        name = kind.__dataclass_fields__["kind"].default
        found.append(ScheduleEntry(name, summary_of(kind), FORMULAS[name], described(kind)))
    return tuple(found)


def catalogue() -> tuple[Entry, ...]:
    """Methods (those of other packages too), then recipes, then int8."""
    found = {name: _of_method(entry) for name, entry in METHODS.items()}
    recipes = []
    for name, recipe in RECIPES.items():
        base, schedule = found[recipe.method], asdict(recipe.fields["schedule"])
        (own,) = (one for one in base.schedules if one.name == schedule["kind"])
        entry = replace(
            base,
            name=name,
            kind="recipe",
            summary=recipe.summary,
            source=recipe.source,
            fields=_with_defaults(base.fields, dict(recipe.fields) | {"schedule": schedule}),
            schedules=(replace(own, fields=_with_defaults(own.fields, schedule)),),
        )
        recipes.append(entry)
    return (
        *(entry for entry in found.values() if entry.kind == "method"),
        *recipes,
        *(entry for entry in found.values() if entry.kind != "method"),
    )


def _of_method(entry: Method) -> Entry:
    on_file = entry.acts_on == "file"
    accepted = () if on_file else tuple(one for one in schedules() if _accepts(entry, one))
    choices = "one of: " + ", ".join(one.name for one in accepted)
    # Layers and schedule where nobody chooses them: a spec writes them when it is made.
    own: dict[str, Any] = {}
    if on_file:
        own["layers"] = entry.spec.layers
    else:
        with suppress(ValidationError):  # of another package, with fields that must be given
            made = _trial(entry)
            own |= {"layers": made.layers, "schedule": made.schedule.kind}
    held = _with_defaults(described(entry.spec), own)
    return Entry(
        name=entry.name,
        kind="int8" if on_file else "method",
        method=entry.name,
        summary=entry.summary,
        source=entry.source,
        trains=entry.trains,
        fields=tuple(replace(f, type=choices) if f.name == "schedule" else f for f in held),
        schedules=accepted,
    )


def _with_defaults(held: tuple[SpecField, ...], given: Mapping[str, Any]) -> tuple[SpecField, ...]:
    return tuple(
        replace(field, default=given[field.name], required=False) if field.name in given else field
        for field in held
    )


def _trial(entry: Method, **given: Any) -> Any:
    """A spec with the fields that every method of pruning has; others have their defaults."""
    if any(field.name == "sparsity" for field in fields(entry.spec)):
        given["sparsity"] = 0.5
    return entry.spec(**given)


def _accepts(entry: Method, schedule: ScheduleEntry) -> bool:
    """Whether a spec of the method can have the schedule: what refuses is the spec's own check."""
    given = {"kind": schedule.name} | {f.name: 1000 for f in schedule.fields if f.required}
    try:
        _trial(entry, schedule=given)
    except ValidationError as error:
        return all(one["type"] == "missing" for one in error.errors())
    return True
