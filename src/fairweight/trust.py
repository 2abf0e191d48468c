"""What a file may name: plain names, and places inside a folder.

Tables, cards, studies, audits, manifests and model files come from anybody. A name that is read
from one of them becomes a part of a path only here. `SECURITY.md` says what is trusted and why.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fairweight.errors import InputError

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_NAME = re.compile(NAME)


def plain_name(name: str, what: str) -> str:
    """The name, if it can be a file's or a folder's: letters, digits, dots, dashes, underscores.

    Parameters
    ----------
    what
        How the message calls it: `The copy's name`.

    >>> plain_name("pruned-90", "The copy's name")
    'pruned-90'
    >>> plain_name("../../escaped", "The copy's name")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: The copy's name is '../../escaped', which cannot be the name of
    a folder; begin with a letter or a digit, then use letters, digits, '.', '-' and '_' (at most
    200).
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{what} is {_shown(name)}, which cannot be the name of a folder; begin with a letter "
            "or a digit, then use letters, digits, '.', '-' and '_' (at most 200)."
        )
    return name


def inside(root: str | Path, name: str | Path, *, links: bool = False) -> Path:
    """The place `name` below a folder, if it is really there.

    What is read may be reached by links that stay inside (`links=True`); nothing is written
    through a link.

    >>> inside("/data/out", "tables/a.csv").as_posix()
    '/data/out/tables/a.csv'
    >>> inside("/data/out", "../b.csv")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: '../b.csv' does not lie inside '/data/out'; nothing outside that
    folder is touched.
    """
    text = os.fspath(name)
    outside = InputError(
        f"{_shown(text)} does not lie inside '{root}'; nothing outside that folder is touched."
    )
    parts = Path(text).parts
    if not parts or "\0" in text or Path(text).is_absolute() or ".." in parts:
        raise outside
    try:
        base = Path(root).resolve()
        place = base.joinpath(*parts)
        folders = [] if links else list(place.relative_to(base).parents)[:-1]
        link = next((folder for folder in folders if (base / folder).is_symlink()), None)
        found = place.resolve() if links else place
    except (OSError, RuntimeError, ValueError):  # loops, names that are too long
        raise outside from None
    if link is not None:
        raise InputError(
            f"'{base / link}' is a link to another folder; nothing is written through links: "
            "remove it, or choose another place."
        )
    if not found.is_relative_to(base):
        raise outside
    return found


def _shown(text: str) -> str:
    short = text if len(text) <= 80 else f"{text[:80]}…"
    return f"'{short}'" if short.isprintable() else ascii(short)
