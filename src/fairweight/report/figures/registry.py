"""The registry of figures: an id of the papers (or `FW-…`) to one function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fairweight.errors import InputError, UnknownNameError
from fairweight.report.members import members_of, worded, worded_spec

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

Spec: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Absent:
    """Why a figure cannot be drawn from this audit."""

    reason: str


Draw: TypeAlias = "Callable[[AuditResult, str | None, str | None], Spec | Absent]"


@dataclass(frozen=True)
class Figure:
    """A kind of figure: its id, what it shows, how it is read, and the function that draws it."""

    id: str
    title: str
    caption: str  # how to read it, printed below
    function: Draw
    more: bool = False  # folded away in a report, where the findings must not drown in figures
    explains: bool = False  # stands in the section about examples, which not every report has
    once: bool = False  # shows all variants together: drawn once, not for each of them


@dataclass(frozen=True)
class Drawing:
    """A figure of one audit: a Vega-Lite specification, or the reason why there is none."""

    figure: Figure
    variant: str | None
    spec: Spec | None
    reason: str | None


_FIGURES: dict[str, Figure] = {}


def figure(
    id: str,
    *,
    title: str,
    caption: str,
    more: bool = False,
    explains: bool = False,
    once: bool = False,
) -> Callable[[Draw], Draw]:
    """Register a function `(result, variant, task) -> specification or Absent` under an id."""

    def add(function: Draw) -> Draw:
        if id in _FIGURES:
            raise InputError(f"A figure '{id}' is registered already; choose another id.")
        _FIGURES[id] = Figure(id, title, caption, function, more, explains, once)
        return function

    return add


def figures() -> tuple[Figure, ...]:
    """Every registered figure, in the order in which a report shows them."""
    return tuple(_FIGURES.values())


def draw(
    id: str, result: AuditResult, variant: str | None = None, task: str | None = None
) -> Drawing:
    """Draw one figure of one variant (the first by default)."""
    from fairweight.report.figures.theme import finished

    if id not in _FIGURES:
        raise UnknownNameError("Figure", id, _FIGURES)
    entry = _FIGURES[id]
    drawn = entry.function(result, variant, task)
    if isinstance(drawn, Absent):
        return Drawing(entry, variant, None, worded(drawn.reason, members_of(result)))
    return Drawing(entry, variant, worded_spec(finished(drawn), result), None)
