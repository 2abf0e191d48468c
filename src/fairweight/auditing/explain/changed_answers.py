"""What became of every example's answers: right before, right after, lost, gained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.pairing import pair_members
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError
from fairweight.tables.parents import parents


@dataclass(frozen=True)
class Changes:
    """Per example, the share of the pairs of members in which it is so; 0 or 1 with one pair."""

    baseline: Floats  # (n,): the baseline's member is right
    compressed: Floats  # (n,)
    lost: Floats  # (n,): right before, wrong after
    gained: Floats  # (n,): wrong before, right after
    n_pairs: int


def changes(answers: Answers, variant: str) -> Changes:
    """Compare the members of a variant with those of the baseline that they belong to.

    Members are paired by parent or seed, else each with each, so that `gained` − `lost` is
    `compressed` − `baseline` on every example.
    """
    if variant == answers.baseline:
        raise InputError(
            f"The variant '{variant}' is the baseline itself; name a compressed one: "
            f"{', '.join(answers.variants)}."
        )
    first, second = answers.correct(answers.baseline), answers.correct(variant)
    pairing = pair_members(
        answers.members[answers.rows(answers.baseline)],
        answers.members[answers.rows(variant)],
        parents(answers.variants_table),
    )
    if pairing.how == "independent":
        before, after = first.mean(axis=0), second.mean(axis=0)
        return Changes(
            before, after, before * (1 - after), (1 - before) * after, len(first) * len(second)
        )
    parent, child = np.array(pairing.pairs).T
    right, still = first[parent], second[child - len(first)]
    return Changes(
        right.mean(axis=0),
        still.mean(axis=0),
        (right & ~still).mean(axis=0),
        (still & ~right).mean(axis=0),
        len(parent),
    )
