"""The search, from answers to a frame of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.slices import UNSEARCHED
from fairweight.auditing.explain.slices.candidates import Candidates, candidates
from fairweight.auditing.explain.slices.columns import Column, chosen_columns, searchable
from fairweight.auditing.explain.slices.confirming import confirmed
from fairweight.auditing.explain.slices.discovery import Discoveries, discoveries
from fairweight.auditing.explain.slices.halves import discovery_half
from fairweight.auditing.explain.slices.listing import Listed, listing
from fairweight.auditing.explain.slices.sentences import (
    method_sentence,
    nothing_found,
    other_slices,
)
from fairweight.auditing.explain.slices.totals import Half, half
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.streams import stream
from fairweight.errors import InputError
from fairweight.tables.names import grouping_name

if TYPE_CHECKING:
    import pandas as pd


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
    of models on independent examples: exact conditional test on lost and gained answers. Several
    members, clusters or weights: linearised t (auditing/explain/slices/testing.py). An association
    of a slice with losses says nothing about its cause. Measured power and false alarms:
    docs/statistics.md.
    """
    _check(bins=bins, min_size=min_size, alpha=alpha, top=top)
    change = _change(answers, variant)
    names = searchable(answers) if columns is None else columns
    chosen = chosen_columns(answers, names, bins, min_size)
    if not names:
        why = "there is no column to make them of; name group or numeric columns."
        return _frame([], [UNSEARCHED + why])
    if not chosen:
        why = f"no column has a level of at least {min_size} examples."
        return _frame([], [UNSEARCHED + why])
    if not change.any():
        same = f"'{variant}' and '{answers.baseline}' are right on the same examples"
        return _frame([], [f"{UNSEARCHED}{same}, so none can pay more than another."])
    rng = stream(random_state, variant, f"task {answers.task or ''}", "slices")
    discovery = discovery_half(change, answers.label, answers.cluster, rng)
    first, second = (_half(answers, variant, change, part) for part in (discovery, ~discovery))
    clustered = answers.cluster is not None
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
    rows = [
        _row(variant, chosen, tested, stood_out, one, discovery, second, clustered)
        | {"p_adjusted": float(adjusted)}
        for one, adjusted in zip(kept.slices, kept.p_adjusted, strict=True)
    ]
    rows.sort(key=lambda row: bool(row["excess_discovery"] > 0))  # stable: by p within each sign
    notes = [method_sentence(first, clustered=clustered)]
    if rows:
        notes += other_slices(kept, top)
    else:
        notes += nothing_found(tested, first, alpha)
    return _frame(rows, notes)


def _check(*, bins: int, min_size: int, alpha: float, top: int) -> None:
    for name, value, least in (("bins", bins, 2), ("min_size", min_size, 2), ("top", top, 1)):
        if value < least:
            raise InputError(f"{name} is {value}; give a whole number of at least {least}.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a share between 0 and 1, such as 0.05.")


def _change(answers: Answers, variant: str) -> Floats:
    """Mean correctness of the variant's members − that of the baseline's, per example."""
    if variant == answers.baseline:
        raise InputError(
            f"'{variant}' is the baseline; name a compressed variant: "
            f"{', '.join(answers.variants) or 'there is none'}."
        )
    after, before = (answers.correct(name).mean(axis=0) for name in (variant, answers.baseline))
    difference: Floats = after - before
    # Thirds and sevenths that should cancel leave dust, and dust would count as a change.
    difference[np.abs(difference) < 1e-12] = 0.0
    return difference


def _half(answers: Answers, variant: str, change: Floats, part: NDArray[np.bool_]) -> Half:
    weight = None if answers.weight is None else answers.weight[part]
    unit: NDArray[np.int64] | None = None
    if answers.cluster is not None:
        unit = answers.cluster[part]
    elif weight is not None:
        unit = np.arange(weight.size)
    one_pair = len(answers.of(variant)) == len(answers.of(answers.baseline)) == 1
    return half(change[part], weight, unit, exact=one_pair and unit is None)


def _row(
    variant: str,
    columns: list[Column],
    tested: Candidates,
    stood_out: Discoveries,
    one: Listed,
    discovery: NDArray[np.bool_],
    other_half: Half,
    clustered: bool,
) -> dict[str, Any]:
    made = tested.slices[one.place]
    excess = float(stood_out.excess[one.place])
    again = confirmed(other_half, one.members[~discovery], discovered=excess, clustered=clustered)
    nearest = int(stood_out.parent[one.place])
    same = f"; nearly the same examples: {', '.join(one.same)}" if one.same else ""
    return {
        "variant": variant,
        "slice": made.name(columns),
        "columns": grouping_name([columns[i].name for i in made.columns]),
        "n": int(tested.n[one.place]),
        "n_discovery": int(np.count_nonzero(one.members[discovery])),
        "excess_discovery": excess,
        "p_discovery": float(stood_out.p[one.place]),
        "n_confirmation": again.n,
        "excess": again.excess,
        "excess_low": again.low,
        "excess_high": again.high,
        "p_confirmation": again.p,
        "parent": ""
        if nearest < 0
        else columns[made.columns[nearest]].levels[made.levels[nearest]],
        "status": again.status + same,
    }


def _frame(rows: list[dict[str, Any]], notes: list[str]) -> pd.DataFrame:
    import pandas as pd

    texts = ("variant", "slice", "columns", "parent", "status")
    frame = pd.DataFrame(rows, columns=list(COLUMNS["slices"]))
    for name in COLUMNS["slices"]:
        kind = object if name in texts else np.int64 if name.startswith("n") else np.float64
        frame[name] = frame[name].astype(kind)
    frame.attrs["notes"] = notes
    return frame
