"""How far annotators agree, and how far beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fairweight.tables.annotations.latest import latest
from fairweight.tables.annotations.verdict import Annotation
from fairweight.tables.canonical import canonical

Of = Literal["verdict", "label"]
Ratings = dict[tuple[str, str], dict[str, str]]  # (task, example) → annotator → answer


@dataclass(frozen=True)
class Agreement:
    """Agreement of two annotators (Cohen) or of more (Fleiss).

    Parameters
    ----------
    n_annotators, n_examples
        People with a part in it, and examples that at least two of them judged.
    raw
        Mean over these examples of the share of pairs of people who agree.
    kappa
        (raw − chance) / (1 − chance).
    reason
        Why `raw` or `kappa` is NaN; empty where neither is.
    """

    of: Of
    method: Literal["Cohen", "Fleiss"]
    n_annotators: int
    n_examples: int
    raw: float
    kappa: float
    reason: str


def agreement(rows: Iterable[Annotation], of: Of = "verdict") -> Agreement:
    """Agreement on verdicts or on labels, over examples that at least two people judged.

    `skip` is no verdict, and an empty label no answer. With two people chance is Cohen's, from
    each one's own shares; with more it is Fleiss', from everybody's together, in which examples
    may have different numbers of people.

    >>> said = {"ann": ("fine", "fine", "ambiguous", "fine"),
    ...         "bo": ("fine", "ambiguous", "ambiguous", "fine")}
    >>> rows = [Annotation(str(i), v, annotator=who) for who, vs in said.items()
    ...         for i, v in enumerate(vs)]
    >>> found = agreement(rows)  # raw 3/4; chance 3/4 · 2/4 + 1/4 · 2/4 = 1/2
    >>> found.raw, found.kappa
    (0.75, 0.5)
    """
    shared = {key: own for key, own in _ratings(rows, of).items() if len(own) > 1}
    people = sorted({who for own in shared.values() for who in own})
    method: Literal["Cohen", "Fleiss"] = "Fleiss" if len(people) > 2 else "Cohen"
    if not shared:
        reason = f"no example has a {of} from two annotators"
        return Agreement(of, method, 0, 0, math.nan, math.nan, reason)
    raw = sum(_pairs_agreeing(own) for own in shared.values()) / len(shared)
    chance = _cohen(shared, people) if method == "Cohen" else _fleiss(shared)
    if chance > 1 - 1e-12:
        reason = f"everybody gave the same {of} everywhere, so chance would agree as well"
        return Agreement(of, method, len(people), len(shared), raw, math.nan, reason)
    kappa = (raw - chance) / (1 - chance)
    return Agreement(of, method, len(people), len(shared), raw, kappa, "")


def _ratings(rows: Iterable[Annotation], of: Of) -> Ratings:
    found: Ratings = {}
    for row in latest(rows):
        said = "" if row.verdict == "skip" else row.verdict
        answer = canonical(row.label) if of == "label" else said
        if answer:
            found.setdefault((row.task, row.example_id), {})[row.annotator] = answer
    return found


def _pairs_agreeing(own: Mapping[str, str]) -> float:
    n = len(own)
    return sum(k * (k - 1) for k in Counter(own.values()).values()) / (n * (n - 1))


def _cohen(shared: Ratings, people: list[str]) -> float:
    first, second = (Counter(own[who] for own in shared.values()) for who in people)
    return sum(first[answer] * second[answer] for answer in first) / len(shared) ** 2


def _fleiss(shared: Ratings) -> float:
    pooled = Counter(answer for own in shared.values() for answer in own.values())
    total = pooled.total()
    return sum((k / total) ** 2 for k in pooled.values())
