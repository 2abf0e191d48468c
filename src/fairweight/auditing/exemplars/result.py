"""What finding exemplars gives: frames with fixed columns, and who they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.auditing.exemplars.modal import Mask
from fairweight.auditing.explain.tables import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

COUNT_COLUMNS = COLUMNS["exemplar_counts"]
ACCURACY_COLUMNS = COLUMNS["exemplar_accuracy"]
OVERLAP_COLUMNS = COLUMNS["exemplar_overlap"]
SURROGATE_COLUMNS = COLUMNS["exemplar_surrogate"]

Key = tuple[str, str, float | None]  # variant, kind, percentile (None: not a cut)


@dataclass(frozen=True)
class Exemplars:
    """Frames of exemplars, and who they are.

    counts      how many of each kind, beside what retraining alone gives (`floor`, as a share)
    accuracy    how often both sides are right on exemplars, on the others and on all
    overlap     what variants share
    surrogate   how well a single pair would have found them
    rows        the exemplars themselves, for people
    masks       (variant, kind, percentile or None) → which of the examples, (n,)
    """

    counts: pd.DataFrame
    accuracy: pd.DataFrame
    overlap: pd.DataFrame
    surrogate: pd.DataFrame
    rows: pd.DataFrame
    masks: Mapping[Key, Mask]
    notes: tuple[str, ...]

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames under the names that results have them by."""
        return {
            "exemplar_counts": self.counts,
            "exemplar_accuracy": self.accuracy,
            "exemplar_overlap": self.overlap,
            "exemplar_surrogate": self.surrogate,
            "exemplars": self.rows,
        }


def join(found: Sequence[Exemplars]) -> Exemplars:
    """Exemplars of several tasks as one; masks stay with their tasks and are left out."""
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
    return Exemplars(
        stacked([one.counts for one in found]),
        stacked([one.accuracy for one in found]),
        stacked([one.overlap for one in found]),
        stacked([one.surrogate for one in found]),
        stacked([one.rows for one in found]),
        {},
        notes,
    )


def frame(rows: list[dict[str, Any]], columns: tuple[str, ...], task: str | None) -> pd.DataFrame:
    """Rows of one task as a frame with these columns, also where there are no rows."""
    import pandas as pd

    return pd.DataFrame([{"task": task} | row for row in rows], columns=list(columns))


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames one below the other; empty ones have columns without a type and say nothing."""
    import pandas as pd

    held = [part for part in frames if len(part)] or list(frames[:1])
    return pd.concat(held, ignore_index=True)
