"""Repaired defects that can be put back: a fuzzer that finds none of them is worth nothing.

A defect is a change of the source text, applied to the functions in memory. The text that it
changes must be there exactly once, so that a defect that no longer fits the source is noticed.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Change:
    """Text of a module's source, and what stood there before it was repaired."""

    module: str
    repaired: str
    broken: str


@dataclass(frozen=True)
class Defect:
    """What was wrong, and the changes that make it so again."""

    name: str
    changes: tuple[Change, ...]


@contextlib.contextmanager
def put_back(defect: Defect) -> Iterator[None]:
    """The package with the defect, inside the block."""
    held: list[tuple[FunctionType, CodeType]] = []
    try:
        for change in defect.changes:
            held += _replaced(change)
        yield
    finally:
        for function, code in held:
            function.__code__ = code


def _replaced(change: Change) -> list[tuple[FunctionType, CodeType]]:
    """Give every function that the change touches its old code; returns what it had."""
    module = importlib.import_module(change.module)
    source = inspect.getsource(module)
    times = source.count(change.repaired)
    if times != 1:
        raise ValueError(f"{change.module} has the text {times} times, not once: {change.repaired}")
    text = source.replace(change.repaired, change.broken)
    old, new = (
        dict(_functions(compile(t, str(module.__file__), "exec", dont_inherit=True)))
        for t in (source, text)
    )
    changed = [name for name, code in new.items() if old.get(name) != code]
    found = [_function(module, name) for name in changed]
    held = [(function, function.__code__) for function in found if function is not None]
    if not held:
        raise ValueError(f"the change of {change.module} is in no function: {change.repaired}")
    for (function, _), name in zip(
        held, [n for n, f in zip(changed, found, strict=True) if f is not None], strict=True
    ):
        function.__code__ = new[name]
    return held


def _functions(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Functions of a module and methods of its classes, by their qualified name."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            name = prefix + part.co_name
            if part.co_flags & inspect.CO_NEWLOCALS:
                yield name, part
            else:  # the body of a class
                yield from _functions(part, f"{name}.")


def _function(module: ModuleType, name: str) -> FunctionType | None:
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", found))
    return found if isinstance(found, FunctionType) else None


DEFECTS: tuple[Defect, ...] = ()
