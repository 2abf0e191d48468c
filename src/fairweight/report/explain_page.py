"""The section of the page about examples: sentences, figures and tables, where there are any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.report.drawn import DrawnFigure, drawn
from fairweight.report.explain_sentences import sentences_by_variant
from fairweight.report.figures import Figure, Spec, figures
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count, missing, number, p_value, percent, points, shown
from fairweight.report.page_tables import Cell, PageTable, finite, name_cell
from fairweight.report.rows import records

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 50
TITLES = {
    "exemplar_counts": "Number of exemplars",
    "exemplar_accuracy": "Accuracy on exemplars",
    "exemplar_overlap": "Exemplars that variants share",
    "exemplar_surrogate": "The surrogate of one pair",
    "enrichment": "Classes and groups among exemplars",
    "exemplars": "Exemplars",
    "risk": "Risk from the dense models alone",
    "slices": "Slices",
    "example_properties": "Properties of lost examples",
    "individuals": "Individuals",
    "individual_fits": "Lines through individuals",
    "class_coefficients": "What goes with the accuracy of a class",
    "class_fits": "Models of class accuracies",
    "class_rows": "Accuracies of classes over models",
    "class_residuals": "Residuals of class accuracies",
    "bias_regression": "Bias amplification, compressed on dense",
    "label_interrelation": "Label interrelation",
    "similarity": "Bias against the distance of representations",
    "similarity_points": "Distances of representations",
    "mitigation": "What a mitigation changed",
    "override_curves": "Overrides by budget",
    "cascade_curve": "A cascade by threshold",
    "attributes": "Bias of every attribute",
    "settings": "Bias of attributes, settings side by side",
}
_IMAGES = ("exemplar_images", "tilt_example")  # drawn, and too large for cells
_SHARES = ("share", "accuracy", "baseline", "compressed", "uncertain", "floor", "matched")
_SHIFTS = ("shift", "excess")


@dataclass(frozen=True)
class FigureGroup:
    """Figures that are folded together."""

    anchor: str
    title: str
    figures: tuple[DrawnFigure, ...]
    open: bool


@dataclass(frozen=True)
class Explanation:
    """Everything that the section shows."""

    lines: dict[str, list[str]]  # by variant
    groups: tuple[FigureGroup, ...]
    absent: tuple[DrawnFigure, ...]
    tables: tuple[PageTable, ...]


def explanation(
    result: AuditResult, specs: dict[str, Spec], variants: Sequence[str] | None = None
) -> Explanation | None:
    """The section, or None for an audit without exemplars and explanations.

    Figures are drawn of these variants (of all by default).
    """
    if not result.explanations:
        return None
    order = result.variants if variants is None else variants
    groups: list[FigureGroup] = []
    absent: dict[tuple[str, str | None], DrawnFigure] = {}
    for anchor, title, wanted, variant in _plan(result, order):
        found = [
            drawn(result, figure, variant, f"{anchor}-{figure.id.lower()}", specs)
            for figure in wanted
        ]
        absent |= {(f.id, f.reason): f for f in found if f.reason is not None}
        kept = tuple(f for f in found if f.reason is None)
        if kept:
            opened = anchor == "examples-all" or (variant is not None and variant == order[0])
            groups.append(FigureGroup(anchor, title, kept, opened and "-more-" not in anchor))
    return Explanation(
        {
            "all models" if whose is None else shown(whose): [begun(s) for s in said]
            for whose, said in sentences_by_variant(result).items()
        },
        tuple(groups),
        tuple(absent.values()),
        tuple(_tables(result)),
    )


def _plan(
    result: AuditResult, variants: Sequence[str]
) -> Iterator[tuple[str, str, list[Figure], str | None]]:
    """Groups of figures in their order: findings first, then what is folded away."""
    for more in (False, True):
        own = [figure for figure in figures() if figure.explains and figure.more == more]
        prefix = "More figures: " if more else ""
        word = "more-" if more else ""
        once = [figure for figure in own if figure.once]
        yield f"examples-{word}all", f"{prefix}all variants together", once, None
        for variant in variants:
            i = result.variants.index(variant) + 1
            title = f"{prefix}{shown(variant)} against {shown(result.baseline)}"
            each = [figure for figure in own if not figure.once]
            yield f"examples-{word}{i}", title, each, variant


def _tables(result: AuditResult) -> Iterator[PageTable]:
    for name, frame in result.explanations.items():
        if name in _IMAGES or frame.empty:
            continue
        kept = [str(c) for c in frame.columns if frame[c].notna().any()]
        rows = tuple(
            tuple(_cell(_unit(name, column), row[column]) for column in kept)
            for row in records(frame.head(LIMIT), kept)
        )
        yield PageTable(
            f"explanation-{name.replace('_', '-')}",
            TITLES.get(name, name.replace("_", " ")),
            tuple(worded(column.replace("_", " "), members_of(result)) for column in kept),
            rows,
            len(frame),
            f"tables/{name}.parquet",
            "that come first",
        )


def _unit(table: str, column: str) -> str:
    """The column by whose name a value is read: the floor of a distance is no share."""
    if table in ("attributes", "settings") and column == "shift":
        return "value"  # of whatever metric the row is about
    return "distance" if (table, column) == ("similarity_points", "floor") else column


def _cell(column: str, value: Any) -> Cell:
    """A value as people read it.

    >>> _cell("share_test", 0.25).shown, _cell("p_value", 0.0001).shown, _cell("modal", True).shown
    ('25.0 %', '< 0.001', 'yes')
    """
    if isinstance(value, bool):
        return Cell("yes" if value else "no", float(value))
    if isinstance(value, str) or missing(value):
        return name_cell(value)
    found = float(value)
    if column.startswith("p_"):
        return Cell(p_value(found, bare=True), finite(found))
    if column.startswith(_SHIFTS):
        return Cell(points(found), finite(found))
    if column.startswith(_SHARES) and abs(found) <= 1 and column != "accuracy0_quartile":
        return Cell(percent(found), finite(found))
    whole = found.is_integer() and (column.startswith("n") or not isinstance(value, float))
    return Cell(count(found) if whole else number(found), finite(found))


def begun(sentence: str) -> str:
    """A sentence with a capital, unless it begins with a level: names stay as they are.

    >>> begun("no slice found."), begun("sex=f differs.")
    ('No slice found.', 'sex=f differs.')
    """
    is_level = "=" in sentence.partition(" ")[0]
    return sentence if is_level else sentence[0].upper() + sentence[1:]
