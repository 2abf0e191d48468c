"""Entries by name: our own, then those that other packages offer through an entry point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from fairweight.errors import InputError, UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name, in the order in which they were added.

    Our own are added when their modules are imported. Those of other packages come last: an entry
    point of the group names a module, which is imported when the entries are listed, or when a
    name is asked for that is not our own.

    Parameters
    ----------
    noun
        What an entry is, as messages say it: `method`.
    group
        The group of entry points; None where other packages add nothing.
    unknown
        How the message about an unknown name begins; by default the noun.
    remedy
        A sentence that it ends with.

    >>> colours: Registry[str] = Registry("colour")
    >>> colours.add("red", "#f00")
    >>> colours["red"], list(colours)
    ('#f00', ['red'])
    >>> colours["rad"]
    Traceback (most recent call last):
    ...
    fairweight.errors.UnknownNameError: Colour 'rad' does not exist; there are: 'red'. Did
    you mean 'red'?
    """

    def __init__(
        self, noun: str, *, group: str | None = None, unknown: str = "", remedy: str = ""
    ) -> None:
        self.noun = noun
        self._group = group
        self._unknown = unknown or noun[:1].upper() + noun[1:]
        self._remedy = remedy
        self._entries: dict[str, T] = {}
        self._loaded = group is None

    def add(self, name: str, entry: T) -> None:
        """Register an entry; a name is given once."""
        if name in self._entries:
            article = "An" if self.noun[0] in "aeiou" else "A"
            raise InputError(
                f"{article} {self.noun} named '{name}' is registered already; choose another name."
            )
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Forget an entry (for tests and notebooks that define one again)."""
        del self._entries[name]

    def __getitem__(self, name: str) -> T:
        if name not in self:
            raise UnknownNameError(self._unknown, name, self._entries, remedy=self._remedy)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._load_others()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._load_others()
        return iter(self._entries)

    def __len__(self) -> int:
        self._load_others()
        return len(self._entries)

    def _load_others(self) -> None:
        if not self._loaded and self._group is not None:
            self._loaded = True
            load_entry_points(self._group, self.noun)


def load_entry_points(group: str, what: str) -> None:
    """Import all entry points of a group; a warning names those that cannot be loaded.

    Parameters
    ----------
    what
        How the warning calls it: `metric`.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            point.load()
        except Exception as error:  # another package's error must not stop our own work
            package = point.dist.name if point.dist is not None else point.value
            warnings.warn(
                f"The package '{package}' offers the {what} '{point.name}', which cannot be "
                f"loaded ({type(error).__name__}: {error}); update or remove the package.",
                stacklevel=4,
            )
