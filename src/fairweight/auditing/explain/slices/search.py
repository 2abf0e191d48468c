"""The search, from answers to a frame of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.counts.counts import sums
from fairweight.auditing.exemplars.largest_losses import gains
from fairweight.auditing.exemplars.selection import FEWEST_EXEMPLARS
from fairweight.auditing.explain.slices import UNSEARCHED
from fairweight.auditing.explain.slices.candidates import (
    SAME,
    Candidates,
    SliceColumn,
    candidates,
    chosen_columns,
    searchable,
)
from fairweight.auditing.explain.slices.contrasts import (
    SCREEN,
    Half,
    OutcomeContrast,
    OutcomeHalf,
    detectable_excess,
    distance,
    p_values,
    screened_p_values,
    slice_contrast,
)
from fairweight.auditing.intervals.excess import excess_interval
from fairweight.auditing.intervals.multiplicity import benjamini_hochberg
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.base.types import Floats
from fairweight.base.wording import counted
from fairweight.errors import InputError
from fairweight.tables.names import grouping_name
from fairweight.tables.spec import Better

# Which of the candidates stand out on the discovery half.


@dataclass(frozen=True)
class Discoveries:
    """One entry per candidate."""

    excess: Floats
    p: Floats  # of the excess over everyone else
    p_decisive: Floats  # of a pair: the largest of that and of its p within both parents
    parent: NDArray[np.int64]  # of a pair: 0 or 1, the parent it differs less clearly from; else −1
    order: NDArray[np.intp]  # those found, the least p first
    threshold: float  # the p up to which something was found; 0 if nothing was


def discoveries(found: Candidates, alpha: float) -> Discoveries:
    """Test every candidate and correct for all of them.

    Notes
    -----
    A single level is tested against everyone else. A pair must also differ from both of its
    parents, so its p in the family is the largest of three (an intersection–union test); the p of
    its excess alone is what it is ranked by.
    """
    everyone = distance(found.everyone)
    pairs = slice(found.n_single, None)
    apart = [distance(contrast) for contrast in found.parents]
    least = np.abs(everyone)
    for one in apart:
        least[pairs] = np.minimum(least[pairs], np.abs(one))
    worth = least >= (SCREEN if alpha <= 0.05 else 0.0)
    p = screened_p_values(found.everyone, worth)
    within = np.array([screened_p_values(c, worth[pairs]) for c in found.parents])
    decisive = p.copy()
    parent = np.full(p.size, -1, dtype=np.int64)
    if len(within):
        parent[pairs] = np.argmax(within, axis=0)
        decisive[pairs] = np.maximum(decisive[pairs], within.max(axis=0))
    adjusted = benjamini_hochberg(decisive)
    passed = np.flatnonzero(adjusted <= alpha)
    # P-values have a floor, below which the distance ranks; of a level and its complement, which
    # have everything but the sign in common, the one that pays comes first.
    pays = everyone[passed] > 0
    order = passed[np.lexsort((pays, -np.abs(everyone[passed]).round(9), p[passed]))]
    threshold = float(decisive[passed].max()) if passed.size else 0.0
    return Discoveries(found.everyone.excess, p, decisive, parent, order, threshold)


# From what stands out to a list in which every slice says something of its own.


@dataclass(frozen=True)
class Listed:
    """A slice of the list."""

    place: int  # among the candidates
    members: NDArray[np.bool_]  # (n,)
    p: float  # the largest p of all that it had to differ from
    same: list[str] = field(default_factory=list)  # others with nearly the same examples


@dataclass(frozen=True)
class Listing:
    slices: tuple[Listed, ...]
    p_adjusted: Floats  # of each of them
    explained: tuple[str, ...]  # stood out, but not beside those listed
    unread: int  # stood out, but the list was full


def listing(
    columns: Sequence[SliceColumn],
    discovery: NDArray[np.bool_],
    half: Half | OutcomeHalf,
    found: Candidates,
    stood_out: Discoveries,
    *,
    alpha: float,
    min_size: int,
    top: int,
) -> Listing:
    """Walk through what stands out, the clearest first.

    Notes
    -----
    - Nearly the same examples as a listed slice (Jaccard above 0.8): named there, not listed again.
    - Else it is listed if it would still be found with the listed slices set aside, and, where it
      lies mostly inside a listed slice, also within that one. A level that merely contains a listed
      pair, or is merely not the level that pays, says nothing new.

    One cause makes many slices stand out, and each of them would allow Benjamini–Hochberg a
    further false one. So what is left is adjusted again, by its own ranks and against the number of
    all tested slices.
    """
    listed: list[Listed] = []
    explained: list[str] = []
    unread = 0
    for rank, place in enumerate(stood_out.order.tolist()):
        if len(listed) == top:
            unread = stood_out.order.size - rank
            break
        members = found.slices[place].members(columns)
        name = found.slices[place].name(columns)
        for one in listed:
            both = np.count_nonzero(one.members & members)
            if both / np.count_nonzero(one.members | members) > SAME:
                one.same.append(name)
                break
        else:
            beside = _p_beside(members, listed, discovery, half, min_size)
            if beside <= stood_out.threshold:
                p = max(beside, float(stood_out.p_decisive[place]))
                listed.append(Listed(place, members, p))
            else:
                explained.append(name)
    others = np.ones(len(found.slices) - len(listed))
    p_all = np.concatenate([[one.p for one in listed], others])
    adjusted = benjamini_hochberg(p_all)[: len(listed)]
    kept = np.flatnonzero(adjusted <= alpha)
    explained += [
        found.slices[one.place].name(columns)
        for one, value in zip(listed, adjusted, strict=True)
        if value > alpha
    ]
    return Listing(tuple(listed[i] for i in kept), adjusted[kept], tuple(explained), unread)


def _p_beside(
    members: NDArray[np.bool_],
    listed: list[Listed],
    discovery: NDArray[np.bool_],
    half: Half | OutcomeHalf,
    min_size: int,
) -> float:
    """The largest p of the slice beside those listed; 1 where too little is left to compare."""
    if not listed:
        return 0.0
    size = np.count_nonzero(members)
    around: list[NDArray[np.bool_]] = []
    aside = np.zeros(members.size, dtype=np.bool_)
    for one in listed:
        if np.count_nonzero(one.members & members) > SAME * size:
            around.append(one.members)
        else:
            aside |= one.members
    found = []
    for among in (~aside, *(one & ~aside for one in around)):
        inside = np.count_nonzero(members & among)
        if min(inside, np.count_nonzero(among) - inside) < min_size:  # as for every candidate
            return 1.0
        kept = among[discovery]
        p = p_values(slice_contrast(half.part(kept), members[discovery][kept]))
        found.append(float(np.nan_to_num(p, nan=1.0)[0]))
    return max(found)


# What a list of slices, or its absence, means: one sentence each.

_NAMED = 5  # further slices that are named


def other_slices(kept: Listing, top: int) -> list[str]:
    """What stood out and is not listed."""
    notes = []
    if kept.explained:
        named = ", ".join(kept.explained[:_NAMED])
        more = len(kept.explained) - _NAMED
        notes.append(
            f"Not listed, because nothing of their excess stands out beside the slices listed: "
            f"{named}{f' and {more} more' if more > 0 else ''}."
        )
    if kept.unread:
        notes.append(f"The list ends at {top}; {kept.unread} further slices stood out.")
    return notes


def nothing_found(tested: Candidates, half: Half | OutcomeHalf, alpha: float) -> list[str]:
    """How many slices were tested, and what excess would have been found."""
    number = len(tested.slices)
    pairs = number - tested.n_single
    kinds = f"{tested.n_single:,} levels" + (f" and {pairs:,} pairs" if pairs else "")
    sizes = np.quantile(tested.n, (0.0, 0.5, 1.0), method="inverted_cdf").astype(int)
    found, not_found = [], []
    for size in dict.fromkeys(sizes.tolist()):
        least = detectable_excess(size / 2, half, number, alpha)
        if np.isnan(least):
            not_found.append(f"{size:,}")
        else:
            amount = f"{100 * least:.1f} points" if isinstance(half, Half) else f"{least:.3g}"
            found.append(f"{amount} in a slice of {size:,} examples")
    notes = [
        f"No slice found: {number:,} slices ({kinds}) were tested, and none differs from all "
        f"others at a false discovery rate of {alpha:g}."
    ]
    if found:
        alone = half.exact if isinstance(half, Half) else half.unit is None
        independent = "" if alone else " (were all examples independent)"
        notes.append(
            f"An excess that is found with a power of 80 %{independent}: {', '.join(found)}."
        )
    if not_found:
        notes.append(f"In a slice of {' or '.join(not_found)} examples no excess could be found.")
    return notes


# One half to discover slices on, the other to measure them again.


def discovery_half(
    change: Floats,
    label: NDArray[Any],
    cluster: NDArray[np.int64] | None,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Which examples belong to the discovery half.

    Parameters
    ----------
    change
        Change of correctness, or of the outcome, of every example.
    label
        Its class.
    cluster
        Clusters go into one half whole.

    Notes
    -----
    Examples (clusters) are ordered by their change, then by label (size), at random where equal,
    and of every two neighbours one goes into each half: rare lost answers are then halved as
    evenly as they can be. Tests condition on how many answers were lost and gained in a half, so
    that their numbers are not random does not matter; who is in a slice remains so.
    """
    if cluster is None:
        return _one_of_two(change, label, rng)
    n_clusters = int(cluster.max()) + 1
    total = sums(cluster, change, n_clusters)
    size = np.bincount(cluster, minlength=n_clusters)
    return _one_of_two(total, size, rng)[cluster]


def _one_of_two(
    first: NDArray[Any], second: NDArray[Any], rng: np.random.Generator
) -> NDArray[np.bool_]:
    shuffled = rng.permutation(first.size)
    order = shuffled[np.lexsort((second[shuffled], first[shuffled]))]
    heads = rng.random((first.size + 1) // 2) < 0.5
    chosen = np.empty(first.size, dtype=np.bool_)
    chosen[order] = np.column_stack([heads, ~heads]).ravel()[: first.size]
    return chosen


# The excess of listed slices on examples that had no part in finding them.

_ALPHA = 0.05  # of the interval, and of the test that confirms


@dataclass(frozen=True)
class Confirmation:
    n: int
    excess: float
    low: float
    high: float
    p: float
    status: str


def confirmed(
    half: Half | OutcomeHalf, inside: NDArray[np.bool_], *, discovered: float, clustered: bool
) -> Confirmation:
    """Effect, 95 % interval and p of one slice on the confirmation half.

    Parameters
    ----------
    half
        The confirmation half.
    inside
        Which of its examples belong to the slice.
    discovered
        The excess on the discovery half; confirmation needs its sign.

    Notes
    -----
    Examples (clusters) are sampled. Choosing the slice used other examples, so neither the effect
    nor the interval is flattered by the choice.
    """
    n = int(np.count_nonzero(inside))
    nothing = float("nan")
    if n in (0, inside.size):
        return Confirmation(n, nothing, nothing, nothing, nothing, "not_estimable: no examples")
    contrast = slice_contrast(half, inside)
    excess = float(contrast.excess[0])
    if isinstance(contrast, OutcomeContrast):
        units, least = int(contrast.degrees[0]) + 1, MIN_CLUSTERS if clustered else 2
        if units < least:
            status = f"not_estimable: {units} {'clusters' if clustered else 'examples'}"
            return Confirmation(n, excess, nothing, nothing, nothing, status)
        p = p_values(contrast)
        low, high = contrast.found.limits(_ALPHA)
        if np.isnan(p[0]):
            status = "not_estimable: too few changed values"
            return Confirmation(n, excess, nothing, nothing, nothing, status)
    elif contrast.error is None or contrast.degrees is None:
        p = p_values(contrast)
        one, other = contrast.inside, contrast.rest
        low, high = excess_interval(
            one.size, one.lost, one.gained, other.size, other.lost, other.gained, _ALPHA
        )
    else:
        units = int(contrast.degrees[0]) + 1
        least = MIN_CLUSTERS if clustered else 2
        if units < least:
            status = f"not_estimable: {units} {'clusters' if clustered else 'examples'}"
            return Confirmation(n, excess, nothing, nothing, nothing, status)
        p, z = p_values(contrast), distance(contrast)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(z == 0, contrast.error, contrast.excess / z)
        reach = stdtrit(contrast.degrees, 1 - _ALPHA / 2) * error
        low, high = contrast.excess - reach, contrast.excess + reach
    held = p[0] <= _ALPHA and np.sign(excess) == np.sign(discovered)
    status = "confirmed" if held else "not confirmed"
    return Confirmation(n, excess, float(low[0]), float(high[0]), float(p[0]), status)


def find_slices(
    answers: Answers,
    variant: str,
    *,
    columns: Sequence[str] | None = None,
    pairs: bool = True,
    bins: int = 5,
    min_size: int = 100,
    alpha: float = 0.05,
    top: int = 20,
    random_state: int = 0,
    fewest: int = FEWEST_EXEMPLARS,
) -> pd.DataFrame:
    """Which slices pay (or gain) in excess of everyone else when `variant` replaces the baseline?

    Parameters
    ----------
    answers
        Every member's answer on every example.
    variant
        A compressed variant.
    columns
        Group columns and numeric columns to search; `label` stands for the class. None: all group
        and numeric columns, without the class.
    pairs
        Whether levels of two columns are combined.
    bins
        Quantile bins of a numeric column; missing values are a level of their own.
    min_size
        Least examples of a slice, both halves together.
    alpha
        Share of false discoveries (Benjamini–Hochberg over all tested slices).
    top
        Longest list.
    random_state
        Seed of the split into halves.
    fewest
        Examples that became wrong or right without which nothing is searched.

    Returns
    -------
    DataFrame
        The table `slices`: those that pay first, then those that gain, each by p on the discovery
        half. A slice is *found* if its adjusted p on the discovery half is at most alpha; `excess`
        with its interval and p come from the other half, and `status` says whether it confirms.
        `attrs["notes"]` holds sentences: how the tests were made, and if nothing was found how many
        slices were tested and what could have been found.

    Notes
    -----
    Excess = shift of correctness in the slice − shift of all others; H0: excess = 0. A single pair
    of models on independent examples: the level at which MOVER limits exclude 0. Several members,
    clusters or weights: linearised t (`contrasts.py`). Of outcomes that are numbers the shift is
    that of the ratio of sums, in their unit, with MOVER on the limits of both sides.

    An association of a slice with losses says nothing about its cause. Measured power and false
    alarms: docs/statistics.md.
    """
    for name, value, least in (("bins", bins, 2), ("min_size", min_size, 2), ("top", top, 1)):
        if value < least:
            raise InputError(f"{name} is {value}; give a whole number of at least {least}.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a share between 0 and 1, such as 0.05.")
    if variant == answers.baseline:
        raise InputError(
            f"'{variant}' is the baseline; name a compressed variant: "
            f"{', '.join(answers.variants) or 'there is none'}."
        )
    if answers.outcome is None:
        after, before = (answers.correct(name).mean(axis=0) for name in (variant, answers.baseline))
        change: Floats = after - before
        # Thirds and sevenths that should cancel leave dust, and dust would count as a change.
        change[np.abs(change) < 1e-12] = 0.0
    else:
        change = gains(answers, variant)
    names = searchable(answers) if columns is None else columns
    chosen = chosen_columns(answers, names, bins, min_size)
    if not names:
        why = "there is no column to make them of; name group or numeric columns."
        return _frame([], [UNSEARCHED + why])
    if not chosen:
        why = f"no column has a level of at least {min_size} examples."
        return _frame([], [UNSEARCHED + why])
    if not change.any():
        why = f"'{variant}' and '{answers.baseline}' are right on the same examples"
        if answers.outcome is not None:
            why = f"'{variant}' and '{answers.baseline}' have the same outcomes"
        return _frame([], [f"{UNSEARCHED}{why}, so none can lose more than another."])
    changed = int((change != 0).sum())
    if changed < fewest:
        why = f"{counted(changed, 'prediction')} became wrong or right, and {fewest} are needed."
        if answers.outcome is not None:
            why = f"{counted(changed, 'outcome')} changed, and {fewest} are needed."
        return _frame([], [UNSEARCHED + why])
    rng = stream(random_state, variant, f"task {answers.task or ''}", "slices")
    discovery = discovery_half(change, answers.label, answers.cluster, rng)
    clustered = answers.cluster is not None
    unit = answers.cluster
    if unit is None and answers.weight is not None:
        unit = np.arange(answers.n_examples)
    whole: Half | OutcomeHalf
    if answers.outcome is None:
        one_pair = len(answers.of(variant)) == len(answers.of(answers.baseline)) == 1
        whole = Half(change, answers.weight, unit, exact=one_pair and unit is None)
    else:
        whole = outcome_half(answers, variant)
    first, second = whole.part(discovery), whole.part(~discovery)
    tested = candidates(
        chosen, discovery, first, pairs=pairs, min_size=min_size, clustered=clustered
    )
    if tested is None:
        clusters = " (and 20 clusters in each half)" if clustered else ""
        why = f"none leaves at least {min_size} examples{clusters} both inside and outside."
        return _frame([], [UNSEARCHED + why])
    stood_out = discoveries(tested, alpha)
    kept = listing(
        chosen, discovery, first, tested, stood_out, alpha=alpha, min_size=min_size, top=top
    )
    rows: list[dict[str, Any]] = []
    for one, adjusted in zip(kept.slices, kept.p_adjusted, strict=True):
        made = tested.slices[one.place]
        excess = float(stood_out.excess[one.place])
        again = confirmed(second, one.members[~discovery], discovered=excess, clustered=clustered)
        nearest = int(stood_out.parent[one.place])
        parent = "" if nearest < 0 else chosen[made.columns[nearest]].levels[made.levels[nearest]]
        same = f"; nearly the same examples: {', '.join(one.same)}" if one.same else ""
        rows.append(
            {
                "variant": variant,
                "slice": made.name(chosen),
                "columns": grouping_name([chosen[i].name for i in made.columns]),
                "n": int(tested.n[one.place]),
                "n_discovery": int(np.count_nonzero(one.members[discovery])),
                "excess_discovery": excess,
                "p_discovery": float(stood_out.p[one.place]),
                "p_adjusted": float(adjusted),
                "n_confirmation": again.n,
                "excess": again.excess,
                "excess_low": again.low,
                "excess_high": again.high,
                "p_confirmation": again.p,
                "parent": parent,
                "status": again.status + same,
            }
        )
    rows.sort(key=lambda row: bool(row["excess_discovery"] > 0))  # stable: by p within each sign
    if answers.outcome is not None and answers.outcome.better == Better.LOWER:
        # In the outcome's own unit, where less is better.
        rows = [
            row
            | {
                "excess_discovery": -row["excess_discovery"],
                "excess": -row["excess"],
                "excess_low": -row["excess_high"],
                "excess_high": -row["excess_low"],
            }
            for row in rows
        ]
    if isinstance(first, OutcomeHalf):
        units = "clusters" if clustered else "examples"
        notes = [
            f"Excess of '{answers.outcome.name if answers.outcome else ''}' tested by the smallest "
            f"level at which MOVER limits of ratios of sums exclude 0, over {units}."
        ]
    elif first.exact:
        notes = ["Excess tested by the smallest level at which its MOVER limits exclude 0."]
    else:
        units = "clusters" if clustered else "examples"
        notes = [
            f"Excess of the mean change per example tested with linearised totals, t over {units}; "
            "MOVER limits need a single pair of models and independent, unweighted examples."
        ]
    if rows:
        notes += other_slices(kept, top)
    else:
        notes += nothing_found(tested, first, alpha)
    return _frame(rows, notes)


def outcome_half(answers: Answers, variant: str) -> OutcomeHalf:
    """Outcomes of both models, of which more is better; about their ratio, which keeps digits."""
    assert answers.outcome is not None
    sign = 1.0 if answers.outcome.better == Better.HIGHER else -1.0
    (num_b, den_b), (num_c, den_c) = (answers.outcomes(n) for n in (answers.baseline, variant))
    if np.array_equal(den_b, den_c):
        num_c, num_b = num_c - num_b, np.zeros_like(num_b)
    elif den_b.sum() > 0:
        centre = num_b.sum() / den_b.sum()
        num_b, num_c = num_b - centre * den_b, num_c - centre * den_c
    weight = np.ones_like(den_b) if answers.weight is None else answers.weight
    values = np.stack([sign * num_b, sign * num_c, den_b, den_c]) * weight
    return OutcomeHalf(values, den_b, answers.cluster)


def _frame(rows: list[dict[str, Any]], notes: list[str]) -> pd.DataFrame:
    frame = schema.frame("slices", rows)
    frame.attrs["notes"] = notes
    return frame
