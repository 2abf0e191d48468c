"""SS: figures of Blakeney et al. (2021). How errors of classes move, and representations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.result import at_task, is_ok, of_scope, records, select
from fairweight.auditing.schema import Status
from fairweight.base.wording import NOTHING, counted, missing, real, shown
from fairweight.report.figures.forms.encoding import quantitative
from fairweight.report.figures.forms.images import Tile, tiles
from fairweight.report.figures.forms.lines import sparsity_panel
from fairweight.report.figures.forms.scatter import DistancePanel, class_plane, distance_panel
from fairweight.report.figures.forms.tables import (
    BETTER_FOR,
    NONE,
    WORSE,
    WORSE_FOR,
    TextCell,
    text_table,
)
from fairweight.report.figures.inputs import (
    NO_LEVELS,
    Row,
    by_level,
    correlation,
    direction,
    explanation_table,
    member_values,
    optional_table,
    pairs_of,
    percent_interval,
    point,
    sparsity_levels,
    status_note,
    why_missing,
    why_unknown,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import (
    BLUE,
    ORANGE,
    Absent,
    Spec,
    heading,
    label,
    labels,
    pair_title,
    selection,
    value,
    variants_title,
)
from fairweight.report.numbers import axis_of, bracket, count, number, signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

# --- exemplars, and numbers against sparsity -----------------------------------------------------


@figure("SS-F1")
def shared_exemplars(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 5  # images in a row
    if len(result.variants) < 2:
        return Absent("there is one method")
    found = explanation_table(result, "exemplar_images", None, task)
    rows = records(found.drop_duplicates(["part", "example_id", "variant"]))
    shared = {str(row["example_id"]): row for row in rows if row["part"] == "shared"}
    alone = [row for row in rows if row["part"] == "one-only" and row["variant"] == name]
    drawn = {
        "exemplars under every method": list(shared.values())[:limit],
        f"exemplars under {label(name)} only": alone[:limit],
    }
    known = {words: own for words, own in drawn.items() if own}
    if not known:
        return Absent("no image of an exemplar of all methods or of this one only was given")
    placed = []
    for i, own in enumerate(known.values()):
        for column, row in enumerate(own):
            before, after = shown(row["modal_baseline"], 16), shown(row["modal_compressed"], 16)
            lines = (f"label {shown(row['label'], 18)}", f"{before} → {after}")
            placed.append(Tile(row["image"], column, i, lines))
    absent = [f"no image of {words}" for words, own in drawn.items() if not own]
    sizes = [count(len(own)) for own in drawn.values()]
    return {
        "title": pair_title(result, name, *absent),
        "description": alt(shared=sizes[0], alone=sizes[1]),
        **tiles(placed, dict(enumerate(known))),
    }


@figure("SS-F2")
def against_sparsity(result: AuditResult, name: str, task: Name) -> Drawn:
    enough = 1000  # examples per class from which CEV and SDE are shown as published
    drawn = ("accuracy", "cev", "sde", "cev_pp", "sde_pp")
    levels = sparsity_levels(result)
    if not levels:
        return Absent(NO_LEVELS)
    lines = [label(level.method) for level in levels.values()]
    every = result.results
    rows = every[every["metric"].isin(drawn) & (every["by"] == "overall")]
    rows = at_task(rows[of_scope(rows, "model")], result, task)
    rows = rows[rows["variant"].isin(list(levels))]
    data = result.data
    in_class = data.loc[(data["split"] == "test") & (data["by"] == "class"), "n"]
    small = not len(in_class) or float(in_class.min()) < enough
    panels: list[Spec] = []
    for metric in ("accuracy", "cev", "sde"):
        # As published if it can be estimated in every variant, else in points.
        if metric != "accuracy" and not is_ok(rows[rows["metric"] == metric]).all():
            metric = f"{metric}_pp"
        corrected = small and metric != "accuracy"
        own = rows[(rows["metric"] == metric) & is_ok(rows)]
        points = [
            point(row, levels[row["variant"]], corrected=corrected, this=row["variant"] == name)
            for row in records(own[own["debiased" if corrected else "compressed"].notna()])
        ]
        if not points:
            continue
        ticks = [] if corrected else member_values(result, levels, metric, task)
        title = f"{axis_of(metric)}, corrected" if corrected else axis_of(metric)
        panels.append(sparsity_panel(points, ticks, title, lines))
    # Shares of modal exemplars; beside what retraining gives, at the sizes that this is for.
    found = optional_table(result, "exemplar_counts", None, task)
    modal = [] if found is None else records(found[found["kind"] == "modal"])
    modal = [row for row in modal if row["variant"] in levels]
    matched = all(not missing(row["matched"]) for row in modal)
    exemplars = [
        {
            "variant": label(row["variant"]),
            "method": label(levels[row["variant"]].method),
            "sparsity": levels[row["variant"]].sparsity,
            "value": value(row["matched" if matched else "share"], 100.0),
            "n": value(row["n_examples"]),
            **dict.fromkeys(("low", "high", "wide_low", "wide_high", "baseline")),
            "floor_low": value(row["floor_low"], 100.0) if matched else None,
            "floor_high": value(row["floor_high"], 100.0) if matched else None,
            "this": row["variant"] == name,
        }
        for row in modal
        if not missing(row["share"])
    ]
    if exemplars:
        panels.insert(1, sparsity_panel(exemplars, [], "exemplars, %", lines))
    if not panels:
        return Absent("no variant with a sparsity has an accuracy, CEV or SDE")
    sparsities = [level.sparsity for level in levels.values()]
    n = count(len(levels))
    return {
        "title": f"{n} variants against {label(result.baseline)}; ring: {label(name)}",
        "description": alt(
            what="Accuracy, exemplars, CEV and SDE" if exemplars else "Accuracy, CEV and SDE",
            n=n,
            low=min(sparsities),
            high=max(sparsities),
        ),
        "concat": panels,
        "columns": 2,
    }


@figure("SS-F3")
def class_error_changes(result: AuditResult, name: str, task: Name) -> Drawn:
    changes: dict[str, dict[str, float]] = {}
    zero: set[str] = set()
    for metric in ("fpr", "fnr"):
        rows = at_task(select(result, name, metric, "class"), result, task)
        for row in records(rows, ("class", "baseline", "compressed")):
            base, compressed = row["baseline"], row["compressed"]
            if missing(base) or missing(compressed):
                continue
            if base == 0:
                zero.add(str(row["class"]))
            else:
                change = 100 * (compressed - base) / base
                changes.setdefault(str(row["class"]), {})[metric] = change
    found = {c: rates for c, rates in changes.items() if len(rates) == 2}
    if not found:
        return Absent("there is no class with both a false positive and a false negative rate")
    if len(result.classes) < 3:
        return Absent("with two classes the rates of one are those of the other")
    points = [
        {"class": label(c), "fpr": value(rates["fpr"]), "fnr": value(rates["fnr"])}
        for c, rates in found.items()
    ]
    means = {m: sum(rates[m] for rates in found.values()) / len(found) for m in ("fpr", "fnr")}
    plural = "class" if len(zero) == 1 else "classes"
    left_out = f"{len(zero)} {plural} with a baseline rate of 0 left out" if zero else ""
    return {
        "title": pair_title(result, name, left_out),
        "description": alt(n=len(points), **means),
        **class_plane(points, {**means, "class": "mean"}),
    }


# --- representations -----------------------------------------------------------------------------


@figure("SS-F5")
def bias_against_distance(result: AuditResult, name: str, task: Name) -> Drawn:
    from fairweight.auditing.explain.similarity import band, regress  # most audits need it not

    found = explanation_table(result, "similarity_points", None, task)
    known = found[found[["distance", "cev"]].notna().all(axis=1)]
    if known.empty:
        return Absent("no variant has both a distance and a CEV")
    frame = result.explanations.get("similarity")
    fits: dict[tuple[str, str], Row] = {}
    if frame is not None and not frame.empty:
        rows = records(frame[frame["metric"] == "cev"])
        fits = {(str(row["measure"]), str(row["block"])): row for row in rows}
    alpha = float(result.provenance.options.get("alpha", 0.05))
    top = 1.15 * float(known["cev"].max()) or 1.0
    color: Spec = {"value": ORANGE}
    if known["sparsity"].nunique() > 1:  # the legend is one for all panels
        ends = [float(known["sparsity"].min()), float(known["sparsity"].max())]
        scale = {"domain": ends, "range": [BLUE, ORANGE], "interpolate": "lab"}
        legend = {"gradientLength": 160, "tickCount": 4}
        color = quantitative("sparsity", title="sparsity", scale=scale, legend=legend)
    panels = []
    for (measure, block), own in known.groupby(["measure", "block"], sort=False):
        points = [
            {
                "variant": label(row["variant"]),
                **{name: value(row[name]) for name in ("distance", "cev", "sparsity")},
            }
            for row in records(own)
        ]
        # The line through the variants with its band, which is curved.
        distance = own["distance"].to_numpy()
        line = regress(distance, own["cev"].to_numpy(), alpha=alpha)
        drawn: list[Row] = []
        if not missing(line.slope):
            at = np.linspace(distance.min(), distance.max(), 25)
            drawn = [
                {"distance": value(a), "cev": value(m), "low": value(b), "high": value(c)}
                for a, m, b, c in zip(at, *band(line, at), strict=True)
            ]
        fit = fits.get((str(measure), str(block)))
        if fit is None:
            said = "no line was fitted"
        elif missing(fit["correlation"]):
            said = why_unknown(fit) or "cannot tell"
        else:
            said = f"r {correlation(fit)}, {count(fit['n_variants'])} variants"
        form = DistancePanel(
            axis=f"{str(measure).upper()} distance, {label(block)}",
            title=heading(f"{label(block)}: {said}"),
            top=top,
            color=color,
            floor=real(own["floor"].iloc[0]),
            line=drawn,
        )
        panels.append(distance_panel(points, form))
    n = counted(known["variant"].nunique(), "variant")
    return {
        "title": f"{n} against {label(result.baseline)}",
        "description": alt(n=n, panels=count(len(panels))),
        "concat": panels,
        "columns": 2,
    }


# --- tables --------------------------------------------------------------------------------------


@figure("SS-T2")
def down_sampled_classes(result: AuditResult, name: str, task: Name) -> Drawn:
    most_classes = 15  # the paper's number
    # Sampling alone leaves the classes of CIFAR-10's first 10,000 examples at 91 % of the largest.
    down_sampled = 0.8
    data = at_task(result.data, result, task)
    rows = records(data[(data["split"] == "train") & (data["by"] == "class")], ("class", "n"))
    sizes = {str(row["class"]): real(row["n"]) for row in rows if not missing(row["n"])}
    most = max(sizes.values(), default=0.0)
    if most <= 0:
        return Absent("no counts of the training data by class were given")
    trained = {name: n / most for name, n in sizes.items()}
    found = pairs_of(result, result.variants, "recall", "class", task)
    few = [name for name, share in trained.items() if share < down_sampled]
    wanted = sorted(few or trained, key=lambda name: trained[name])
    known = [c for c in wanted if any(c in rows for rows in found.values())]
    if not known:
        return Absent("there is no accuracy by class")
    classes = known[:most_classes]
    shares = {c: 100 * trained[c] for c in classes}
    heads = labels([f"{c}, {n:.2g} %" if n < 10 else f"{c}, {n:.0f} %" for c, n in shares.items()])
    columns = dict(zip(classes, heads, strict=True))
    base, *others = labels([result.baseline, *result.variants])
    cells: list[TextCell] = []
    for c, column in columns.items():
        row = next(rows_[c] for rows_ in found.values() if c in rows_)[0]
        cells.append(_rate_cell(base, column, row, "baseline"))
    for head, name in zip(others, result.variants, strict=True):
        for c, column in columns.items():
            if c not in found[name]:
                continue
            row, method = found[name][c]
            if missing(row["compressed"]) or missing(row["shift"]):
                cells.append(TextCell(head, column, "×", why=why_missing(row)))
                continue
            ends = bracket(real(row["ci_low"]), real(row["ci_high"]), scale=100)
            said = f"{100 * real(row['compressed']):.1f}: {signed(100 * real(row['shift']), 1)}"
            told = direction(row)
            beyond = method is not None and direction(method) == told
            inks = {-1: WORSE_FOR, 1: BETTER_FOR}.get(told)
            shade = NONE if inks is None else inks["the method" if beyond else "these models"]
            cells.append(TextCell(head, column, f"{said} {ends}".rstrip(), shade))
    worse = count(sum(cell.ink in WORSE_FOR.values() for cell in cells))
    what = "down-sampled classes" if few else "classes"
    return {
        "title": variants_title(
            result,
            len(result.variants),
            "" if few else "no class is down-sampled: all classes",
            selection(len(classes), len(known), what, "the fewest training examples"),
        ),
        "description": alt(
            n=count(len(classes)),
            what=what,
            variants=counted(len(result.variants), "variant"),
            worse=worse,
        ),
        **text_table(cells, heads, step=164),
    }


def _rate_cell(head: str, column: str, row: Row, side: str) -> TextCell:
    if missing(row[side]):
        return TextCell(head, column, "×", why=why_missing(row))
    return TextCell(head, column, percent_interval(row, side))


@figure("SS-T3")
def distances_and_bias(result: AuditResult, name: str, task: Name) -> Drawn:
    order = list(by_level(result))
    base, *rest = labels([result.baseline, *order])
    rows = dict(zip(order, rest, strict=True))
    cells: list[TextCell] = []
    distances = optional_table(result, "similarity_points", None, task)
    if distances is not None:
        for (measure, block), own in distances.groupby(["measure", "block"], sort=False):
            column = label(f"{str(measure).upper()} {block}")
            floor = real(own["floor"].iloc[0])
            cells.append(TextCell(base, column, NOTHING if missing(floor) else f"{floor:.3f}"))
            for row in records(own):
                if row["variant"] in rows:
                    far, head = real(row["distance"]), rows[row["variant"]]
                    cells.append(
                        TextCell(head, column, "×", why="no member has this distance")
                        if missing(far)
                        else TextCell(head, column, f"{far:.3f}")
                    )
    counts = optional_table(result, "exemplar_counts", None, task)
    for kind in ("unanimous", "modal"):
        every = [] if counts is None else records(counts[counts["kind"] == kind])
        for row in every:
            if row["variant"] not in rows:
                continue
            n, matched, floor, high = (
                real(row[end]) for end in ("n_exemplars", "matched", "floor", "floor_high")
            )
            said = "×" if missing(n) else count(n)
            known = not (missing(n) or missing(floor) or missing(matched))
            if known:
                said += f"; {100 * matched:.2f} % ({100 * floor:.2f} %)"
            ink = WORSE if known and matched > high else NONE
            cells.append(TextCell(rows[row["variant"]], kind, said, ink, why=status_note(row)))
    # A comparison's own interval stands where a shift has its; of the accuracy the baseline's too.
    for metric in ("cev", "sde"):
        for name, both in pairs_of(result, order, metric, "overall", task).items():
            if None not in both:
                continue
            row, head = both[None][0], rows[name]
            if missing(row["compressed"]) or not Status.of(row["status"]).ok:
                cells.append(TextCell(head, axis_of(metric), "×", why=why_missing(row)))
                continue
            low, high = real(row["ci_low"]), real(row["ci_high"])
            ends = "" if missing(low) or missing(high) else f" [{number(low)}, {number(high)}]"
            said = number(real(row["compressed"])) + ends
            cells.append(TextCell(head, axis_of(metric), said))
    if not cells:
        return Absent("there are neither distances nor exemplars, CEV or SDE")
    found = pairs_of(result, order, "accuracy", "overall", task)
    accuracy = {name: own[None][0] for name, own in found.items() if None in own}
    for row in list(accuracy.values())[:1]:
        cells.append(_rate_cell(base, axis_of("accuracy"), row, "baseline"))
    for name, row in accuracy.items():
        cells.append(_rate_cell(rows[name], axis_of("accuracy"), row, "compressed"))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    # Cells of one row stand together, so that rows keep the order of the variants.
    cells.sort(key=lambda cell: [base, *rest].index(cell.row))
    return {
        "title": variants_title(result, len(order)),
        "description": alt(
            variants=counted(len(order), "variant"),
            columns=", ".join(columns),
            beyond=count(sum(cell.ink == WORSE for cell in cells)),
        ),
        **text_table(cells, columns, step=144),
    }
