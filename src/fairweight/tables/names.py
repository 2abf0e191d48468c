"""Names of columns, groupings and groups as text that can be read back.

A grouping is a column (`sex`) or an intersection (`sex*age`); a group is a level of it
(`sex=Female & age=old`); lists have commas (`sex,age,sex*age`). A name that holds one of these
marks is written in double quotes, quotes inside it doubled: `"a*b"*sex`, `"age, years",sex`,
`"a=b"=yes`. This is the only reader and writer of such texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical

MISSING = "(missing)"  # the level of examples without a value
AND = " & "

_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"\s*')
_BEGINS_QUOTED = re.compile(r'\s*"')
_COLUMN = r'(?:"(?:[^"]|"")*"|(?:(?! & )[^="])(?:(?! & )[^=])*)'
# Where a level ends and the next column begins; an unquoted value holds no such place.
_NEXT_LEVEL = re.compile(f"{AND}(?={_COLUMN}=)", re.DOTALL)
_LEVEL = re.compile(f"({_COLUMN})=(.*)", re.DOTALL)


def quoted(name: str) -> str:
    """A name in quotes, which can stand anywhere.

    >>> print(quoted('say "hi", twice'))
    "say ""hi"", twice"
    """
    return '"' + name.replace('"', '""') + '"'


def unquoted(text: str) -> str:
    """The name that a text stands for, which may be in quotes; spaces around it are none of it."""
    found = _QUOTED.fullmatch(text)
    return found.group(1).replace('""', '"') if found else text.strip()


# --- lists -------------------------------------------------------------------------------------


def split_list(text: str) -> list[str]:
    """The items of a list as they are written, quotes included; empty ones are left out.

    >>> split_list('"age, years", sex,"a*b"*sex')
    ['"age, years"', 'sex', '"a*b"*sex']
    """
    items = [""]
    for part, mark in _parts(text, ",*"):
        items[-1] += part + (mark if mark == "*" else "")
        if mark == ",":
            items.append("")
    return [item.strip() for item in items if item.strip()]


def split_names(text: str) -> list[str]:
    """The names of a list of single names.

    >>> split_names('cat,"dog, small"')
    ['cat', 'dog, small']
    """
    return [unquoted(item) for item in split_list(text)]


def split_pair(text: str) -> tuple[str, str] | None:
    """`NAME=COLUMN` as its two parts; the column is all that follows, as it is.

    >>> split_pair("int8=p 1"), split_pair('"a=b"=p=1'), split_pair("int8")
    (('int8', 'p 1'), ('a=b', 'p=1'), None)
    """
    (name, mark), *_ = _parts(text, "=")
    column = text[len(name) + 1 :]
    return (unquoted(name), column) if mark and name.strip() and column else None


def written_list(groupings: Iterable[str]) -> str:
    """Groupings as a list that `split_list` reads.

    >>> print(written_list(["sex", "age, years*sex", '"a*b"']))
    sex,"age, years"*sex,"a*b"
    """
    return ",".join(
        "*".join(_marked(column, ",*=") for column in split_grouping(grouping))
        for grouping in groupings
    )


def _parts(text: str, marks: str) -> list[tuple[str, str]]:
    """Pieces between marks that stand outside quotes, each with the mark behind it."""
    found: list[tuple[str, str]] = []
    start = 0
    while True:
        inside = _QUOTED.match(text, start)
        end = inside.end() if inside else start
        if inside is None or (end < len(text) and text[end] not in marks):
            # No quotes, or text behind them: then they are letters like others.
            end = next((i for i in range(start, len(text)) if text[i] in marks), len(text))
        found.append((text[start:end], text[end : end + 1]))
        if end >= len(text):
            return found
        start = end + 1


# --- groupings ---------------------------------------------------------------------------------


def _marked(name: str, marks: str) -> str:
    """The name, in quotes where it would be read as something else."""
    plain = name and name == name.strip() and not name.startswith('"') and AND not in name
    return name if plain and not any(mark in name for mark in marks) else quoted(name)


def grouping_name(columns: Sequence[str]) -> str:
    """The one name of a grouping.

    >>> print(grouping_name(["sex", "age"]), grouping_name(["a*b", "sex"]))
    sex*age "a*b"*sex
    """
    return "*".join(_marked(column, "*=") for column in columns)


def split_grouping(name: str) -> tuple[str, ...]:
    """The columns of a grouping by its name.

    >>> split_grouping('"a*b"*sex'), split_grouping("age, years")
    (('a*b', 'sex'), ('age, years',))
    """
    return tuple(unquoted(part) for part, _ in _parts(name, "*"))


def grouping_columns(text: str, known: Collection[str], where: str) -> tuple[str, ...]:
    """The columns that a user's text means, of those that exist; `where` names the argument.

    A column whose own name has a star is meant without quotes too, unless its parts exist.
    """
    name = text.strip()
    parts = split_grouping(name)
    if not name or not all(parts):
        raise InputError(f"{where} has an empty name in {text!r}; write 'sex' or 'sex*age'.")
    whole = next((column for column in (text, name) if column in known), None)
    if all(part in known for part in parts):
        star = len(parts) > 1 and not any(_BEGINS_QUOTED.match(p) for p, _ in _parts(name, "*"))
        if whole is not None and star:
            crossed = "*".join(map(quoted, parts))
            raise InputError(
                f"{where} {name!r} is the name of a column and an intersection of columns; write "
                f"{quoted(name)} for the column, {crossed} for the intersection."
            )
    elif whole is not None:
        return (whole,)
    if len(set(parts)) < len(parts):
        raise InputError(f"The grouping {name!r} names a column twice; name each once.")
    for part in parts:
        if part not in known:
            raise UnknownNameError(f"In {where}, the column", part, known)
    return parts


# --- groups ------------------------------------------------------------------------------------


@lru_cache(maxsize=100_000)  # an audit asks for the names of its groups several times
def level_name(column: str, value: str | None) -> str:
    """One level of one column; a value that would be read as something else is in quotes.

    >>> print(level_name("sex", "Female"), level_name("a=b", "yes"), level_name("sex", None))
    sex=Female "a=b"=yes sex=(missing)
    >>> print(level_name("school", "A & B"), level_name("school", "A & b=c"))
    school=A & B school="A & b=c"
    """
    if value is None:
        return f"{_marked(column, '*=')}={MISSING}"
    misread = value == MISSING or value.startswith('"') or value.endswith(AND.rstrip())
    misread |= AND in value and "=" in value
    return f"{_marked(column, '*=')}={quoted(value) if misread else value}"


def group_name(levels: Iterable[tuple[str, str | None]]) -> str:
    """The name of a group by its columns and values."""
    return AND.join(level_name(column, value) for column, value in levels)


def split_group(name: str) -> tuple[tuple[str, str | None], ...]:
    """Columns and values of a group; () where the text names none. None is the missing value.

    >>> split_group("sex=Female & age=(missing)")
    (('sex', 'Female'), ('age', None))
    >>> split_group('school=A & B & "a=b"=yes')
    (('school', 'A & B'), ('a=b', 'yes'))
    """
    found: list[tuple[str, str | None]] = []
    start = 0
    while start <= len(name):
        level = _LEVEL.match(name, start)
        if level is None:
            return ()
        value, end = level.group(2), len(name)
        at = level.start(2)
        inside = _QUOTED.match(name, at) if name.startswith('"', at) else None
        if inside and (inside.end() == len(name) or _NEXT_LEVEL.match(name, inside.end(1) + 1)):
            end = inside.end(1) + 1
            found.append((unquoted(level.group(1)), unquoted(name[at:end])))
        else:
            following = _NEXT_LEVEL.search(name, at)
            end = following.start() if following else len(name)
            value = name[at:end]
            found.append((unquoted(level.group(1)), None if value == MISSING else value))
        if end == len(name):
            break
        start = end + len(AND)
    return tuple(found)


def grouping_of(group: str) -> str:
    """The grouping that a group belongs to; '' where the text names no group.

    >>> grouping_of("sex=Female & age=old")
    'sex*age'
    """
    return grouping_name([column for column, _ in split_group(group)])


def is_missing(group: str) -> bool:
    """Whether a group stands for examples without a value in one of its columns.

    >>> is_missing("sex=(missing) & age=old"), is_missing('sex="(missing)"')
    (True, False)
    """
    return any(value is None for _, value in split_group(group))


def known_group(text: str, known: Collection[str]) -> str | None:
    """The group among the known ones that a user's text means, by canonical text; None: none.

    >>> known_group("site=1.0", ["site=1", "site=2"])
    'site=1'
    """
    if text in known:
        return text
    levels = [(column, canonical(value)) for column, value in split_group(text)]
    name = group_name(levels)
    return name if name in known else None


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
    patterns = {
        name: " & ".join(f"{re.escape(part)}=.*" for part in name.split("*")) for name in known
    }
    owners = [name for name in known if re.match(patterns[name], level, re.DOTALL)]
    return max(owners, key=len, default=None)
