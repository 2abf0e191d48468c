"""PA: figures of Paganini (2020) about individuals, such as the writers of digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records
from fairweight.base.wording import missing, real, shown, text
from fairweight.report.figures.forms import scatter
from fairweight.report.figures.forms.bars import bar_panel, edges, histogram
from fairweight.report.figures.forms.encoding import Values, names, numbers, quantitative
from fairweight.report.figures.forms.images import tilted_image
from fairweight.report.figures.forms.tables import TextCell, text_table
from fairweight.report.figures.inputs import (
    Row,
    explanation_table,
    optional_table,
    points,
    properties,
    property_label,
    why_unknown,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import EVERYONE, Absent, Spec, label, pair_title, selection
from fairweight.report.numbers import MINUS, count, signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

WORST = 10  # individuals whose intervals are drawn; the caption of PA-F1 says so
NO_PROPERTY = "the individuals have no property that differs between them"
SIDES = {"baseline": "before", "compressed": "after"}
TILT = "abs_tilt"  # the property that the paper is about

# --- points --------------------------------------------------------------------------------------


def _left_out(drawn: int, total: int) -> str:
    """What the title says when there are more individuals than points."""
    return selection(drawn, total, "individuals", "the most examples")


def _first(own: list[str], papers: Sequence[str], limit: int) -> tuple[list[str], str]:
    """Properties in the order of the paper, and what the title says where some have no room."""
    order = sorted(own, key=lambda p: papers.index(p) if p in papers else len(papers))
    cut = "" if len(own) <= limit else f"{limit} of {count(len(own))} properties"
    return order[:limit], cut


@figure("PA-F1")
def before_and_after(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "individuals", name, task)
    values = points(found, [])
    known = [v for v in values if v["shift_shrunk"] is not None]
    if not known:
        return Absent("no individual has an accuracy on both sides")
    worst = sorted(known, key=lambda v: v["shift_shrunk"])[:WORST]
    lost = count(sum(v["shift_shrunk"] < 0 for v in known))
    n = count(len(values))
    fits = scatter.fitted_lines(values, "baseline", "compressed")
    return {
        "title": pair_title(result, name, f"{n} individuals", _left_out(len(values), len(found))),
        "description": alt(n=n, lost=lost, known=count(len(known))),
        "data": {"values": values},
        "hconcat": [
            scatter.before_after(values, "", "as counted", fits=fits),
            scatter.before_after(values, "_shrunk", "shrunken", spans=worst),
        ],
    }


@figure("PA-F2")
def shift_by_property(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "individuals", name, task)
    own = properties(found)
    if not own:
        return Absent(NO_PROPERTY)
    kept, cut = _first(own, ("tilt", "ink", "distance"), 6)
    values = points(found, kept)
    words = [property_label(p) for p in kept]
    n = count(len(values))
    return {
        "title": pair_title(result, name, _left_out(len(values), len(found)), cut),
        "description": alt(n=n, properties=", ".join(words)),
        "data": {"values": values},
        "concat": [scatter.shift_panel(values, f"p{i}", said) for i, said in enumerate(words)],
        "columns": 2 if len(kept) in (2, 4) else 3,
    }


@figure("PA-F8")
def colored_by_property(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "individuals", name, task)
    own = properties(found)
    if not own:
        return Absent(NO_PROPERTY)
    kept, cut = _first(own, ("distance", "ink", TILT), 4)
    values = points(found, kept)
    words = [property_label(p) for p in kept]
    n = count(len(values))
    rows = []
    for i, said in enumerate(words):  # points beside the histogram in the same colours
        known = [v[f"p{i}"] for v in values if v[f"p{i}"] is not None]
        scale = {"scheme": "viridis", "domain": [min(known), max(known)]}
        color: Spec = {"title": said, "scale": scale}
        many = quantitative("n", title="individuals")
        more = {
            "color": quantitative("middle", **color, legend=None),
            "tooltip": [*numbers(".4g", low="from", high="to"), many],
        }
        bars = histogram(known, edges(known))
        both = [
            scatter.colored_before_after(values, f"p{i}", said, color),
            bar_panel(bars, {"title": said}, many, (260, 220), more),
        ]
        rows.append({"hconcat": both, "resolve": {"scale": {"color": "shared"}}})
    return {
        "title": pair_title(result, name, _left_out(len(values), len(found)), cut),
        "description": alt(n=n, properties=", ".join(words)),
        "data": {"values": values},
        "vconcat": rows,
        "resolve": {"scale": {"color": "independent"}},
    }


@figure("PA-F13")
def accuracy_by_tilt(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "individuals", name, task)
    own = properties(found)
    if not own:
        return Absent(NO_PROPERTY)
    chosen = TILT if TILT in own else own[0]
    values = points(found, [chosen])
    across = [v["p0"] for v in values if v["p0"] is not None]
    if not across:
        return Absent(NO_PROPERTY)
    lines: Values = []  # the ends of the fitted lines of every group and side
    fits = optional_table(result, "individual_fits", name)
    for row in [] if fits is None else records(fits[fits["property"] == chosen]):
        side, slope, start = row["side"], real(row["slope"]), real(row["intercept"])
        if missing(slope) or missing(start):
            continue
        group = EVERYONE if missing(row["group"]) else label(row["group"])
        lines += [
            {"side": side, "group": group, "p0": x, side: 100 * (start + slope * x)}
            for x in (min(across), max(across))
        ]
    scale = scatter.reach(values, *SIDES)
    words = property_label(chosen)
    facts = {"n": count(len(values)), "property": words, "lines": count(len(lines) // 2)}
    return {
        "title": pair_title(result, name, _left_out(len(values), len(found))),
        "description": alt(**facts),
        "data": {"values": values},
        "hconcat": [
            scatter.property_panel(values, [v for v in lines if v["side"] == side], side, words,
                           f"accuracy {word}, %", scale)
            for side, word in SIDES.items()
        ],
    }  # fmt: skip


# --- tilt ----------------------------------------------------------------------------------------


@figure("PA-F10")
def tilt_of_one(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "tilt_example", None, task)
    row = records(found)[0]
    if any(missing(row[key]) for key in ("width", "height", "slope", "intercept")):
        return Absent("the image has no foreground through which a line could be laid")
    tilt, example = signed(real(row["slope"]), 2), shown(row["example_id"], 40)
    return {
        "title": f"example {example}, tilt {tilt}",
        "description": alt(example=example, tilt=tilt),
        "hconcat": [tilted_image(row, line=False), tilted_image(row, line=True)],
        "spacing": 24,
    }


@figure("PA-F11")
def tilt_by_group(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 6
    found = explanation_table(result, "individuals", name, task)
    own = [t for t in ("tilt", TILT) if t in found.columns and found[t].notna().any()]
    if not own:
        return Absent("the individuals have no tilt")
    values = points(found, own)
    sizes: dict[str, int] = {}
    for v in values:
        sizes[v["group"]] = sizes.get(v["group"], 0) + 1
    groups = sorted(sizes)[:limit]
    said = "; ".join(f"{group}: {count(sizes[group])}" for group in groups)
    n_groups = count(len(sizes))
    cut = "" if len(groups) == len(sizes) else f"; {count(limit)} of {n_groups} groups"
    words = [property_label(tilt) for tilt in own]
    y = quantitative("share", title="% of the group")
    tooltip = [
        *names("group"),
        *numbers(".3g", low="from", high="to"),
        quantitative("n", title="individuals"),
        *numbers(".1f", share="%"),
    ]
    more = {"color": scatter.group_colors(values), "tooltip": tooltip}
    panels = []
    for group in groups:
        last = group == groups[-1]
        for i, tilt in enumerate(words):
            known = [v for v in values if v[f"p{i}"] is not None]
            here = [v[f"p{i}"] for v in known if v["group"] == group]
            bars = [
                bar | {"group": group, "share": 100 * bar["n"] / max(len(here), 1)}
                for bar in histogram(here, edges([v[f"p{i}"] for v in known]))
            ]
            x = {
                "title": f"{tilt}, mean per individual" if last else None,
                "axis": {"tickCount": 6, "labels": last},
            }
            panels.append(bar_panel(bars, x, y, (280, 90), more, opacity=0.8))
    return {
        "title": f"individuals in {said}{cut}",
        "description": alt(tilts=" and ".join(words), n=count(len(values)), groups=n_groups),
        "concat": panels,
        "columns": len(own),
    }


# --- fitted lines --------------------------------------------------------------------------------


@figure("PA-T1")
def fit_coefficients(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 40
    found = explanation_table(result, "individual_fits", name, task)
    rows: dict[tuple[str, str | None], list[Row]] = {}
    for row in records(found):
        rows.setdefault((str(row["property"]), text(row["group"])), []).append(row)
    keys = sorted(rows, key=lambda key: key[0] != TILT)
    kept = keys[:limit]
    several = len({prop for prop, _ in keys}) > 1
    cells: list[TextCell] = []
    for prop, group in kept:
        who = EVERYONE if group is None else label(group)
        heading = f"{property_label(prop)}: {who}" if several else who
        cells.append(TextCell(heading, "n", count(rows[prop, group][0]["n"])))
        for row in rows[prop, group]:
            side, why = SIDES[str(row["side"])], why_unknown(row)
            if missing(row["slope"]):
                parts = ("intercept", "slope")
                cells += [TextCell(heading, f"{side} {part}", "×", why=why) for part in parts]
                continue
            start, slope = (_with_error(row[k], row[f"{k}_se"]) for k in ("intercept", "slope"))
            steep = abs(real(row["slope"])) > 2 * real(row["slope_se"])
            r2 = "×" if missing(row["r2"]) else f"{real(row['r2']):.2f}"
            cells += [
                TextCell(heading, f"{side} intercept", start, why=why),
                TextCell(heading, f"{side} slope", slope, strong=steep, why=why),
                TextCell(heading, f"R² {side}", r2),
            ]
    columns = ["n", *(f"{w} {what}" for w in SIDES.values() for what in ("intercept", "slope"))]
    columns += [f"R² {word}" for word in SIDES.values()]
    first = property_label(kept[0][0])
    chosen = selection(len(kept), len(keys), "lines", "the first names")
    on = "properties of them" if several else first
    return {
        "title": pair_title(result, name, "" if several else f"on {first}", chosen),
        "description": alt(n=count(len(kept)), properties=on),
        **text_table(cells, columns, step=124),
    }


def _with_error(number: Any, error: Any) -> str:
    """A coefficient and its standard error, with two digits of the error at least.

    >>> _with_error(-0.0251, 0.01), _with_error(-7.6e-5, 1.9e-5), _with_error(0.9, float("nan"))
    ('−0.025 ± 0.010', '−0.000076 ± 0.000019', '0.900')
    """
    known = not missing(error) and real(error) > 0
    decimals = max(3, 1 - math.floor(math.log10(real(error)))) if known else 3
    said = f"{real(number):.{decimals}f}".replace("-", MINUS)
    return said if missing(error) else f"{said} ± {real(error):.{decimals}f}"
