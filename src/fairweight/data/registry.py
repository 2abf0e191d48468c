"""The registry of data sets: a name to the function that reads its files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from fairweight.data.dataset import Images
from fairweight.data.needs import Found, Needs, found
from fairweight.errors import InputError, UnknownNameError
from fairweight.other_packages import load_entry_points

ENTRY_POINTS = "fairweight.datasets"
FOLDER_VARIABLE = "FAIRWEIGHT_DATA"

Reader: TypeAlias = Callable[..., Images]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What is known of a data set before it is read."""

    name: str
    function: Reader  # (root, **options), or (**options) where `layout` is empty
    summary: str  # one line, shown by `fairweight datasets`
    source: str  # who made it, and the licence
    layout: tuple[str, ...]  # files and folders that are looked for; empty: nothing is needed
    groups: tuple[str, ...]
    needs: tuple[Needs, ...]  # alternatives; empty: whether it is there cannot be told by names
    packaged: str | None  # a folder in which the system's own package has it

    @property
    def options(self) -> dict[str, Any]:
        """Options of `load` for this data set, with their defaults."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def found_in(self, folder: Path) -> tuple[Found, tuple[str, ...]]:
        """Whether its files are there, by their names alone, and which are missing."""
        return found(self.needs, folder) if self.layout else ("yes", ())

    def root(self, given: Path | None) -> Path | None:
        """The folder to read it from: the given one, or where it has none of the files the system's
        package.
        """
        if given is not None and (not given.exists() or self.found_in(given)[0] != "no"):
            return given
        packaged = None if self.packaged is None else Path(self.packaged)
        if packaged is not None and self.found_in(packaged)[0] == "yes":
            return packaged
        return given


_DATASETS: dict[str, Dataset] = {}


def register(
    name: str,
    *,
    summary: str,
    source: str,
    layout: Sequence[str] = (),
    groups: Sequence[str] = (),
    needs: Sequence[Needs] = (),
    packaged: str | None = None,
) -> Callable[[Reader], Reader]:
    """Register a function that reads a data set; its options are keyword-only arguments.

    `layout` is for people; `needs` says the same by patterns, for `fairweight datasets --data`.
    `packaged` is the folder of a system's package, read where the given one has none of the files.
    Other packages name the module that does so in the entry points `fairweight.datasets`.
    """

    def add(function: Reader) -> Reader:
        if name in _DATASETS:
            raise InputError(f"A data set named '{name}' is registered already; choose another.")
        _DATASETS[name] = Dataset(
            name=name,
            function=function,
            summary=summary,
            source=source,
            layout=tuple(layout),
            groups=tuple(groups),
            needs=tuple(needs),
            packaged=packaged,
        )
        return function

    return add


def unregister(name: str) -> None:
    """Remove a data set (for tests and notebooks that define one again)."""
    _DATASETS.pop(name)


def datasets() -> tuple[Dataset, ...]:
    """Every data set, those of other packages last."""
    _load_entry_points()
    return tuple(_DATASETS.values())


def dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name not in _DATASETS:  # other packages are imported only for what is not our own
        _load_entry_points()
    if name not in _DATASETS:
        raise UnknownNameError("Data set", name, _DATASETS)
    return _DATASETS[name]


def load(name: str, root: str | Path | None = None, **options: Any) -> Images:
    """Read a data set.

    Parameters
    ----------
    root
        The folder that holds data sets, or this one; the variable FAIRWEIGHT_DATA if not given.
    options
        Of this data set: `dataset(name).options`.
    """
    entry = dataset(name)
    for option in options:
        if option not in entry.options:
            raise UnknownNameError(f"Option of the data set '{name}'", option, entry.options)
    if not entry.layout:
        return entry.function(**options)
    given = root if root is not None else os.environ.get(FOLDER_VARIABLE)
    folder = entry.root(None if given is None else Path(given))
    if folder is None:
        raise InputError(
            f"Data set '{name}' is read from files, but no folder was given; name the folder that "
            f"holds it (--data DIR, or the variable {FOLDER_VARIABLE})."
        )
    if not folder.exists():
        raise InputError(f"The data folder '{folder}' does not exist; give one that does.")
    return entry.function(folder, **options)


@cache
def _load_entry_points() -> None:
    load_entry_points(ENTRY_POINTS, "data set")
