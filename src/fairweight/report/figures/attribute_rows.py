"""The values of all attributes as the figures of Iofinova et al. read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.auditing.result import records
from fairweight.base.wording import missing, text
from fairweight.report.figures.boxes import Box, Mean, Value
from fairweight.report.figures.explained import UNMADE
from fairweight.report.figures.parts import label, value
from fairweight.report.figures.registry import Absent
from fairweight.report.figures.sparsity import by_level
from fairweight.report.numbers import count

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

WORDS = {  # title of an axis, and by what values are multiplied for it
    "accuracy": ("accuracy, %", 100.0),
    "uncertainty": ("uncertain answers, %", 100.0),
    "tcb": ("TCB", 1.0),
    "ece": ("ECE, %", 100.0),
    "interrelation": ("interrelation, R²", 1.0),
    "bias_amplification": ("bias amplification, points", 100.0),
    "worst_case_bias_amplification": ("worst-case bias amplification, points", 100.0),
}


SUFFIX = "+thresholds"  # of variants whose thresholds were calibrated


def many(n: int, word: str) -> str:
    """A number with its word.

    >>> many(1, "attribute"), many(2, "attribute")
    ('1 attribute', '2 attributes')
    """
    return f"{count(n)} {word}" if n == 1 else f"{count(n)} {word}s"


def attributes(result: AuditResult, name: str = "attributes") -> pd.DataFrame | Absent:
    """The whole table, or why there is none."""
    frame = result.explanations.get(name)
    if frame is None or frame.empty:
        return Absent(UNMADE[name])
    return frame


def as_they_are(frame: pd.DataFrame) -> pd.DataFrame:
    """Without variants whose thresholds were calibrated: between the others a line would jump."""
    return frame[~frame["variant"].str.endswith(SUFFIX)]


def in_order(result: AuditResult, frame: pd.DataFrame) -> list[str]:
    """The variants of a table: the baseline first, then by their sparsity."""
    held = set(frame["variant"])
    return [name for name in (result.baseline, *by_level(result)) if name in held]


def at(frame: pd.DataFrame, metric: str, category: str | None = None) -> pd.DataFrame:
    """The rows of one metric, about one category or about none."""
    own = frame[frame["metric"] == metric]
    return own[own["category"].isna() if category is None else own["category"] == category]


def box(frame: pd.DataFrame, variant: str, metric: str, category: str | None = None) -> Box | None:
    """The values of all attributes of one variant; None where it has none.

    The mean is the audit's, with its interval: over the attributes that can be estimated, on the
    same examples. Where it has none, it is counted here and has no interval.
    """
    rows = records(at(frame[frame["variant"] == variant], metric, category))
    scale = WORDS[metric][1]
    found = [
        Value(label(row["task"]), float(row["value"]) * scale)
        for row in rows
        if text(row["task"]) is not None and not missing(row["value"])
    ]
    if not found:
        return None
    whole = [row for row in rows if text(row["task"]) is None and not missing(row["value"])]
    if whole:
        middle, low, high = (value(whole[0][name], scale) for name in ("value", "low", "high"))
        return Box(found, Mean(middle, low, high))
    return Box(found, Mean(sum(held.value for held in found) / len(found), None, None))
