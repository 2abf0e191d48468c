"""HK-T3: error, false positive and false negative rate per subgroup: baseline and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, select, variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.parts import label, labels, largest, pair_title, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import DIVERGING
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 40
EVERYONE = "all examples"
_METRICS = {"error_rate": "error", "fpr": "FPR", "fnr": "FNR"}


@figure(
    "HK-T3",
    title="Errors of subgroups, before and after",
    caption=(
        "Per subgroup: the baseline's rate, and the change in percent of it (compressed minus "
        "baseline, divided by baseline). A large change of a small rate may be few examples: the "
        "table of groups has n and intervals. Orange: more errors; in brackets: too few examples; "
        "a dash: the rate is undefined or was 0."
    ),
)
def subgroup_errors(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    table: dict[str | None, dict[str, tuple[float, float]]] = {}
    small: set[str | None] = set()
    for metric in _METRICS:
        for by in ("overall", "group"):
            rows = at_task(select(result, name, metric, by), result, task)
            for row in records(rows, ("group", "baseline", "compressed", "status")):
                who = None if by == "overall" else str(row["group"])
                table.setdefault(who, {})[metric] = (row["baseline"], row["compressed"])
                if str(row["status"]).startswith("small_group"):
                    small.add(who)
    groups = [who for who in table if who is not None]
    if not groups:
        return Absent("there are no groups")
    kept = largest(groups, [_size(table[who]) for who in groups], LIMIT)
    rows_shown = ([None] if None in table else []) + kept
    texts = labels([EVERYONE if who is None else who for who in rows_shown])
    absolute: list[dict[str, Any]] = []
    change: list[dict[str, Any]] = []
    for text, who in zip(texts, rows_shown, strict=True):
        for metric, heading in _METRICS.items():
            base, compressed = table[who].get(metric, (float("nan"), float("nan")))
            absolute.append(
                {"who": text, "column": f"{heading}, %", "text": _text(value(base, 100), ".2f")}
            )
            percent = _relative(base, compressed)
            written = _text(percent, "+.1f")
            change.append(
                {
                    "who": text,
                    "column": f"{heading}, change %",
                    # A change of a handful of examples must not set the colours of all others.
                    "change": None if who in small else percent,
                    "text": f"({written})" if who in small and percent is not None else written,
                }
            )
    reach = max((abs(c["change"]) for c in change if c["change"] is not None), default=1.0) or 1.0
    columns = [f"{h}, %" for h in _METRICS.values()] + [f"{h}, change %" for h in _METRICS.values()]
    y = {"field": "who", "type": "nominal", "title": None, "sort": texts}
    x = {
        "field": "column",
        "type": "nominal",
        "title": None,
        "sort": columns,
        "scale": {"domain": columns},
        "axis": {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False},
    }
    write = {"mark": {"type": "text"}, "encoding": {"x": x, "y": y, "text": {"field": "text"}}}
    return {
        "title": pair_title(result, name, selection(len(kept), len(groups), "groups")),
        "description": (
            f"Table of {count(len(kept))} subgroups: error, false positive and false negative rate "
            f"of {label(result.baseline)} and their change in {label(name)} in percent of it."
        ),
        "width": {"step": 112},
        "height": {"step": 24},
        "layer": [
            {
                "data": {"values": change},
                "mark": {"type": "rect"},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "change",
                        "type": "quantitative",
                        "legend": None,
                        "scale": {"domain": [-reach, 0, reach], "range": DIVERGING[::-1]},
                    },
                },
            },
            {"data": {"values": change}, **write},
            {"data": {"values": absolute}, **write},
        ],
    }


def _relative(base: Any, compressed: Any) -> float | None:
    """Change in percent of the baseline; none where the baseline is 0 or a rate is undefined.

    >>> _relative(0.05, 0.06), _relative(0.0, 0.1)
    (20.0, None)
    """
    if missing(base) or missing(compressed) or base == 0:
        return None
    return round(100 * (float(compressed) - float(base)) / float(base), 10)


def _size(rates: dict[str, tuple[float, float]]) -> float:
    base, compressed = rates.get("error_rate", (float("nan"), float("nan")))
    return -1.0 if missing(base) or missing(compressed) else abs(compressed - base)


def _text(number: float | None, form: str) -> str:
    return "—" if number is None else format(number, form).replace("-", "\N{MINUS SIGN}")
