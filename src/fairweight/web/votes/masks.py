"""Filters as masks over the examples of a task."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.uncertain import unsure_scores
from fairweight.errors import InputError
from fairweight.web.votes.filters import Filters
from fairweight.web.votes.kinds import KINDS, SCORED, UNSURE
from fairweight.web.votes.opened import Array, SideVotes, TaskVotes

Mask = NDArray[np.bool_]

DEFAULT_KIND = "modal"


def mask_of(votes: TaskVotes, filters: Filters) -> Mask:
    """Which examples are asked for, whatever people said of them; not to be written to."""
    return _mask(votes, replace(filters, task=None, annotated=None))


def compressed(votes: TaskVotes, filters: Filters) -> SideVotes:
    """The compressed variant that the filters look at."""
    if filters.variant is None:
        return votes.side(votes.head.variants[0])
    if filters.variant == votes.head.baseline:
        raise InputError(
            f"The filter variant = '{filters.variant}' is the baseline; name a compressed variant, "
            "and use side = baseline for what the baseline answers."
        )
    return votes.side(filters.variant)


@lru_cache(maxsize=48)  # a byte per example each: pages of one selection ask for the same
def _mask(votes: TaskVotes, filters: Filters) -> Mask:
    mask = np.ones(votes.n_examples, dtype=bool)
    for column, level in filters.groups:
        mask &= _in_group(votes, column, level)
    if filters.label is not None:
        mask &= votes.label == votes.class_code(filters.label)
    side = compressed(votes, filters)
    baseline = votes.side(votes.head.baseline)
    own = side if filters.side == "compressed" else baseline
    row = None if filters.seed is None else votes.member(own.variant, filters.seed)
    given = own.modal if row is None else votes.prediction[row]
    if filters.prediction is not None:
        mask &= given == votes.class_code(filters.prediction)
    if filters.cell is not None:
        mask &= _in_cell(votes, filters, given)
    if filters.confidence is not None:
        mask &= _confident(votes, own, row, filters.confidence)
    if filters.changed is not None:
        mask &= _changed(votes, side, baseline, filters, row)
    if filters.percentile_min is not None:
        assert side.percentile is not None
        mask &= side.percentile >= np.float32(filters.percentile_min)
    if filters.kind is not None or filters.not_of is not None:
        mask &= _exemplar(votes, side, filters)
    mask.setflags(write=False)
    return mask


def _in_group(votes: TaskVotes, column: str, level: str) -> Mask:
    if column not in votes.groups:
        known = ", ".join(f"'{name}'" for name in votes.groups) or "none"
        raise InputError(
            f"The filter group.{column[:60]} names no group column; there are: {known}."
        )
    group = votes.groups[column]
    found: Mask = group.codes == group.code(column, level)
    return found


def _in_cell(votes: TaskVotes, filters: Filters, given: Array) -> Mask:
    if filters.positive is not None:
        positive = votes.class_code(filters.positive)
    elif votes.head.positive is not None:
        positive = votes.head.positive
    else:
        raise InputError(
            f"The filter cell = '{filters.cell}' needs to know which class is positive; add "
            "positive=CLASS to take one class against the rest."
        )
    truth, says = votes.label == positive, given == positive
    wanted_truth, wanted_says = {
        "TP": (truth, says),
        "FN": (truth, ~says),
        "FP": (~truth, says),
        "TN": (~truth, ~says),
    }[str(filters.cell)]
    found: Mask = wanted_truth & wanted_says
    return found


def _confident(votes: TaskVotes, own: SideVotes, row: int | None, wanted: str) -> Mask:
    if votes.score is None:
        raise InputError(
            f"The filter confidence = '{wanted}' needs scores, and these predictions have none; "
            "leave it out."
        )
    if row is None:
        known = (own.bits & SCORED) != 0
        unsure = (own.bits & UNSURE) != 0
    else:
        score = np.asarray(votes.score[row], dtype=np.float32)
        known = ~np.isnan(score)
        unsure = unsure_scores(score, votes.head.n_label_classes == 2)
    found: Mask = known & (unsure if wanted == "low" else ~unsure)
    return found


def _changed(
    votes: TaskVotes, side: SideVotes, baseline: SideVotes, filters: Filters, row: int | None
) -> Mask:
    before, after = baseline.modal, side.modal
    differs: Mask = (side.bits & KINDS["modal"]) != 0
    if row is not None:
        before, after = _pair(votes, side, baseline, row)
        differs = before != after
    if filters.changed in ("yes", "no"):
        return differs if filters.changed == "yes" else ~differs
    right = before if filters.changed == "lost" else after
    found: Mask = differs & (right == votes.label)
    return found


def _pair(votes: TaskVotes, side: SideVotes, baseline: SideVotes, row: int) -> tuple[Array, Array]:
    """Answers of a member and of its partner; of the other side as a whole where it has none."""
    own = votes.prediction[row]
    partners = votes.head.partners
    if side.rows.start <= row < side.rows.stop:
        parent = partners[row]
        return (baseline.modal if parent is None else votes.prediction[parent]), own
    children = [i for i in range(side.rows.start, side.rows.stop) if partners[i] == row]
    return own, (votes.prediction[children[0]] if children else side.modal)


def _exemplar(votes: TaskVotes, side: SideVotes, filters: Filters) -> Mask:
    bit = KINDS[filters.kind or DEFAULT_KIND]
    found: Mask = (side.bits & bit) != 0
    if filters.not_of is None:
        return found
    other = compressed(votes, Filters(variant=filters.not_of))
    alone: Mask = found & ((other.bits & bit) == 0)
    return alone
