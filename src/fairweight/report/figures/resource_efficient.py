"""SG: figures of Sinha and Groover. Tables before and after, by class and by group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, records, select
from fairweight.base.wording import NOTHING, missing, real
from fairweight.report.figures.forms import intervals
from fairweight.report.figures.forms.encoding import colors, layer, quantitative
from fairweight.report.figures.forms.lines import sparsity_panel
from fairweight.report.figures.forms.tables import change_table
from fairweight.report.figures.inputs import (
    NO_LEVELS,
    Pair,
    Row,
    direction,
    member_values,
    missing_note,
    pairs_of,
    point,
    retraining_band,
    side_value,
    size_note,
    sparsity_levels,
    why_missing,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import (
    BLUE,
    GREY,
    ORANGE,
    Absent,
    Spec,
    label,
    labels,
    largest,
    largest_first,
    models,
    pair_title,
    selection,
    titled,
    value,
    variants_title,
)
from fairweight.report.numbers import MINUS, axis_of, count, is_share, label_of, signed
from fairweight.tables.names import column_of

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

NO_BAND: dict[str, float | None] = {"floor_low": None, "floor_high": None}


def _largest_shift(rows: Iterable[Row]) -> float:
    """The largest change among some rows."""
    known = [abs(real(row["shift"])) for row in rows if not missing(row["shift"])]
    return max(known, default=0.0)


# --- rates of classes ----------------------------------------------------------------------------


@figure("SG-F1")
def fpr_per_class(result: AuditResult, name: str, task: Name) -> Drawn:
    return _class_rates(result, name, task, "fpr", "false positive rate", zero=True)


@figure("SG-F2")
def precision_per_class(result: AuditResult, name: str, task: Name) -> Drawn:
    return _class_rates(result, name, task, "precision", "precision", zero=False)


def _class_rates(
    result: AuditResult, name: str, task: Name, metric: str, words: str, *, zero: bool
) -> Drawn:
    """The rate of every class in the baseline and the variant, with intervals."""
    limit = 40
    found = {
        str(c): both
        for c, both in pairs_of(result, (name,), metric, "class", task)[name].items()
        if not (missing(both[0]["baseline"]) and missing(both[0]["compressed"]))
    }
    if not found:
        return Absent(f"there is no {words} by class")
    # How far a rate moved; what became undefined comes first, because it must be seen.
    moves = [value(real(row["compressed"]) - real(row["baseline"])) for row, _ in found.values()]
    sizes = [float("inf") if m is None else abs(m) for m in moves]
    kept = largest_first(list(found), sizes, limit)
    values: list[Row] = []
    for text, c in zip(labels(kept), kept, strict=True):
        before = {"class": text, "model": label(result.baseline), **NO_BAND}
        values.append(before | side_value(found[c], "baseline"))
        after = {"class": text, "model": label(name)} | retraining_band(found[c])
        values.append(after | side_value(found[c], "compressed"))
    higher = count(sum(found[c][0]["compressed"] > found[c][0]["baseline"] for c in kept))
    chosen = selection(len(kept), len(found), "classes")
    axis = "FPR, %" if metric == "fpr" else f"{words}, %"
    tooltip = intervals.value_tooltip(("class", "model"), ".2f", "%")
    form = intervals.PairedRows("class", "model", models(result, name), axis, tooltip, zero=zero,
                      said={"type": "nominal"})  # fmt: skip
    return {
        "title": pair_title(result, name, chosen, size_note(values, "class"), missing_note(values)),
        "description": alt(n=count(len(kept)), higher=higher),
        "width": 420,
        "height": {"step": 12},
        "data": {"values": values},
        "layer": intervals.paired_rows(values, form),
    }


@figure("SG-F5")
def class_gaps(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 20
    if len(result.classes) != 2:
        return Absent("the labels are not binary")
    # The positive class first; without one, in the audit's order.
    classes = sorted(result.classes, key=lambda c: c != result.positive)
    found = {
        metric: {
            own: rows
            for own, rows in pairs_of(result, result.variants, metric, "class", task).items()
            if set(classes) <= set(rows)
        }
        for metric in ("recall", "precision")
    }
    every = [v for v in result.variants if any(v in rows_of for rows_of in found.values())]
    importance = [
        float("inf")
        if v == name
        else _largest_shift(row for of in found.values() for row, _ in of.get(v, {}).values())
        for v in every
    ]
    kept = largest(every, importance, limit)
    order = labels([result.baseline, *kept])
    first, second = map(label, classes)
    color = colors("class", {first: ORANGE, second: BLUE})
    tooltip = intervals.value_tooltip(("model", "class"), ".2f", "%")
    width = 230
    panels: list[Spec] = []
    drawn: list[Row] = []
    for metric, rows_of in found.items():
        values: list[Row] = []
        gaps: list[Row] = []  # between the two classes, written at the right
        # The baseline as the variant of this section is compared with it.
        rows = [(order[0], name, False)] if name in rows_of else []
        rows += [(order[i], v, True) for i, v in enumerate(kept, 1) if v in rows_of]
        for model, v, compressed in rows:
            for c in classes:
                both = rows_of[v][c]
                here = {"model": model, "class": label(c), "this": compressed and v == name}
                here |= retraining_band(both) if compressed else NO_BAND
                values.append(here | side_value(both, "compressed" if compressed else "baseline"))
            one, other = (own["value"] for own in values[-2:])
            known = one is not None and other is not None
            gaps.append({"model": model, "gap": signed(one - other, 1) if known else NOTHING})
        if not values:
            continue
        drawn += values
        form = intervals.PairedRows(
            "model", "class", color, f"{metric}, %", tooltip, order, size=45, limit=width
        )
        y, offset = form.place["y"], form.place["yOffset"]
        at = {"y": y, "yOffset": offset, "x": quantitative("value", **form.along)}
        ring = layer("point", at, where="isValid(datum.value) && datum.this", size=110, color=GREY,
                     strokeWidth=1.5)  # fmt: skip
        right = {"x": {"value": width + 44}}
        heading = {"y": {"value": -6}, **right, "text": {"field": "text"}}
        written = {"y": y, **right, "text": {"field": "gap"}}
        panels.append(
            {
                "width": width,
                "height": {"step": 13},
                "data": {"values": values},
                "layer": [
                    *intervals.paired_rows(values, form, over=[ring]),
                    layer("text", heading, values=[{"text": "gap"}], align="right", opacity=0.8),
                    layer("text", written, values=gaps, align="right"),
                ],
            }
        )
    if not panels:
        return Absent("there is no recall or precision of both classes")
    return {
        "title": titled(
            f"{first} minus {second}",
            f"ring: {label(name)}",
            size_note(drawn, "value"),
            selection(len(kept), len(every), "variants"),
            missing_note(drawn),
        ),
        "description": alt(first=first, second=second, n=count(len(kept))),
        "hconcat": panels,
        "spacing": 60,
    }


# --- against sparsity ----------------------------------------------------------------------------


@figure("SG-F3")
def accuracy_and_auc(result: AuditResult, name: str, task: Name) -> Drawn:
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    lines = [label(level.method) for level in levels.values()]
    panels: list[Spec] = []
    blank: dict[str, str] = {}
    for metric in ("accuracy", "auc"):
        words = label_of(metric)
        points: list[Row] = []
        for own, rows in pairs_of(result, list(levels), metric, "overall", task).items():
            for row, method in rows.values():
                if missing(row["compressed"]):
                    blank[words] = why_missing(row)
                else:
                    points.append(point(row, levels[own], this=own == name, method=method))
        if points:
            ticks = member_values(result, levels, metric, task)
            panels.append(sparsity_panel(points, ticks, f"{words}, %", lines))
    if not panels:
        return Absent("no variant with a sparsity has an accuracy or an AUC")
    said = [f"no {words} ({why})" for words, why in blank.items()]
    found = [level.sparsity for level in levels.values()]
    n = count(len(levels))
    return {
        "title": titled(
            f"{n} variants against {label(result.baseline)}",
            f"ring: {label(name)}",
            f"n {count(result.n_examples)}",
            *said,
        ),
        "description": alt(n=n, low=min(found), high=max(found)),
        "concat": panels,
        "columns": 2,
    }


# --- rates of groups -----------------------------------------------------------------------------


@figure("SG-F4")
def errors_per_group(result: AuditResult, name: str, task: Name) -> Drawn:
    positive = result.positive if len(result.classes) == 2 else None
    of = "mean over classes" if positive is None else f"positive: {label(positive)}"
    rates = {"fpr": (label_of("fpr"), ORANGE), "fnr": (label_of("fnr"), BLUE)}
    words = "False positive and false negative rate"
    form = intervals.GroupPanels(
        rates, words, f"rate, % ({of})", 100.0, ".2f", zero=True, top=100.0
    )
    return _group_rates(result, name, task, form)


@figure("SG-F6")
def ppv_ratio_per_group(result: AuditResult, name: str, task: Name) -> Drawn:
    ratio = {"ppv_ratio": ("PPV ratio", BLUE)}
    form = intervals.GroupPanels(ratio, "PPV ratio", "PPV ratio", 1.0, ".3f", zero=False, top=1.0)
    return _group_rates(result, name, task, form)


def _group_rates(result: AuditResult, name: str, task: Name, form: intervals.GroupPanels) -> Drawn:
    """Every metric of every group in the baseline and all variants; `name` is ringed."""
    most_panels, most_models = 12, 16
    # Groups of single columns; intersections only where there is nothing else.
    columns = result.single_columns or result.groupings
    table: dict[str, dict[tuple[str, str], Pair]] = {}  # group → (variant, metric) → rows
    for metric in form.metrics:
        rows_of = pairs_of(result, result.variants, metric, "group", task)
        named = {str(group) for rows in rows_of.values() for group in rows}
        wanted = {group for group in named if column_of(group, result.groupings) in columns}
        for variant, rows in rows_of.items():
            for group, both in rows.items():
                if group in wanted:
                    table.setdefault(str(group), {})[variant, metric] = both
    table = {
        group: found
        for group, found in table.items()
        if not all(
            missing(row["baseline"]) and missing(row["compressed"]) for row, _ in found.values()
        )
    }
    if not table and not result.groupings:
        return Absent("there are no groups")
    if not table:
        for by, metric in product(("group", "grouping", "overall"), form.metrics):
            known = records(at_task(select(result, name, metric, by), result, task))
            if known:
                return Absent(why_missing(known[0]))
        return Absent(f"there is no {form.words} by group")
    # The variants that fit: those that change most, and the one that the figure is about.
    importance = [
        float("inf")
        if v == name
        else _largest_shift(
            row for found in table.values() for (own, _), (row, _) in found.items() if own == v
        )
        for v in result.variants
    ]
    variants = largest(list(result.variants), importance, most_models - 1)
    changes = [_largest_shift(row for row, _ in found.values()) for found in table.values()]
    groups = largest(list(table), changes, most_panels)
    order = labels([result.baseline, *variants])
    values: list[Row] = []
    for text, group in zip(labels(groups), groups, strict=True):
        # The number of examples behind each metric, once where they are the same.
        own = [table[group].get((name, metric)) for metric in form.metrics]
        size = "n " + " / ".join(dict.fromkeys(count(both[0]["n"]) for both in own if both))
        for (variant, metric), both in table[group].items():
            here = {"group": text, "size": size, "metric": form.metrics[metric][0]}
            if variant == name:  # the baseline as this variant is compared with it
                before: Row = {**here, "model": order[0], "place": 0, "this": False, **NO_BAND}
                values.append(before | side_value(both, "baseline", form.scale))
            if variant in variants:
                place = 1 + variants.index(variant)
                after = {**here, "model": order[place], "place": place, "this": variant == name}
                after |= retraining_band(both, form.scale)
                values.append(after | side_value(both, "compressed", form.scale))
    return {
        "title": variants_title(
            result,
            len(variants),
            f"ring: {label(name)}",
            selection(len(groups), len(table), "groups"),
            selection(len(variants), len(result.variants), "variants"),
            missing_note(values),
        ),
        "description": alt(n=count(len(groups)), variants=count(len(variants))),
        **intervals.group_panels(values, form, order),
    }


# --- the table -----------------------------------------------------------------------------------

SIZE, FLOOR = "n", "retraining, up to"


@dataclass(frozen=True)
class MetricLine:
    """One line of the table: a metric of one class, or of all examples, in every variant."""

    metric: str
    heading: str
    found: dict[str, Pair]  # by variant


@figure("SG-T1")
def before_and_after(result: AuditResult, name: str, task: Name) -> Drawn:
    most_classes, most_variants = 12, 6
    by_class = pairs_of(result, (name,), "recall", "class", task)[name]
    if not by_class:
        return Absent("there are no rates by class")
    changes = [_largest_shift([row]) for row, _ in by_class.values()]
    classes = largest_first([str(c) for c in by_class], changes, most_classes)
    # The variants that fit: those whose accuracy changes most, and that of the section.
    rows_of = pairs_of(result, result.variants, "accuracy", "overall", task)
    importance = [
        float("inf") if v == name else _largest_shift(row for row, _ in rows.values())
        for v, rows in rows_of.items()
    ]
    chosen = largest(list(rows_of), importance, most_variants)
    lines: list[MetricLine] = []
    for metric in ("accuracy", "auc", "kappa"):
        overall = pairs_of(result, chosen, metric, "overall", task)
        known = {v: held[None] for v, held in overall.items() if None in held}
        if any(not missing(row["baseline"]) for row, _ in known.values()):
            lines.append(MetricLine(metric, axis_of(metric), known))
    for metric in ("fpr", "precision", "recall"):
        rows_of = pairs_of(result, chosen, metric, "class", task)
        for c in classes:
            known = {v: held[c] for v, held in rows_of.items() if c in held}
            if known:
                lines.append(MetricLine(metric, f"{label_of(metric)} of {c}, %", known))
    columns = labels([result.baseline, *chosen])
    rows = labels([line.heading for line in lines])
    floors = any(not missing(both[0]["noise_floor"]) for x in lines for both in x.found.values())
    cells: list[dict[str, Any]] = []
    for row, line in zip(rows, lines, strict=True):
        first = line.found.get(name) or next(iter(line.found.values()))
        cells.append({"row": row, "column": SIZE, "text": count(first[0]["n"]), "why": None})
        cells.append({"row": row, "column": columns[0], **_cell(first, "baseline")})
        for column, own in zip(columns[1:], chosen, strict=True):
            if own in line.found:
                here = {"row": row, "column": column, "this": own == name}
                cells.append(here | _cell(line.found[own], "compressed"))
        if floors:
            # The largest of the variants: they differ only where their numbers of members do.
            every = [real(own["noise_floor"]) for own, _ in line.found.values()]
            floor = max((f for f in every if not missing(f)), default=None)
            share = is_share(line.metric)
            said = NOTHING if floor is None else f"{100 * floor:.1f}" if share else f"{floor:.3f}"
            cells.append({"row": row, "column": FLOOR, "text": said, "why": None})
    worse = sum(str(cell.get("ink", "")).startswith("worse") for cell in cells)
    return {
        "title": variants_title(
            result,
            len(chosen),
            selection(len(classes), len(by_class), "classes"),
            selection(len(chosen), len(result.variants), "variants"),
            missing_note(cells),
        ),
        "description": alt(
            n=count(len(lines)),
            variants=count(len(chosen)),
            classes=count(len(classes)),
            worse=count(worse),
        ),
        **change_table(cells, rows, [SIZE, *columns, *([FLOOR] if floors else [])]),
    }


def _cell(both: Pair, side: str) -> dict[str, Any]:
    """A number with its interval, and whether the limits of the paired shift exclude 0."""
    row, method = both
    if missing(row[side]):
        return {"text": "×", "why": why_missing(row)}
    known = method is not None and not missing(method[f"{side}_low"])
    limits = method if known and method is not None else row
    scale, form = (100.0, ".1f") if is_share(str(row["metric"])) else (1.0, ".3f")
    said = format(scale * real(row[side]), form)
    low, high = real(limits[f"{side}_low"]), real(limits[f"{side}_high"])
    if not (missing(low) or missing(high)):
        said += f" [{scale * low:{form}}, {scale * high:{form}}]"
    told = direction(row)
    ink = None
    if side == "compressed" and told:
        better = "better" if (told > 0) != (row["metric"] == "fpr") else "worse"
        beyond = method is not None and direction(method) == told
        ink = f"{better}, {'the method' if beyond else 'these models'}"
    return {"text": said.replace("-", MINUS), "why": None, "ink": ink}
