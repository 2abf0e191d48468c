"""The tables of the documentation that speak of populations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import populations_composites as composites
from . import populations_floors as single
from . import populations_gaps as gaps
from . import populations_null as null
from . import populations_power as power
from . import populations_rates as rates
from . import populations_values as values
from .measured import Figures, Share
from .populations import Design, children, same_seeds, unrelated

MEMBERS = (3, 5, 10)


def spread(shares: Iterable[Share]) -> str:
    """The least and the largest share."""
    found = [100 * s.value for s in shares]
    return f"{min(found):.1f} – {max(found):.1f} %"


def by_rates(scope: str, name: str, cases: Iterable[tuple[str, Design]], audits: int) -> Figures:
    rows = []
    for world, design in cases:
        found = rates.coverage(world, design, scope, audits)
        accuracy, shift = (
            [found[part, "overall"], spread(found[part, row] for row in rates.ROWS[1:])]
            for part in ("accuracy", "shift")
        )
        excess = spread(found["excess", row] for row in rates.ROWS[1:])
        rows.append((world, design, *accuracy, *shift, excess))
    head = (
        "world",
        "members",
        "accuracy",
        "by group",
        "shift",
        "by group",
        "excess by group",
    )
    note = f"{audits:,} populations per row, seed {rates.SEED}."
    return Figures(name, head, rows, note)


def method() -> Figures:
    return by_rates("method", "population-rates", rates.CASES, rates.AUDITS)


def model() -> Figures:
    return by_rates("model", "population-models", rates.MODEL_CASES, rates.MODEL_AUDITS)


def smooth() -> Figures:
    rows = []
    for world in values.WORLDS:
        for k in MEMBERS:
            for design in (children(k), unrelated(k, k)):
                found = values.coverage(world, design)
                shown = (
                    found[metric, part]
                    for metric in ("precision", "balanced_accuracy")
                    for part in ("compressed", "change", "excess")
                )
                rows.append((world, design, *shown))
    head = (
        "world",
        "members",
        "`precision`",
        "shift",
        "excess",
        "`balanced_accuracy`",
        "shift",
        "excess",
    )
    note = f"{values.AUDITS:,} populations per row, {values.DRAWS} draws, seed {values.SEED}."
    return Figures("population-values", head, rows, note)


def of_gaps() -> Figures:
    rows = []
    for world, per_group, k in gaps.CASES:
        found = gaps.gaps(world, children(k), per_group)
        shown = (
            f"{found[metric, rule].coverage} ({100 * found[metric, rule].width:.1f})"
            for metric in ("group_gap", "worst_group")
            for rule in gaps.RULES
        )
        rows.append((world, f"{per_group:,}", children(k), *shown))
    rules = [f"`{m}`, {rule}" for m in ("group_gap", "worst_group") for rule in gaps.RULES]
    note = (
        f"Coverage (mean width in points). {gaps.AUDITS:,} populations per row, "
        f"{gaps.DRAWS} draws, seed {gaps.SEED}."
    )
    head = ("world", "examples per group", "members", *rules)
    return Figures("population-gaps", head, rows, note)


def of_composites() -> Figures:
    rows = []
    for world in composites.WORLDS:
        for design in composites.COVERED:
            found = composites.coverage(world, design)
            rows.append((world, design, *(found[name] for name in composites.NAMES)))
    head = ("world", "members", *(f"`{name}`" for name in composites.NAMES))
    note = (
        f"{composites.AUDITS:,} populations per row, {composites.DRAWS} draws, "
        f"seed {composites.SEED}."
    )
    return Figures("population-composites", head, rows, note)


def relabelled() -> Figures:
    rows = []
    for design in composites.RELABELLED:
        found = composites.relabelling(design)
        rows.append((design, *(found[name] for name in composites.NAMES)))
    head = ("members", *(f"`{name}`, p ≤ .05" for name in composites.NAMES))
    note = f"{composites.NULL_AUDITS:,} populations per row, seed {composites.NULL_SEED}."
    return Figures("population-relabelling", head, rows, note)


def floors() -> Figures:
    rows = []
    for world in null.WORLDS:
        for k in (5, 6, 10):
            found = null.context(world, same_seeds(k))
            above, small = found["above the floor"], found["p ≤ .05"]
            rows.append((world, f"{k} + {k}", above[1], above[0], small[0]))
    head = (
        "world",
        "members",
        "quantities",
        "`matched` above `noise_floor`",
        "`p_retraining` ≤ .05",
    )
    note = f"{null.AUDITS:,} audits per row, seed {null.SEED}."
    return Figures("population-floors", head, rows, note)


def single_floors() -> Figures:
    rows = []
    for k in (5, 6, 8, 10, 20):
        for design in (same_seeds(k), unrelated(k, k)):
            found = single.floors(design)
            rows.append((design, found["above the floor"], found["p ≤ .05"]))
    head = ("members", "`matched` above `noise_floor`", "`p_retraining` ≤ .05")
    note = f"{single.DRAWS * single.QUANTITIES:,} quantities per row, seed {single.SEED}."
    return Figures("population-single-floors", head, rows, note)


def planted() -> Figures:
    rows = []
    for k in MEMBERS:
        dense, compressed = power.world(power.detectable(k)).rates()
        loss = f"{100 * float(dense[0, 0] - compressed[0, 0]):.1f} points"
        wolf = power.found(children(k), planted=False)
        rows.append((children(k), loss, power.found(children(k)), wolf))
    head = ("members", "planted", "found", "found where nothing is planted")
    note = f"{power.AUDITS:,} populations per row, seed {power.SEED}."
    return Figures("population-power", head, rows, note)


TABLES: dict[str, Callable[[], Figures]] = {
    "population-rates": method,
    "population-models": model,
    "population-values": smooth,
    "population-gaps": of_gaps,
    "population-composites": of_composites,
    "population-relabelling": relabelled,
    "population-single-floors": single_floors,
    "population-floors": floors,
    "population-power": planted,
}
