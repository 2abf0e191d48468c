"""An index that was built, opened: arrays are mapped from their files, a task at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import MISSING
from fairweight.web.votes.writer import FORMAT, INDEX, TaskHead, Texts

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class SideVotes:
    """What is known of a variant (or the baseline) on every example, (n,) each."""

    variant: str
    rows: slice  # of its members in `prediction`
    modal: Array  # most frequent answer
    modal_votes: Array
    right: Array  # how many members are right
    bits: Array  # kinds of exemplars, and how sure
    uncertain_order: Array  # places, the least sure first
    distance: Array | None  # whole numbers; None: the baseline itself
    percentile: Array | None
    distance_order: Array | None  # places, the furthest apart first
    scale: int | None  # 2 · scale is the largest distance


@dataclass(frozen=True, eq=False)
class GroupVotes:
    """A column of groups: a code per example into its levels."""

    levels: Texts  # None: missing
    codes: Array

    def code(self, column: str, level: str) -> int:
        """The code of a level."""
        found = self.levels.place(level)
        if found is None and level == MISSING:
            found = self.levels.place(None)
        if found is None:
            names = [MISSING if name is None else name for name in self.levels[:1000]]
            raise UnknownNameError(f"The level of '{column}'", level, names)
        return found


class TaskVotes:
    """All answers of a task; places are those of its examples, 0 to n − 1."""

    def __init__(self, head: TaskHead, folder: Path) -> None:
        self.head = head
        self._folder = folder
        self._side: Callable[[int], SideVotes] = cache(self._read_side)

    @property
    def n_examples(self) -> int:
        return self.head.n_examples

    @cached_property
    def label(self) -> Array:
        """(n,) codes into the classes."""
        return self._array("label")

    @cached_property
    def prediction(self) -> Array:
        """(members, n) codes; len(classes) is an abstention."""
        return self._array("prediction")

    @cached_property
    def score(self) -> Array | None:
        """(members, n), None where nobody has scores."""
        return self._array("score") if self.head.scored else None

    @cached_property
    def groups(self) -> dict[str, GroupVotes]:
        return {
            name: GroupVotes(Texts(self._folder / f"level{i}.arrow"), self._array(f"group{i}"))
            for i, name in enumerate(self.head.groups)
        }

    @cached_property
    def numbers(self) -> dict[str, Array]:
        return {name: self._array(f"number{i}") for i, name in enumerate(self.head.numbers)}

    @cached_property
    def texts(self) -> dict[str, Texts]:
        return {
            name: Texts(self._folder / f"text{i}.arrow") for i, name in enumerate(self.head.texts)
        }

    def side(self, variant: str) -> SideVotes:
        """A compressed variant, or the baseline."""
        names = (self.head.baseline, *self.head.variants)
        if variant not in names:
            raise UnknownNameError("The variant", variant, names)
        return self._side(names.index(variant))

    def member(self, variant: str, seed: str) -> int:
        """The row of a member in `prediction`."""
        if (variant, seed) not in self.head.members:
            seeds = [own for name, own in self.head.members if name == variant]
            raise UnknownNameError(f"The seed of '{variant}'", seed, seeds)
        return self.head.members.index((variant, seed))

    def class_code(self, name: str) -> int:
        """The code of a class."""
        if name not in self.head.classes:
            raise UnknownNameError("The class", name, self.head.classes)
        return self.head.classes.index(name)

    def example_id(self, place: int) -> str:
        """The identity of the example at a place, as text."""
        return str(self._ids[place])

    def place(self, example_id: str) -> int | None:
        """Where an example is; None where there is none of that name."""
        if not self.head.integer_ids:
            return self._id_texts.searched(example_id, self._array("id_order"))
        if not example_id.lstrip("-").isascii() or len(example_id) > 20:
            return None
        try:
            wanted = int(example_id)
        except ValueError:
            return None
        ids = self._ids
        if str(wanted) != example_id or not len(ids) or not ids[0] <= wanted <= ids[-1]:
            return None
        found = int(np.searchsorted(ids, wanted))
        return found if ids[found] == wanted else None

    def known(self, example_ids: Collection[str]) -> set[str]:
        """Which of many names are those of examples."""
        if not self.head.integer_ids:
            return self._id_texts.holds(example_ids)
        return {name for name in example_ids if self.place(name) is not None}

    @cached_property
    def _ids(self) -> Any:
        return self._array("id") if self.head.integer_ids else self._id_texts

    @cached_property
    def _id_texts(self) -> Texts:
        return Texts(self._folder / "id.arrow")

    def _read_side(self, number: int) -> SideVotes:
        variant = (self.head.baseline, *self.head.variants)[number]
        names = [name for name, _ in self.head.members]
        start = names.index(variant)
        held = {
            name: self._array(f"{name}{number}")
            for name in ("modal", "modal_votes", "right", "bits", "uncertain_order")
        }
        further: dict[str, Any] = dict.fromkeys(("distance", "percentile", "distance_order"))
        if number:
            further = {name: self._array(f"{name}{number}") for name in further}
        return SideVotes(
            variant=variant,
            rows=slice(start, start + names.count(variant)),
            **held,
            **further,
            scale=self.head.scales[number - 1] if number else None,
        )

    def _array(self, name: str) -> Array:
        path = self._folder / f"{name}.npy"
        # An empty file cannot be mapped.
        mode: Literal["r"] | None = "r" if self.n_examples else None
        found: Array = np.load(path, mmap_mode=mode, allow_pickle=False)
        return found


@dataclass(frozen=True, eq=False)
class VoteIndex:
    """The votes of all tasks of an item."""

    tasks: tuple[TaskVotes, ...]
    notes: tuple[str, ...]

    def task(self, name: str | None = None) -> TaskVotes:
        """A task by its name; without one the first."""
        if name is None:
            return self.tasks[0]
        for task in self.tasks:
            if task.head.name == name:
                return task
        raise UnknownNameError("The task", name, [str(t.head.name) for t in self.tasks])

    @property
    def task_names(self) -> tuple[str | None, ...]:
        """The tasks, (None,) where there is a single one without a name."""
        return tuple(task.head.name for task in self.tasks)


def open_index(folder: Path) -> VoteIndex:
    """Open what `write_index` wrote."""
    try:
        held = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if held["format"] != FORMAT:
            raise ValueError(f"format {held['format']}")
        tasks = []
        for task in held["tasks"]:
            made = {f.name: task[f.name] for f in fields(TaskHead)}
            made = {name: tuple(v) if isinstance(v, list) else v for name, v in made.items()}
            members = tuple((variant, seed) for variant, seed in task["members"])
            tasks.append(TaskHead(**made | {"members": members}))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{folder}' is no index of votes that can be opened ({error}); remove the folder, "
            "and it is built again."
        ) from error
    return VoteIndex(
        tuple(TaskVotes(head, folder / str(i)) for i, head in enumerate(tasks)),
        tuple(held["notes"]),
    )
