"""Which column a level belongs to, and what a policy means by a name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairweight.tables.canonical import canonical
from fairweight.tables.names import grouping_name, grouping_of, known_group, split_grouping
from fairweight.tables.names import is_missing as is_missing


def column_of(level: str, columns: Iterable[str]) -> str | None:
    """The group column, or the intersection of columns, that a level is of.

    >>> columns = ("sex", "age", "sex*age")
    >>> column_of("sex=Female", columns), column_of("sex=Female & age=old", columns)
    ('sex', 'sex*age')
    """
    name, known = grouping_of(level), list(columns)
    if name in known:
        return name
    # Version 0.1.0 did not quote names: the longest, `sex*age` before `sex`, `a=b` before `a`.
    owners = [name for name in known if re.match(_pattern(name), level, re.DOTALL)]
    return max(owners, key=len, default=None)


def _pattern(name: str) -> str:
    return " & ".join(f"{re.escape(part)}=.*" for part in name.split("*"))


def known_name(what: str, text: str, known: list[str]) -> str | None:
    """The known task, column, group or class that a policy's text means; None where none is.

    >>> known_name("group", "site=1.0", ["site=1"]), known_name("column", '"sex"', ["sex"])
    ('site=1', 'sex')
    >>> known_name("column", "a*b", ['"a*b"']), known_name("class", "007", ["7"])
    ('"a*b"', None)
    """
    if text in known:
        return text
    if what == "group":
        return known_group(text, known)
    meant = [canonical(text)]
    if what == "column":
        meant = [grouping_name(split_grouping(text)), grouping_name([text])]
    return next((name for name in meant if name in known), None)
