"""Families at once: how large the largest deviation is where nobody pays more.

Random signs keep every group's own churn: permuting group labels lends it the churn of all, which
is wrong in 9 to 37 % of audits with small hard groups (docs/statistics.md). Each draw keeps the
largest deviation of every family, and of all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairweight.auditing.compare.comparison import MIN_CLUSTERS, Options
from fairweight.auditing.compare.signs import (
    N_DRAWS,
    SignedUnits,
    adjusted,
    quantile,
    share_beyond,
    units_of,
    units_of_numbers,
)
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import Cube
from fairweight.base.memory import reuse_freed_blocks
from fairweight.base.streams import stream
from fairweight.base.types import Floats

Key = tuple[str, str | None, str]  # variant, task (None also for the mean over tasks), kind


@dataclass(frozen=True)
class FamilyDraws:
    """Largest deviations of one family in every draw, and what they are compared with."""

    inside: NDArray[np.bool_]  # rows that belong to the family
    column: NDArray[np.intp]  # (rows,): which column a row belongs to
    contrasts: NDArray[np.intp]  # (columns,): different questions; two groups make one
    excess: Floats  # (draws, columns): largest |Z*| of the excess in each column
    shift: Floats  # (draws,): largest |Z*| of the shifts about their own values
    harm: Floats  # (draws,): largest Z* on the harmful side
    within: Floats  # (draws, columns): as `excess`, within classes; 0 columns where not drawn
    within_z: Floats  # (rows,): the observed deviation within classes
    standardised_z: Floats  # (rows,): of the excess with every class weighted equally

    @property
    def one_contrast(self) -> bool:
        return int(self.contrasts.sum()) <= 1

    def z_star(self, alpha: float) -> float:
        """The z at which limits of the excess hold for the whole family at once."""
        return quantile(self.excess.max(axis=1, initial=0.0), alpha, alone=self.one_contrast)

    def shift_z_star(self, alpha: float) -> float:
        """The z at which limits of the shifts hold for the whole family at once."""
        return quantile(self.shift, alpha, alone=int(self.inside.sum()) <= 1)

    def harm_z_star(self, alpha: float) -> float:
        """The same for one-sided limits on the harmful side."""
        least = 2 * alpha  # one-sided: 1.645 at .05
        return quantile(self.harm, alpha, alone=int(self.inside.sum()) <= 1, least=least)

    def adjusted(self, p: Floats) -> Floats:
        """p of every excess, corrected for the whole family."""
        found = p if self.one_contrast else adjusted(p, self.excess.max(axis=1, initial=0.0))
        return np.where(self.inside, found, np.nan)

    def column_p(self, p: Floats) -> Floats:
        """p of each column by its own largest deviation alone, (columns,)."""
        made = np.full(len(self.contrasts), np.nan)
        for k, contrasts in enumerate(self.contrasts):
            own = p[self.inside & (self.column == k)]
            if np.isfinite(own).any():
                least = np.array([np.nanmin(own)])
                made[k] = least[0] if contrasts == 1 else adjusted(least, self.excess[:, k])[0]
        return made

    def within_p(self) -> tuple[Floats, Floats, Floats]:
        """Largest deviation within classes of each column, its p, and p in the whole family."""
        n = len(self.contrasts)
        largest, alone, family = (np.full(n, np.nan) for _ in range(3))
        if self.within.shape[1] == n:
            everyone = self.within.max(axis=1, initial=0.0)
            for k in range(n):
                own = np.abs(self.within_z[self.inside & (self.column == k)])
                if np.isfinite(own).any():
                    largest[k] = np.nanmax(own)
                    alone[k] = share_beyond(largest[k : k + 1], self.within[:, k])[0]
                    family[k] = share_beyond(largest[k : k + 1], everyone)[0]
        return largest, alone, family


@dataclass(frozen=True)
class Signs:
    """The draws of a whole audit."""

    families: dict[Key, FamilyDraws]
    lead: Floats  # (draws,): the largest deviation of all families and variants together
    means: dict[tuple[str, str], MeanFamily]  # over tasks, by variant and kind

    def lead_z_star(self, alpha: float) -> float:
        return quantile(self.lead, alpha, alone=False)


def draw_signs(
    cube: Cube,
    baseline: str,
    variants: Sequence[str],
    grouping_names: Sequence[str],
    options: Options,
) -> Signs | None:
    """Random signs of all families of an audit at once; None where they are not defined.

    An example that clusters bind in two ways would need the signs of both.

    Notes
    -----
    With x = +1 gained, −1 lost, 0 same (populations: the difference of the members' means), weights
    w and D the shift of all, the score of example i for group g is
    u = w (x − D) (1[i in g] / W_g − 1[i not in g] / W_others), and Z* = Σ s u / √Σ u². Examples
    that are alike in everything share a binomial number of signs. Clusters get one sign each, for
    the sum of their scores.
    """
    if cube.second_unit is not None:
        return None
    if cube.outcome is not None and not cube.outcome.role.binary:
        # Variant by variant: the same signs for examples, normal numbers of their own.
        parts = [
            _drawn(
                units_of_numbers(cube, baseline, variant, grouping_names),
                (variant,),
                cube,
                options,
                stream(options.random_state, "signs", variant),
            )
            for variant in variants
        ]
        return Signs(
            {key: held for part in parts for key, held in part.families.items()},
            np.max([part.lead for part in parts], axis=0),
            {key: held for part in parts for key, held in part.means.items()},
        )
    if not cube.labelled:
        return Signs({}, np.zeros(N_DRAWS), {})
    units = units_of(cube, baseline, variants, grouping_names)
    return _drawn(units, variants, cube, options)


def _drawn(
    units: SignedUnits,
    variants: Sequence[str],
    cube: Cube,
    options: Options,
    normal_rng: np.random.Generator | None = None,
) -> Signs:
    kinds = ["overall", "class"] if cube.has_classes else ["overall"]
    kinds += ["group"] if any(g.single for g in units.groupings) else []
    kinds += ["intersection"] if any(not g.single for g in units.groupings) else []
    # A mean over tasks asks for the draws of all rows, a family for those of its own.
    tasks = [
        [Rows(units, t, kind, options, draws_all=bool(cube.tasks)) for kind in kinds]
        for t in range(len(units.tasks))
    ]
    families: list[SignRows] = []
    for kinds_of_rows in tasks:
        for v in range(len(variants)):
            classes: SignRows | None = None  # they come before the groups that ask for them
            for rows in kinds_of_rows:
                grouped = rows.kind in ("group", "intersection")
                several = classes is not None and classes.rows.n_rows > 1
                families.append(SignRows(rows, v, classes if grouped and several else None))
                classes = families[-1] if rows.kind == "class" else classes
    means = [
        MeanFamily([f for f in families if f.v == v and f.rows.kind == kind])
        for v in range(len(variants))
        for kind in ("overall", "group", "intersection")
        if cube.tasks and any(f.rows.kind == kind for f in families)
    ]
    everyone: list[SignRows | MeanFamily] = [*families, *means]
    largest = np.zeros(N_DRAWS)
    done = 0
    rng = stream(options.random_state, "signs")
    reuse_freed_blocks()
    for signs in units.draws(rng, normal_rng):
        place = slice(done, done + signs.shape[1])
        done += signs.shape[1]
        for kinds_of_rows in tasks:
            together = kinds_of_rows[0].everyone @ signs
            for rows in kinds_of_rows:
                rows.signs, rows.signs_all = rows.matrix @ signs, together
        for family in everyone:
            largest[place] = np.maximum(largest[place], family.draw(signs, place, rng))
    return Signs(
        {(variants[f.v], f.task, f.kind): f.draws for f in everyone},
        largest,
        {(variants[mean.v], mean.kind): mean for mean in means},
    )


class Rows:
    """The rows of one kind in one task: who belongs to them, and the sums of signs in them."""

    def __init__(
        self, units: SignedUnits, t: int, kind: str, options: Options, *, draws_all: bool
    ) -> None:
        self.units, self.kind, self.task = units, kind, units.tasks[t]
        at = self.entries = np.flatnonzero(units.task == t)
        self.min_group = options.min_group
        columns = self._columns(units, t, at)
        sizes = [len(levels) for _, levels, _ in columns]
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        self.n_rows, n_units = int(sum(sizes)), len(units.copies)
        self.column = np.repeat(np.arange(len(columns)), sizes)
        self.times = len(columns)  # how often every entry stands in the rows
        self.row = np.concatenate(
            [code + start for (code, _, _), start in zip(columns, self.starts, strict=True)]
        )
        unit, total = np.tile(units.unit[at], self.times), np.tile(units.total[at], self.times)
        n = self.n = sums(self.row, np.tile(units.count[at], self.times), self.n_rows)
        self.weight = sums(self.row, total, self.n_rows)
        self.others = units.total[at].sum() - self.weight
        self.level = np.concatenate([levels for _, levels, _ in columns])
        self.missing = np.concatenate([absent for _, _, absent in columns])
        self.inside = (n >= self.min_group) & ~self.missing & (self.weight > 0)
        key = unit * self.n_rows + self.row
        pairs, self.place = np.unique(key, return_inverse=True)
        self.place = self.place.reshape(-1)
        self.pair_unit, self.pair_row = pairs // self.n_rows, pairs % self.n_rows
        self.n_units_in = sums(self.pair_row, units.number[self.pair_unit], self.n_rows)
        if units.clustered:
            self.inside &= self.n_units_in >= MIN_CLUSTERS
        # The rows whose deviations are drawn, and those of each column among them.
        self.drawn = np.arange(self.n_rows) if draws_all else np.flatnonzero(self.inside)
        ends = np.searchsorted(self.drawn, [*self.starts, self.n_rows])
        self.of_columns = [slice(start, end) for start, end in pairwise(ends)]
        self.size = sums(self.place, np.tile(units.amount[at], self.times), len(pairs))
        self.matrix = self.summing(self.size)[self.drawn]
        self.everyone = sums(units.unit[at], units.amount[at], n_units).astype(np.float32)
        levels = np.bincount(self.column, weights=n > 0, minlength=len(columns))
        tested = np.bincount(self.column, weights=self.inside, minlength=len(columns))
        # Two groups are one question: what one has more, the other has less.
        self.contrasts = np.where(levels <= 2, np.minimum(tested, 1), tested).astype(np.intp)
        self.signs = np.zeros((0, 0), np.float32)
        self.signs_all = np.zeros(0, np.float32)

    def _columns(
        self, units: SignedUnits, t: int, at: NDArray[np.intp]
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]]:
        """By column: the row of every entry, the levels of the rows, which are missing values."""
        if self.kind == "overall":
            return [(np.zeros(len(at), np.intp), np.zeros(1, np.intp), np.zeros(1, bool))]
        if self.kind == "class":
            classes = np.array(units.classes[t], dtype=np.intp)
            code = np.zeros(int(classes.max(initial=0)) + 1, np.intp)
            code[classes] = np.arange(len(classes))
            return [(code[units.label[at]], classes, np.zeros(len(classes), bool))]
        made, first = [], 0
        for grouping in units.groupings:
            if grouping.single == (self.kind == "group"):
                present, code = np.unique(grouping.code[at], return_inverse=True)
                levels = present.astype(np.intp) + first
                made.append((code.reshape(-1).astype(np.intp), levels, grouping.missing[present]))
                first += len(grouping.levels)
        return made

    def level_name(self, level: int) -> str | None:
        """The group's name of a level; levels of several columns are numbered through."""
        for grouping in self.units.groupings:
            if self.kind != "overall" and grouping.single == (self.kind == "group"):
                if level < len(grouping.levels):
                    return grouping.levels[level]
                level -= len(grouping.levels)
        return None

    def summing(self, values: Floats) -> csr_array:
        """A matrix that sums signs × values over the units of each row."""
        keep = np.flatnonzero(values)
        at = (self.pair_row[keep], self.pair_unit[keep])
        shape = (self.n_rows, len(self.units.copies))
        return csr_array((values[keep].astype(np.float32), at), shape=shape)

    def largest(self, deviations: Floats) -> Floats:
        """The largest of each column in every draw, at least 0: (draws, columns)."""
        by_column = [deviations[here].max(axis=0, initial=0.0) for here in self.of_columns]
        return np.stack(by_column, axis=1)


class SignRows:
    """One variant in the rows of one kind and task."""

    def __init__(self, rows: Rows, v: int, classes: SignRows | None = None) -> None:
        self.rows, self.v, self.kind, self.task = rows, v, rows.kind, rows.task
        self.inside = rows.inside
        units, at = rows.units, rows.entries
        self.x = np.tile(units.x[at, v], rows.times)
        total, moved = units.total[at], units.change[at, v]
        change_all = sums(rows.row, np.tile(units.change_total[at, v], rows.times), rows.n_rows)
        self.shift = change_all * _inverse(rows.weight)  # 0 of rows without weight: not in a family
        everyone = moved
        self.overall = float(ratio(np.array(units.change_total[at, v].sum()), total.sum()))
        change = np.tile(moved, rows.times)
        self.change = sums(rows.place, change, len(rows.pair_row))
        self.matrix = rows.summing(self.change)[rows.drawn]
        self.everyone = sums(units.unit[at], everyone, len(units.copies)).astype(np.float32)
        self.inverse = _inverse(rows.others)
        self.both = np.where(rows.others > 0, _inverse(rows.weight), 0.0) + self.inverse
        variance = units.variance[rows.pair_unit]
        own = self.change - self.shift[rows.pair_row] * rows.size
        own_squares = sums(rows.pair_row, variance * own**2, rows.n_rows)
        change_squares = sums(rows.pair_row, variance * self.change**2, rows.n_rows)
        # Σ u² of every row's excess, scores centred at the shift of all. In double precision:
        # squares of weights may exceed what single precision holds.
        own = self.change - self.overall * rows.size
        all_units = self.everyone.astype(np.float64) - self.overall * rows.everyone
        inside = self.both[rows.pair_row] * own
        outside = -self.inverse[rows.pair_row] * all_units[rows.pair_unit]
        crossed = sums(rows.pair_row, variance * inside * (inside + 2 * outside), rows.n_rows)
        outer = self.inverse**2 * float((units.variance * all_units**2).sum())
        # (rows, 1) each; 0 of rows outside the family, so that none of them is the largest.
        self.loss_scale, self.shift_scale, self.excess_scale = (
            np.where(self.inside, _inverse_root(squares), 0.0)[rows.drawn, None]
            for squares in (change_squares, own_squares, crossed + outer)
        )
        self.within = None if classes is None else Within(self, classes)
        columns, nothing = len(rows.starts), np.full(rows.n_rows, np.nan)
        self.draws = FamilyDraws(
            rows.inside,
            rows.column,
            rows.contrasts,
            excess=np.zeros((N_DRAWS, columns)),
            shift=np.zeros(N_DRAWS),
            harm=np.zeros(N_DRAWS),
            within=np.zeros((N_DRAWS, 0 if self.within is None else columns)),
            within_z=nothing if self.within is None else self.within.z,
            standardised_z=nothing if self.within is None else self.within.standardised_z,
        )
        self.drawn = np.zeros((0, 0), np.float32)
        self.numerator: NDArray[Any] = np.zeros((0, 0), np.float32)

    def draw(self, signs: NDArray[np.float32], place: slice, rng: np.random.Generator) -> Floats:
        """Keep the largest deviations of some draws; return those that the lead asks about."""
        rows, at = self.rows, self.rows.drawn
        self.drawn = self.matrix @ signs
        loss = self.drawn * self.loss_scale
        lead: Floats = np.maximum(loss.max(axis=0, initial=0.0), -loss.min(axis=0, initial=0.0))
        own = self.drawn - self.shift[at, None].astype(np.float32) * rows.signs
        own = own * self.shift_scale
        harm = self.draws.harm[place] = own.max(axis=0, initial=0.0)
        self.draws.shift[place] = np.maximum(harm, -own.min(axis=0, initial=0.0))
        if self.kind == "overall":
            return lead
        deviation = self.drawn - np.float32(self.overall) * rows.signs
        everyone = self.everyone @ signs - np.float32(self.overall) * rows.signs_all
        self.numerator = self.both[at, None] * deviation - self.inverse[at, None] * everyone
        by_column = rows.largest(np.abs(self.numerator * self.excess_scale))
        self.draws.excess[place] = by_column
        if self.within is not None:
            found = np.where(self.inside[at, None], self.within.draw(signs, rng), 0.0)
            self.draws.within[place] = rows.largest(np.abs(found))
        lead = np.maximum(lead, by_column.max(axis=1, initial=0.0))
        return lead


class Within:
    """Scores within classes: whether classes alone explain that the change differs by group.

    The score of an example of class c is (x − D_c) α inside the group and −(x − D_c) β outside,
    with α = W_others,c / W_c and β = W_gc / W_c; of the excess with equal weights for all L classes
    that both sides have, α = 1 / (L W_gc) and β = 1 / (L W_others,c). What examples without a
    change add to a draw is little, and is drawn as one normal number for every row.
    """

    def __init__(self, family: SignRows, classes: SignRows) -> None:
        self.family, self.classes = family, classes
        rows, of = family.rows, classes.rows
        units, at, n_classes = rows.units, rows.entries, of.n_rows
        total = np.tile(units.total[at], rows.times)
        cls = np.tile(of.row, rows.times)
        self.score = np.tile(units.amount[at], rows.times) * (family.x - classes.shift[cls])
        cells, cell = np.unique(rows.row * n_classes + cls, return_inverse=True)
        self.cell = cell.reshape(-1)
        self.row, self.label = cells // n_classes, cells % n_classes
        here, everyone = sums(self.cell, total, len(cells)), of.weight[self.label]
        share = ratio(here, everyone)
        both = (here > 0) & (share < 1 - 1e-12)
        number = sums(self.row, both, rows.n_rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(both, 1 / number[self.row], 0.0)
            inside = np.where(both, each / here, 0.0)
            outside = np.where(both, each / (everyone - here), 0.0)
        shape = (rows.n_rows, n_classes)
        of_rows = csr_array((share.astype(np.float32), (self.row, self.label)), shape=shape)
        self.share = of_rows[rows.drawn]
        observed = sums(self.cell, total * (family.x - classes.shift[cls]), len(cells))
        count = sums(of.row, units.count[at], n_classes)
        if units.clustered:
            clusters = len(np.unique(units.unit[at]))
            correction = np.full(n_classes, clusters / max(clusters - 1, 1))
        else:
            correction = np.where(count > 1, count / np.maximum(count - 1, 1), 1.0)
        drawn = self._squares(1 - share, share)
        self.scale = _inverse_root(drawn)
        seen = self._squares(1 - share, share, correction)
        top = sums(self.row, observed, rows.n_rows)
        self.z = np.where(number > 0, top * _inverse_root(seen), np.nan)
        even = self._squares(inside, outside, correction)
        top = sums(self.row, (inside + outside) * observed, rows.n_rows)
        self.standardised_z = np.where(number > 0, top * _inverse_root(even), np.nan)
        used = self.score if units.clustered else np.where(family.x == 0, 0.0, self.score)
        self.matrix = rows.summing(sums(rows.place, used, len(rows.pair_row)))[rows.drawn]
        of_class = used[: len(at)]
        self.class_matrix = of.summing(sums(of.place, of_class, len(of.pair_row)))
        still = np.zeros(rows.n_rows)
        if not units.clustered:
            still = self._squares(1 - share, share, only=family.x == 0)
        self.still = np.sqrt(still).astype(np.float32)

    def _squares(
        self,
        inside: Floats,
        outside: Floats,
        factor: Floats | None = None,
        only: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Σ u² of every row for coefficients α and β of its cells, times a factor of the class."""
        rows, of = self.family.rows, self.classes.rows
        units, at = rows.units, rows.entries
        factor = np.ones(of.n_rows) if factor is None else factor
        if not units.clustered:
            square = units.variance[np.tile(units.unit[at], rows.times)] * self.score**2
            square = square if only is None else np.where(only, square, 0.0)
            own = sums(self.cell, square, len(self.row))
            of_class = sums(of.row, square[: len(at)], of.n_rows)[self.label]
            terms = factor[self.label] * (inside**2 * own + outside**2 * (of_class - own))
            return sums(self.row, terms, rows.n_rows)
        # A cluster may have several classes: its scores are summed first.
        value = self.score * (inside + outside)[self.cell]
        own_scores = rows.summing(sums(rows.place, value, len(rows.pair_row)))
        class_scores = of.summing(sums(of.place, self.score[: len(at)], len(of.pair_row)))
        taken = csr_array((outside, (self.row, self.label)), shape=(rows.n_rows, of.n_rows))
        made = np.zeros(rows.n_rows)
        for start in range(0, rows.n_rows, 64):
            part = slice(start, start + 64)
            scores = (own_scores[part] - taken[part] @ class_scores).toarray()
            made[part] = factor[0] * (scores.astype(np.float64) ** 2).sum(axis=1)
        return made

    def draw(self, signs: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        """Z* of the rows that are drawn, (rows, draws)."""
        at = self.family.rows.drawn
        made = self.matrix @ signs - self.share @ (self.class_matrix @ signs)
        if self.still.any():
            shape = len(self.still), signs.shape[1]
            made += self.still[at, None] * rng.standard_normal(shape, dtype=np.float32)[at]
        scaled: NDArray[np.float32] = made * self.scale[at, None].astype(np.float32)
        return scaled


class MeanFamily:
    """The mean over tasks of one variant's shifts and excesses, rows matched by group."""

    def __init__(self, parts: Sequence[SignRows]) -> None:
        first = parts[0]
        self.parts, self.v, self.kind, self.task = parts, first.v, first.kind, None
        units = first.rows.units
        levels = np.unique(np.concatenate([p.rows.level for p in parts]))
        self.at = [np.searchsorted(levels, p.rows.level) for p in parts]
        size = len(levels)
        self.groups = tuple(first.rows.level_name(int(level)) for level in levels)
        self.used = np.zeros(size)
        n, clusters, missing = np.zeros(size), np.zeros(size), np.zeros(size, bool)
        for part, at in zip(parts, self.at, strict=True):
            self.used[at] += part.rows.weight > 0
            n[at] = np.maximum(n[at], part.rows.n)
            clusters[at] = np.maximum(clusters[at], part.rows.n_units_in)
            missing[at] |= part.rows.missing
        self.n = n
        self.inside = (n >= first.rows.min_group) & ~missing & (self.used > 0)
        if units.clustered:
            self.inside &= clusters >= MIN_CLUSTERS
        self.column = np.zeros(size, np.intp)
        for part, at in zip(parts, self.at, strict=True):
            self.column[at] = part.rows.column
        self.n_columns = len(first.rows.starts)
        self.columns = [g.name for g in units.groupings if g.single == (self.kind == "group")]
        tested = np.bincount(self.column, weights=self.inside, minlength=self.n_columns)
        number = np.bincount(self.column, minlength=self.n_columns)
        self.contrasts = np.where(number <= 2, np.minimum(tested, 1), tested).astype(np.intp)
        self._measure(units, size)
        nothing = np.full(size, np.nan)
        self.draws = FamilyDraws(
            self.inside,
            self.column,
            self.contrasts,
            excess=np.zeros((N_DRAWS, self.n_columns)),
            shift=np.zeros(N_DRAWS),
            harm=np.zeros(N_DRAWS),
            within=np.zeros((N_DRAWS, 0)),
            within_z=nothing,
            standardised_z=nothing,
        )

    def _measure(self, units: SignedUnits, size: int) -> None:
        """Mean shift and excess with linearised errors, and the scales of the draws."""
        share = [_inverse(self.used[at]) for at in self.at]
        self.shift, self.excess = np.zeros(size), np.zeros(size)
        key, own, change, null, residual = [], [], [], [], []
        columns: list[Floats] = []
        outer: list[Floats] = []
        outer_null: list[Floats] = []
        for part, at, each in zip(self.parts, self.at, share, strict=True):
            rows = part.rows
            rest = ratio(part.overall * (rows.weight + rows.others) - part.shift * rows.weight,
                         rows.others)  # fmt: skip
            self.shift[at] += each * part.shift
            self.excess[at] += each * (part.shift - np.nan_to_num(rest))
            g = rows.pair_row
            weight = each * _inverse(rows.weight)
            key.append(rows.pair_unit * size + at[g])
            change.append(part.change * weight[g])
            residual.append((part.change - part.shift[g] * rows.size) * weight[g])
            null.append((part.change - part.overall * rows.size) * (each * part.both)[g])
            centre = each * (
                part.shift * _inverse(rows.weight) + np.nan_to_num(rest) * part.inverse
            )
            own.append(part.change * (each * part.both)[g] - rows.size * centre[g])
            columns += [part.everyone.astype(float), rows.everyone.astype(float)]
            for made, factors in (
                (outer, (-each * part.inverse, each * np.nan_to_num(rest) * part.inverse)),
                (outer_null, (-each * part.inverse, each * part.overall * part.inverse)),
            ):
                for factor in factors:
                    placed = np.zeros(size)
                    placed[at] = factor
                    made.append(placed)
        pairs, place = np.unique(np.concatenate(key), return_inverse=True)
        place = place.reshape(-1)
        unit, row = pairs // size, pairs % size
        variance = units.variance
        everyone = np.stack(columns, axis=1)  # (units, 2 × tasks)
        crossed = everyone.T @ (variance[:, None] * everyone)

        def summed(values: list[Floats]) -> Floats:
            return sums(place, np.concatenate(values), len(pairs))

        def alone(values: list[Floats]) -> Floats:
            return sums(row, variance[unit] * summed(values) ** 2, size)

        def against(values: list[Floats], factors: list[Floats]) -> Floats:
            inside, factor = summed(values), np.stack(factors)  # (2 × tasks, rows)
            outside = np.einsum("pt,tp->p", everyone[unit], factor[:, row])
            square = sums(row, variance[unit] * inside * (inside + 2 * outside), size)
            crossing: Floats = np.einsum("tr,ts,sr->r", factor, crossed, factor)
            return square + crossing

        number = sums(row, units.number[unit], size)
        total = float(units.number[np.unique(unit)].sum()) if len(unit) else 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            inflated = np.where(number > 1, number / (number - 1), np.nan)
            self.shift_error = np.sqrt(alone(residual) * inflated)
            self.excess_error = np.sqrt(
                np.maximum(against(own, outer), 0.0) * total / max(total - 1, 1.0)
            )
        self.degrees = np.maximum(number - 1, 1.0)
        self.excess_degrees = np.maximum(np.minimum(number, total - number) - 1, 1.0)
        self.loss_scale = _inverse_root(alone(change))
        self.shift_scale = _inverse_root(alone(residual))
        self.excess_scale = _inverse_root(against(null, outer_null))

    def draw(self, signs: NDArray[np.float32], place: slice, rng: np.random.Generator) -> Floats:
        size, n = len(self.inside), signs.shape[1]
        loss, own, excess = (np.zeros((size, n)) for _ in range(3))
        for part, at in zip(self.parts, self.at, strict=True):
            weight = _inverse(self.used[at] * part.rows.weight)[:, None]
            loss[at] += weight * part.drawn
            own[at] += weight * (part.drawn - part.shift[:, None] * part.rows.signs)
            if self.kind != "overall":
                excess[at] += part.numerator * _inverse(self.used[at])[:, None]
        inside = self.inside[:, None]
        own = np.where(inside, own * self.shift_scale[:, None], 0.0)
        self.draws.shift[place] = np.abs(own).max(axis=0, initial=0.0)
        self.draws.harm[place] = own.max(axis=0, initial=0.0)
        lead: Floats = np.where(inside, np.abs(loss * self.loss_scale[:, None]), 0.0).max(axis=0)
        if self.kind == "overall":
            return lead
        found = np.where(inside, np.abs(excess * self.excess_scale[:, None]), 0.0)
        for k in range(self.n_columns):
            self.draws.excess[place, k] = found[self.column == k].max(axis=0, initial=0.0)
        lead = np.maximum(lead, found.max(axis=0, initial=0.0))
        return lead


def _inverse(values: Floats) -> Floats:
    """1 / values; 0 where there is nothing to divide by."""
    with np.errstate(divide="ignore"):
        return np.where(values > 0, 1 / values, 0.0)


def _inverse_root(squares: Floats) -> Floats:
    """1 / √squares; 0 where nothing varies, so that 0/0 is 0."""
    least = 1e-12 * float(np.max(squares, initial=0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(squares > least, 1 / np.sqrt(np.maximum(squares, 1e-300)), 0.0)
