"""Paganini's regression as a matrix: one column per term, in the order and names of the paper.

accuracy ~ dataset + model + weight_treatment * pruning_technique
    + np.exp(sparsity) + np.exp(sparsity):dataset + np.exp(sparsity):pruning_technique
    + sparsity + accuracy0 + accuracy0:weight_treatment + accuracy0:pruning_technique
    + accuracy0_quartile + imbalance + class_entropy
    + np.exp(sparsity):accuracy0 + accuracy0:accuracy0_quartile
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "Intercept"
GROWTH = "np.exp(sparsity)"
# The level that the others are compared with, where it is there.
REFERENCES: dict[str, str] = {
    "dataset": "cifar-10",
    "model": "alexnet",
    "weight_treatment": "finetune",
    "pruning_technique": "global_unstructured",
}
NUMBERS: tuple[str, ...] = (
    "sparsity", "accuracy0", "accuracy0_quartile", "imbalance", "class_entropy",
)  # fmt: skip
# In the order of the paper's table; a single name is a linear term, a pair a cross term.
TERMS: tuple[tuple[str, ...], ...] = (
    ("dataset",),
    ("model",),
    ("weight_treatment",),
    ("pruning_technique",),
    ("weight_treatment", "pruning_technique"),
    (GROWTH,),
    (GROWTH, "dataset"),
    (GROWTH, "pruning_technique"),
    ("sparsity",),
    ("accuracy0",),
    ("accuracy0", "weight_treatment"),
    ("accuracy0", "pruning_technique"),
    ("accuracy0_quartile",),
    ("imbalance",),
    ("class_entropy",),
    (GROWTH, "accuracy0"),
    ("accuracy0", "accuracy0_quartile"),
)
# A column is taken to follow from others when less than this share of it does not.
_LEFT_OVER = 1e-8
_ROUNDING = 1e-12
_ABSENT = "no row has this combination"
_FOLLOWS = "it follows from the terms before it"

Columns: TypeAlias = dict[str, list[tuple[str, NDArray[Any]]]]


@dataclass(frozen=True)
class Term:
    """A column of the full model, or a variable that brings none."""

    name: str
    cross: bool  # a product of two variables
    left_out: str = ""  # why, where it is


@dataclass(frozen=True)
class Design:
    """The columns that can be told apart, and what is to be said of the others."""

    matrix: NDArray[np.float64]  # (rows, kept terms)
    terms: tuple[Term, ...]  # kept and left out, as in the paper's table
    notes: tuple[str, ...]  # references that are not the paper's, variables without terms

    @property
    def kept(self) -> tuple[Term, ...]:
        """The terms that have a column."""
        return tuple(term for term in self.terms if not term.left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(term.name for term in self.kept)

    @property
    def cross(self) -> NDArray[np.bool_]:
        """Which columns are products of two variables."""
        return np.array([term.cross for term in self.kept])


def design(rows: pd.DataFrame) -> Design:
    """The matrix of the full model; rows must have no missing values.

    Terms that say nothing are left out: factors with one level, covariates that never vary,
    columns that follow from columns before them. Linear terms come first in this, so that a cross
    term never takes the place of a linear one.
    """
    columns, silent, notes = _variables(rows)
    notes += [f"{why}, so its terms are left out" for why in silent.values()]
    terms, places = [Term(INTERCEPT, cross=False)], [0]
    width = 1 + sum(_width(term, columns) for term in TERMS)
    matrix = np.ones((len(rows), width))
    for term in TERMS:
        if len(term) == 1 and term[0] in silent:
            terms.append(Term(term[0], cross=False, left_out=silent[term[0]]))
        for name, values in _products(term, columns):
            matrix[:, len(places)] = values
            places.append(len(terms))
            terms.append(Term(name, cross=len(term) > 1))
    cross = np.array([terms[place].cross for place in places])
    kept = _independent(matrix, np.argsort(cross, kind="stable"))
    for column in np.flatnonzero(~kept):
        why = _FOLLOWS if matrix[:, column].any() else _ABSENT
        terms[places[column]] = replace(terms[places[column]], left_out=why)
    return Design(matrix if kept.all() else matrix[:, kept], tuple(terms), tuple(notes))


def _variables(rows: pd.DataFrame) -> tuple[Columns, dict[str, str], list[str]]:
    """The columns that each variable brings, why some bring none, and references to be named.

    A factor has one column per level after its reference.
    """
    columns: Columns = {}
    silent: dict[str, str] = {}
    notes: list[str] = []
    for factor, wanted in REFERENCES.items():
        levels, code = np.unique(rows[factor].to_numpy(dtype=str), return_inverse=True)
        reference = next((i for i, name in enumerate(levels) if _same(name, wanted)), 0)
        columns[factor] = [
            (f"{factor}[T.{level}]", code == i) for i, level in enumerate(levels) if i != reference
        ]
        if len(levels) == 1:
            silent[factor] = f"{factor} has one level ({levels[0]})"
        elif not _same(levels[reference], wanted):
            notes.append(f"the reference of {factor} is {levels[reference]}, as {wanted} is absent")
    for number in NUMBERS:
        values = rows[number].to_numpy(dtype=float)
        columns[number] = [(number, values)]
        if np.ptp(values) == 0:
            columns[number] = []
            silent[number] = f"{number} never varies ({values[0]:.6g})"
    columns[GROWTH] = [(GROWTH, np.exp(values)) for _, values in columns["sparsity"]]
    if not columns[GROWTH]:
        silent[GROWTH] = f"{GROWTH} never varies"
    return columns, silent, notes


def _same(name: str, wanted: str) -> bool:
    """`cifar10`, `CIFAR-10` and `cifar-10` are one data set."""
    return re.sub(r"\W|_", "", name).lower() == re.sub(r"\W|_", "", wanted).lower()


def _width(term: tuple[str, ...], columns: Columns) -> int:
    return int(np.prod([len(columns[name]) for name in term]))


def _products(term: tuple[str, ...], columns: Columns) -> Iterator[tuple[str, NDArray[Any]]]:
    if len(term) == 1:
        yield from columns[term[0]]
        return
    first, second = term
    for name, values in columns[first]:
        for other, by in columns[second]:
            yield f"{name}:{other}", values * by


def _independent(matrix: NDArray[np.float64], priority: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns do not follow from those before them in the order of priority."""
    # R has the inner products of all columns in as many rows as there are columns, and unlike
    # the products themselves it keeps small differences.
    triangle: NDArray[np.float64] = np.asarray(np.linalg.qr(matrix, mode="r"))
    rest = triangle[:, priority]
    kept = np.zeros(len(priority), dtype=bool)
    size = np.linalg.norm(rest, axis=0)
    least = _ROUNDING * size
    for i, place in enumerate(priority):
        if i == 1:  # the intercept is out: what is left of a column is what it varies by
            size = np.linalg.norm(rest, axis=0)
        left = float(np.linalg.norm(rest[:, i]))
        if left <= max(float(least[i]), _LEFT_OVER * float(size[i])):
            continue
        kept[place] = True
        direction = rest[:, i] / left
        rest = rest - np.outer(direction, direction @ rest)
    return kept
