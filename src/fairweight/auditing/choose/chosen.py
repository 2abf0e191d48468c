"""Choose: measure, require, rank, and say how sure the choice is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.constraints import nearest_miss
from fairweight.auditing.choose.counted import Counted
from fairweight.auditing.choose.known import Asked, Known, known_of, metrics_of
from fairweight.auditing.choose.measured import Progress, measured
from fairweight.auditing.choose.sureness import Sureness, sureness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Choice:
    """What was chosen, how surely, and from what.

    tables  `auditing/choose/frames.py`: choice, choice_values, choice_requirements,
            choice_weights, choice_confirmed
    """

    chosen: str | None
    qualifying: tuple[str, ...]
    baseline: str
    asked: Asked
    n_examples: int
    n_confirmed: int  # examples that were not chosen on; 0: selected on these data
    nearest: tuple[str, dict[str, float]] | None  # who misses least, and by how much, if none may
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...] = ()

    @property
    def none_qualifies(self) -> bool:
        return not self.qualifying


def choose(
    counted: Counted,
    asked: Asked,
    variants_table: pd.DataFrame | None = None,
    *,
    confirm: Counted | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose among the variants of counted answers, the baseline among them.

    Parameters
    ----------
    confirm
        Answers on other examples, on which the choice is looked at again.
    """
    from fairweight.auditing.choose.frames import confirmed_frame, frames

    cube, setting = counted.cube, counted.setting
    found = measured(cube, metrics_of(asked), setting, progress)
    known, said = known_of(found, asked, variants_table)
    kept = _qualifies(asked, known)
    sure = sureness(asked, known, kept, setting.options.random_state) if kept.any() else None
    chosen = _chosen(asked, known, kept, sure)
    tables = dict(frames(asked, known, kept, sure, chosen, setting.baseline))
    if confirm is not None:
        again = measured(confirm.cube, metrics_of(asked), confirm.setting, progress)
        other, _ = known_of(again, asked, variants_table)
        tables["choice_confirmed"] = confirmed_frame(asked, other, known, kept)
    return Choice(
        chosen=chosen,
        qualifying=tuple(n for n, ok in zip(known.variants, kept, strict=True) if ok),
        baseline=setting.baseline,
        asked=asked,
        n_examples=cube.n_examples,
        n_confirmed=0 if confirm is None else confirm.cube.n_examples,
        nearest=None if kept.any() else _nearest(asked, known),
        tables=tables,
        notes=(*counted.notes, *found.notes, *said),
    )


def _qualifies(asked: Asked, known: Known) -> NDArray[np.bool_]:
    kept = np.ones(len(known.variants), dtype=np.bool_)
    for requirement in asked.requirements:
        kept &= requirement.met(known.of(requirement.term)[0])
    return kept


def _chosen(
    asked: Asked, known: Known, kept: NDArray[np.bool_], sure: Sureness | None
) -> str | None:
    """The highest value; without a value function the only one on the frontier, if it is alone."""
    if sure is None:
        return None
    if asked.weights is not None:
        return known.variants[int(np.where(kept, sure.value, -np.inf).argmax())]
    on = np.flatnonzero(sure.frontier)
    return known.variants[int(on[0])] if len(on) == 1 else None


def _nearest(asked: Asked, known: Known) -> tuple[str, dict[str, float]]:
    values = np.stack([known.of(r.term)[0] for r in asked.requirements], axis=1)
    best, short = nearest_miss(asked.requirements, values)
    missed = {
        r.shown: float(by)
        for i, (r, by) in enumerate(zip(asked.requirements, short, strict=True))
        if not r.met(values[best, i : i + 1])[0]
    }
    return known.variants[best], missed
