"""HK: figures of Hooker et al. (2020). Subgroups, and the examples whose answers change."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import TYPE_CHECKING

from fairweight.auditing.result import at_task, records, select
from fairweight.auditing.schema import SMALL_GROUP, Status
from fairweight.base.wording import NOTHING, missing, real, shown
from fairweight.report.figures.forms import intervals
from fairweight.report.figures.forms.bars import share_bars
from fairweight.report.figures.forms.encoding import layer, names, numbers, quantitative
from fairweight.report.figures.forms.images import Tile, tiles
from fairweight.report.figures.forms.scatter import share_plane
from fairweight.report.figures.forms.tables import (
    BETTER,
    NONE,
    WORSE,
    TextCell,
    rate_map,
    text_table,
)
from fairweight.report.figures.inputs import (
    Cut,
    Pair,
    Row,
    at_cut,
    by_level,
    cut_name,
    cuts,
    explanation_table,
    missing_note,
    optional_table,
    pairs_of,
    percent_interval,
    status_note,
    usual_cut,
    why_missing,
    why_unknown,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import (
    GREY,
    Absent,
    label,
    labels,
    largest,
    largest_first,
    models,
    pair_title,
    selection,
    titled,
    value,
)
from fairweight.report.numbers import MINUS, count, label_of, p_value, percent

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

EVERYONE = "all examples"
RATES = ("error_rate", "fpr", "fnr")

# --- how common, and who is common among exemplars -----------------------------------------------

FLOOR, MATCHED = "retraining alone, %", "compressed, %"
SPLITS = {"train": "training", "test": "test"}
MOST_GROUPS = 80  # both values of each of CelebA's 40 attributes


@figure("HK-F1")
def shares(result: AuditResult, name: str, task: Name) -> Drawn:
    few = 100  # up to here an accuracy is known to about ± 10 points, or worse
    kinds = {"class": "classes", "group": "groups", "group*class": "classes within groups"}
    rows = records(at_task(result.data, result, task))
    panels, said, rarest = [], [], None
    for by, words in kinds.items():
        own = [row for row in rows if row["by"] == by and not missing(row["share"])]
        keys = list(dict.fromkeys((row["group"], row["class"]) for row in own))
        if not keys:
            continue
        share = {(row["split"], row["group"], row["class"]): row for row in own}
        first = "train" if any(row["split"] == "train" for row in own) else "test"
        size = {key: share[first, *key]["share"] if (first, *key) in share else 0 for key in keys}
        kept = sorted(keys, key=lambda key: -size[key])[-MOST_GROUPS:]
        said.append(selection(len(kept), len(keys), words, "the smallest share"))
        rarest = min([rarest or 1.0, *size.values()])
        texts = labels([" & ".join(str(p) for p in key if not missing(p)) for key in kept])
        values: list[Row] = []
        for text, key in zip(texts, kept, strict=True):
            for split, word in SPLITS.items():
                row = share.get((split, *key))
                if row is None:
                    continue
                n = count(row["n"])
                if split == "test" and row["n"] < few:
                    n = f"({n})"
                part = value(row["share"], 100)
                values.append({"who": text, "split": word, "share": part, "n": n})
        title = f"share of examples, % ({words})"
        panels.append(share_bars(values, title, list(SPLITS.values())))
    if not panels:
        return Absent("the data have neither classes nor groups")
    return {
        "title": titled("share of examples", *said),
        "description": alt(n=count(len(panels)), rarest=percent(rarest or 0.0, 2)),
        "vconcat": panels,
        "resolve": {"scale": {"color": "shared"}},
    }


@figure("HK-F2")
def over_indexing(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "enrichment", name, task)
    groups = found[found["by"] == "group"]
    if groups.empty:
        return Absent("there are no groups among the exemplars")
    cut = usual_cut(groups)
    rows = records(at_cut(groups, cut))
    kept = largest_first(rows, [_distance(row) for row in rows], MOST_GROUPS)
    source = "share_train" if any(not missing(row["share_train"]) for row in kept) else "share_test"
    limits = ("odds_ratio", "or_low", "or_high", "retraining_odds_ratio", "retraining_low",
              "retraining_high")  # fmt: skip
    values = []
    for text, row in zip(labels([row["group"] for row in kept]), kept, strict=True):
        p, why = real(row["p_adjusted"]), why_unknown(row)
        values.append(
            {
                "group": text,
                "source": value(row[source], 100),
                "exemplars": value(row["share_exemplars"], 100),
                "n": value(row["n_exemplars"]),
                # An axis of ratios has no place for 0.
                **{key: value(row[key]) if real(row[key]) > 0 else None for key in limits},
                "ratio": value(row["ratio"]),
                "p": value(p),
                "told": "yes" if p <= 0.05 and why is None else "no",
                "why": None if _has_odds(row) else why,
            }
        )
    beyond = count(sum(v["told"] == "yes" for v in values))
    height = max(240, 18 * len(values))
    tooltip = [
        *names("group"),
        *numbers(",.0f", n="exemplars"),
        *numbers(".3g", source="share in the data, %", exemplars="share of exemplars, %",
                 odds_ratio="odds ratio", or_low="from", or_high="to",
                 retraining_odds_ratio="retraining alone", ratio="ratio at equal sizes",
                 p="p, corrected"),
        *names(why="status"),
    ]  # fmt: skip
    return {
        "title": pair_title(
            result,
            name,
            f"exemplars: {cut_name(*cut)}",
            selection(len(kept), len(rows), "groups", "the odds farthest from 1"),
            *dict.fromkeys(status_note(row) or "" for row in kept if _has_odds(row)),
        ),
        "description": alt(n=count(len(kept)), beyond=beyond),
        "data": {"values": values},
        "hconcat": [
            share_plane(values, SPLITS[source.removeprefix("share_")], tooltip, height),
            intervals.odds_rows(
                values, "odds of being an exemplar, against all others", tooltip, height
            ),
        ],
        "resolve": {"scale": {"color": "independent"}},
    }


def _has_odds(row: Row) -> bool:
    """Whether a row has odds to draw; what its status says then belongs to the whole figure."""
    return _distance(row) >= 0 and Status.of(row["status"]).kind != SMALL_GROUP


def _distance(row: Row) -> float:
    """How far odds lie from 1."""
    odds = real(row["odds_ratio"])
    return abs(math.log(odds)) if odds > 0 and math.isfinite(odds) else -1.0


@figure("HK-F3")
def exemplar_pairs(result: AuditResult, name: str, task: Name) -> Drawn:
    limit, across = 12, 2  # pairs in all, and beside each other
    found = explanation_table(result, "exemplar_images", name, task)
    # The first exemplar of a class with its first other example, and so on, classes in turn.
    by_class: dict[str, dict[str, list[Row]]] = {}
    for row in records(found):
        parts = by_class.setdefault(str(row["label"]), {})
        parts.setdefault(str(row["part"]), []).append(row)
    columns = [
        zip(parts.get("exemplar", []), parts.get("non-exemplar", []), strict=False)
        for parts in by_class.values()
    ]
    pairs = [both for turn in zip_longest(*columns) for both in turn if both is not None][:limit]
    if not pairs:
        return Absent("no exemplar has an image beside one of its class that is none")
    placed = []
    for i, both in enumerate(pairs):
        for side, row in enumerate(both):
            before, after = shown(row["modal_baseline"], 16), shown(row["modal_compressed"], 16)
            answer = f"{before} → {after}" if side == 0 else f"answer {before}"
            lines = (f"label {shown(row['label'], 18)}", answer)
            placed.append(Tile(row["image"], 2 * (i % across) + side, i // across, lines))
    return {
        "title": pair_title(result, name, "left of each pair: the exemplar"),
        "description": alt(n=count(len(pairs))),
        **tiles(placed),
    }


# --- accuracy on exemplars -----------------------------------------------------------------------


def _parts(frame: pd.DataFrame, ways: list[Cut], others: str, every: str) -> list[tuple[str, Row]]:
    """All examples, those that are no exemplars (of the first way), exemplars of every way."""
    first = at_cut(frame, ways[0])
    made = []
    for part, text in (("all", every), ("others", others)):
        made += [(text, row) for row in records(first[first["part"] == part])]
    for way in ways:
        own = at_cut(frame, way)
        made += [(cut_name(*way), row) for row in records(own[own["part"] == "exemplars"])]
    return made


@figure("HK-F4")
def accuracy_by_cut(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "exemplar_accuracy", name, task)
    ways = cuts(found)
    values: list[Row] = []
    for text, row in _parts(found, ways, f"no exemplars ({ways[0][0]})", EVERYONE):
        if missing(row["n"]):
            continue
        few = "" if why_unknown(row) is None else "; cannot tell"
        for side, model in (("baseline", result.baseline), ("compressed", name)):
            own = value(row[side], 100)
            values.append(
                {
                    "what": f"{text} (n {count(row['n'])}{few})",
                    "model": label(model),
                    "value": own,
                    "low": value(row[f"{side}_low"], 100),
                    "high": value(row[f"{side}_high"], 100),
                    "wide_low": None,
                    "retrained": value(real(row.get("floor")), 100) if side == "baseline" else None,
                    "floor_low": None,
                    "n": value(row["n"]),
                    "why": (why_unknown(row) or "no examples") if own is None else None,
                }
            )
    if all(v["value"] is None for v in values):
        return Absent("there is no exemplar on which an accuracy could be measured")
    tooltip = [
        *names(what="examples"),
        *names("model"),
        *numbers(".1f", value="accuracy, %", low="from", high="to"),
    ]
    order = list(dict.fromkeys(v["what"] for v in values))
    form = intervals.PairedRows(
        "what", "model", models(result, name), "accuracy, %", tooltip, order
    )
    again = {"y": form.place["y"], "x": quantitative("retrained", **form.along)}
    tick = layer("tick", again, where="isValid(datum.retrained)", thickness=2, color=GREY, size=24)
    return {
        "title": pair_title(result, name, missing_note(values)),
        "description": alt(n=count(len(values) // 2 - 2)),
        "width": 420,
        "height": {"step": 14},
        "data": {"values": values},
        "layer": intervals.paired_rows(values, form, under=[tick]),
    }


@figure("HK-T1")
def counts_by_level(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "exemplar_counts", None, task)
    ways = cuts(found)
    levels = by_level(result)
    order = [name for name in levels if name in set(found["variant"])]
    measured = optional_table(result, "exemplar_accuracy", None, task)
    overall: dict[str, str] = {}
    if measured is not None:
        every = measured[measured["part"] == "all"].drop_duplicates("variant")
        for row in records(every):
            known = not missing(row["compressed"])
            overall[row["variant"]] = percent_interval(row, "compressed") if known else NOTHING
    cells: list[TextCell] = []
    for text, name in zip(labels(order), order, strict=True):
        own = found[found["variant"] == name]
        sparsity = levels[name]
        if sparsity is not None:
            cells.append(TextCell(text, "sparsity", f"{sparsity:.3g}"))
        if name in overall:
            cells.append(TextCell(text, "accuracy, %", overall[name]))
        for way in ways:
            for row in records(at_cut(own, way))[:1]:
                column, why = cut_name(*way), status_note(row)
                if missing(row["n_exemplars"]):
                    cells.append(TextCell(text, column, "×", why=why))
                    continue
                said = f"{count(row['n_exemplars'])} ({percent(real(row['share']), 2)})"
                cells.append(TextCell(text, column, said, why=why))
                if way != ways[0]:
                    continue
                floor, matched = real(row["floor"]), real(row.get("matched"))
                if missing(floor):
                    cells.append(TextCell(text, FLOOR, NOTHING, why=why))
                    continue
                low, high = real(row["floor_low"]), real(row["floor_high"])
                ends = "" if missing(low) else f" [{100 * low:.2f}, {100 * high:.2f}]"
                share = NOTHING if missing(matched) else f"{100 * matched:.2f}"
                p = p_value(real(row["p_retraining"]), bare=True)
                cells += [
                    TextCell(text, FLOOR, f"{100 * floor:.2f}{ends}"),
                    TextCell(text, MATCHED, share, WORSE if matched > high else NONE),
                    TextCell(text, "p", p),
                ]
    present = {cell.column for cell in cells}
    columns = ["sparsity", "accuracy, %", cut_name(*ways[0]), FLOOR, MATCHED, "p"]
    columns += [cut_name(*way) for way in ways[1:]]
    beyond = count(sum(cell.ink == WORSE for cell in cells))
    n = count(len(order))
    return {
        "title": f"{n} variants against {label(result.baseline)}",
        "description": alt(n=n, ways=count(len(ways)), beyond=beyond),
        **text_table(cells, [c for c in columns if c in present], step=116),
    }


@figure("HK-T2")
def accuracy_by_level(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explanation_table(result, "exemplar_accuracy", None, task)
    ways = cuts(found)
    order = [name for name in by_level(result) if name in set(found["variant"])]
    cells: list[TextCell] = []
    for text, name in zip(labels(order), order, strict=True):
        rows = dict(_parts(found[found["variant"] == name], ways, "no exemplars", "all"))
        for side, word in (("baseline", "dense"), ("compressed", "compressed")):
            for column, row in rows.items():
                why = why_unknown(row)
                n = f"n = {count(row['n'])}"
                head = f"{text}: {word}"
                if missing(row[side]):
                    cells.append(TextCell(head, column, f"× ({n})", why=why))
                    continue
                ink = NONE
                if side == "compressed" and why is None:
                    worse, better = real(row["shift_high"]) < 0, real(row["shift_low"]) > 0
                    ink = WORSE if worse else BETTER if better else NONE
                told = n if why is None else f"{n}; {why}"
                cells.append(TextCell(head, column, percent_interval(row, side), ink, why=told))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    variants = count(len(order))
    return {
        "title": f"accuracy in percent; {variants} variants against {label(result.baseline)}",
        "description": alt(n=variants, ways=count(len(ways))),
        **text_table(cells, columns, step=118),
    }


# --- errors of subgroups -------------------------------------------------------------------------


@figure("HK-T3")
def subgroup_errors(result: AuditResult, name: str, task: Name) -> Drawn:
    limit = 40
    table: dict[str | None, dict[str, tuple[float, float]]] = {}
    states: dict[str | None, set[str | None]] = {}
    for metric in RATES:
        for by in ("overall", "group"):
            rows = at_task(select(result, name, metric, by), result, task)
            for row in records(rows, ("group", "baseline", "compressed", "status")):
                who = None if by == "overall" else str(row["group"])
                table.setdefault(who, {})[metric] = (row["baseline"], row["compressed"])
                states.setdefault(who, set()).add(row["status"])
    groups = [who for who in table if who is not None]
    if not groups:
        return Absent("there are no groups")
    unknown = (float("nan"), float("nan"))
    sizes = []
    for who in groups:
        base, after = table[who].get("error_rate", unknown)
        sizes.append(-1.0 if missing(base) or missing(after) else abs(after - base))
    kept = largest(groups, sizes, limit)
    rows_shown = ([None] if None in table else []) + kept
    small = {
        who
        for who in rows_shown
        if any(Status.of(state).kind == SMALL_GROUP for state in states[who])
    }
    texts = labels([EVERYONE if who is None else who for who in rows_shown])
    absolute: list[Row] = []
    change: list[Row] = []
    for text, who in zip(texts, rows_shown, strict=True):
        for metric in RATES:
            heading = label_of(metric)
            base, after = table[who].get(metric, unknown)
            rate = _written(value(base, 100), ".2f")
            absolute.append({"who": text, "column": f"{heading}, %", "text": rate})
            relative = None  # where the baseline is 0 or a rate is undefined
            if not (missing(base) or missing(after) or base == 0):
                relative = round(100 * (float(after) - float(base)) / float(base), 10)
            written = _written(relative, "+.1f")
            change.append(
                {
                    "who": text,
                    "column": f"{heading}, change %",
                    # A change of a handful of examples must not set the colours of all others.
                    "change": None if who in small else relative,
                    "text": f"({written})" if who in small and relative is not None else written,
                }
            )
    headings = [label_of(metric) for metric in RATES]
    columns = [f"{h}, %" for h in headings] + [f"{h}, change %" for h in headings]
    return {
        "title": pair_title(result, name, selection(len(kept), len(groups), "groups")),
        "description": alt(n=count(len(kept))),
        **rate_map(absolute, change, texts, columns),
    }


def _written(number: float | None, form: str) -> str:
    """A number in a format, with a true minus; a dash where there is none."""
    return NOTHING if number is None else format(number, form).replace("-", MINUS)


@figure("HK-T4")
def errors_by_level(result: AuditResult, name: str, task: Name) -> Drawn:
    most_groups, most_variants = 8, 12
    top = 100.0  # percent, as the paper cuts it
    variants = list(by_level(result))[:most_variants]
    if len(variants) < 2:
        return Absent("there is one level of compression")
    tables: dict[str, dict[str | None, dict[str, Pair]]] = {metric: {} for metric in RATES}
    for metric, table in tables.items():
        for by in ("overall", "group"):
            for own, rows in pairs_of(result, variants, metric, by, task).items():
                for who, both in rows.items():
                    table.setdefault(who, {})[own] = both
    errors = tables["error_rate"]
    groups = [who for who in errors if who is not None]
    if not groups:
        return Absent("there are no groups")
    shifts = [[real(row["shift"]) for row, _ in errors[who].values()] for who in groups]
    sizes = [max((abs(s) for s in own if not missing(s)), default=-1.0) for own in shifts]
    kept = largest(groups, sizes, most_groups)
    every = ([None] if None in errors else []) + kept
    texts = labels([EVERYONE if who is None else who for who in every])
    order = labels(variants)
    panels = []
    for metric in RATES:
        first, last = metric == RATES[0], metric == RATES[-1]
        for j, (text, who) in enumerate(zip(texts, every, strict=True)):
            values = []
            for at, own in zip(order, variants, strict=True):
                # In percent of the baseline's rate, with interval and floor; or why not.
                blank = dict.fromkeys(("value", "low", "high", "floor_low", "floor_high"))
                here: Row = {"at": at, **blank, "n": None, "why": "not measured"}
                values.append(here)
                found = tables[metric].get(who, {})
                if own not in found:
                    continue
                row, _ = found[own]
                base, after = real(row["baseline"]), real(row["compressed"])
                here |= {"n": value(row["n"]), "why": None}
                if Status.of(row["status"]).kind == SMALL_GROUP:
                    here["why"] = f"cannot tell (n = {count(row['n'])})"
                elif missing(base) or missing(after):
                    here["why"] = why_missing(row)
                elif base == 0:
                    here["why"] = "the baseline's rate is 0"
                else:
                    floor, scale = real(row["noise_floor"]), 100 / base
                    here |= {
                        "value": value(after - base, scale),
                        "low": value(row["ci_low"], scale),
                        "high": value(row["ci_high"], scale),
                        "floor_low": value(-floor, scale),
                        "floor_high": value(floor, scale),
                    }
            corner = intervals.Corner(text if first else None, j == 0, last)
            panels.append(
                intervals.change_panel(values, order, f"{label_of(metric)}, change %", corner, top)
            )
    n = count(len(variants))
    return {
        "title": titled(
            f"{n} variants against {label(result.baseline)}",
            selection(len(kept), len(groups), "groups"),
            selection(len(variants), len(result.variants), "variants", "the lowest sparsity"),
        ),
        "description": alt(n=count(len(every)), variants=n),
        "concat": panels,
        "columns": len(every),
        "spacing": {"row": 12, "column": 8},
    }
