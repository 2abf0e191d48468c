"""A choice as tables: one row per variant, per number, per requirement, per range of weights."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight import __version__
from fairweight.auditing import schema
from fairweight.auditing.choose.frontier import Sureness
from fairweight.auditing.choose.objectives import (
    MET,
    MISSED,
    NEAR,
    NEARLY,
    Term,
    standings,
    winning_ranges,
)
from fairweight.auditing.choose.terms import ChoiceRequest, TermValues
from fairweight.auditing.result import AuditResult, Provenance
from fairweight.base.types import Floats

if TYPE_CHECKING:
    from fairweight.auditing.choose.choice import Choice

WORST_LAST = (MET, NEAR, NEARLY, MISSED)
LIMITS = (0.025, 0.975)
ON, TIED, OFF = "frontier", "within noise", "dominated"


def frames(
    request: ChoiceRequest,
    known: TermValues,
    kept: NDArray[np.bool_],
    sure: Sureness | None,
    chosen: str | None,
    baseline: str,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table of a choice by its name."""
    yield "choice", schema.frame("choice", _ranked(request, known, kept, sure, chosen, baseline))
    yield "choice_values", schema.frame("choice_values", _values(request, known))
    yield "choice_requirements", schema.frame("choice_requirements", _requirements(request, known))
    yield "choice_weights", schema.frame("choice_weights", _ranges(request, known, kept))


def _ranked(
    request: ChoiceRequest,
    known: TermValues,
    kept: NDArray[np.bool_],
    sure: Sureness | None,
    chosen: str | None,
    baseline: str,
) -> list[dict[str, Any]]:
    """Candidates, best first; those that do not qualify stand last, without a rank."""
    rows = []
    order = list(range(len(kept)))
    if sure is not None and request.weights is not None:
        order.sort(key=lambda i: (not kept[i], -sure.value[i]))
    elif sure is not None:
        likely = np.nan_to_num(sure.p_frontier)
        order.sort(key=lambda i: (not kept[i], not sure.frontier[i], -likely[i]))
    drawn = None if sure is None else sure.value_draws
    limits = None if drawn is None else np.quantile(drawn, LIMITS, axis=0)
    for place, i in enumerate(order):
        name = known.variants[i]
        row: dict[str, Any] = dict.fromkeys(schema.column_names("choice"))
        row |= {
            "variant": name, "is_baseline": name == baseline, "qualifies": bool(kept[i]),
            "chosen": name == chosen, "tied": False, "in_best_set": None,
            "status": "ok" if kept[i] else "does not qualify",
        }  # fmt: skip
        if sure is not None and kept[i]:
            standing = ON if sure.frontier[i] else TIED if sure.near[i] else OFF
            row |= {
                "rank": place + 1, "frontier": standing, "p_frontier": sure.p_frontier[i],
                "bootstrap_frontier": sure.frequency_frontier[i], "tied": standing == TIED,
            }  # fmt: skip
            if limits is not None:
                row |= {
                    "value": sure.value[i], "value_low": limits[0, i], "value_high": limits[1, i],
                    "value_shrunk": sure.value_shrunk[i], "p_best": sure.p_best[i],
                    "p_within_margin": sure.p_within_margin[i],
                    "bootstrap_best": sure.frequency_best[i],
                    "in_best_set": bool(sure.best_set[i]),
                    "tied": bool(sure.best_set[i]) and name != chosen,
                }  # fmt: skip
        rows.append(row)
    return rows


def _values(request: ChoiceRequest, known: TermValues) -> list[dict[str, Any]]:
    """Every term of every candidate with its interval over examples."""
    aims = {objective.term: objective.aim for objective in request.objectives}
    weights = np.full(len(aims), np.nan) if request.weights is None else request.weights
    weight_of = dict(zip((o.term for o in request.objectives), weights, strict=True))
    limits = {term: _limits(known, term) for term in request.terms}
    return [
        {
            "variant": name, "term": term.name, "metric": term.metric,
            "place": term.place or None, "aim": aims.get(term), "weight": weight_of.get(term),
            "value": known.of(term)[0][at], "low": limits[term][0, at],
            "high": limits[term][1, at],
        }
        for at, name in enumerate(known.variants)
        for term in request.terms
    ]  # fmt: skip


def _limits(known: TermValues, term: Term) -> Floats:
    """The 95 % interval over examples of every variant, (2, V); none for a known cost."""
    _, replicates = known.of(term)
    if not term.noisy:
        return np.full((2, replicates.shape[1]), np.nan)
    found: Floats = np.quantile(replicates, LIMITS, axis=0)
    return found


def _requirements(request: ChoiceRequest, known: TermValues) -> list[dict[str, Any]]:
    """How every candidate stands to every requirement."""
    rows = []
    for requirement in request.requirements:
        values, replicates = known.of(requirement.term)
        for name, value, standing in zip(
            known.variants, values, standings(requirement, values, replicates), strict=True
        ):
            rows.append(
                {
                    "variant": name, "requirement": requirement.shown, "value": value,
                    "limit": requirement.limit,
                    "shortfall": float(requirement.shortfall(np.array([value]))[0]),
                    "standing": standing,
                }
            )  # fmt: skip
    return rows


def _ranges(
    request: ChoiceRequest, known: TermValues, kept: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """For two objectives: over which ratios of weights each variant wins."""
    if len(request.objectives) != 2 or not kept.any():
        return []
    points = np.stack([o.oriented(known.of(o.term)[0]) for o in request.objectives], axis=1)
    names = [name for name, ok in zip(known.variants, kept, strict=True) if ok]
    first, second = (objective.name for objective in request.objectives)
    return [
        {
            "variant": names[found.variant], "first": first, "second": second,
            "ratio_low": found.low, "ratio_high": found.high,
        }
        for found in winning_ranges(points[kept])
    ]  # fmt: skip


def confirmed_frame(
    request: ChoiceRequest, other: TermValues, known: TermValues, kept: NDArray[np.bool_]
) -> pd.DataFrame:
    """The qualifying variants' numbers on rows that were not chosen on, beside those that were."""
    rows = []
    limits = {term: _limits(other, term) for term in request.terms}
    for at, (name, ok) in enumerate(zip(known.variants, kept, strict=True)):
        if not ok or name not in other.variants:
            continue
        there = other.variants.index(name)
        for term in request.terms:
            values, replicates = other.of(term)
            required = [
                standings(r, values[[there]], replicates[:, [there]])[0]
                for r in request.requirements
                if r.term == term
            ]
            rows.append(
                {
                    "variant": name, "term": term.name, "value": known.of(term)[0][at],
                    "confirmed": values[there], "low": limits[term][0, there],
                    "high": limits[term][1, there],
                    "standing": max(required, key=WORST_LAST.index, default=None),
                }
            )  # fmt: skip
    return schema.frame("choice_confirmed", rows)


# A choice in the shape of an audit's result, which figures read: its tables, and nothing else.


def as_result(choice: Choice) -> AuditResult:
    """The tables of a choice as explanations of an audit without rows."""
    nothing = pd.DataFrame()
    names = [str(name) for name in choice.tables["choice"]["variant"]]
    return AuditResult(
        baseline=choice.baseline,
        variants=tuple(name for name in names if name != choice.baseline),
        classes=(),
        positive=None,
        tasks=(),
        groupings=(),
        n_examples=choice.n_examples,
        results=nothing,
        per_seed=nothing,
        confusion=nothing,
        reliability=nothing,
        data=nothing,
        power=nothing,
        concentration=nothing,
        group_error=nothing,
        notes=choice.notes,
        provenance=Provenance(
            version=__version__,
            command=None,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=(),
            options={},
        ),
        explanations=choice.tables,
    )
