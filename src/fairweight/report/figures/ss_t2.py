"""SS-T2: accuracy of the classes that were down-sampled in training, by method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import at_task, records, variant_of
from fairweight.base.wording import missing, real
from fairweight.report.figures.measured import Pair, Row, pairs_of, why_missing
from fairweight.report.figures.parts import label, labels, selection
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.text_table import NONE, TextCell, text_table
from fairweight.report.numbers import bracket, count, signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

CLASSES = 15  # the paper's number
# Sampling alone leaves the classes of CIFAR-10's first 10,000 examples at 91 % of the largest.
DOWN_SAMPLED = 0.8
_WORSE = {"these models": "rgba(213,94,0,0.25)", "the method": "rgba(213,94,0,0.6)"}
_BETTER = {"these models": "rgba(0,114,178,0.22)", "the method": "rgba(0,114,178,0.5)"}


@figure(
    "SS-T2",
    title="Accuracy of down-sampled classes",
    caption=(
        "Recall of the classes with fewer than 80 % of the training examples of the largest class "
        "(the percentage beside the name), fewest first; where no class has so few, of all. First "
        "row: the baseline with its interval. Then for every variant its accuracy in percent and "
        "the shift in points with its interval (of these models). Coloured: the simultaneous "
        "limits of the shift exclude 0, pale for these models only, strong for the method too; "
        "orange is worse. "
        "Original and down-sampled data are two audits and have a table each. The paper's own "
        "table is about .99 points too high, by a slip in its formula."
    ),
    more=True,
    explains=True,
    once=True,
)
def down_sampled_classes(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    trained = _shares(result, task)
    if not trained:
        return Absent("no counts of the training data by class were given")
    found = pairs_of(result, result.variants, "recall", "class", task)
    few = [name for name, share in trained.items() if share < DOWN_SAMPLED]
    wanted = sorted(few or trained, key=lambda name: trained[name])
    known = [c for c in wanted if any(c in rows for rows in found.values())]
    if not known:
        return Absent("there is no accuracy by class")
    classes = known[:CLASSES]
    names = [f"{c}, {_percent(trained[c])}" for c in classes]
    columns = dict(zip(classes, labels(names), strict=True))
    rows = labels([result.baseline, *result.variants])
    cells: list[TextCell] = []
    for c, column in columns.items():
        first = next(rows_[c] for rows_ in found.values() if c in rows_)
        cells.append(_baseline(rows[0], column, first[0]))
    for row, name in zip(rows[1:], result.variants, strict=True):
        cells += [
            _cell(row, column, found[name][c]) for c, column in columns.items() if c in found[name]
        ]
    worse = sum(cell.ink in _WORSE.values() for cell in cells)
    plural = "variant" if len(result.variants) == 1 else "variants"
    of = "down-sampled classes" if few else "classes"
    title = [
        f"{count(len(result.variants))} {plural} against {label(result.baseline)}",
        "" if few else "no class is down-sampled: all classes",
        selection(len(classes), len(known), of, "the fewest training examples"),
    ]
    return {
        "title": "; ".join(part for part in title if part),
        "description": (
            f"Table of the accuracy of {count(len(classes))} {of} in {label(result.baseline)} and "
            f"{count(len(result.variants))} {plural}. {count(worse)} cells are worse than the "
            "baseline beyond their simultaneous limits."
        ),
        **text_table(cells, list(columns.values()), step=164),
    }


def _shares(result: AuditResult, task: str | None) -> dict[str, float]:
    """Training examples of every class as a share of the largest class's."""
    data = at_task(result.data, result, task)
    rows = records(data[(data["split"] == "train") & (data["by"] == "class")], ("class", "n"))
    counts = {str(row["class"]): real(row["n"]) for row in rows if not missing(row["n"])}
    most = max(counts.values(), default=0.0)
    return {name: n / most for name, n in counts.items()} if most > 0 else {}


def _percent(share: float) -> str:
    """A share of training examples.

    >>> _percent(0.1), _percent(0.004)
    ('10 %', '0.4 %')
    """
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _baseline(heading: str, column: str, row: Row) -> TextCell:
    if missing(row["baseline"]):
        return TextCell(heading, column, "×", why=why_missing(row))
    low, high = real(row["baseline_low"]), real(row["baseline_high"])
    ends = "" if missing(low) or missing(high) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return TextCell(heading, column, f"{100 * real(row['baseline']):.1f}{ends}")


def _cell(heading: str, column: str, pair: Pair) -> TextCell:
    row, method = pair
    if missing(row["compressed"]) or missing(row["shift"]):
        return TextCell(heading, column, "×", why=why_missing(row))
    ends = bracket(real(row["ci_low"]), real(row["ci_high"]), scale=100)
    said = f"{100 * real(row['compressed']):.1f}: {signed(100 * real(row['shift']), 1)} {ends}"
    told = _told(row)
    beyond = method is not None and _told(method) == told
    ink = {-1: _WORSE, 1: _BETTER}.get(told)
    shade = NONE if ink is None else ink["the method" if beyond else "these models"]
    return TextCell(heading, column, said.rstrip(), shade)


def _told(row: Row) -> int:
    """Whether the simultaneous limits lie below 0, above it, or neither."""
    return -1 if real(row["sim_high"]) < 0 else 1 if real(row["sim_low"]) > 0 else 0
