"""Which column a level belongs to, and whether it stands for missing values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fairweight.auditing.counts.groupings import MISSING


def column_of(level: str, columns: Iterable[str]) -> str | None:
    """The group column, or the intersection of columns, that a level is of.

    >>> columns = ("sex", "age", "sex*age")
    >>> column_of("sex=Female", columns), column_of("sex=Female & age=old", columns)
    ('sex', 'sex*age')
    """
    owners = [name for name in columns if re.match(_pattern(name), level, re.DOTALL)]
    # The longest: `sex*age` before `sex`, and a column `a=b` before a column `a`.
    return max(owners, key=len, default=None)


def _pattern(name: str) -> str:
    return " & ".join(f"{re.escape(part)}=.*" for part in name.split("*"))


def is_missing(level: str) -> bool:
    """Whether a level stands for examples without a value in one of its columns.

    >>> is_missing("sex=(missing)"), is_missing("sex=(missing) & age=old"), is_missing("sex=F")
    (True, True, False)
    """
    return any(part.endswith(f"={MISSING}") for part in level.split(" & "))
