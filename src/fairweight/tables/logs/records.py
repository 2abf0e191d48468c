"""Records of logs: JSON files and lines read one record after the other, and single values.

A log may be larger than memory. Files with one record per line are read line by line; a file that
is one JSON value is read member by member (`json_members`), so that only one sample is held.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from fairweight.base.wording import shown
from fairweight.errors import InputError

Cell: TypeAlias = str | float | int | bool | None
LONGEST_LEVEL = 80  # characters of a group's name
LARGEST_RECORD = 200 * 2**20  # characters of one sample
BLOCK = 2**20
ENDS = frozenset(",:]} \t\r\n")  # what follows a value


def number(value: Any) -> float | None:
    """A number of a log, also where it is text or true; None where it is none.

    >>> number("0.5"), number(True), number("nan"), number([1, 2])
    (0.5, 1.0, None, None)
    """
    try:
        found = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    return found if math.isfinite(found) else None


def digest(*parts: Any) -> bytes:
    """A short name of what was asked, the same for the same text."""
    text = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.blake2b(text, digest_size=12).digest()


def mapping(value: Any, *names: str) -> Mapping[str, Any]:
    """A record, or a record inside records; {} where there is none.

    >>> mapping({"a": {"b": {"c": 1}}}, "a", "b"), mapping({"a": 3}, "a"), mapping(None)
    ({'c': 1}, {}, {})
    """
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def plain_fields(record: Any, named: Collection[str] = ()) -> dict[str, Cell]:
    """The fields of a record that could name a group: short text, whole numbers, yes or no.

    Parameters
    ----------
    named
        Fields that somebody asked for: other numbers and long text too.
    """
    return {
        str(name): value
        for name, value in mapping(record).items()
        if isinstance(value, bool | int)
        or (isinstance(value, str) and 0 < len(value) <= LONGEST_LEVEL)
        or (name in named and isinstance(value, str | float))
    }


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a file with one JSON value per line, and their line numbers."""
    with path.open("rb") as file:
        for place, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"'{path}', line {place:,}: no whole JSON record ({shown(str(error), 80)}); "
                    "the file may be cut off: evaluate again, or remove the line."
                ) from None


def read_json(path: Path) -> Any:
    """The one value of a small JSON file (settings, results)."""
    try:
        if path.stat().st_size > LARGEST_RECORD:
            raise InputError(f"'{path}' has more than {LARGEST_RECORD // 2**20} MB; it is no log.")
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _cut_off(path, error) from None


def _cut_off(path: Path, error: Exception) -> InputError:
    return InputError(
        f"'{path}' is no whole JSON file ({shown(str(error), 80)}); it may be cut off: write or "
        "copy it again."
    )


def json_members(path: Path, lists: Collection[str] = ()) -> Iterator[tuple[str | None, Any]]:
    """The members of a JSON file's one value: of a list its entries, of a record its fields.

    Parameters
    ----------
    lists
        Fields of the record whose lists are read entry by entry, each with the field's name.

    Yields
    ------
    (name, value)
        The name is None for entries of a list.
    """
    with path.open(encoding="utf-8") as file:
        text = _Text(file)
        try:
            if text.next_mark() == "[":
                for value in text.entries():
                    yield None, value
            elif text.mark == "{":
                while text.peek() != "}":
                    name = str(text.value())
                    if text.next_mark() != ":":
                        raise ValueError(f"a colon is missing behind {shown(name, 40)}")
                    if text.peek() == "[" and name in lists:
                        text.next_mark()
                        for value in text.entries():
                            yield name, value
                    else:
                        yield name, text.value()
                    if not text.goes_on("}"):
                        break
            else:
                raise ValueError("it holds neither a list nor a record")
        except (ValueError, RecursionError) as error:
            raise _cut_off(path, error) from None


class _Text:
    """JSON text of which only what was not read yet is held."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._held, self._place, self._ended = file, "", 0, False
        self._decode = json.JSONDecoder().raw_decode
        self.mark = ""

    def _more(self, least: int) -> None:
        block = self._file.read(least)
        self._ended = not block
        self._held, self._place = self._held[self._place :] + block, 0

    def _skip_space(self) -> None:
        while True:
            while self._place < len(self._held) and self._held[self._place] in " \t\r\n":
                self._place += 1
            if self._place < len(self._held) or self._ended:
                return
            self._more(BLOCK)

    def peek(self) -> str:
        """The next mark, which stays where it is."""
        self._skip_space()
        return self._held[self._place : self._place + 1]

    def next_mark(self) -> str:
        """Go past the next mark, unless it begins a value."""
        self.mark = self.peek()
        if not self.mark:
            raise ValueError("it ends too early")
        if self.mark in "[]{},:":
            self._place += 1
        return self.mark

    def goes_on(self, closing: str) -> bool:
        """Go past what follows a member: a comma, or the mark that ends them all."""
        if self.next_mark() not in (",", closing):
            raise ValueError(f"a comma is missing before '{self._held[self._place :][:20]}'")
        return self.mark == ","

    def value(self) -> Any:
        """The next value; more text is read until it is whole."""
        self._skip_space()
        wanted = BLOCK
        while True:
            try:
                found, end = self._decode(self._held, self._place)
            except ValueError:
                if self._ended:
                    raise
            else:
                # A number may go on in what was not read yet: 2.5 is no 2.
                if self._held[end : end + 1] in ENDS or self._ended:
                    self._place = end
                    return found
            if len(self._held) - self._place > LARGEST_RECORD:
                raise ValueError(f"a record has over {LARGEST_RECORD // 2**20} million characters")
            self._more(wanted)
            wanted = len(self._held)  # twice as much each time: never read again and again

    def entries(self) -> Iterator[Any]:
        """The entries of a list, behind its bracket."""
        if self.peek() == "]":
            self.next_mark()
            return
        yield self.value()
        while self.goes_on("]"):
            yield self.value()
