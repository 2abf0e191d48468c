"""What variants are compared in: metrics of the audit, and numbers of the variants table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT
from fairweight.auditing.metrics.outcomes import ANY
from fairweight.auditing.metrics.registry import metric, metrics
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.spec import OutcomeRole

Aim: TypeAlias = Literal["max", "min", "zero", "one"]
# Paganini's word for the distance between the best and the worst class.
PAPERS_NAMES = {"unfairness": "class_gap"}
MORE_IS_BETTER = frozenset({"sparsity", "items_per_s"})
# What people optimise comes first in a list that is cut.
USUAL = (
    "accuracy", "worst_group", WORST_GROUP_SHIFT, "group_gap", "class_gap", "class_shortfall",
    "cev_pp", "sde_pp", "balanced_accuracy", "auc",
)  # fmt: skip
NOT_NUMBERS = frozenset({"variant", "seed", "parent"})
AIMS: dict[str, Aim] = {"higher": "max", "lower": "min", "zero": "zero", "one": "one"}


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


def read_term(text: str, columns: Sequence[str], role: OutcomeRole | None = None) -> Term:
    """A name as metric or column; a metric of these data wins over a column of that name.

    Parameters
    ----------
    columns
        Numeric columns of the variants table.
    role
        What the outcomes are, where they stand in the place of predictions: `outcome`, and their
        own name, mean them.
    """
    name = text.strip()
    base, _, place = (part.strip() for part in name.partition("@"))
    asked = PAPERS_NAMES.get(base, base)
    known = {entry.name: entry for entry in metrics()}
    if role is not None and asked in (role.name, role.metric, ANY):
        return Term(name, role.metric, None, place)
    if asked in known:
        if known[asked].kind == ANY:
            raise InputError(
                f"'{asked}' is a number per example (--outcome COL --better higher|lower), and "
                "these data have labels and predictions; name a metric of them, such as accuracy."
            )
        if role is not None and not role.binary:
            raise InputError(
                f"'{asked}' asks which predictions are right, and '{role.name}' is a number; name "
                f"the outcome itself (outcome, or outcome@GROUP=VALUE), or a numeric column of "
                "--variants. What groups may lose is said by a policy (--policy)."
            )
        if not known[asked].choosable:
            raise InputError(
                f"'{asked}' cannot be an objective or a requirement: it is no value of a variant "
                "that replicates could be drawn of; fairweight metrics lists others."
            )
        return Term(name, asked, None, place)
    if name in columns:
        return Term(name, None, name)
    choosable = {name for name, entry in known.items() if entry.choosable}
    usual = [name for name in USUAL if name in choosable]
    raise UnknownNameError(
        "The objective",
        base,
        [*usual, *sorted(choosable - set(USUAL)), *columns],
        remedy="Name a metric (fairweight metrics) or a numeric column of --variants.",
    )


def read_objective(text: str, columns: Sequence[str], role: OutcomeRole | None = None) -> Objective:
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
    term = read_term(name, columns, role)
    if told is not None:
        return Objective(term, "min" if told == "min" else "max")
    if term.metric is None:
        return Objective(term, "max" if term.column in MORE_IS_BETTER else "min")
    better = metric(term.metric).better
    if better not in AIMS:
        raise InputError(
            f"'{term.name}' has no better direction of its own; say which: "
            f"--objective {term.name}:min or --objective {term.name}:max."
        )
    return Objective(term, AIMS[better])


def is_bounded(term: Term) -> bool:
    """Whether a term is a share or a difference of shares, so that a point of it means something.

    >>> is_bounded(read_term("accuracy", [])), is_bounded(read_term("cev_pp", []))
    (True, False)
    """
    if term.metric is None:
        return False
    entry = metric(term.metric)
    return entry.low >= -1 and entry.high <= 1


def is_outcome(term: Term) -> bool:
    """Whether a term is a ratio of sums of outcomes."""
    return term.metric is not None and metric(term.metric).kind == ANY


def needs_scores(terms: Iterable[Term]) -> bool:
    """Whether any term is of scores, not of answers."""
    return any(metric(t.metric).of_scores for t in terms if t.metric is not None)


# Requirements: what a variant must keep to be chosen at all.

_FORM = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>[^<>=\s]+)\s*")
ONE_SIDED = 0.05
MET, NEAR, MISSED = "met", "met, within noise", "missed"
NEARLY = "missed, within noise"


@dataclass(frozen=True)
class Requirement:
    """A term with a limit that may not be passed."""

    term: Term
    sign: str  # >=, >, <=, <
    limit: float

    @property
    def shown(self) -> str:
        """As it is printed: `accuracy >= 0.9`."""
        return f"{self.term.name} {self.sign} {self.limit:g}"

    def met(self, values: Floats) -> NDArray[np.bool_]:
        """Which values keep it; an undefined one does not."""
        compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
        found: NDArray[np.bool_] = compare[self.sign](values, self.limit)
        return found

    def shortfall(self, values: Floats) -> Floats:
        """By how much values miss it, in their own unit; 0 where they keep it."""
        lacking = self.limit - values if ">" in self.sign else values - self.limit
        found: Floats = np.where(self.met(values), 0.0, np.maximum(lacking, 0.0))
        return found


def read_requirement(
    text: str, columns: Sequence[str], role: OutcomeRole | None = None
) -> Requirement:
    """`accuracy>=0.9`, `worst_group_shift >= -0.02`, `size_bytes<=200000`.

    >>> read_requirement("size_bytes<=2e5", ["size_bytes"]).shown
    'size_bytes <= 200000'
    """
    found = _FORM.fullmatch(text)
    try:
        limit = np.nan if found is None else float(found["limit"])
    except ValueError:
        limit = np.nan
    if found is None or not np.isfinite(limit):
        raise InputError(
            f"--require {text!r} cannot be read; write a name, a sign (>=, <=, >, <) and a number: "
            "--require 'accuracy>=0.9'."
        )
    return Requirement(read_term(found["name"], columns, role), found["sign"], limit)


def standings(requirement: Requirement, values: Floats, replicates: Floats) -> list[str]:
    """How every variant stands to a requirement, and whether noise could turn it round.

    Noise could where more than 5 % of the replicates stand on the other side.
    """
    kept = requirement.met(values)
    other = (requirement.met(replicates) != kept).mean(axis=0) > ONE_SIDED
    words = {(True, False): MET, (True, True): NEAR, (False, False): MISSED, (False, True): NEARLY}
    return [words[bool(k), bool(o)] for k, o in zip(kept, other, strict=True)]


def nearest_miss(requirements: Sequence[Requirement], values: Floats) -> tuple[int, Floats]:
    """The variant that lacks least, and by how much it misses each requirement.

    Parameters
    ----------
    values
        (V, requirements). Misses of different units are compared relative to the spread of the
        variants' values (or to the limit, where they are all alike).
    """
    short = np.stack([r.shortfall(values[:, i]) for i, r in enumerate(requirements)], axis=1)
    short = np.where(np.isnan(values), np.inf, short)
    spread = np.array([np.nanstd(values[:, i]) for i in range(len(requirements))])
    limits = np.array([abs(r.limit) for r in requirements])
    unit = np.where(spread > 0, spread, np.where(limits > 0, limits, 1.0))
    missed = (~np.stack([r.met(values[:, i]) for i, r in enumerate(requirements)], axis=1)).sum(1)
    far = (short / unit).sum(axis=1)
    best = int(np.lexsort((missed, far))[0])
    return best, short[best]


# Value functions: weights of objectives, and over which weights each variant wins.


@dataclass(frozen=True)
class WinningRange:
    """A variant has the highest value while the second weight lies in [low, high] × the first."""

    variant: int
    low: float
    high: float


def read_weights(given: Sequence[str]) -> dict[str, float]:
    """`accuracy=1`, `unfairness=100` as numbers by name.

    >>> read_weights(["accuracy=1", "unfairness=100"])
    {'accuracy': 1.0, 'unfairness': 100.0}
    """
    found: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = np.nan
        if not (name.strip() and equals and np.isfinite(weight) and weight >= 0):
            raise InputError(
                f"--worth {text!r} cannot be read; write the name of an objective and a number of "
                "at least 0: --worth accuracy=1."
            )
        if name.strip() in found:
            raise InputError(f"--worth {name.strip()} was given twice; give it once.")
        found[name.strip()] = weight
    return found


def weights_of(objectives: Sequence[Objective], given: dict[str, float]) -> Floats | None:
    """A weight for every objective, 1 where none was given; None without any weight.

    A single objective needs no weight: its own value ranks.
    """
    names = [objective.name for objective in objectives]
    for name in given:
        if name not in names:
            raise InputError(
                f"--worth {name} is for no objective; there are: {', '.join(names)}. Add "
                f"--objective {name}, or leave that out."
            )
    if not given and len(objectives) > 1:
        return None
    found = np.array([given.get(name, 1.0) for name in names])
    if not found.any():
        raise InputError("--worth is 0 for every objective; give at least one a weight above 0.")
    return found


def winning_ranges(points: Floats) -> list[WinningRange]:
    """For two objectives, who wins for which ratio of the second weight to the first.

    Parameters
    ----------
    points
        (V, 2), higher better. Only corners of the upper convex hull ever win, in the order of
        the first objective; of equal points the first is named.

    Examples
    --------
    >>> [(w.variant, w.low, w.high) for w in winning_ranges(np.array([[3.0, 0.0], [2.0, 2.0],
    ...                                                               [0.0, 3.0], [1.0, 1.0]]))]
    [(0, 0.0, 0.5), (1, 0.5, 2.0), (2, 2.0, inf)]
    """
    order = [int(i) for i in np.lexsort((-points[:, 1], -points[:, 0]))]
    hull: list[int] = []
    for i in order:
        if hull and points[i, 1] <= points[hull[-1], 1]:
            continue  # no better in the second, no better in the first: it never wins alone
        while len(hull) > 1 and _turn(points, hull[-2], hull[-1]) >= _turn(points, hull[-1], i):
            hull.pop()
        hull.append(i)
    ends = [_turn(points, one, other) for one, other in pairwise(hull)]
    return [
        WinningRange(i, low, high)
        for i, low, high in zip(hull, [0.0, *ends], [*ends, np.inf], strict=True)
    ]


def _turn(points: Floats, one: int, other: int) -> float:
    """The ratio of weights at which the second overtakes the first."""
    lost = points[one, 0] - points[other, 0]
    return float(lost / (points[other, 1] - points[one, 1]))


# Numbers of the variants table: sparsity, size, latency; the same for whichever examples.


def numeric_columns(table: pd.DataFrame | None) -> list[str]:
    """The columns of a variants table that can be objectives."""
    if table is None:
        return []

    kinds = {str(name): table[name].dtype for name in table.columns if name not in NOT_NUMBERS}
    return [
        name for name, kind in kinds.items() if is_numeric_dtype(kind) and not is_bool_dtype(kind)
    ]


def costs(table: pd.DataFrame, column: str, variants: Sequence[str]) -> Floats:
    """A column's value of every variant: the mean over its members."""
    names = table["variant"].astype(str)
    known = set(names)
    missing = [name for name in variants if name not in known]
    if missing:
        raise InputError(
            f"The variants table (--variants) has no row for '{missing[0]}', so its {column} is "
            f"not known; add the row, or leave the variant out: --exclude '{missing[0]}'."
        )
    by_name = table.groupby(names)[column].mean()
    found = np.array([float(by_name[name]) for name in variants])
    empty = [name for name, value in zip(variants, found, strict=True) if not np.isfinite(value)]
    if empty:
        raise InputError(
            f"The variants table (--variants) has no {column} for '{empty[0]}'; fill it in, or "
            f"leave the variant out: --exclude '{empty[0]}'."
        )
    return found
