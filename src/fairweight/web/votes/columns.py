"""What is worked out of the answers once, so that pages only look it up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer, Answers
from fairweight.auditing.compare.pairing import pair_members
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.disagreement import BLOCK
from fairweight.auditing.exemplars.marked import Marked, checked_request, marked
from fairweight.auditing.exemplars.uncertain import surest, unsure_scores
from fairweight.auditing.exemplars.votes import count_votes
from fairweight.tables.parents import parents
from fairweight.web.votes.kinds import BITS, KINDS, SCORED, UNSURE, kind_name

Columns = dict[str, NDArray[Any]]


def narrowest(largest: int) -> Any:
    """The smallest unsigned type that holds a number."""
    return np.min_scalar_type(largest)


def side_columns(answers: Answers, variant: str) -> Columns:
    """The most frequent answer of a variant's members, its votes, how many are right, how surely.

    Of equally frequent answers the first class.
    """
    given = answers.of(variant)
    n = answers.n_examples
    modal = np.zeros(n, dtype=given.dtype)
    votes = np.zeros(n, dtype=narrowest(len(given)))
    right = np.zeros(n, dtype=narrowest(len(given)))
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        block = given[:, here]
        modal[here], votes[here] = _most_frequent(block)
        right[here] = (block == answers.label[here]).sum(axis=0)
    bits = np.zeros(n, dtype=BITS)
    certainty = np.full(n, np.nan, dtype=np.float32)
    # `surest` speaks of the baseline; every side is asked as if it were it.
    found = surest(replace(answers, baseline=variant))
    if found is not None:
        score, two = found
        bits |= np.where(np.isnan(score), 0, SCORED).astype(BITS)
        bits |= np.where(unsure_scores(score, two), UNSURE, 0).astype(BITS)
        certainty = np.abs(score - np.float32(0.5)) if two else score
    # NaN comes last in numpy's order: who has no score is not known to be unsure.
    order = np.argsort(certainty, kind="stable").astype(np.uint32)
    return {
        "modal": modal,
        "modal_votes": votes,
        "right": right,
        "bits": bits,
        "uncertain_order": order,
    }


def variant_columns(answers: Answers, variant: str, bits: NDArray[Any]) -> tuple[Columns, int]:
    """Distances, percentiles and the ranking of a compressed variant, and the distances' scale.

    Its kinds of exemplars go into `bits`.
    """
    seen: Marked = marked(checked_request(answers), variant)
    for chosen in seen.sets:
        name = kind_name(chosen.kind, chosen.percentile)
        if chosen.mask is not None:
            bits[chosen.mask] |= BITS(KINDS[name])
    columns = {
        "distance": seen.found.distance,
        "percentile": percentiles(seen.order),
        "distance_order": np.lexsort((seen.priority, -seen.order)).astype(np.uint32),
    }
    return columns, seen.found.scale


def percentiles(order: Floats) -> NDArray[np.float32]:
    """Of 100 examples, how many have a smaller value.

    >>> percentiles(np.array([0.0, 0.5, 0.5, 2.0])).tolist()
    [0.0, 25.0, 25.0, 75.0]
    """
    below = np.searchsorted(np.sort(order), order, side="left")
    return (100.0 * below / max(len(order), 1)).astype(np.float32)


def member_scores(answers: Answers) -> NDArray[np.float32] | None:
    """Of every member its score, (members, n): of the positive one of two classes, else of its own
    answer; NaN where there is none, None where nobody has any.
    """
    if answers.score is not None or answers.scores is None:
        return answers.score
    entry = {name: i for i, name in enumerate(answers.score_classes)}
    if answers.positive is not None:
        return answers.scores[:, :, entry[answers.classes[answers.positive]]]
    none = len(entry)
    place = np.array([entry.get(name, none) for name in answers.classes] + [none])
    found = np.full(answers.prediction.shape, np.nan, dtype=np.float32)
    for row, given in enumerate(answers.prediction):
        at = place[given]
        known = np.flatnonzero(at != none)
        found[row, known] = answers.scores[row, known, at[known]]
    return found


def partners(answers: Answers) -> list[int | None]:
    """Of every member of a compressed variant, the row of the baseline member it comes from."""
    start = answers.rows(answers.baseline).start
    first = answers.members[answers.rows(answers.baseline)]
    known = parents(answers.variants_table)
    found: list[int | None] = [None] * len(answers.members)
    for variant in answers.variants:
        span = answers.rows(variant)
        pairing = pair_members(first, answers.members[span], known)
        for row, parent in zip(range(span.start, span.stop), pairing.parent.tolist(), strict=True):
            found[row] = None if parent < 0 else start + parent
    return found


def group_codes(answers: Answers) -> Iterator[tuple[str, tuple[str | None, ...], NDArray[Any]]]:
    """Name, levels and codes of every group column."""
    for column in answers.columns:
        yield column.name, column.values, column.code.astype(narrowest(len(column.values)))


def _most_frequent(block: Answer) -> tuple[Answer, NDArray[Any]]:
    votes = count_votes(block, block[:1])
    top = votes.first[0].copy()
    modal = np.broadcast_to(np.asarray(votes.answers[0], dtype=block.dtype), top.shape).copy()
    for answer, count in zip(votes.answers[1:], votes.first[1:], strict=True):
        more = count > top
        np.copyto(modal, np.asarray(answer, dtype=block.dtype), where=more)
        np.copyto(top, count, where=more)
    return modal, top
