"""Combinations of values: a spec with a grid becomes one spec for each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import product
from typing import Any

from fairweight.errors import InputError
from fairweight.specs.read_spec import read_spec
from fairweight.specs.study import Copy, Experiment, Grid

SPREAD = ("method", "rewind", "distill")  # of a copy, not of its method
PLAIN = "plain"  # no distillation
MOST = 100_000  # combinations of one grid


def combinations(grid: Grid) -> Iterator[dict[str, Any]]:
    """Every choice of one value per name, the last name fastest.

    >>> list(combinations({"a": (1, 2), "b": ("x",)}))
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    number = math.prod(len(values) for values in grid.values())
    if number > MOST:
        raise InputError(f"A grid has {number:,} combinations; give at most {MOST:,}.")
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def experiments_of(experiment: Experiment) -> list[Experiment]:
    """One experiment for each combination of its grid, named by the values.

    Fields are dotted: `model.width`, `training.lr`.
    """
    if not experiment.grid:
        return [experiment]
    made = []
    for chosen in combinations(experiment.grid):
        fields = asdict(replace(experiment, grid={}))
        for path, value in chosen.items():
            _put(fields, path, value, experiment.name)
        words = [_plain(value) for value in chosen.values()]
        fields["name"] = "-".join([experiment.name, *words])
        made.append(read_spec(Experiment, fields, f"The experiment '{fields['name']}'"))
    return made


def spread(copy: Copy) -> Iterator[Copy]:
    """One copy for each method and treatment that its grid names; the rest of the grid stays."""
    own = {name: values for name, values in copy.grid.items() if name in SPREAD}
    rest = {name: values for name, values in copy.grid.items() if name not in own}
    for chosen in combinations(own):
        name = copy.name
        if name is not None and chosen:
            shown = {**chosen, "rewind": "rewind" if chosen.get("rewind") else "finetune"}
            for field, value in shown.items():
                name = name.replace(f"{{{field}}}", _plain(value))
        fields = {**asdict(copy), **chosen, "grid": rest, "name": name}
        if "distill" in chosen:
            fields["distill"] = _distillation(copy, str(chosen["distill"]))
        yield read_spec(Copy, fields, "The copies") if chosen else copy


def _distillation(copy: Copy, losses: str) -> dict[str, Any] | None:
    """The copy's own distillation with other losses; none for `plain`.

    Of its weights and options those stay that belong to these losses.
    """
    if losses == PLAIN:
        return None
    fields = {} if copy.distill is None else asdict(copy.distill)
    named = {"ce", *(name.strip() for name in losses.split("+"))}
    for table in ("weights", "options"):
        given = fields.get(table, {})
        fields[table] = {name: value for name, value in given.items() if name in named}
    return {**fields, "losses": losses}


def copies_of(copy: Copy) -> Iterator[dict[str, Any]]:
    """The method's fields for each variant."""
    for chosen in combinations(copy.grid):
        yield {**copy.fields, **chosen}


def _put(fields: dict[str, Any], path: str, value: Any, name: str) -> None:
    *tables, last = path.split(".")
    place: Any = fields
    for table in tables:
        place = place.get(table) if isinstance(place, Mapping) else None
    if not isinstance(place, dict) or (last not in place and tables[-1:] != ["options"]):
        raise InputError(
            f"The experiment '{name}': the grid names '{path}', which it has not; use a dotted "
            "field, such as model.width or training.lr."
        )
    place[last] = value


def _plain(value: Any) -> str:
    """A value as a part of a name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(value)).strip("-") or "x"
