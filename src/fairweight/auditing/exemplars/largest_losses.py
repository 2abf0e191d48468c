"""Exemplars of outcomes that are numbers: the examples that lose most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing.exemplars.exemplars import stacked
from fairweight.auditing.exemplars.selection import checked_percentiles
from fairweight.auditing.exemplars.table import identities, top_name
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.table_files import write_frames
from fairweight.base.files import atomic_directory
from fairweight.base.types import Floats
from fairweight.tables.spec import Better

SELECTED = (
    "The largest losses were chosen because they are large: of other examples, and of another run, "
    "the largest will be others, and what is seen on these overstates what to expect."
)


@dataclass(frozen=True)
class LargestLosses:
    """The examples with the largest losses of every variant, and what is said of them."""

    rows: pd.DataFrame
    notes: tuple[str, ...] = (SELECTED,)

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the table as Parquet and CSV."""
        complete = ("largest_losses.parquet",)
        with atomic_directory(directory, completion=complete, overwrite=overwrite) as folder:
            write_frames({"largest_losses": self.rows}, folder)
        return Path(directory)


def gains(answers: Answers, variant: str) -> Floats:
    """What every example gained (negative: lost) in the variant; 0 where nothing changed.

    It is what the example adds to the shift: the mean over all examples is the shift of the ratio
    of sums, with the sign of what is better.
    """
    assert answers.outcome is not None
    num_b, den_b = answers.outcomes(answers.baseline)
    num_c, den_c = answers.outcomes(variant)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.nan_to_num(num_c / den_c.mean() - num_b / den_b.mean(), posinf=0, neginf=0)
    change = np.where((num_b == num_c) & (den_b == den_c), 0.0, change)
    return change if answers.outcome.better == Better.HIGHER else -change


def largest_losses(
    answers: Answers, *, percentiles: Sequence[float] = (90, 95, 99)
) -> LargestLosses:
    """The examples that lose most, of every compressed variant.

    Parameters
    ----------
    percentiles
        95 keeps the 5 % of examples that lose most. Who loses nothing is never among them, so
        there may be fewer.

    Notes
    -----
    Examples are ranked by what they add to the loss, means over members; equal ones by identity.
    """
    cuts = checked_percentiles(percentiles)
    frames = []
    for variant in answers.variants:
        loss = -gains(answers, variant)
        order = np.argsort(-loss, kind="stable")
        most = {q: round((1 - q / 100) * answers.n_examples) for q in cuts}
        places = order[: max(most.values(), default=0)]
        places = places[loss[places] > 0]
        total = float(loss[loss > 0].sum())
        columns: dict[str, Any] = {
            "example_id": identities(answers)[places],
            "task": [answers.task] * len(places),
            "variant": [variant] * len(places),
            "rank": np.arange(1, len(places) + 1),
            "loss": loss[places],
            "share_of_losses": np.cumsum(loss[places]) / total if total else loss[places],
        }
        for side, name in (("baseline", answers.baseline), ("compressed", variant)):
            value, size = answers.outcomes(name)
            with np.errstate(invalid="ignore", divide="ignore"):
                columns[side] = (value / size)[places]
            if answers.denominator is not None:
                columns[f"denominator_{side}"] = size[places]
        columns |= {top_name(q): np.arange(len(places)) < number for q, number in most.items()}
        columns |= {
            column.name: np.array(column.values, dtype=object)[column.code[places]]
            for column in answers.columns
            if column.name not in columns
        }
        frames.append(pd.DataFrame(columns))
    notes = [SELECTED]
    if answers.weight is not None:
        notes.append("Losses are ranked without weights: every example counts once.")
    return LargestLosses(stacked(frames), tuple(notes))


def join(found: Sequence[LargestLosses]) -> LargestLosses:
    """The losses of several tasks as one."""
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
    return LargestLosses(stacked([one.rows for one in found]), notes)
