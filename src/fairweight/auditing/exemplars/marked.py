"""Which examples are exemplars of a variant, and how all of them are ranked.

What `find` counts and describes, and what a viewer of examples looks up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.cut import checked_fill, checked_percentiles
from fairweight.auditing.exemplars.disagreement import Disagreement, disagreement
from fairweight.auditing.exemplars.distance import per_member
from fairweight.auditing.exemplars.modal import tie_rule as chosen_rule
from fairweight.auditing.exemplars.selection import (
    DEFAULT_KINDS,
    KINDS,
    Request,
    Selection,
    selections,
)
from fairweight.auditing.exemplars.surrogate import surrogate
from fairweight.auditing.streams import stream
from fairweight.errors import InputError, UnknownNameError

PERCENTILES = (90.0, 95.0, 99.0)


@dataclass(frozen=True)
class Marked:
    """A variant beside the baseline, on every example.

    found       votes compared
    order       (n,) what ranks the examples: the distance per member, or a pair's surrogate
    priority    (n,) random numbers that decide among equals
    one_pair    whether one model stands against one
    sets        the exemplars of every kind and percentile
    """

    found: Disagreement
    order: Floats
    priority: Floats
    one_pair: bool
    sets: tuple[Selection, ...]

    @property
    def distance(self) -> Floats:
        """(n,) from 0 (the same votes) to 1 (none in common)."""
        return per_member(self.found.distance, self.found.scale) / 2


def checked_request(
    answers: Answers,
    percentiles: Sequence[float] = PERCENTILES,
    kinds: Sequence[str] = DEFAULT_KINDS,
    rule: str = "disjoint",
    fill: str | None = None,
    random_state: int = 0,
    alpha: float = 0.05,
) -> Request:
    """What is asked for; parameters as those of `find`."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("Kind of exemplars", kind, KINDS)
    if random_state < 0:
        raise InputError(f"random_state is {random_state}; give a whole number of at least 0.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    if not answers.variants:
        raise InputError("There is no compressed variant; exemplars need one beside the baseline.")
    return Request(
        answers,
        checked_percentiles(percentiles),
        tuple(kind for kind in KINDS if kind in kinds),
        chosen_rule(rule, answers),
        checked_fill(fill),
        random_state,
        alpha,
    )


def marked(request: Request, variant: str) -> Marked:
    """Compare a variant with the baseline, and choose its exemplars."""
    answers = request.answers
    first, second = answers.of(answers.baseline), answers.of(variant)
    one_pair = len(first) == len(second) == 1

    def rng(purpose: str) -> np.random.Generator:
        return stream(request.random_state, variant, answers.task or "", f"exemplars {purpose}")

    found = disagreement(first, second, request.rule, rng("modal ties"))
    priority = rng("ties at the cut").random(answers.n_examples)
    order: Floats = per_member(found.distance, found.scale)
    if one_pair:
        span, other = answers.rows(answers.baseline), answers.rows(variant)
        order = surrogate(answers, span.start, other.start)
    sets = selections(request, found, order, priority, one_pair)
    return Marked(found, order, priority, one_pair, tuple(sets))
