"""IO: figures of Iofinova, Peste and Alistarh (2023). Many attributes, and their bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.auditing.result import records
from fairweight.base.wording import NOTHING, missing, real, text
from fairweight.report.figures.forms.boxes import Box, Mean, Placed, Value, box_panel
from fairweight.report.figures.forms.encoding import layer, names, nominal, numbers, quantitative
from fairweight.report.figures.forms.lines import band_panel, setting_panel
from fairweight.report.figures.forms.text_table import BETTER, NONE, WORSE, TextCell, text_table
from fairweight.report.figures.inputs import (
    UNMADE,
    at_cut,
    by_level,
    cut_name,
    cuts,
    explained,
    untold,
    why_missing,
)
from fairweight.report.figures.registry import Drawn, Name, alt, figure
from fairweight.report.figures.theme import (
    BLUE,
    GREY,
    ORANGE,
    SERIES,
    Absent,
    Spec,
    label,
    labels,
    many,
    pair_title,
    value,
)
from fairweight.report.numbers import axis_of, count, is_share, label_of, number, signed

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

BIAS = "bias_amplification"
WORST_CASE = "worst_case_bias_amplification"
SUFFIX = "+thresholds"  # of variants whose thresholds were calibrated
BACKDOOR = "backdoor"  # the group column of marked examples
LEANS_NOWHERE = "no attribute leans to a side of a category"

# --- rows of attributes --------------------------------------------------------------------------


def _table(result: AuditResult, name: str = "attributes") -> pd.DataFrame:
    """The whole table, of all tasks."""
    frame = result.explanations.get(name)
    if frame is None or frame.empty:
        raise Absent(UNMADE[name])
    return frame


def _in_order(result: AuditResult, frame: pd.DataFrame) -> list[str]:
    """The variants of a table: the baseline first, then by their sparsity."""
    held = set(frame["variant"])
    return [name for name in (result.baseline, *by_level(result)) if name in held]


def _at(frame: pd.DataFrame, metric: str, category: str | None = None) -> pd.DataFrame:
    """The rows of one metric, about one category or about none."""
    own = frame[frame["metric"] == metric]
    return own[own["category"].isna() if category is None else own["category"] == category]


def _box(frame: pd.DataFrame, variant: str, metric: str, category: str | None = None) -> Box | None:
    """The values of all attributes of one variant; None where it has none.

    The mean is the audit's, with its interval: over the attributes that can be estimated, on the
    same examples. Where it has none, it is counted here and has no interval.
    """
    scale = 100.0 if is_share(metric) else 1.0
    rows = records(_at(frame[frame["variant"] == variant], metric, category))
    known = [row for row in rows if not missing(row["value"])]
    found = [
        Value(label(row["task"]), float(row["value"]) * scale)
        for row in known
        if text(row["task"]) is not None
    ]
    if not found:
        return None
    for row in known:
        if text(row["task"]) is None:
            return Box(found, Mean(*(value(row[end], scale) for end in ("value", "low", "high"))))
    return Box(found, Mean(sum(held.value for held in found) / len(found), None, None))


def _by_variant(
    result: AuditResult, frame: pd.DataFrame, metric: str, rule: float | None
) -> Spec | None:
    """Boxes over attributes, one for every variant; None where no variant has a value."""
    order = _in_order(result, frame)
    placed = [
        Placed(place, "attributes", held)
        for place, variant in zip(labels(order), order, strict=True)
        if (held := _box(frame, variant, metric)) is not None
    ]
    return box_panel(placed, _axis(metric), {"attributes": BLUE}, rule=rule) if placed else None


def _axis(metric: str) -> str:
    return "interrelation, R²" if metric == "interrelation" else axis_of(metric)


def _sizes(result: AuditResult, frame: pd.DataFrame) -> dict[str, str]:
    """How many attributes and variants there are, in words."""
    return {
        "attributes": many(frame["task"].nunique(), "attribute"),
        "variants": many(len(result.variants), "variant"),
    }


# --- boxes over attributes -----------------------------------------------------------------------


@figure("IO-F1a")
def amplification_by_category(result: AuditResult, name: str, task: Name) -> Drawn:
    found = _table(result)
    held_by = [str(held) for held in found.loc[found["metric"] == BIAS, "category"].dropna()]
    categories = list(dict.fromkeys(held_by))
    base, own = labels([result.baseline, name])
    placed = [
        Placed(label(category), series, held)
        for category in categories
        for series, whose in ((base, result.baseline), (own, name))
        if (held := _box(found, whose, BIAS, category)) is not None
    ]
    if not placed:
        return Absent(LEANS_NOWHERE)
    return {
        "title": pair_title(result, name),
        "description": alt(
            categories=", ".join(label(held) for held in categories),
            n=count(max(len(p.box.values) for p in placed)),
        ),
        **box_panel(placed, axis_of(BIAS), {base: GREY, own: ORANGE}, rule=0, joined=False),
    }


@figure("IO-F1b")
def worst_case_by_sparsity(result: AuditResult, name: str, task: Name) -> Drawn:
    found = _table(result)
    panel = _by_variant(result, found, WORST_CASE, rule=0)
    if panel is None:
        return Absent(LEANS_NOWHERE)
    sizes = _sizes(result, found)
    return {
        "title": ", ".join(sizes.values()),
        "description": alt(**sizes),
        **panel,
    }


@figure("IO-F2")
def systematic_bias(result: AuditResult, name: str, task: Name) -> Drawn:
    measures = {"tcb": 1.0, "ece": None, "interrelation": None}
    found = _table(result)
    panels = {
        label_of(metric): panel
        for metric, rule in measures.items()
        if (panel := _by_variant(result, found, metric, rule)) is not None
    }
    if not panels:
        return Absent("no attribute has a TCB, an ECE or an interrelation")
    sizes = _sizes(result, found)
    return {
        "title": ", ".join(sizes.values()),
        "description": alt(panels=", ".join(panels), **sizes),
        "hconcat": list(panels.values()),
    }


@figure("IO-F5a")
def calibrated_thresholds(result: AuditResult, name: str, task: Name) -> Drawn:
    before, after = "as they are", "calibrated thresholds"
    found = _table(result)
    held_by = set(found["variant"])
    pairs = [name for name in _in_order(result, found) if f"{name}{SUFFIX}" in held_by]
    if not pairs:
        return Absent(f"no variant is named like another with {SUFFIX} behind it")
    panels: list[Spec] = []
    for metric, rule in {WORST_CASE: 0.0, "tcb": 1.0}.items():
        placed = [
            Placed(place, series, held)
            for place, name in zip(labels(pairs), pairs, strict=True)
            for series, whose in ((before, name), (after, f"{name}{SUFFIX}"))
            if (held := _box(found, whose, metric)) is not None
        ]
        if placed:
            series = {before: GREY, after: BLUE}
            panels.append(box_panel(placed, axis_of(metric), series, rule=rule))
    if not panels:
        return Absent("no attribute has a bias amplification or a TCB")
    variants = many(len(pairs), "variant")
    return {
        "title": f"{many(found['task'].nunique(), 'attribute')}, {variants}",
        "description": alt(variants=variants),
        "hconcat": panels,
    }


@figure("IO-F5b")
def uncertain_exemplars(result: AuditResult, name: str, task: Name) -> Drawn:
    shares = {
        "other examples": ("uncertain_share_others", GREY),
        "exemplars": ("uncertain_share", ORANGE),
    }
    frame = _table(result, "exemplar_counts")
    cut = cuts(frame)[0]
    own = at_cut(frame, cut)
    order = _in_order(result, own)
    placed: list[Placed] = []
    for place, name in zip(labels(order), order, strict=True):
        for series, (column, _) in shares.items():
            found = [
                # A table without tasks is one task.
                Value(label(text(row["task"]) or "all examples"), 100 * float(row[column]))
                for row in records(own[own["variant"] == name], ("task", column))
                if not missing(row[column])
            ]
            if found:
                mean = Mean(sum(held.value for held in found) / len(found), None, None)
                placed.append(Placed(place, series, Box(found, mean)))
    if not placed:
        return Absent("the certainty of the dense models is not known (no scores)")
    most = many(max(len(p.box.values) for p in placed), "attribute")
    variants = many(len(order), "variant")
    colors = {series: color for series, (_, color) in shares.items()}
    return {
        "title": f"exemplars: {cut_name(*cut)}; at most {most}",
        "description": alt(variants=variants),
        **box_panel(placed, "uncertain dense answers, %", colors),
    }


# --- settings ------------------------------------------------------------------------------------


def _settings(result: AuditResult) -> pd.DataFrame:
    """Without variants whose thresholds were calibrated: between the others a line would jump."""
    found = _table(result, "settings")
    return found[~found["variant"].str.endswith(SUFFIX)]


def _by_sparsity(frame: pd.DataFrame) -> list[str]:
    """The variants of a table in the order of their mean sparsity; those without one come last."""
    levels = frame.groupby("variant", sort=False)["sparsity"].mean()
    known = {str(name): float(level) for name, level in levels.items()}
    return sorted(known, key=lambda name: (missing(known[name]), known[name]))


def _setting_panel(
    frame: pd.DataFrame,
    metric: str,
    order: Sequence[str],
    settings: Sequence[str],
    title: str,
    rule: float | None,
) -> Spec:
    """The values of one attribute and metric, a line per setting."""
    words, scale = _axis(metric), 100.0 if is_share(metric) else 1.0
    places = dict(zip(order, labels(order), strict=True))
    points = [
        {
            "setting": label(row["setting"]),
            "variant": places[row["variant"]],
            "value": value(row["value"], scale),
            "low": value(row["low"], scale),
            "high": value(row["high"], scale),
            "members": value(row["n_members"]),
            "n": value(row["n"]),
        }
        for row in records(frame)
        if row["variant"] in places
    ]
    known = [point for point in points if point["value"] is not None]
    shown = [label(name) for name in settings]
    return setting_panel(known, list(places.values()), shown, words, title, rule=rule)


@figure("IO-F3")
def single_and_joint(result: AuditResult, name: str, task: Name) -> Drawn:
    found = _settings(result)
    marked = set(found.loc[found["category"] == BACKDOOR, "setting"])
    clean = found[~found["setting"].isin(marked)]
    several = clean.groupby("task", sort=False)["setting"].nunique()
    tasks = [str(name) for name, n in several.items() if n > 1]
    if not tasks:
        return Absent("no attribute was trained in two settings")
    clean = clean[clean["task"].isin(tasks)]
    settings = list(dict.fromkeys(clean["setting"]))
    rows: list[tuple[str, str | None, float | None]] = [
        ("accuracy", None, None), ("uncertainty", None, None), ("tcb", None, 1.0),
    ]  # fmt: skip
    # As in the paper bias towards Male; in other data that of which most can be told.
    leaning = clean.loc[(clean["metric"] == BIAS) & clean["value"].notna(), "category"]
    if not leaning.empty:
        male = "Male" if (leaning == "Male").any() else str(leaning.mode().iloc[0])
        rows.append((BIAS, male, 0.0))
    panels: list[Spec] = []
    for metric, category, rule in rows:
        line = []
        for name in tasks:
            own = clean[clean["task"] == name]
            # What only one setting has cannot be compared.
            by_setting = own.groupby("variant", sort=False)["setting"].nunique()
            order = [held for held in _by_sparsity(own) if by_setting[held] > 1]
            title = label(name) if category is None else f"{label(name)}: {label(category)}"
            at = _at(own, metric, category)
            line.append(_setting_panel(at, metric, order, settings, title, rule))
        panels.append({"hconcat": line})
    n = many(len(settings), "setting")
    return {
        "title": f"{n}, {many(len(tasks), 'attribute')}",
        "description": alt(
            attributes=", ".join(map(label, tasks)),
            n=n,
            settings=", ".join(map(label, settings)),
        ),
        "vconcat": panels,
    }


@figure("IO-F4")
def backdoors(result: AuditResult, name: str, task: Name) -> Drawn:
    found = _settings(result)
    marked = _at(found, BIAS, BACKDOOR)
    marked = marked[marked["value"].notna()]
    if marked.empty:
        return Absent("no setting has marked examples")
    settings = list(dict.fromkeys(marked["setting"]))
    tasks = list(dict.fromkeys(marked["task"]))
    panels = [
        _setting_panel(own, BIAS, _by_sparsity(own), settings, label(name), rule=0)
        for name in tasks
        if len(own := marked[marked["task"] == name])
    ]
    return {
        "title": f"{many(len(settings), 'backdoor')}, {many(len(tasks), 'attribute')}",
        "description": alt(
            attributes=", ".join(map(label, tasks)),
            settings=", ".join(map(label, settings)),
        ),
        "concat": panels,
        "columns": 2,
    }


# --- overrides -----------------------------------------------------------------------------------


@figure("IO-F6")
def override_curves(result: AuditResult, name: str, task: Name) -> Drawn:
    found = explained(result, "override_curves", None, task)
    known = found[(found["metric"] == BIAS) & found["value"].notna()]
    if known.empty:
        return Absent("bias amplification is not estimable in any column")
    x = quantitative("budget", title="overridden examples, %")
    y = axis_of(BIAS)
    scale = {"range": list(SERIES)}
    color = nominal("variant", title=None, scale=scale, legend={"symbolOpacity": 1})
    tooltip = [*names("variant"), *numbers(".3g", "budget", "value", "low", "high", "random")]
    random = {"x": x, "y": quantitative("random", title=y), "color": color}
    panels: list[Spec] = []
    for group in dict.fromkeys(known["group"]):
        for source in ("human", "dense"):
            values = [
                {
                    "variant": label(row["variant"]),
                    "budget": value(row["budget"], 100),
                    **{n: value(row[n], 100) for n in ("value", "low", "high", "random")},
                }
                for row in records(known[(known["group"] == group) & (known["source"] == source)])
            ]
            dashed = layer("line", random, values=values, strokeDash=[5, 4], strokeWidth=1.5)
            title = f"{label(group)}: {source} labels"
            panels.append(band_panel(values, x, y, color, tooltip, title, [dashed]))
    variants = ", ".join(label(name) for name in dict.fromkeys(known["variant"]))
    return {
        "title": f"bias amplification of {variants}, against the share of overridden examples",
        "description": alt(variants=variants, n=count(len(panels))),
        "concat": panels,
        "columns": 2,
        "resolve": {"scale": {"y": "shared"}},
    }


# --- tables --------------------------------------------------------------------------------------


@figure("IO-T1")
def quality_and_cost(result: AuditResult, name: str, task: Name) -> Drawn:
    means = ("accuracy", "auc", "balanced_accuracy")
    found = _table(result)
    order = _in_order(result, found)
    cells: list[TextCell] = []
    for row, name in zip(labels(order), order, strict=True):
        own = found[found["variant"] == name]
        sparsity = real(own["sparsity"].iloc[0])
        if not missing(sparsity):
            cells.append(TextCell(row, "sparsity, %", f"{100 * sparsity:.1f}"))
        cells += [_mean_cell(row, axis_of(metric), own, metric) for metric in means]
        cells += _cost_cells(row, name, result.variants_table)
    known = {cell.column for cell in cells}
    columns = ["sparsity, %", *map(axis_of, means), *(words for words, _ in COSTS.values())]
    shown = [column for column in columns if column in known]
    attributes, variants = many(found["task"].nunique(), "attribute"), many(len(order), "variant")
    return {
        "title": f"{attributes}, {variants}",
        "description": alt(variants=variants, columns=", ".join(shown), attributes=attributes),
        **text_table(cells, shown, step=128),
    }


def _mean_cell(row: str, column: str, own: pd.DataFrame, metric: str) -> TextCell:
    rows = records(_at(own[own["task"].isna()], metric))
    if not rows or missing(rows[0]["value"]):
        why = why_missing(rows[0]) if rows else "not measured"
        return TextCell(row, column, "×", why=why)
    middle, low, high = (100 * real(rows[0][name]) for name in ("value", "low", "high"))
    ends = "" if missing(low) or missing(high) else f" [{low:.1f}, {high:.1f}]"
    return TextCell(row, column, f"{middle:.1f}{ends}")


COSTS = {
    "flops": ("operations, M", 1e-6),
    "flops_sparse": ("without zeros, M", 1e-6),
    "items_per_s": ("items per second", 1.0),
}


def _cost_cells(row: str, variant: str, table: pd.DataFrame | None) -> list[TextCell]:
    import pandas as pd

    if table is None:
        return []
    own = table[table["variant"].astype(str) == variant]
    cells = []
    for name, (column, scale) in COSTS.items():
        if name in own:
            mean = real(pd.to_numeric(own[name], errors="coerce").mean())
            if not missing(mean):
                cells.append(TextCell(row, column, number(scale * mean)))
    return cells


@figure("IO-TJ")
def amplification_table(result: AuditResult, name: str, task: Name) -> Drawn:
    found = _table(result)
    rows = found[(found["metric"] == BIAS) & found["task"].notna()]
    before, after = (
        {(str(r["task"]), str(r["category"])): r for r in records(rows[rows["variant"] == whose])}
        for whose in (result.baseline, name)
    )
    if not after:
        return Absent(LEANS_NOWHERE)
    tasks, categories = (list(dict.fromkeys(key[i] for key in after)) for i in (0, 1))
    heads = dict(zip(tasks, labels(tasks), strict=True))
    columns = dict(zip(categories, labels(categories), strict=True))
    cells: list[TextCell] = []
    for key, row in after.items():
        head, column = heads[key[0]], columns[key[1]]
        start, end = real(before.get(key, {}).get("value")), real(row["value"])
        if missing(start) or missing(end):
            cells.append(TextCell(head, column, NOTHING, why=untold(row)))
            continue
        said = f"{signed(100 * start, 1)} → {signed(100 * end, 1)}"
        low, high = real(row["sim_low"]), real(row["sim_high"])
        ink = WORSE if low > 0 else BETTER if high < 0 else NONE
        cells.append(TextCell(head, column, said, ink))
    return {
        "title": pair_title(result, name),
        "description": alt(
            attributes=many(len(tasks), "attribute"),
            categories=", ".join(columns.values()),
            rose=many(sum(cell.ink == WORSE for cell in cells), "cell"),
        ),
        **text_table(cells, list(columns.values()), step=150),
    }
