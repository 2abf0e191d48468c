"""PA: figures of Paganini (2020) about classes: sparsity, techniques, frontiers, a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.result import at_task, records
from fairweight.base.wording import counted, missing, real, shown, text
from fairweight.report.figures.forms.bars import bar_panel, class_bars, edges, histogram
from fairweight.report.figures.forms.encoding import DASHED, colors, diagonal, layer, quantitative
from fairweight.report.figures.forms.lines import class_panel, sparsity_panel
from fairweight.report.figures.forms.scatter import Axis, objective_plane
from fairweight.report.figures.forms.tables import TextCell, share_map, text_table
from fairweight.report.figures.inputs import (
    NO_LEVELS,
    Row,
    explanation_table,
    member_values,
    pairs_of,
    point,
    sparsity_levels,
    technique_levels,
    treatments,
    why_unknown,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import (
    AMBER,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    Absent,
    Spec,
    label,
    labels,
    largest,
    selection,
    titled,
    value,
)
from fairweight.report.numbers import count, is_share, number, p_value

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

# --- classes against sparsity --------------------------------------------------------------------


@figure("PA-F3a")
def class_accuracy(result: AuditResult, name: str, task: Name) -> Drawn:
    most_classes, most_panels = 40, 16
    few = 6  # panels that are drawn large
    levels = technique_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    # Means over members: sweeps, which compare nothing, have them too.
    seeds = at_task(result.per_seed, result, task)
    own = seeds[(seeds["metric"] == "recall") & (seeds["by"] == "class") & seeds["value"].notna()]
    found = own.groupby(["variant", "class"], sort=False)["value"].mean()
    means = {
        (str(v), str(c)): float(mean)
        for (v, c), mean in zip(found.index.tolist(), found.tolist(), strict=True)
    }
    classes = sorted({c for _, c in means}, key=lambda c: result.classes.index(c))
    if not classes:
        return Absent("there is no accuracy by class")
    limits = pairs_of(result, list(levels), "recall", "class", task)
    before = {c: means[result.baseline, c] for c in classes if (result.baseline, c) in means}
    falls = {
        c: [abs(means[v, c] - start) for v in levels if (v, c) in means]
        for c, start in before.items()
    }
    kept = largest(classes, [max(falls.get(c, []), default=0.0) for c in classes], most_classes)
    texts = dict(zip(kept, labels(kept), strict=True))
    techniques = list(dict.fromkeys(level.method for level in levels.values()))
    drawn = techniques[:most_panels]
    panels = []
    for technique in drawn:
        values: list[Row] = []
        for c, text_ in texts.items():
            start = value(before.get(c), 100)
            if start is not None:  # every line begins with the unpruned accuracy
                at_zero = {"class": text_, "sparsity": 0.0, "value": start, "before": start}
                values.append({**at_zero, "low": None, "high": None, "n": None})
            for variant, level in levels.items():
                if level.method != technique or (variant, c) not in means:
                    continue
                both = limits.get(variant, {}).get(c)
                row = {} if both is None else both[0]
                values.append(
                    {
                        "class": text_,
                        "sparsity": level.sparsity,
                        "value": value(means[variant, c], 100),
                        "before": start,
                        "low": value(row.get("compressed_low"), 100),
                        "high": value(row.get("compressed_high"), 100),
                        "n": value(row.get("n")),
                    }
                )
        panels.append(class_panel(label(technique), values, small=len(drawn) > few))
    starts = [before[c] for c in kept if c in before]
    between = f", which lies between {min(starts):.1%} and {max(starts):.1%}" if starts else ""
    return {
        "title": titled(
            f"{count(len(kept))} classes",
            selection(len(kept), len(classes), "classes"),
            selection(len(panels), len(techniques), "techniques", "the first names"),
        ),
        "description": alt(
            n=count(len(kept)),
            techniques=count(len(panels)),
            range=between,
        ),
        "concat": panels,
        "columns": 2 if len(panels) in (2, 4) else 3 if len(panels) <= few else 4,
        "resolve": {"scale": {"y": "shared"}},
    }


@figure("PA-F3b")
def total_accuracy(result: AuditResult, name: str, task: Name) -> Drawn:
    return _technique_curves(result, task, "accuracy", "accuracy, %", "an accuracy")


@figure("PA-F3c")
def class_gap(result: AuditResult, name: str, task: Name) -> Drawn:
    title = "best minus worst class, points"
    return _technique_curves(result, task, "class_gap", title, "a gap between classes")


def _technique_curves(
    result: AuditResult, task: Name, metric: str, title: str, words: str
) -> Drawn:
    """One metric of whole models against sparsity: a line per technique, a panel per treatment."""
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    treated = treatments(result, levels)
    points: dict[str, list[Row]] = {}
    for own, rows in pairs_of(result, list(levels), metric, "overall", task).items():
        for row, method in rows.values():
            if not missing(row["compressed"]):
                made = point(row, levels[own], this=False, method=method)
                points.setdefault(treated.get(own, ""), []).append(made)
    if not points:
        return Absent(f"no variant with a sparsity has {words}")
    methods = [level.method for level in levels.values()]
    lines = [label(method) for method in methods]
    size = {"width": 480 if len(points) == 1 else 330, "height": 300}
    panels = []
    for treatment, own_points in points.items():
        here = {v: level for v, level in levels.items() if treated.get(v, "") == treatment}
        ticks = member_values(result, here, metric, task)
        panel = sparsity_panel(own_points, ticks, title, lines)
        panels.append({**panel, **size, **({"title": treatment} if treatment else {})})
    n = count(sum(len(own_points) for own_points in points.values()))
    techniques = counted(len(set(methods)), "technique")
    several = f", in a panel for each of {count(len(panels))} treatments of the weights"
    side_by_side = {"hconcat": panels, "resolve": {"scale": {"y": "shared", "x": "shared"}}}
    return {
        "title": f"{n} variants, {techniques} against {label(result.baseline)}",
        "description": alt(
            words=words.removeprefix("an ").removeprefix("a ").capitalize(),
            n=n,
            techniques=techniques,
            panels=several if len(panels) > 1 else "",
        ),
        **(panels[0] if len(panels) == 1 else side_by_side),
    }


@figure("PA-F6")
def class_sizes(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 60
    data = at_task(result.data, result, task)
    data = data[data["by"] == "class"]
    split = "train" if (data["split"] == "train").any() else "test"
    place = {name: i for i, name in enumerate(result.classes)}
    rows = sorted(
        records(data[data["split"] == split]),
        key=lambda row: place.get(str(row["class"]), len(place)),
    )
    if not rows:
        return Absent("the data have no classes")
    # The baseline's accuracy over its members, so that sweeps, which compare nothing, have it too.
    seeds = at_task(result.per_seed, result, task)
    own = seeds[(seeds["metric"] == "recall") & (seeds["by"] == "class")]
    own = own[own["variant"] == result.baseline]
    before = {str(c): float(mean) for c, mean in own.groupby("class")["value"].mean().items()}
    sizes = [float(row["n"]) for row in rows]
    kept = largest(rows, sizes, limit)
    values = [
        {
            "class": text_,
            "n": value(row["n"]),
            "share": value(row["share"], 100),
            "before": value(before.get(str(row["class"])), 100),
        }
        for text_, row in zip(labels([row["class"] for row in kept]), kept, strict=True)
    ]
    words = {"train": "training", "test": "test"}[split]
    chosen = selection(len(kept), len(rows), "classes", "the most examples")
    return {
        "title": titled(f"{words} data", chosen),
        "description": alt(
            n=count(len(kept)),
            split=words,
            least=count(min(sizes)),
            most=count(max(sizes)),
        ),
        **class_bars(values),
    }


# --- frontiers -----------------------------------------------------------------------------------


def _choice(result: AuditResult, least: int) -> tuple[list[Axis], list[Row]]:
    """Variants with their values of at least so many objectives, which are the axes."""
    found = explanation_table(result, "choice_values")
    ranked = explanation_table(result, "choice")
    rows = [row for row in records(found) if not missing(row["aim"])]
    terms = {str(row["term"]): row for row in rows}
    if len(terms) < least:
        raise Absent(f"there are fewer than {'two' if least == 2 else 'three'} objectives")
    # Sparsity across and a gap of classes upwards, as in the paper; else as they were named.
    order = {"sparsity": 0, "class_gap": 1, "class_shortfall": 1}
    in_order = sorted(
        terms.values(), key=lambda row: order.get(text(row["metric"]) or str(row["term"]), 2)
    )
    aims = {"max": " (higher is better)", "min": " (lower is better)"}
    axes = []
    for i, row in enumerate(in_order):
        unit = ", %" if is_share(str(row["metric"])) else ""
        title = f"{shown(row['term'])}{unit}{aims.get(str(row['aim']), '')}"
        axes.append(Axis(f"o{i}", str(row["term"]), title))
    points: dict[str, Row] = {
        str(row["variant"]): {
            "variant": label(row["variant"]),
            "standing": text(row["frontier"]) or "does not qualify",
            "on": row["frontier"] == "frontier",
            "chosen": bool(row["chosen"]),
        }
        for row in records(ranked)
    }
    fields = {axis.term: axis.field for axis in axes}
    for row in rows:
        scale = 100.0 if is_share(str(row["metric"])) else 1.0
        at, field = points[str(row["variant"])], fields[str(row["term"])]
        for end, column in (("", "value"), ("_low", "low"), ("_high", "high")):
            at[f"{field}{end}"] = value(row[column], scale)
    return axes, list(points.values())


def _frontier_title(points: list[Row]) -> str:
    """How many variants there are, and how many are on the frontier."""
    on = sum(at["on"] for at in points)
    chosen = [at["variant"] for at in points if at["chosen"]]
    ring = f"; ring: chosen, {chosen[0]}" if chosen else ""
    return f"{len(points)} variants, {on} on the frontier (crosses){ring}"


@figure("PA-F4a")
def frontier_of_two(result: AuditResult, name: str, task: Name) -> Drawn:
    axes, points = _choice(result, 2)
    standings = {
        "frontier": BLUE, "within noise": SKY, "dominated": GREY, "does not qualify": AMBER,
    }  # fmt: skip
    held = {
        name: ink for name, ink in standings.items() if any(at["standing"] == name for at in points)
    }
    title = _frontier_title(points)
    return {
        "title": title,
        "description": alt(title=title, across=axes[0].title, up=axes[1].title),
        **objective_plane(points, axes, colors("standing", held)),
    }


@figure("PA-F4b")
def frontier_of_three(result: AuditResult, name: str, task: Name) -> Drawn:
    axes, points = _choice(result, 3)
    across, up, third = axes[:3]
    color = quantitative(
        third.field,
        title=third.title,
        scale={"range": [ORANGE, BLUE], "interpolate": "lab", "zero": False},
        legend={"gradientLength": 180, "tickCount": 4, "titleLimit": 300},
    )
    title = _frontier_title(points)
    return {
        "title": title,
        "description": alt(title=title, across=across.title, up=up.title, third=third.title),
        **objective_plane(points, axes, color),
    }


# --- the model of class accuracies ---------------------------------------------------------------

PAPER = "ols-hac"
OTHERS = {
    "ols-two-way": "errors by lineage, class",
    "ols-cluster": "errors by lineage",
    "ols-linear": "linear terms only",
    "glm-cluster": "binomial, log odds",
}


@figure("PA-T2")
def coefficients(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 80
    found = explanation_table(result, "class_coefficients", None, task)
    rows = {(str(row["fit"]), str(row["term"])): row for row in records(found)}
    terms = list(dict.fromkeys(term for _, term in rows))
    kept = terms[:limit]
    cells: list[TextCell] = []
    # A term of the formula without what its levels say anyway: technique[T.l1] is l1.
    short = [re.sub(r"\w+\[T\.(.*?)\]", r"\1", term) for term in kept]
    heads = labels([term.replace("np.exp", "exp").replace(":", " × ") for term in short])
    for text_, term in zip(heads, kept, strict=True):
        paper = rows.get((PAPER, term))
        cautious = ("ols-two-way", "ols-cluster")
        decides = next((fit for fit in cautious if (fit, term) in rows), PAPER)
        row = rows.get((decides, term))
        strong = row is not None and (real(row["low"]) > 0 or real(row["high"]) < 0)
        if paper is not None:
            cells.append(_coefficient(text_, "coefficient", paper, strong))
            if not missing(paper["coefficient"]):
                p, one_tailed = real(paper["p_value"]), real(paper["p_one_tailed"])
                cells.append(TextCell(text_, "t", number(real(paper["statistic"]))))
                cells.append(TextCell(text_, "p", p_value(p, bare=True)))
                if not missing(one_tailed):
                    tail = {"greater": " (> 0)", "less": " (< 0)"}.get(str(paper["tail"]), "")
                    said = p_value(one_tailed, bare=True) + tail
                    cells.append(TextCell(text_, "p, one-tailed", said))
        for fit, column in OTHERS.items():
            row = rows.get((fit, term))
            if row is not None:
                cells.append(_coefficient(text_, column, row, strong and fit == decides))
    present = {cell.column for cell in cells}
    columns = ["coefficient", "t", "p", "p, one-tailed", *OTHERS.values()]
    beyond = sum(cell.strong for cell in cells if cell.column == "coefficient")
    chosen = selection(len(kept), len(terms), "terms", "the first places")
    title = "accuracies of classes"
    fits = result.explanations.get("class_fits")
    for row in [] if fits is None else records(fits[fits["fit"] == PAPER])[:1]:
        title = titled(
            f"n {count(row['n'])}",
            "" if missing(row["r2"]) else f"R² {real(row['r2']):.3f}",
            "" if missing(row["n_roots"]) else f"{count(row['n_roots'])} lineages",
        )
    return {
        "title": titled(title, chosen),
        "description": alt(n=count(len(kept)), beyond=count(beyond)),
        **text_table(cells, [c for c in columns if c in present], step=170),
    }


def _coefficient(heading: str, column: str, row: Row, strong: bool) -> TextCell:
    why = why_unknown(row)
    if missing(row["coefficient"]):
        return TextCell(heading, column, "×", why=why)
    said = number(real(row["coefficient"]))
    if not (missing(row["low"]) or missing(row["high"])):
        said += f" [{number(real(row['low']))}, {number(real(row['high']))}]"
    return TextCell(heading, column, said, strong=strong, why=why)


BINS = 25
MEASURED = "measured accuracy of the class, %"


def _fit(result: AuditResult) -> tuple[NDArray[np.float64], ...]:
    """Measured and predicted accuracy and the residual of every row, in percent and points."""
    rows = explanation_table(result, "class_rows")
    fits = explanation_table(result, "class_residuals")
    place = fits["row"].to_numpy(dtype=int)
    target = 100 * rows["accuracy"].to_numpy(dtype=float)[place]
    predicted, residual = (100 * fits[c].to_numpy(dtype=float) for c in ("predicted", "residual"))
    known = np.isfinite(target) & np.isfinite(predicted) & np.isfinite(residual)
    if not known.any():
        raise Absent("no accuracy of a class has a prediction")
    return target[known], predicted[known], residual[known]


@figure("PA-F14")
def predicted_against_target(result: AuditResult, name: str, task: Name) -> Drawn:
    target, predicted, _ = _fit(result)
    low, high = min(0.0, float(predicted.min())), max(100.0, float(predicted.max()))
    at = (np.linspace(0, 100, BINS + 1), np.linspace(low, high, BINS + 1))
    x, y = quantitative("x", title=MEASURED), quantitative("y", title="predicted, %")
    n = count(len(target))
    return {
        "title": f"{n} accuracies of classes",
        "description": alt(n=n),
        "width": 360,
        "height": 320,
        "layer": [share_map(target, predicted, at, (x, y)), diagonal(x, y, (0, 100))],
    }


@figure("PA-F15")
def residuals(result: AuditResult, name: str, task: Name) -> Drawn:
    target, _, left = _fit(result)
    at_x, at_y = np.linspace(0, 100, BINS + 1), edges(left.tolist(), 40)
    title = "residual, points"
    bars = bar_panel(
        histogram(left.tolist(), at_y),
        {"title": title},
        quantitative("n", title="accuracies of classes"),
        (280, 260),
        {},
        color=BLUE,
        opacity=0.8,
    )
    column = np.clip(np.searchsorted(at_x, target, side="right") - 1, 0, BINS - 1)
    medians: list[Row] = [
        {"x": float((at_x[i] + at_x[i + 1]) / 2), "y": float(np.median(left[column == i]))}
        for i in np.unique(column)
    ]
    x, y = quantitative("x", title=MEASURED), quantitative("y", title=title)
    against: Spec = {
        "width": 280,
        "height": 260,
        "layer": [
            share_map(target, left, (at_x, at_y), (x, y)),
            layer("rule", {"y": y}, values=[{"y": 0}], color=GREY, strokeDash=DASHED),
            layer("line", {"x": x, "y": y}, values=medians, color=ORANGE, strokeWidth=2),
        ],
    }
    n, spread = count(len(left)), f"{float(np.std(left)):.1f}"
    return {
        "title": f"{n} residuals, standard deviation {spread} points",
        "description": alt(n=n, spread=spread),
        "hconcat": [bars, against],
    }
