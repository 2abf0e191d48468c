"""What was asked, and what is known of every candidate: metrics and costs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.choose.constraints import Requirement
from fairweight.auditing.choose.costs import costs
from fairweight.auditing.choose.measured import Measured
from fairweight.auditing.choose.objectives import Objective, Term
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Asked:
    """What is wanted of a variant."""

    objectives: tuple[Objective, ...]
    requirements: tuple[Requirement, ...] = ()
    weights: Floats | None = None  # of the objectives; None: the frontier, and no single best
    excluded: tuple[str, ...] = ()
    margin: float | None = None  # how far below the best, in units of the value, is near it

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every number that is needed, once."""
        own = [objective.term for objective in self.objectives]
        return tuple(dict.fromkeys([*own, *(r.term for r in self.requirements)]))


@dataclass(frozen=True)
class Known:
    """The terms of all candidates, on the data and in replicates."""

    variants: tuple[str, ...]
    terms: tuple[Term, ...]
    values: Floats  # (V, T)
    replicates: Floats  # (R, V, T)

    def of(self, term: Term) -> tuple[Floats, Floats]:
        """A term's values (V,) and replicates (R, V)."""
        at = self.terms.index(term)
        return self.values[:, at], self.replicates[:, :, at]


def metrics_of(asked: Asked) -> list[Term]:
    """The terms that examples are needed for."""
    return [term for term in asked.terms if term.noisy]


def known_of(found: Measured, asked: Asked, table: pd.DataFrame | None) -> tuple[Known, list[str]]:
    """Metrics and costs side by side, of the variants that have every objective."""
    for name in asked.excluded:
        if name not in found.variants:
            raise UnknownNameError("The variant of --exclude", name, found.variants)
    keep = np.array([name not in asked.excluded for name in found.variants])
    if not keep.any():
        raise InputError("--exclude leaves no variant to choose from; exclude fewer.")
    names = [name for name, kept in zip(found.variants, keep, strict=True) if kept]
    values = np.empty((len(names), len(asked.terms)))
    replicates = np.empty((len(found.replicates), len(names), len(asked.terms)))
    metrics = metrics_of(asked)
    for i, term in enumerate(asked.terms):
        if term.column is not None and table is not None:
            values[:, i] = costs(table, term.column, names)
            replicates[:, :, i] = values[:, i]
        else:
            at = metrics.index(term)
            values[:, i] = found.values[keep, at]
            replicates[:, :, i] = found.replicates[:, keep, at]
    whole = np.asarray(np.isfinite(values).all(axis=1))
    if not whole.any():
        lost = asked.terms[int(np.isnan(values).all(axis=0).argmax())].name
        raise InputError(f"'{lost}' has no value for any variant; choose by something else.")
    notes = []
    if not whole.all():
        left = [name for name, kept in zip(names, whole, strict=True) if not kept]
        notes.append(f"Left out, because a number is undefined for them: {', '.join(left)}.")
    kept_names = tuple(name for name, kept in zip(names, whole, strict=True) if kept)
    return Known(kept_names, asked.terms, values[whole], replicates[:, whole]), notes
