"""FW: our own figures. Shifts with simultaneous limits, members, reliability, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from fairweight.auditing.result import at_task, is_ok, records, select
from fairweight.auditing.schema import Status
from fairweight.base.wording import missing, real, shown, text
from fairweight.report.figures.forms.bars import IN, OUT, member_panel, probability_bars
from fairweight.report.figures.forms.encoding import colors, layer, names, numbers, quantitative
from fairweight.report.figures.forms.intervals import cut_domain, scope_rows, shift_rows
from fairweight.report.figures.forms.lines import band_panel, reliability_panel
from fairweight.report.figures.forms.tables import change_map, unit_map
from fairweight.report.figures.inputs import (
    SCOPES,
    Row,
    explanation_table,
    optional_table,
    shift_values,
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
    models,
    pair_title,
    selection,
    value,
)
from fairweight.report.finding import lead_families
from fairweight.report.numbers import axis_of, count, number
from fairweight.report.sentences import SIDES

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

PLURAL = {"class": "classes", "group": "groups"}

# --- shifts and members --------------------------------------------------------------------------


def by_effect(rows: list[Row], limit: int) -> list[Row]:
    """All rows in their order; of more than fit, the largest shifts, the largest loss first.

    Those that were not tested are left out then: a class of three examples leads no chart.
    """
    if len(rows) <= limit:
        return rows
    tested = [row for row in rows if Status.of(row["status"]).ok] or rows
    kept = largest(tested, [abs(row["shift"]) for row in tested], limit)
    return sorted(kept, key=lambda row: row["shift"])


def named(result: AuditResult, by: str, names: Sequence[str]) -> list[str]:
    """Names on an axis: of classes their own, where the labels are codes."""
    known = result.provenance.options.get("class_names") or {} if by == "class" else {}
    return labels([known.get(name, name) for name in names])


@figure("FW-1")
def shifts(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 40  # rows per panel that a reader can still tell apart
    overall = at_task(select(result, name, "accuracy", "overall"), result, task)
    everyone = real(overall["shift"].iloc[0]) if len(overall) else float("nan")
    panels: list[tuple[list[Row], str]] = []
    said: list[str] = []
    for metric, by in (("accuracy", "group"), ("recall", "class")):
        rows = at_task(select(result, name, metric, by), result, task)
        known = records(rows[rows["shift"].notna()])
        if not known:
            continue
        kept = by_effect(known, limit)
        said.append(selection(len(kept), len(known), PLURAL[by]))
        who = named(result, by, [row[by] for row in kept])
        panels.append((shift_values(kept, who), f"{metric} by {by}, points"))
    if not panels:
        return Absent("there is no class or group with a shift")
    drawn = [v for values, _ in panels for v in values]
    losing = count(sum(v["verdict"] == "loses" for v in drawn))
    domain = cut_domain(drawn)
    return {
        "title": pair_title(result, name, *said),
        "description": alt(n=count(len(drawn)), losing=losing),
        "vconcat": [
            shift_rows(values, title, domain, value(everyone, 100)) for values, title in panels
        ],
    }


@figure("FW-7")
def scopes(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 25  # rows per panel: each holds two intervals
    panels: list[tuple[list[Row], str]] = []
    said: list[str] = []
    reason = "there is one model on each side"
    for metric, by in lead_families():
        model, method = (
            at_task(select(result, name, metric, by, scope), result, task) for scope in SCOPES
        )
        limits = {row[by]: row for row in records(method[is_ok(method)])}
        if len(method) and not limits:
            reason = f"nothing is known about the method ({text(method['status'].iloc[0])})"
        known = [row for row in records(model[model["shift"].notna()]) if row[by] in limits]
        if not known:
            continue
        kept = by_effect(known, limit)
        said.append(selection(len(kept), len(known), PLURAL[by]))
        values = []
        for who, own in zip(named(result, by, [row[by] for row in kept]), kept, strict=True):
            for scope, row in zip(SCOPES, (own, limits[own[by]]), strict=True):
                floor = value(row["noise_floor"], 100)
                low, high = real(row["sim_low"]), real(row["sim_high"])
                beyond_0 = not missing(low) and (low > 0 or high < 0)
                values.append(
                    {
                        "name": who,
                        "scope": SIDES[scope],
                        "shift": value(row["shift"], 100),
                        "sim_low": value(low, 100),
                        "sim_high": value(high, 100),
                        "floor_low": None if floor is None else -floor,
                        "floor_high": floor,
                        "told": "yes" if beyond_0 else "no",
                    }
                )
        panels.append((values, f"{metric} by {by}, points"))
    if not panels:
        return Absent(reason)
    drawn = [v for values, _ in panels for v in values]
    domain = cut_domain(drawn)
    sides = [SIDES[scope] for scope in SCOPES]
    beyond = {
        scope: count(sum(v["scope"] == SIDES[scope] and v["told"] == "yes" for v in drawn))
        for scope in SCOPES
    }
    n = count(len(drawn) // 2)
    return {
        "title": pair_title(result, name, *said),
        "description": alt(n=n, **beyond),
        "vconcat": [scope_rows(values, title, domain, sides) for values, title in panels],
    }


@figure("FW-6")
def members(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 25  # rows per panel: each holds two boxes
    seeds = at_task(result.per_seed, result, task)
    seeds = seeds[seeds["variant"].isin([result.baseline, name]) & seeds["value"].notna()]
    sizes = seeds.groupby("variant")["seed"].nunique()
    if sizes.empty or sizes.max() < 2:
        return Absent("there is one model on each side")
    panels: list[Spec] = []
    said: list[str] = []
    for metric, by in lead_families():
        rows = at_task(select(result, name, metric, by), result, task)
        own = seeds[(seeds["metric"] == metric) & (seeds["by"] == by)]
        rows = rows[rows["shift"].notna() & rows[by].isin(own[by])]
        if rows.empty:
            continue
        kept = [row[by] for row in by_effect(records(rows, (by, "shift", "status")), limit)]
        said.append(selection(len(kept), len(rows), PLURAL[by]))
        who = dict(zip(kept, named(result, by, kept), strict=True))
        found = records(own[own[by].isin(kept)], ("variant", "seed", by, "value"))
        points = [
            {
                "name": who[row[by]],
                "model": label(row["variant"]),
                "member": shown(row["seed"]),
                "value": value(row["value"], 100),
            }
            for row in sorted(found, key=lambda row: kept.index(row[by]))
        ]
        panels.append(member_panel(points, models(result, name), f"{metric} by {by}, %"))
    if not panels:
        return Absent("there are no numbers of single members by class or group")
    before, after = (count(sizes.get(v, 0)) for v in (result.baseline, name))
    return {
        "title": pair_title(result, name, *said),
        "description": alt(before=before, after=after),
        "vconcat": panels,
    }


# --- answers and scores --------------------------------------------------------------------------

NO_ANSWER = "no answer"
OTHER = "other answers"


@figure("FW-3")
def confusion_change(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 30
    frame = result.confusion
    frame = at_task(frame[frame["variant"].isin([result.baseline, name])], result, task)
    if frame["variant"].nunique() < 2:
        return Absent("there is no confusion matrix of both models")
    shares = []  # of each label's examples (members pooled) that were given each answer
    for model in (result.baseline, name):
        own = frame[frame["variant"] == model]
        own = own.assign(prediction=own["prediction"].astype(object).fillna(NO_ANSWER))
        counted = own.groupby(["label", "prediction"])["count"].sum().astype(float)
        shares.append(counted / counted.groupby("label").transform("sum"))
    before, after = shares[0].align(shares[1], fill_value=0.0)
    change = after - before
    by_label, by_answer = (change.abs().groupby(level).sum() for level in ("label", "prediction"))
    sizes = by_label.add(by_answer, fill_value=0.0)
    in_order = [c for c in result.classes if c in sizes.index]
    kept = largest(in_order, [float(sizes[c]) for c in in_order], limit)
    places = {c: i for i, c in enumerate(kept)}
    texts = named(result, "class", kept)
    cells: dict[tuple[int, str], float] = {}
    for (true, given), points in zip(change.index.tolist(), change.tolist(), strict=True):
        if true not in places:
            continue
        answer = texts[places[given]] if given in places else given
        if given not in places and given != NO_ANSWER:
            answer = OTHER
        key = (places[true], answer)
        cells[key] = cells.get(key, 0.0) + float(points)
    columns = texts + [
        extra for extra in (OTHER, NO_ANSWER) if any(answer == extra for _, answer in cells)
    ]
    values: list[Row] = [
        {"label": texts[i], "answer": answer, "change": value(points, 100)}
        for (i, answer), points in cells.items()
        if abs(points) > 1e-12
    ]
    if not values:
        return Absent("both models give the same answers")
    reach = f"{max(abs(v['change']) for v in values):.1f}"
    return {
        "title": pair_title(result, name, selection(len(kept), len(in_order), "classes")),
        "description": alt(n=count(len(kept)), reach=reach),
        **change_map(values, texts, columns),
    }


@figure("FW-2")
def reliability(result: AuditResult, name: str, task: Name) -> Drawn:
    definitions = {"ece": "probability of the positive class", "ece_top_label": "top label"}
    frame = result.reliability
    frame = frame[frame["variant"].isin([result.baseline, name]) & frame["group"].isna()]
    frame = at_task(frame, result, task)
    frame = frame[frame["n"] > 0]
    if frame.empty:
        return Absent(
            "there are no scores, or it is not known whose probability they are (binary labels "
            "without a positive class)"
        )
    panels: list[Spec] = []
    errors: list[str] = []
    for definition, meaning in definitions.items():
        values: list[Row] = []
        for model in (result.baseline, name):
            rows = frame[(frame["variant"] == model) & (frame["definition"] == definition)]
            if rows.empty:
                continue
            # Members of a population share the bins: their mean, weighted by examples.
            weight = rows["n"].astype(float)
            sums = rows.assign(
                n=weight,
                mean_score=rows["mean_score"] * weight,
                mean_outcome=rows["mean_outcome"] * weight,
            ).groupby("bin", sort=True)[["n", "mean_score", "mean_outcome"]]
            values += [
                {
                    "model": label(model),
                    "n": value(row["n"]),
                    "score": value(row["mean_score"] / row["n"]),
                    "right": value(row["mean_outcome"] / row["n"]),
                }
                for row in records(sums.sum())
            ]
            each = max(1, rows["seed"].nunique())
            error = float(rows["contribution"].astype(float).sum()) / each
            errors.append(f"{label(model)} {number(error)} ({meaning})")
        if values:
            color = models(result, name)
            panels.append(reliability_panel(values, color, f"{definition}: {meaning}"))
    return {
        "title": pair_title(result, name),
        "description": alt(errors=", ".join(errors)),
        "hconcat": panels,
    }


# --- decisions -----------------------------------------------------------------------------------


@figure("FW-8")
def units(result: AuditResult, name: str, task: Name) -> Drawn:
    limits = {"unit": 40, "group": 24}  # rows and columns that a reader can still tell apart
    rows = records(explanation_table(result, "sensitivity", name))
    rows = [row for row in rows if not missing(row["recovered"])]
    if not rows:
        return Absent("no unit has numbers")
    everyone = "everyone"
    for row in rows:
        row["group"] = everyone if missing(row["group"]) else row["group"]
    every = {key: list(dict.fromkeys(row[key] for row in rows)) for key in limits}
    lost = {row["group"]: real(row["shift"]) for row in rows}
    ranked = sorted(every["group"][1:], key=lambda group: lost[group])
    kept = {"unit": every["unit"][: limits["unit"]]}
    kept["group"] = [every["group"][0], *ranked][: limits["group"]]
    names_ = {key: dict(zip(held, labels(held), strict=True)) for key, held in kept.items()}
    cells = [
        {
            "unit": names_["unit"][row["unit"]],
            "group": names_["group"][row["group"]],
            "recovered": value(row["recovered"], 100),
            "low": value(row["recovered_low"], 100),
            "high": value(row["recovered_high"], 100),
            "loss": value(row["shift"], 100),
            "out": row["stands_out"] is True,
        }
        for row in rows
        if row["unit"] in names_["unit"] and row["group"] in names_["group"]
    ]
    best = max(cells, key=lambda cell: cell["recovered"] or 0.0)
    said = [
        selection(len(kept[key]), len(every[key]), f"{key}s", order)
        for key, order in (("unit", "the best ranks"), ("group", "the largest losses"))
    ]
    return {
        "title": pair_title(result, name, *said),
        "description": alt(
            units=count(len(kept["unit"])),
            groups=count(len(kept["group"])),
            most=number(best["recovered"] or 0.0),
            best=f"{best['unit']} for {best['group']}",
            out=count(sum(cell["out"] for cell in cells)),
        ),
        **unit_map(cells, *([*names_[key].values()] for key in ("unit", "group"))),
    }


@figure("FW-5")
def selection_probabilities(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 30
    titles = (
        ("p_within_margin", None, "probability of being within the margin of the best, %"),
        ("p_best", "bootstrap_best", "probability of being the best, %"),
        ("p_frontier", "bootstrap_frontier", "probability of being on the frontier, %"),
    )
    found = explanation_table(result, "choice")
    rows = [row for row in records(found) if row["qualifies"]]
    if len(rows) < 2:
        return Absent("fewer than two variants qualify")
    first = rows[:limit]
    panels: list[Spec] = []
    for probability, frequency, title in titles:
        if all(missing(row[probability]) for row in first):
            continue
        values = [
            {
                "variant": label(row["variant"]),
                "probability": value(row[probability], 100.0),
                "frequency": None if frequency is None else value(row[frequency], 100.0),
                "possible": IN if row["in_best_set"] is True else OUT,
            }
            for row in first
        ]
        known = any(not missing(row["in_best_set"]) for row in first)
        panels.append(
            probability_bars(
                values,
                title,
                first=not panels,
                marked=known and probability != "p_frontier",
                frequency=frequency is not None,
            )
        )
    if not panels:
        return Absent("no probabilities were computed")
    cut = f"; the first {limit}" if len(rows) > limit else ""
    return {
        "title": f"{count(len(rows))} variants that qualify{cut}",
        "description": alt(n=count(len(rows)), best=label(first[0]["variant"])),
        "hconcat": panels,
    }


CURVES = ("accuracy", "worst_group_shift", "bias_amplification")


@figure("FW-4")
def curves(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 12
    cascade = optional_table(result, "cascade_curve", name, task)
    overrides = optional_table(result, "override_curves", name, task)
    if cascade is None and overrides is None:
        return Absent("neither a cascade nor overrides were tried")
    legend = {"symbolOpacity": 1}
    panels: list[Spec] = []
    if cascade is not None:
        judged = cascade[(cascade["part"] == "judging") & cascade["value"].notna()]
        told = judged[["metric", "group"]].drop_duplicates()
        color = colors("rows", {"choosing": GREY, "judging": ORANGE}, legend=legend)
        for metric, title, own in _by_metric(cascade.merge(told)):
            values = [
                {
                    "rows": row["part"],
                    "threshold": value(row["threshold"]),
                    "cost": value(row["cost_ms"]),
                    "share": value(row["share_deferred"], 100),
                    "used": bool(row["recommended"]),
                    **{name: value(row[name], 100) for name in ("value", "low", "high")},
                }
                for row in records(own)
            ]
            timed = own["cost_ms"].notna().all()
            across = "cascade: ms per input" if timed else "cascade: % sent to the dense model"
            x = quantitative("cost" if timed else "share", title=across, scale={"zero": False})
            used = [v for v in values if v["used"] and v["rows"] == "judging"]
            at = {"x": x, "y": quantitative("value")}
            dot = layer("point", at, values=used, filled=True, size=120, color=ORANGE)
            y = axis_of(metric)
            tooltip = [*names("rows"), *numbers(".4g", "threshold", "share", "cost")]
            tooltip += numbers(".3f", value=y, low="low", high="high")
            panels.append(band_panel(values, x, y, color, tooltip, title, [dot]))
    if overrides is not None:
        x = quantitative("budget", title="overrides: % of the examples")
        color = colors("choice", {"random": GREY, "least sure": BLUE}, legend=legend)
        columns = {
            "least sure": ("value", "low", "high"),
            "random": ("random", "random_low", "random_high"),
        }
        for metric, title, own in _by_metric(overrides[overrides["source"] == "dense"]):
            values = []
            for row, (choice, ends) in product(records(own), columns.items()):
                held = (value(row[end], 100) for end in ends)
                three = dict(zip(("value", "low", "high"), held, strict=True))
                budget = value(row["budget"], 100)
                values.append({"choice": choice, "budget": budget, **three})
            y = axis_of(metric)
            tooltip = [*names("choice"), *numbers(".4g", "budget")]
            tooltip += numbers(".3f", value=y, low="low", high="high")
            panels.append(band_panel(values, x, y, color, tooltip, title))
    kept = panels[:limit]
    cut = "" if len(kept) == len(panels) else f"the first {limit} of {count(len(panels))} panels"
    return {
        "title": pair_title(result, name, cut),
        "description": alt(n=count(len(kept))),
        "concat": kept,
        "columns": 3,
        "resolve": {"scale": {"color": "independent"}},
    }


def _by_metric(frame: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """The rows of every metric and group that are known, with the names of both."""
    known = frame[frame["value"].notna()]
    parts = sorted(
        known.groupby(["metric", "group"], dropna=False, sort=False),
        key=lambda part: CURVES.index(str(part[0][0])),
    )
    return [
        (str(metric), label(group) if isinstance(group, str) else "everybody", own)
        for (metric, group), own in parts
    ]
