"""PA-T2: coefficients of the model of class accuracies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.explained import explained, untold
from fairweight.report.figures.parts import labels, selection
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.text_table import TextCell, text_table
from fairweight.report.numbers import count, number, p_value

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 80
_PAPER = "ols-hac"
_CAUTIOUS = ("ols-two-way", "ols-cluster")
_OTHERS = {
    "ols-two-way": "errors by lineage, class",
    "ols-cluster": "errors by lineage",
    "ols-linear": "linear terms only",
    "glm-cluster": "binomial, log odds",
}


@figure(
    "PA-T2",
    title="What goes with the accuracy of a class",
    caption=(
        "Ordinary least squares of class accuracy (as a share of 1) on what was done and what the "
        "class is like, as in the paper: coefficient [95 % interval], t and p with HAC errors of "
        "three lags; one-tailed where the paper asks in one direction. Beside it the same terms "
        "with errors clustered on the lineage of the models (and on classes), with linear terms "
        "only, and in a binomial model (in log odds). Bold: the interval with the most cautious "
        "errors, or the paper's where there are no others, excludes 0. Associations over models, "
        "not causes."
    ),
    more=True,
    explains=True,
    once=True,
)
def coefficients(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "class_coefficients", None, task)
    if isinstance(found, Absent):
        return found
    rows = {(str(row["fit"]), str(row["term"])): row for row in records(found)}
    terms = list(dict.fromkeys(term for _, term in rows))
    kept = terms[:LIMIT]
    cells: list[TextCell] = []
    for text, term in zip(labels([_short(term) for term in kept]), kept, strict=True):
        paper = rows.get((_PAPER, term))
        decides = next((fit for fit in _CAUTIOUS if (fit, term) in rows), _PAPER)
        strong = (decides, term) in rows and _beyond(rows[decides, term])
        if paper is not None:
            cells += _paper_cells(text, paper, strong)
        for fit, column in _OTHERS.items():
            row = rows.get((fit, term))
            if row is not None:
                cells.append(_cell(text, column, row, strong and fit == decides))
    present = {cell.column for cell in cells}
    columns = ["coefficient", "t", "p", "p, one-tailed", *_OTHERS.values()]
    return {
        "title": "; ".join(
            part
            for part in (
                _size(result),
                selection(len(kept), len(terms), "terms", "the first places"),
            )
            if part
        ),
        "description": (
            f"Table of {count(len(kept))} coefficients of the accuracy of classes; the interval of "
            f"{count(sum(cell.strong for cell in cells if cell.column == columns[0]))} excludes 0."
        ),
        **text_table(cells, [c for c in columns if c in present], step=170),
    }


def _short(term: str) -> str:
    """A term of the formula without what its levels say anyway.

    >>> _short("np.exp(sparsity):pruning_technique[T.l1_structured]"), _short("accuracy0")
    ('exp(sparsity) × l1_structured', 'accuracy0')
    """
    plain = re.sub(r"\w+\[T\.(.*?)\]", r"\1", term)
    return plain.replace("np.exp", "exp").replace(":", " × ")


def _size(result: AuditResult) -> str:
    """How large the fit is, and how good."""
    fits = result.explanations.get("class_fits")
    for row in [] if fits is None else records(fits[fits["fit"] == _PAPER]):
        said = [f"n {count(row['n'])}"]
        if not missing(row["r2"]):
            said.append(f"R² {real(row['r2']):.3f}")
        if not missing(row["n_roots"]):
            said.append(f"{count(row['n_roots'])} lineages")
        return "; ".join(said)
    return "accuracies of classes"


def _beyond(row: dict[str, Any]) -> bool:
    return real(row["low"]) > 0 or real(row["high"]) < 0


def _paper_cells(text: str, row: dict[str, Any], strong: bool) -> list[TextCell]:
    made = [_cell(text, "coefficient", row, strong)]
    if missing(row["coefficient"]):
        return made
    made.append(TextCell(text, "t", number(real(row["statistic"]))))
    made.append(TextCell(text, "p", p_value(real(row["p_value"]), bare=True)))
    if not missing(row["p_one_tailed"]):
        tail = {"greater": " (> 0)", "less": " (< 0)"}.get(str(row["tail"]), "")
        said = p_value(real(row["p_one_tailed"]), bare=True) + tail
        made.append(TextCell(text, "p, one-tailed", said))
    return made


def _cell(text: str, column: str, row: dict[str, Any], strong: bool) -> TextCell:
    why = untold(row)
    if missing(row["coefficient"]):
        return TextCell(text, column, "×", why=why)
    said = number(real(row["coefficient"]))
    if not (missing(row["low"]) or missing(row["high"])):
        said += f" [{number(real(row['low']))}, {number(real(row['high']))}]"
    return TextCell(text, column, said, strong=strong, why=why)
