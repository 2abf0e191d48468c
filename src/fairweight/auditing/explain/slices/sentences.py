"""What a list of slices, or its absence, means: one sentence each."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.explain.slices.candidates import Candidates
from fairweight.auditing.explain.slices.detectable import detectable_excess
from fairweight.auditing.explain.slices.listing import Listing
from fairweight.auditing.explain.slices.totals import Half

_NAMED = 5  # further slices that are named


def method_sentence(half: Half, *, clustered: bool) -> str:
    if half.exact:
        return "Excess tested conditionally on all lost and gained answers (exact, mid-p)."
    units = "clusters" if clustered else "examples"
    return (
        f"Excess of the mean change per example tested with linearised totals, t over {units}; the "
        "exact conditional test needs a single pair of models and independent, unweighted examples."
    )


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


def nothing_found(tested: Candidates, half: Half, alpha: float) -> list[str]:
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
            found.append(f"{100 * least:.1f} points in a slice of {size:,} examples")
    notes = [
        f"No slice found: {number:,} slices ({kinds}) were tested, and none differs from all "
        f"others at a false discovery rate of {alpha:g}."
    ]
    if found:
        independent = "" if half.exact else " (were all examples independent)"
        notes.append(
            f"An excess that is found with a power of 80 %{independent}: {', '.join(found)}."
        )
    if not_found:
        notes.append(f"In a slice of {' or '.join(not_found)} examples no excess could be found.")
    return notes
