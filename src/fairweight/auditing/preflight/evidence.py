"""How well each risk score foretold who lost, in studies where it is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

EVIDENCE_COLUMNS = ("study", "level", "members", "score", "measure", "value", "n", "choice")
LEVELS = ("attribute", "class", "group", "example")
CHOSEN = "chosen"  # the score that was best in all other studies
CHANCE = {"auc": 0.5, "rank_correlation": 0.0}
LARGEST = 1.0
FEWEST_STUDIES = 3


@dataclass(frozen=True)
class Found:
    """What one score was worth in one study: the mean over its comparisons."""

    study: str
    level: str  # one of LEVELS
    members: str  # one, several: dense members that the score was made of
    score: str
    measure: str  # auc (examples), rank_correlation (parts)
    value: float
    n: int  # comparisons
    choice: str = ""  # for `chosen`: which score that was


@dataclass(frozen=True)
class Support:
    """The same over studies, with an interval for the next one's mean; NaN where unknown."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    n_studies: int = 0
    chance: float = np.nan

    @property
    def reason(self) -> str:
        """Why nothing can be told from this score; empty where something can."""
        if not self.n_studies:
            return "no study has tried this score"
        if self.n_studies < FEWEST_STUDIES:
            return f"only {self.n_studies} of {FEWEST_STUDIES} studies needed have tried this score"
        if not self.low > self.chance:
            return "in past studies this score did not foretell who lost better than chance"
        return ""


def read_evidence() -> pd.DataFrame:
    """The table that comes with the package."""
    import pandas as pd

    text = files("fairweight.auditing.preflight").joinpath("evidence.csv")
    with text.open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


def support(evidence: pd.DataFrame, level: str, members: str, score: str) -> Support:
    """Mean over studies and its t interval, every study counted once.

    The interval is about the mean over further studies of this kind; studies are what is sampled.
    """
    from scipy.special import stdtrit

    rows = evidence[
        (evidence["level"] == level)
        & (evidence["members"] == members)
        & (evidence["score"] == score)
    ]
    if rows.empty:
        return Support()
    measure = str(rows["measure"].iloc[0])
    values = rows.groupby("study")["value"].mean().to_numpy(dtype=np.float64)
    mean, k = float(values.mean()), len(values)
    if k < FEWEST_STUDIES:
        return Support(mean, n_studies=k, chance=CHANCE[measure])
    reach = float(-stdtrit(k - 1, 0.025) * values.std(ddof=1) / np.sqrt(k))
    least = 0.0 if measure == "auc" else -LARGEST
    return Support(mean, max(least, mean - reach), min(LARGEST, mean + reach), k, CHANCE[measure])


def best_score(
    evidence: pd.DataFrame, level: str, members: str, known: Iterable[str]
) -> str | None:
    """The score with the highest mean over studies, of those that can be had; None without any."""
    found = {name: support(evidence, level, members, name) for name in known}
    tried = {name: one.value for name, one in found.items() if one.n_studies}
    return max(tried, key=lambda name: tried[name]) if tried else None


def with_choices(found: Sequence[Found]) -> list[Found]:
    """The rows, and for every study what the score was worth in it that did best in all others.

    This is the cross-validated row: the choice has not seen the study that it is judged on.

    >>> rows = [Found(s, "class", "one", name, "rank_correlation", value, 1)
    ...         for s, name, value in (("a", "x", 0.9), ("a", "y", 0.1), ("b", "x", 0.2),
    ...                                ("b", "y", 0.4), ("c", "x", 0.5), ("c", "y", 0.3))]
    >>> [(r.study, r.choice, r.value) for r in with_choices(rows) if r.score == CHOSEN]
    [('a', 'x', 0.9), ('b', 'x', 0.2), ('c', 'x', 0.5)]
    """
    rows = list(found)
    for level, members in dict.fromkeys((row.level, row.members) for row in found):
        here = [row for row in found if (row.level, row.members) == (level, members)]
        for study in dict.fromkeys(row.study for row in here):
            own = {row.score: row for row in here if row.study == study}
            others: dict[str, list[float]] = {}
            for row in here:
                if row.study != study and row.score in own:
                    others.setdefault(row.score, []).append(row.value)
            if others:
                best = max(others, key=lambda name: float(np.mean(others[name])))
                told = own[best]
                rows.append(
                    Found(study, level, members, CHOSEN, told.measure, told.value, told.n, best)
                )
    return rows


def evidence_frame(found: Sequence[Found]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([asdict(row) for row in found], columns=list(EVIDENCE_COLUMNS))
