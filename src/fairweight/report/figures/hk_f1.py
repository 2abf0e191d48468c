"""HK-F1: the share of every class and group in the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, variant_of
from fairweight.base.wording import missing
from fairweight.report.figures.parts import labels, selection, value
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import BLUE, GREY
from fairweight.report.numbers import count, percent

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

LIMIT = 30
FEW = 100  # from here on an accuracy is known to about ± 10 points, or worse
_PANELS = {"class": "classes", "group": "groups", "group*class": "classes within groups"}
_SPLITS = {"train": "training", "test": "test"}


@figure(
    "HK-F1",
    title="How common each class and group is",
    caption=(
        "Share of the training data (blue, where their counts are known) and of the test data "
        "(grey), with the number of examples; the rarest come last. In brackets: fewer than 100 "
        "test examples, on which an accuracy is known to no better than about ± 10 points."
    ),
    more=True,
    explains=True,
    once=True,
)
def shares(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    rows = records(at_task(result.data, result, task))
    panels, said, rarest = [], [], None
    for by, words in _PANELS.items():
        own = [row for row in rows if row["by"] == by and not missing(row["share"])]
        names = list(dict.fromkeys((row["group"], row["class"]) for row in own))
        if not names:
            continue
        share = {(row["split"], row["group"], row["class"]): row for row in own}
        first = "train" if any(row["split"] == "train" for row in own) else "test"
        size = {key: share[first, *key]["share"] if (first, *key) in share else 0 for key in names}
        kept = sorted(names, key=lambda key: -size[key])[-LIMIT:]
        said.append(selection(len(kept), len(names), words, "the smallest share"))
        rarest = min([rarest or 1.0, *size.values()])
        panels.append(_panel(_values(kept, share), words))
    if not panels:
        return Absent("the data have neither classes nor groups")
    return {
        "title": "; ".join(["share of examples", *(part for part in said if part)]),
        "description": (
            f"Shares of classes and groups in the data, {count(len(panels))} panels; the smallest "
            f"share is {percent(rarest or 0.0, 2)}."
        ),
        "vconcat": panels,
        "resolve": {"scale": {"color": "shared"}},
    }


def _values(kept: list[Any], share: dict[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    texts = labels([" & ".join(str(p) for p in key if not missing(p)) for key in kept])
    made = []
    for text, key in zip(texts, kept, strict=True):
        for split, word in _SPLITS.items():
            row = share.get((split, *key))
            if row is None:
                continue
            few = split == "test" and row["n"] < FEW
            n = f"({count(row['n'])})" if few else count(row["n"])
            made.append({"who": text, "split": word, "share": value(row["share"], 100), "n": n})
    return made


def _panel(values: list[dict[str, Any]], words: str) -> Spec:
    splits = list(_SPLITS.values())
    at = {
        "y": {"field": "who", "type": "nominal", "title": None, "sort": None},
        "yOffset": {"field": "split", "type": "nominal", "sort": splits},
        "x": {"field": "share", "type": "quantitative", "title": f"share of examples, % ({words})"},
    }
    color = {
        "field": "split",
        "type": "nominal",
        "title": None,
        "scale": {"domain": splits, "range": [BLUE, GREY]},
    }
    tooltip = [
        {"field": "who", "type": "nominal", "title": "who"},
        {"field": "split", "type": "nominal", "title": "data"},
        {"field": "share", "type": "quantitative", "format": ".3g", "title": "share, %"},
        {"field": "n", "type": "nominal", "title": "n"},
    ]
    return {
        "width": 420,
        "height": {"step": 10 if len({v["split"] for v in values}) > 1 else 16},
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "bar", "opacity": 0.8},
                "encoding": {**at, "color": color, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 3, "fontSize": 9},
                "encoding": {**at, "text": {"field": "n", "type": "nominal"}},
            },
        ],
    }
