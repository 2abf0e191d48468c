"""What a file may name: plain names, places inside a folder, and modules that the user trusts.

Tables, cards, studies, audits, manifests and model files come from anybody. A name that is read
from one of them becomes a part of a path, or is imported, only by way of this module. `SECURITY.md`
says what is trusted and why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fairweight.errors import InputError, brief

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_NAME = re.compile(NAME)
_MODULES: ContextVar[frozenset[str]] = ContextVar("trusted modules", default=frozenset())
_FILES: ContextVar[frozenset[Path]] = ContextVar("trusted files", default=frozenset())


@contextmanager
def trusting(modules: Iterable[str] = (), files: Iterable[str | Path] = ()) -> Iterator[None]:
    """Trust modules that cards and studies name, and files that run code, until the block ends.

    The command line does this for `--trust-module` and `--trust-file`.

    >>> with trusting(modules=["nets"]):
    ...     require_module("nets:small", "A card")
    """
    names = frozenset(modules)
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise InputError(
                f"--trust-module {name} is no module; give a name that `import` takes: nets"
            )
    kept = _MODULES.set(_MODULES.get() | names)
    held = _FILES.set(_FILES.get() | {Path(file).resolve() for file in files})
    try:
        yield
    finally:
        _FILES.reset(held)
        _MODULES.reset(kept)


def modules_of(name: str) -> list[str]:
    """The module of `module:function`; none of a registered name."""
    return [name.partition(":")[0]] if ":" in name else []


def trusted_modules() -> tuple[str, ...]:
    """The modules that are trusted now, for another process that works for this one."""
    return tuple(sorted(_MODULES.get()))


def require_module(name: str, where: str) -> None:
    """Raise unless the module of `module:function`, which a file names, is trusted.

    Parameters
    ----------
    where
        What names it: `The card of 'models/a'`.

    >>> require_module("subprocess:Popen", "The card of 'evil'")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: The card of 'evil' names code, 'subprocess:Popen', which would be
    imported and run; if you know who wrote it, allow it: --trust-module subprocess (in Python:
    fairweight.base.trust.trusting).
    """
    module = name.partition(":")[0]
    if module not in _MODULES.get():
        remedy = (
            f"if you know who wrote it, allow it: --trust-module {module} (in Python: "
            "fairweight.base.trust.trusting)."
            if all(part.isidentifier() for part in module.split("."))
            else "name a registered architecture."
        )
        raise InputError(
            f"{where} names code, '{brief(name)}', which would be imported and run; {remedy}"
        )


def require_file(path: str | Path, what: str) -> None:
    """Raise unless a file that can run code is trusted."""
    if Path(path).resolve() not in _FILES.get():
        raise InputError(
            f"{what}: '{path}' can run any code when it is opened; if you know who wrote it, allow "
            f"it: --trust-file {path} (in Python: fairweight.base.trust.trusting)."
        )


def plain_name(name: str, what: str) -> str:
    """The name, if it is safe for a file or folder: letters, digits, dots, dashes, underscores.

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
            f"{what} is '{brief(name)}', which cannot be the name of a folder; begin with a letter "
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
        f"'{brief(text)}' does not lie inside '{root}'; nothing outside that folder is touched."
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
