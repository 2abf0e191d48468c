"""Sums of outcomes that are numbers, as the engine or the warehouse that holds the rows makes them.

One row of the result is a cell: its groups and clusters, and sums over its examples of products up
to the third order of four values of an example: the baseline's numerator less `centre` times its
denominator (num), what the compressed model adds to it (num_change), the baseline's denominator
(den), and what is added to that (den_change); each times the example's weight. Columns:

n, centre                       examples; the baseline's ratio over all examples
<denominator>, <weight>         sums of the baseline's denominators, unweighted, and of weights
<outcome>_<variant>             the outcome where all outcomes are 0 or 1, and a key; else empty
<outcome>_<variant>_sum_2100    Σ num² num_change, and so on, of every compressed variant
<outcome>_<variant>_better ...  how many examples became better, and what else is in `PER_MODEL`

`auditing/counts/sums_table.py` makes a cube of it. What is computed is said once here, for values
of any kind that can be added and multiplied: trees of SQL, expressions of narwhals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from fairweight.base.fields import options_of
from fairweight.errors import InputError
from fairweight.tables.names import split_grouping
from fairweight.tables.spec import Better, TableSpec

# What is summed: products up to the third order of these four. Differences between the models, not
# the compressed model's own values: rounding would eat Σ e³ of losses that hardly change.
VARIABLES = ("num", "num_change", "den", "den_change")  # num: less `centre` times den
Exponents: TypeAlias = tuple[int, ...]  # of the four
EXPONENTS: tuple[Exponents, ...] = tuple(
    sorted((p for p in product(range(4), repeat=4) if 0 < sum(p) <= 3), key=lambda p: (sum(p), p))
)
# Further numbers of every compressed model, in the order of a cube's file.
PER_MODEL = ("better", "worse", "changed", "changed_weight", "gains", "losses", "largest_loss")
COUNT, CENTRE = "n", "centre"
# Where the columns of several variants have no name in common.
OUTCOME, DENOMINATOR = "outcome", "denominator"


def terms_of(variables: int, order: int) -> tuple[Exponents, ...]:
    """The products that are summed.

    Parameters
    ----------
    variables
        2 where every denominator is 1, 3 where models share them, else 4.
    order
        3; 1 where cells are parts of clusters, which are multiplied as a whole.

    >>> [len(terms_of(variables, 3)) for variables in (2, 3, 4)]
    [9, 19, 34]
    """
    return tuple(e for e in EXPONENTS if not any(e[variables:]) and sum(e) <= order)


def result_name(given: str | Mapping[str, Any] | None, otherwise: str) -> str:
    """What a column of the result is called: as that of all models, or of a column each, so."""
    return given.strip('"') if isinstance(given, str) else otherwise


@dataclass(frozen=True)
class Sums:
    """Which sums a request takes, and under which names.

    Parameters
    ----------
    variants
        The baseline first.
    outcome, denominator, weight
        What columns of the result are called; None: there are no denominators, or weights.
    terms
        Which products are summed (`terms_of`).
    """

    variants: tuple[str, ...]
    outcome: str
    denominator: str | None
    weight: str | None
    better: Better
    terms: tuple[Exponents, ...]

    @classmethod
    def of(cls, tables: TableSpec, variants: tuple[str, ...]) -> Sums:
        """Of tables whose models are known."""
        for name in ("prediction", "seed"):
            if getattr(tables, name) != options_of(tables)[name][0].default:
                raise InputError(
                    f"{options_of(tables)[name][1].flag} ({name}=) cannot be used with outcomes "
                    "that are summed where the rows are; leave it out, or bring the rows here."
                )
        if len(set(variants)) < len(variants):
            raise InputError(
                "Outcomes of several members of one variant cannot be summed where the rows are: "
                "how members vary needs every number. Give each member a variant of its own, or "
                "bring the rows here."
            )
        of_examples = {c for g in tables.groups or () for c in split_grouping(g)}
        for name in sorted(of_examples | {*tables.clusters}):
            if name in (COUNT, CENTRE, tables.weight) or name.startswith("fw_"):
                raise InputError(
                    f"'{name}' is a column of the table of sums, so no group or cluster can have "
                    "that name; rename it."
                )
        sized, variables = tables.denominator is not None, 2 if tables.weight is None else 3
        if sized:  # one for all, or one in every model's own rows
            shared = isinstance(tables.outcome, Mapping) and isinstance(tables.denominator, str)
            variables = 3 if shared else 4
        return cls(
            variants,
            result_name(tables.outcome, OUTCOME),
            result_name(tables.denominator, DENOMINATOR) if sized else None,
            None if tables.weight is None else tables.weight.strip('"'),
            Better(str(tables.better)),
            terms_of(variables, 1 if tables.clusters else 3),
        )

    def own(self, model: int, of: str | Exponents | None = None) -> str:
        """The column of a variant: of its outcome, of a product, of a number in `PER_MODEL`."""
        name = f"{self.outcome}_{self.variants[model]}"
        if of is None:
            return name
        return f"{name}_{of}" if isinstance(of, str) else f"{name}_sum_{''.join(map(str, of))}"

    def values(
        self,
        column: Callable[[str], Any],
        if_positive: Callable[[Any, Any, Any], Any],
        if_equal: Callable[[Any, Any, Any, Any], Any],
    ) -> dict[str, Any]:
        """What is multiplied and summed, of each row.

        Parameters
        ----------
        column
            Gives `fw_n0 ...` and `fw_d0 ...` (numerators and denominators of the models), `fw_w`
            (weight) and `centre`.
        if_positive, if_equal
            Choices: (test, then, otherwise) and (one, other, then, otherwise).
        """
        num, den, weight = column("fw_n0"), column("fw_d0"), column("fw_w")
        made = {
            "fw_num": (num - column(CENTRE) * den) * weight,
            "fw_den": den * weight,
            "fw_plain": den,
            "fw_w": weight,
        }
        for m in range(1, len(self.variants)):
            own, of_own = column(f"fw_n{m}"), column(f"fw_d{m}")
            gain, loss = own - num, num - own
            better, worse = own * den - num * of_own, num * of_own - own * den
            if self.better == Better.LOWER:
                gain, loss, better, worse = loss, gain, worse, better
            if self.denominator is None:
                better, worse, grown = gain, loss, 0.0
            else:  # what is better is the ratio, without dividing by 0
                better = if_equal(of_own, den, gain, better)
                worse = if_equal(of_own, den, loss, worse)
                grown = if_equal(of_own, den, 0.0, 1.0)
            made |= {
                f"fw_num_change{m}": (own - num) * weight,
                f"fw_den_change{m}": (of_own - den) * weight,
                f"fw_better{m}": if_positive(better, 1.0, 0.0),
                f"fw_worse{m}": if_positive(worse, 1.0, 0.0),
                f"fw_changed{m}": if_equal(own, num, grown, 1.0),
                f"fw_gains{m}": if_positive(gain, gain, 0.0),
                f"fw_losses{m}": if_positive(loss, loss, 0.0),
            }
        return made

    def totals(self) -> dict[str, tuple[str, ...]]:
        """Column of the result to the values (`values`) whose product is summed.

        The largest loss is no sum: `largest`.
        """
        made: dict[str, tuple[str, ...]] = {}
        if self.denominator is not None:
            made[self.denominator] = ("fw_plain",)
        if self.weight is not None:
            made[self.weight] = ("fw_w",)
        for m in range(1, len(self.variants)):
            names = ("fw_num", f"fw_num_change{m}", "fw_den", f"fw_den_change{m}")
            for exponents in self.terms:
                made[self.own(m, exponents)] = tuple(
                    name for name, k in zip(names, exponents, strict=True) for _ in range(k)
                )
            for name in PER_MODEL[:-1]:
                plain = f"fw_{name.removesuffix('_weight')}{m}"
                made[self.own(m, name)] = (plain, "fw_w") if "weight" in name else (plain,)
        return made

    def largest(self) -> dict[str, str]:
        """Column of the result to the value of which the largest is taken."""
        return {self.own(m, PER_MODEL[-1]): f"fw_losses{m}" for m in range(1, len(self.variants))}
