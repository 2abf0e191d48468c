"""SG-T1: accuracy, kappa and the rates of every class, before and after, as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import variant_of
from fairweight.base.wording import NOTHING, missing, real
from fairweight.report.figures.measured import Pair, left_blank, pairs, pairs_of, why_missing
from fairweight.report.figures.parts import label, labels, largest, selection
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.numbers import MINUS, count, is_share

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

CLASSES = 12
VARIANTS = 6
_OVERALL = {"accuracy": "accuracy, %", "auc": "AUC, %", "kappa": "kappa"}
_BY_CLASS = {"fpr": "FPR", "precision": "precision", "recall": "recall"}
_LOWER_IS_BETTER = ("fpr",)
_SIZE, _FLOOR = "n", "retraining, up to"
_INK = {
    "worse, the method": "rgba(213,94,0,0.6)",
    "worse, these models": "rgba(213,94,0,0.25)",
    "better, these models": "rgba(0,114,178,0.22)",
    "better, the method": "rgba(0,114,178,0.5)",
}


@dataclass(frozen=True)
class Line:
    """One line of the table: a metric of one class, or of all examples, in every variant."""

    metric: str
    heading: str
    found: dict[str, Pair]  # by variant


@figure(
    "SG-T1",
    title="The numbers before and after",
    caption=(
        "Each number with its interval (of the method where it is known, else of these models). "
        "Coloured: the simultaneous limits of the paired shift exclude 0, pale for these models "
        "only, strong for the method too; orange is worse. Bold: the variant of this section. "
        "Retraining, up to: what training again "
        "alone moves. ×: undefined. FPR is FP / (FP + TN) of each class; the row that the paper "
        "prints under this name is about 1 − recall of another run, and its kappas do not follow "
        "from its accuracies."
    ),
    more=True,
)
def before_and_after(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    by_class = pairs(result, name, "recall", "class", task)
    if not by_class:
        return Absent("there are no rates by class")
    classes = _classes(by_class)
    shown_ = _chosen(result, name, task)
    lines = _lines(result, shown_, classes, task)
    models = labels([result.baseline, *shown_])
    rows = labels([line.heading for line in lines])
    floors = any(not missing(pair[0]["noise_floor"]) for x in lines for pair in x.found.values())
    columns = [_SIZE, *models, *([_FLOOR] if floors else [])]
    cells: list[dict[str, Any]] = []
    for row, line in zip(rows, lines, strict=True):
        first = line.found.get(name) or next(iter(line.found.values()))
        cells.append({"row": row, "column": _SIZE, "text": count(first[0]["n"]), "why": None})
        cells.append({"row": row, "column": models[0], **_cell(first, "baseline")})
        for model, own in zip(models[1:], shown_, strict=True):
            if own in line.found:
                here = {"row": row, "column": model, "this": own == name}
                cells.append(here | _cell(line.found[own], "compressed"))
        if floors:
            cells.append({"row": row, "column": _FLOOR, "text": _floor(line), "why": None})
    said = [
        f"{count(len(shown_))} {'variant' if len(shown_) == 1 else 'variants'} against "
        f"{label(result.baseline)}",
        selection(len(classes), len(by_class), "classes"),
        selection(len(shown_), len(result.variants), "variants"),
        left_blank(cells),
    ]
    worse = sum(str(cell.get("ink", "")).startswith("worse") for cell in cells)
    return {
        "title": "; ".join(part for part in said if part),
        "description": (
            f"Table of {count(len(lines))} numbers in {label(result.baseline)} and "
            f"{count(len(shown_))} variants: accuracy, kappa, and false positive rate, precision "
            f"and recall of {count(len(classes))} classes. In {count(worse)} cells the limits say "
            "worse."
        ),
        "width": {"step": 132},
        "height": {"step": 20},
        "data": {"values": cells},
        "layer": _layers(rows, columns, {cell.get("ink") for cell in cells}),
    }


def _classes(by_class: dict[str | None, Pair]) -> list[str]:
    rows = {str(c): row for c, (row, _) in by_class.items()}
    sizes = [0.0 if missing(row["shift"]) else abs(row["shift"]) for row in rows.values()]
    return largest(list(rows), sizes, CLASSES)


def _chosen(result: AuditResult, name: str, task: str | None) -> list[str]:
    """The variants that fit: those whose accuracy changes most, and that of the section."""
    sizes = []
    rows_of = pairs_of(result, result.variants, "accuracy", "overall", task)
    for variant, rows in rows_of.items():
        known = [abs(real(row["shift"])) for row, _ in rows.values() if not missing(row["shift"])]
        sizes.append(float("inf") if variant == name else max(known, default=0.0))
    return largest(list(rows_of), sizes, VARIANTS)


def _lines(
    result: AuditResult, variants: list[str], classes: list[str], task: str | None
) -> list[Line]:
    lines: list[Line] = []
    for metric, heading in _OVERALL.items():
        rows_of = pairs_of(result, variants, metric, "overall", task)
        known = {v: rows[None] for v, rows in rows_of.items() if None in rows}
        if any(not missing(row["baseline"]) for row, _ in known.values()):
            lines.append(Line(metric, heading, known))
    for metric, word in _BY_CLASS.items():
        rows_of = pairs_of(result, variants, metric, "class", task)
        for c in classes:
            known = {v: rows[c] for v, rows in rows_of.items() if c in rows}
            if known:
                lines.append(Line(metric, f"{word} of {c}, %", known))
    return lines


def _cell(pair: Pair, side: str) -> dict[str, Any]:
    row, method = pair
    if missing(row[side]):
        return {"text": "×", "why": why_missing(row)}
    wide = method is not None and not missing(method[f"{side}_low"])
    limits = method if wide and method is not None else row
    share = is_share(str(row["metric"]))
    scale, form = (100.0, ".1f") if share else (1.0, ".3f")
    said = format(scale * real(row[side]), form)
    low, high = real(limits[f"{side}_low"]), real(limits[f"{side}_high"])
    if not (missing(low) or missing(high)):
        said += f" [{scale * low:{form}}, {scale * high:{form}}]"
    return {
        "text": said.replace("-", MINUS),
        "why": None,
        "ink": _ink(pair) if side == "compressed" else None,
    }


def _ink(pair: Pair) -> str | None:
    """Worse or better, and for whom: by the limits of the paired shift."""
    row, method = pair
    told = _told(row)
    if told == 0:
        return None
    word = "better" if (told > 0) != (row["metric"] in _LOWER_IS_BETTER) else "worse"
    beyond = method is not None and _told(method) == told
    return f"{word}, {'the method' if beyond else 'these models'}"


def _told(row: dict[str, Any]) -> int:
    low, high = real(row["sim_low"]), real(row["sim_high"])
    return -1 if high < 0 else 1 if low > 0 else 0


def _floor(line: Line) -> str:
    """The largest floor of the variants: they differ only where their numbers of members do."""
    floors = [real(row["noise_floor"]) for row, _ in line.found.values()]
    known = [floor for floor in floors if not missing(floor)]
    if not known:
        return NOTHING
    return f"{100 * max(known):.1f}" if is_share(line.metric) else f"{max(known):.3f}"


def _layers(rows: list[str], columns: list[str], inks: set[str | None]) -> list[Spec]:
    used = {ink: color for ink, color in _INK.items() if ink in inks}
    at = {
        "y": {"field": "row", "type": "nominal", "title": None, "sort": rows},
        "x": {
            "field": "column",
            "type": "nominal",
            "title": None,
            "sort": columns,
            "scale": {"domain": columns},
            "axis": {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False,
                     "labelLimit": 126},
        },
    }  # fmt: skip
    tooltip = [
        {"field": field, "type": "nominal", "title": title}
        for field, title in (
            ("row", "what"),
            ("column", "model"),
            ("text", "value"),
            ("why", "missing"),
        )
    ]
    colored: Spec = {
        "transform": [{"filter": "isValid(datum.ink)"}],
        "mark": {"type": "rect"},
        "encoding": {
            **at,
            "color": {
                "field": "ink",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(used), "range": list(used.values())},
            },
        },
    }
    written: list[Spec] = [
        {
            "transform": [{"filter": which}],
            "mark": {"type": "text", "fontSize": 11, "fontWeight": weight},
            "encoding": {**at, "text": {"field": "text", "type": "nominal"}, "tooltip": tooltip},
        }
        for which, weight in (("!datum.this", "normal"), ("datum.this === true", "bold"))
    ]
    return [colored, *written]
