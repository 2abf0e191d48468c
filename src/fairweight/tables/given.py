"""What users give as predictions: one table, a list, `NAME=FILE`, or a dict from name to tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.tables.frames import kind_of_frame


def split_name(text: str) -> tuple[str | None, str]:
    """`NAME=FILE` as its two parts; a path that has an equals sign of its own stays whole.

    >>> split_name("int8=runs/int8.csv")
    ('int8', 'runs/int8.csv')
    >>> split_name("runs/year=2020/int8.csv")
    (None, 'runs/year=2020/int8.csv')
    """
    name, separator, path = text.partition("=")
    if not separator or not name or not path or Path(text).exists():
        return None, text
    if any(mark in name for mark in ("/", "\\", "::", "*", "?")):
        return None, text
    return name.strip(), path


def named_sources(source: Any) -> list[tuple[str | None, Any]]:
    """Every table that was given, with its name if it has one; members of a population share it."""
    if isinstance(source, Mapping):
        if _names_tables(source):
            return [
                (str(name), item)
                for name, held in source.items()
                for item in (held if isinstance(held, list | tuple) else [held])
            ]
        return [(None, source)]
    if isinstance(source, list | tuple):
        if not source:
            raise InputError("No table was given; give at least one file or frame.")
        found: list[tuple[str | None, Any]] = []
        for item in source:
            found.append(split_name(item) if isinstance(item, str) else (None, item))
        return found
    if isinstance(source, str):
        return [split_name(source)]
    return [(None, source)]


def _names_tables(source: Mapping[Any, Any]) -> bool:
    """Whether a dict is from variant to a table, or to a list of them, and not one of columns.

    Lists of text may be either: they are files if one of them is there.
    """

    def is_table(item: Any) -> bool:
        return isinstance(item, str | Path) or kind_of_frame(item) is not None

    def is_list(held: Any) -> bool:
        return isinstance(held, list | tuple) and bool(held) and all(map(is_table, held))

    def is_evident(held: Any) -> bool:
        if not isinstance(held, list | tuple):
            return True
        return not isinstance(held[0], str) or Path(held[0]).is_file()

    values = list(source.values())
    return (
        bool(values)
        and all(is_table(held) or is_list(held) for held in values)
        and any(is_evident(held) for held in values)
    )
