"""The registry of figures: an id of the papers (or `FW-…`) to its text and what draws it.

A figure is two entries of the same id: a function in a catalogue (which rows, which form, which
options) and its text in `figures.toml`, whose order is the order of the report.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairweight.auditing.result import variant_of
from fairweight.base.registry import Registry
from fairweight.errors import InputError
from fairweight.report.figures.theme import CONFIG, SCHEMA, Absent, Spec, label
from fairweight.report.members import members_of, worded, worded_spec

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

TEXTS = Path(__file__).with_name("figures.toml")
# By what ids begin with, the modules that draw them, loaded when one is asked for: the page of an
# audit without explanations needs half of them.
CATALOGUES = {
    "FW": ("own",),
    "HK": ("characterising_bias",),
    "PA": ("prune_responsibly", "individuals"),
    "SG": ("resource_efficient",),
    "SS": ("simon_says",),
    "IO": ("pruned_vision_bias",),
}

Name: TypeAlias = str | None  # of a task; none where nobody asked for one
Drawn: TypeAlias = Spec | Absent
Draw: TypeAlias = "Callable[[AuditResult, str, Name], Drawn]"


@dataclass(frozen=True)
class Figure:
    """A kind of figure: its id, what it shows, how it is read, and the function that draws it."""

    id: str
    function: Draw
    title: str
    caption: str  # how to read it, printed below
    alt: str = ""  # what it shows, for those who do not see it; names in braces are filled in
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


FIGURES: Registry[Figure] = Registry("figure")


def figure(
    id: str,
    *,
    title: str | None = None,
    caption: str | None = None,
) -> Callable[[Draw], Draw]:
    """Register a function `(result, variant, task) -> specification or Absent` under an id.

    The description of the specification is its alternative text, or `alt(…)`, the facts that are
    filled into that of `figures.toml`.

    Parameters
    ----------
    title, caption
        Of a figure that has no text in `figures.toml`.
    """

    def add(function: Draw) -> Draw:
        if id in texts():
            load_catalogue(id)  # which may be the one that is loading
        if title is not None and caption is not None:
            entry = Figure(id, function, title, caption)
        elif id in texts():
            entry = Figure(id, function, **texts()[id])
        else:
            raise InputError(
                f"A figure '{id}' has no text; give it a title and a caption, or a figure of "
                f"this package an entry in {TEXTS.name}."
            )
        FIGURES.add(id, entry)
        return function

    return add


@cache
def texts() -> dict[str, dict[str, Any]]:
    """The text of every figure (fields of `Figure`), in the order of the report."""
    with TEXTS.open("rb") as stream:
        found = tomllib.load(stream)
    return {
        id: {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in entry.items()}
        for id, entry in found.items()
    }


class Facts(dict[str, object]):
    """What an alternative text says of one drawing, under the names that it has in braces."""


def alt(**facts: object) -> Facts:
    """The facts of an alternative text; `baseline` and `variant` are added to them."""
    return Facts(facts)


def load_catalogue(id: str) -> None:
    """Import the modules that register a figure; all of them for an id of nobody's."""
    every = [name for names in CATALOGUES.values() for name in names]
    for name in CATALOGUES.get(id.partition("-")[0], every):
        importlib.import_module(f"fairweight.report.figures.{name}")


def figures(*, explains: bool | None = None) -> tuple[Figure, ...]:
    """Every registered figure, in the order in which a report shows them.

    With `explains` those that stand in the section about examples, or those that do not.
    """
    ours = [
        id
        for id, text in texts().items()
        if explains is None or text.get("explains", False) == explains
    ]
    for id in ours:
        load_catalogue(id)
    others = [entry for entry in FIGURES.values() if entry.id not in texts()]
    return (
        *(FIGURES[id] for id in ours),
        *(entry for entry in others if explains is None or entry.explains == explains),
    )


def draw(
    id: str, result: AuditResult, variant: str | None = None, task: str | None = None
) -> Drawing:
    """Draw one figure of one variant (the first by default)."""
    if id not in FIGURES:
        load_catalogue(id)
    entry = FIGURES[id]
    # The tables of a choice may be of a baseline alone.
    alone = variant is None and not result.variants
    name = result.baseline if alone else variant_of(result, variant)
    try:
        drawn = entry.function(result, name, task)
    except Absent as absent:
        drawn = absent
    if isinstance(drawn, Absent):
        return Drawing(entry, variant, None, worded(drawn.reason, members_of(result)))
    facts = drawn.get("description")
    if isinstance(facts, Facts):
        both = {"baseline": label(result.baseline), "variant": label(name)}
        drawn["description"] = entry.alt.format_map(both | facts)
    spec = {"$schema": SCHEMA, **drawn, "config": CONFIG}
    return Drawing(entry, variant, worded_spec(spec, result), None)


# A figure as the page's template needs it.


@dataclass(frozen=True)
class DrawnFigure:
    """Where a figure stands and what is said about it; `reason` where there is none."""

    anchor: str
    id: str
    title: str
    caption: str
    alt: str
    reason: str | None
    more: bool


def draw_figure(
    result: AuditResult, figure: Figure, variant: str | None, anchor: str, specs: dict[str, Spec]
) -> DrawnFigure:
    """Draw one figure; its specification is added to those of the page."""
    drawing = draw(figure.id, result, variant)
    members = members_of(result)
    title = worded(figure.title, members)
    alt = title
    if drawing.spec is not None:
        alt = drawing.spec["description"]
        specs[anchor] = drawing.spec
    return DrawnFigure(
        anchor, figure.id, title, worded(figure.caption, members), alt, drawing.reason, figure.more
    )
