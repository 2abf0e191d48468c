"""PA-T1: coefficients of the lines through the accuracies of individuals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real, text
from fairweight.report.figures.explained import explained, untold
from fairweight.report.figures.individual_points import EVERYONE, in_words
from fairweight.report.figures.parts import label, pair_title, selection
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.text_table import TextCell, text_table
from fairweight.report.numbers import MINUS, count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 40
_SIDES = {"baseline": "before", "compressed": "after"}
_PREFERRED = "abs_tilt"


@figure(
    "PA-T1",
    title="Lines through the accuracies of individuals",
    caption=(
        "Least squares of accuracy (as a share of 1) on a property of individuals, before and "
        "after compression: intercept and slope ± their standard error, and R². Strong: the slope "
        "lies more than two standard errors from 0. Individuals count alike however many "
        "examples they have, as in the paper."
    ),
    more=True,
    explains=True,
)
def fit_coefficients(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "individual_fits", name, task)
    if isinstance(found, Absent):
        return found
    rows: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in records(found):
        rows.setdefault((str(row["property"]), text(row["group"])), []).append(row)
    keys = list(rows)
    keys.sort(key=lambda key: key[0] != _PREFERRED)
    kept = keys[:LIMIT]
    several = len({prop for prop, _ in keys}) > 1
    cells: list[TextCell] = []
    for prop, group in kept:
        who = EVERYONE if group is None else label(group)
        heading = f"{in_words(prop)}: {who}" if several else who
        cells.append(TextCell(heading, "n", count(rows[prop, group][0]["n"])))
        for row in rows[prop, group]:
            cells += _cells(heading, row)
    columns = ["n", *(f"{w} {what}" for w in _SIDES.values() for what in ("intercept", "slope"))]
    columns += [f"R² {word}" for word in _SIDES.values()]
    first = kept[0][0]
    chosen = selection(len(kept), len(keys), "lines", "the first names")
    return {
        "title": pair_title(result, name, "" if several else f"on {in_words(first)}", chosen),
        "description": (
            f"Table of {count(len(kept))} pairs of lines: accuracy of individuals in "
            f"{label(result.baseline)} and in {label(name)} on "
            f"{'properties of them' if several else in_words(first)}."
        ),
        **text_table(cells, columns, step=124),
    }


def _cells(heading: str, row: dict[str, Any]) -> list[TextCell]:
    word = _SIDES[str(row["side"])]
    why = untold(row)
    if missing(row["slope"]):
        columns = (f"{word} intercept", f"{word} slope")
        return [TextCell(heading, column, "×", why=why) for column in columns]
    steep = abs(real(row["slope"])) > 2 * real(row["slope_se"])
    start, slope = (_with(row[key], row[f"{key}_se"]) for key in ("intercept", "slope"))
    return [
        TextCell(heading, f"{word} intercept", start, why=why),
        TextCell(heading, f"{word} slope", slope, strong=steep, why=why),
        TextCell(heading, f"R² {word}", "×" if missing(row["r2"]) else f"{real(row['r2']):.2f}"),
    ]


def _with(number: Any, error: Any) -> str:
    """A coefficient and its standard error, with two digits of the error at least.

    >>> _with(-0.0251, 0.01), _with(-7.6e-5, 1.9e-5), _with(0.9, float("nan"))
    ('−0.025 ± 0.010', '−0.000076 ± 0.000019', '0.900')
    """
    known = not missing(error) and real(error) > 0
    decimals = max(3, 1 - math.floor(math.log10(real(error)))) if known else 3
    said = f"{real(number):.{decimals}f}".replace("-", MINUS)
    return said if missing(error) else f"{said} ± {real(error):.{decimals}f}"
