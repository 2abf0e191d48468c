"""Sums of outcomes that are numbers: what a cell of a cube holds in place of its examples' numbers.

Of every cell and model the products of (baseline's numerator, its change, baseline's denominator,
its change), up to the third order, summed over examples, and how many examples became better and
worse. They add up over cells, files and machines, and everything that limits of ratios need can be
made from them (`auditing/intervals/ratio.py`). Where examples are bound by clusters a cell holds
one cluster's part, and its totals are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.base.types import Floats
from fairweight.tables.sums import EXPONENTS as EXPONENTS
from fairweight.tables.sums import PER_MODEL as PER_MODEL
from fairweight.tables.sums import VARIABLES as VARIABLES
from fairweight.tables.sums import Exponents as Exponents
from fairweight.tables.sums import terms_of as terms_of

NORMAL_FROM = 1_000  # examples of one cell whose sum of signs is drawn as a normal number


def about_another_centre(
    product: Callable[[Exponents], Floats], exponents: Exponents, step: float | Floats
) -> Floats:
    """A sum of products once num has become num + step den, from the sums as they were."""
    num, change, den, grown = exponents
    made: Floats = product(exponents)
    for k in range(1, num + 1):
        made = made + comb(num, k) * step**k * product((num - k, change, den + k, grown))
    return made


def term_name(exponents: Exponents) -> str:
    """A product as a column of a file calls it.

    >>> term_name((2, 0, 1, 0))
    'num*num*den'
    """
    return "*".join(name for name, times in zip(VARIABLES, exponents, strict=True)
                    for _ in range(times))  # fmt: skip


@dataclass(frozen=True)
class OutcomeSums:
    """Sums of every cell; arrays are (cells, models) unless said otherwise.

    The baseline's own place holds its products with a change of 0, so that models are picked here
    as everywhere in a cube.

    Parameters
    ----------
    baseline
        The variant that changes are counted from.
    terms
        Which products there are (`terms_of`).
    centre
        (cells,): the constant times its denominator that is taken off every numerator of the
        baseline, or the third powers of values far from 0 would lose their digits.
    count
        (cells,): examples.
    den
        (cells,): their denominators under the baseline, unweighted.
    products
        (cells, models, terms), of numerators and denominators times the example's weight.
    better, worse, changed, changed_weight
        Examples that are better, worse or anyhow different under the compressed model; the weight
        of the latter.
    gains, losses, largest_loss
        Of numerators, unweighted.
    alike
        (cells,): whether the cell's examples all have the same numbers, so that each can be given a
        sign; None: nothing is known of them.
    """

    baseline: str
    terms: tuple[Exponents, ...]
    centre: Floats
    count: Floats
    den: Floats
    products: Floats
    better: Floats
    worse: Floats
    changed: Floats
    changed_weight: Floats
    gains: Floats
    losses: Floats
    largest_loss: Floats
    alike: NDArray[np.bool_] | None = None

    @staticmethod
    def of_values(
        baseline: str,
        values: Sequence[tuple[Floats, Floats]],
        *,
        first: int,
        higher: bool,
        terms: tuple[Exponents, ...],
        centre: Floats,
        count: Floats,
        weight: Floats | None,
        place: NDArray[np.integer[Any]],
        size: int,
    ) -> OutcomeSums:
        """The sums of rows that stand for `count` equal examples each.

        Parameters
        ----------
        values
            Numerators and denominators of every model, unweighted.
        first
            Which of them is the baseline.
        higher
            Whether more is better.
        centre
            (rows,): the constants; the same for all rows of one cell.
        place, size
            The cell of every row, and how many cells there are.
        """
        num_b, den_b = values[first]
        about = num_b - centre * den_b
        sign = 1.0 if higher else -1.0
        shape = (size, len(values))
        made: dict[str, Any] = {name: np.zeros(shape) for name in PER_MODEL}
        products = np.zeros((*shape, len(terms)))

        def total(of_rows: Floats | NDArray[np.bool_]) -> Floats:
            return np.bincount(place, of_rows * count, size).astype(np.float64, copy=False)

        for m, (num, den) in enumerate(values):
            change, grown = num - num_b, den - den_b
            variables = [v if weight is None else v * weight for v in (about, change, den_b, grown)]
            for t, exponents in enumerate(terms):
                factors = [v for v, k in zip(variables, exponents, strict=True) for _ in range(k)]
                product = factors[0]
                for factor in factors[1:]:
                    product = product * factor
                products[:, m, t] = total(product)
            gain = sign * change
            # Of denominators that differ what is better is the ratio, without dividing by 0.
            improved = np.where(grown == 0, gain, sign * (num * den_b - num_b * den))
            moved = (change != 0) | (grown != 0)
            made["better"][:, m], made["worse"][:, m] = total(improved > 0), total(improved < 0)
            made["changed"][:, m] = total(moved)
            made["changed_weight"][:, m] = total(moved if weight is None else moved * weight)
            made["gains"][:, m] = total(np.maximum(gain, 0))
            made["losses"][:, m] = total(np.maximum(-gain, 0))
            np.maximum.at(made["largest_loss"][:, m], place, -gain)
        centres = np.zeros(size)
        centres[place] = centre
        return OutcomeSums(
            baseline, terms, centres, total(np.ones(len(place))), total(den_b), products, **made
        )

    # --- as cells of a cube

    def select(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> OutcomeSums:
        """The cells where `keep` is true, or at its positions."""
        held = {name: getattr(self, name)[keep]
                for name in ("centre", "count", "den", "products", *PER_MODEL)}  # fmt: skip
        return replace(self, alike=None if self.alike is None else self.alike[keep], **held)

    def of_members(self, members: Sequence[int]) -> OutcomeSums:
        """The models at these places."""
        chosen = list(members)
        held = {name: getattr(self, name)[:, chosen] for name in ("products", *PER_MODEL)}
        return replace(self, **held)

    def merged(self, place: NDArray[np.integer[Any]], first: NDArray[np.intp]) -> OutcomeSums:
        """Cells added up: `place` of every cell among the new ones, each centred as its `first`."""
        moved, size = self.recentred(self.centre[first][place]), len(first)

        def total(values: Floats) -> Floats:
            columns = values.reshape(len(place), -1).T
            made: Floats = np.stack([np.bincount(place, c, size) for c in columns], axis=-1)
            return made.reshape(size, *values.shape[1:])

        held: dict[str, Any] = {
            name: total(getattr(moved, name)) for name in PER_MODEL if name != "largest_loss"
        }
        largest = np.zeros((size, self.products.shape[1]))
        np.maximum.at(largest, place, self.largest_loss)
        return replace(
            self,
            centre=self.centre[first],
            count=total(self.count),
            den=total(self.den),
            products=total(moved.products),
            largest_loss=largest,
            alike=None,
            **held,
        )

    @staticmethod
    def joined(parts: Sequence[OutcomeSums]) -> OutcomeSums:
        """The cells of several cubes one after the other; what one of them lacks is 0 there."""
        held = {term for part in parts for term in part.terms}
        terms = tuple(e for e in EXPONENTS if e in held)
        whole = [
            replace(p, terms=terms, products=np.stack([p.product(e) for e in terms], axis=-1))
            for p in parts
        ]
        names = ("centre", "count", "den", "products", *PER_MODEL)
        joint: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in whole]) for name in names
        }
        some = any(part.alike is not None for part in parts)
        known = [np.zeros(len(p.count), bool) if p.alike is None else p.alike for p in parts]
        return replace(whole[0], alike=np.concatenate(known) if some else None, **joint)

    def recentred(self, centre: Floats) -> OutcomeSums:
        """The same sums about other constants, (cells,)."""
        step = (self.centre - centre)[:, None]
        if not step.any():
            return replace(self, centre=centre)
        products = [about_another_centre(self.product, e, step) for e in self.terms]
        return replace(self, centre=centre, products=np.stack(products, axis=-1))

    # --- what they are asked for

    def product(self, exponents: Exponents) -> Floats:
        """Σ of one product; where every denominator is 1, its powers are left out."""
        if exponents in self.terms:
            return self.products[..., self.terms.index(exponents)]
        num, change, den, grown = exponents
        if grown == 0 and den and (0, 0, 1, 0) not in self.terms:
            if num + change:
                return self.product((num, change, 0, 0))
            return np.broadcast_to(self.count[:, None], self.products.shape[:2])
        return np.zeros(self.products.shape[:2])

    def all_products(self, model: int) -> Floats:
        """(cells, 34): the products of one model in the order of `EXPONENTS`."""
        return np.stack([self.product(e)[:, model] for e in EXPONENTS], axis=-1)

    def totals(self, model: int) -> Floats:
        """(4, cells): sums of the baseline's numerator about the centre, its change and so on."""
        first = [tuple(int(v == name) for v in VARIABLES) for name in VARIABLES]
        return np.stack([self.product(e)[:, model] for e in first])

    def of_single_examples(self) -> OutcomeSums:
        """Cells that are one example each: all products from its totals."""
        n_models = self.products.shape[1]
        held = {
            model: dict(zip(VARIABLES, self.totals(model), strict=True))
            for model in range(n_models)
        }

        def product(exponents: Exponents, model: int) -> Floats:
            made: Floats = np.ones(len(self.count))
            for name, times in zip(VARIABLES, exponents, strict=True):
                made = made * held[model][name] ** times
            return made

        products = [[product(e, m) for m in range(n_models)] for e in EXPONENTS]
        return replace(self, terms=EXPONENTS, products=np.transpose(np.array(products), (2, 1, 0)))
