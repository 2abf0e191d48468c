"""Terms made of scores: AUC, calibration errors, Brier score, uncertainty, top-5 accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.objectives import Term
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.score_replicates import KINDS, Statistic, slice_sizes
from fairweight.auditing.compare.scored import (
    flag_statistics,
    probabilities,
    score_statistics,
    with_scores_only,
)
from fairweight.auditing.compare.slots import groupings_of
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class ScoredTerm:
    """A statistic of scores, and which of its slices was asked for."""

    statistic: Statistic
    table: int
    row: int

    def of_members(self, times: Floats, size: Floats) -> Floats:
        """The value of every member, (R, M), for items drawn `times` (items, R)."""
        found = [
            self.statistic.finish(matrix @ times, size)[self.table][self.row]
            for matrix in self.statistic.matrices
        ]
        return np.stack(found, axis=1)

    def exact(self) -> Floats | None:
        """The members' values on the data, where those of the sums are binned."""
        values = self.statistic.exact
        return None if values is None else values[:, self.row]


class ScoredTerms:
    """All terms of scores in one task."""

    def __init__(self, c: Comparison, terms: Sequence[Term]) -> None:
        if c.cube.scores is None or with_scores_only(c)[1]:
            names = ", ".join(term.name for term in terms)
            raise InputError(
                f"{names} needs a score of every variant on every example, and some have none; "
                "add a score column, or leave it out."
            )
        self._size = slice_sizes(c)
        self._terms = [_found(c, term) for term in terms]

    def of_members(self, draws: NDArray[Any]) -> list[Floats]:
        """Every term's value of every member, (R, M), for drawn items (R, items)."""
        times = np.ascontiguousarray(draws.T, dtype=np.float64)
        size = self._size @ times
        return [term.of_members(times, size) for term in self._terms]

    def corrections(self, observed: Sequence[Floats]) -> list[Floats | float]:
        """What binning took from the members' values on the data."""
        exact = [term.exact() for term in self._terms]
        return [
            0.0 if true is None else true - binned[0]
            for true, binned in zip(exact, observed, strict=True)
        ]


def _found(c: Comparison, term: Term) -> ScoredTerm:
    known = list(_rows(c, term))
    if not known:
        raise InputError(
            f"'{term.name}' cannot be estimated: there are no scores of the kind it needs (the "
            "positive class of two, --positive, or lists of scores)."
        )
    for place, found in known:
        if place == term.place:
            return found
    raise UnknownNameError("The place", term.place, [place for place, _ in known if place])


def _rows(c: Comparison, term: Term) -> Iterator[tuple[str, ScoredTerm]]:
    p = probabilities(c)
    places = [grouping for kind in KINDS for grouping in groupings_of(c, kind)]
    own = [s for s in (*score_statistics(c, p), *flag_statistics(c, p)) if s.metric == term.metric]
    tables = [(s, i) for s in own for i in range(len(s.kinds))]
    for grouping, (statistic, table) in zip(places, tables, strict=False):
        for row, level in enumerate(grouping.levels):
            yield level, ScoredTerm(statistic, table, row)
