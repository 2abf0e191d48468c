"""What variants are compared in: metrics of the audit, and numbers of the variants table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import Metric, metric, metrics
from fairweight.errors import InputError, UnknownNameError

Aim: TypeAlias = Literal["max", "min", "zero", "one"]
# Paganini's word for the distance between the best and the worst class.
PAPERS_NAMES = {"unfairness": "class_gap"}
MORE_IS_BETTER = frozenset({"sparsity", "items_per_s"})
NOT_NUMBERS = frozenset({"variant", "seed", "parent"})
AIMS: dict[str, Aim] = {"higher": "max", "lower": "min", "zero": "zero", "one": "one"}
_UNMEASURED = frozenset(
    {
        "flips",
        "harmful_flips",
        "helpful_flips",
        "excess_shift_standardised",
        "heterogeneity",
        "heterogeneity_within_classes",
    }
    | {"concentration", "class_impact", "label_interrelation"}
)


@dataclass(frozen=True)
class Term:
    """A number of every variant: a metric at a place of the data, or a column of the table."""

    name: str  # as it was written, without a direction
    metric: str | None  # None: a column of the variants table
    column: str | None = None
    place: str = ""  # "" everyone, "sex", "sex=Female", "class=3"

    @property
    def noisy(self) -> bool:
        """Whether other examples would give another value."""
        return self.metric is not None


@dataclass(frozen=True)
class Objective:
    """A term and which way it should go."""

    term: Term
    aim: Aim

    @property
    def name(self) -> str:
        return self.term.name

    def oriented(self, values: Floats) -> Floats:
        """The same with higher better: costs negated, distances from a target negated."""
        if self.aim == "max":
            return values
        target = 1.0 if self.aim == "one" else 0.0
        found: Floats = -values if self.aim == "min" else -np.abs(values - target)
        return found


def read_term(text: str, columns: Sequence[str]) -> Term:
    """A name as metric or column; a metric of these data wins over a column of that name.

    Parameters
    ----------
    columns
        Numeric columns of the variants table.
    """
    name = text.strip()
    base, _, place = (part.strip() for part in name.partition("@"))
    asked = PAPERS_NAMES.get(base, base)
    known = {entry.name for entry in metrics()}
    if asked in known:
        if asked in _UNMEASURED:
            raise InputError(
                f"'{asked}' cannot be an objective or a requirement: it is no value of a variant "
                "that replicates could be drawn of; fairweight metrics lists others."
            )
        return Term(name, asked, None, place)
    if name in columns:
        return Term(name, None, name)
    raise UnknownNameError(
        "The objective",
        base,
        [*_first_ones(known), *columns],
        remedy="Name a metric (fairweight metrics) or a numeric column of --variants.",
    )


def _first_ones(known: set[str]) -> list[str]:
    """What people optimise comes first in a list that is cut."""
    usual = ["accuracy", "worst_group", "worst_group_shift", "group_gap", "class_gap"]
    usual += ["class_shortfall", "cev_pp", "sde_pp", "balanced_accuracy", "auc"]
    rest = sorted(known - set(usual) - _UNMEASURED)
    return [name for name in usual if name in known] + rest


def read_objective(text: str, columns: Sequence[str]) -> Objective:
    """`accuracy`, `size_bytes:min`, `worst_group@sex`, `recall@class=3:max`.

    >>> objective = read_objective("size_bytes", ["size_bytes"])
    >>> objective.aim, read_objective("accuracy:min", []).aim, read_objective("unfairness", []).aim
    ('min', 'min', 'min')
    """
    found = re.fullmatch(r"(.+?)(?::\s*(min|max)\s*)?", text.strip())
    if found is None:
        raise InputError("--objective is empty; name a metric or a column: --objective accuracy.")
    name, told = found.groups()
    wrong = re.fullmatch(r"[^@]+:(\w*)", name)
    if wrong is not None and name not in columns:
        raise InputError(
            f"--objective {text!r} has no direction '{wrong[1]}'; end it with :min or :max."
        )
    term = read_term(name, columns)
    return Objective(term, _aim(term, told))


def _aim(term: Term, told: str | None) -> Aim:
    if told is not None:
        return "min" if told == "min" else "max"
    if term.metric is None:
        return "max" if term.column in MORE_IS_BETTER else "min"
    better = metric(term.metric).better
    if better not in AIMS:
        raise InputError(
            f"'{term.name}' has no better direction of its own; say which: "
            f"--objective {term.name}:min or --objective {term.name}:max."
        )
    return AIMS[better]


def is_bounded(term: Term) -> bool:
    """Whether a term is a share or a difference of shares, so that a point of it means something.

    >>> is_bounded(read_term("accuracy", [])), is_bounded(read_term("cev_pp", []))
    (True, False)
    """
    if term.metric is None:
        return False
    entry = metric(term.metric)
    return entry.low >= -1 and entry.high <= 1


def needs_scores(terms: Iterable[Term]) -> bool:
    """Whether any term is of scores, not of answers."""
    return any(_of_scores(metric(t.metric)) for t in terms if t.metric is not None)


def _of_scores(entry: Metric) -> bool:
    return entry.kind == "score" or entry.name in ("uncertainty", "top5_accuracy")
