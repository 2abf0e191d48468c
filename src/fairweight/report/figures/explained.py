"""The tables of exemplars and explanations as figures read them, or why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.base.wording import missing, real, text
from fairweight.errors import UnknownNameError
from fairweight.report.figures.parts import label
from fairweight.report.figures.registry import Absent
from fairweight.report.numbers import MINUS

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

UNMADE = {
    "exemplar_counts": "no exemplars were looked for",
    "exemplar_accuracy": "the accuracy on exemplars was not measured",
    "exemplar_images": "no images of exemplars were given",
    "enrichment": "the groups among exemplars were not counted",
    "individuals": "no individuals are named in the data",
    "individual_fits": "no property of individuals was fitted",
    "class_rows": "no accuracies of classes were collected over models",
    "class_coefficients": "no model of the classes' accuracies was fitted",
    "class_residuals": "no model of the classes' accuracies was fitted",
    "tilt_example": "no image with its tilt was given",
    "attributes": "there are not several attributes (tasks)",
    "settings": "no settings were set side by side",
    "choice": "nothing was chosen (fairweight choose)",
    "choice_values": "nothing was chosen (fairweight choose)",
    "similarity_points": "no distances between representations were measured",
    "override_curves": "no overrides were tried",
    "cascade_curve": "no cascade was tried",
}
_KINDS = {
    "modal": "modal",
    "unanimous": "unanimous",
    "taxicab": "Taxicab",
    "jaccard": "Jaccard",
    "surrogate": "surrogate",
}
_PREFERRED = ("taxicab", "modal", "jaccard", "unanimous", "surrogate")


def explained(
    result: AuditResult, name: str, variant: str | None = None, task: str | None = None
) -> pd.DataFrame | Absent:
    """Rows of one table, of one variant and task where it has them; never an empty table.

    Parameters
    ----------
    task
        `None` asks for the rows without a task, else for the first task of the table.
    """
    if task is not None and task not in result.tasks:
        raise UnknownNameError("Task", task, result.tasks)
    frame = result.explanations.get(name)
    if frame is None or frame.empty:
        return Absent(UNMADE[name])
    if variant is not None:
        frame = frame[frame["variant"] == variant]
    if "task" in frame.columns:
        frame = _of_task(frame, task)
    if frame.empty:
        whose = "" if variant is None else f" for {label(variant)}"
        return Absent(UNMADE[name] + whose + ("" if task is None else f" and the task {task}"))
    return frame


def _of_task(frame: pd.DataFrame, task: str | None) -> pd.DataFrame:
    if task is not None:
        return frame[frame["task"] == task]
    single = frame[frame["task"].isna()]
    return single if len(single) or frame.empty else frame[frame["task"] == frame["task"].iloc[0]]


def cut_name(kind: Any, percentile: Any) -> str:
    """A way to choose exemplars, in words.

    >>> cut_name("taxicab", 90.0), cut_name("modal", float("nan")), cut_name("taxicab", 99.5)
    ('Taxicab, top 10 %', 'modal', 'Taxicab, top 0.5 %')
    """
    word = _KINDS.get(str(kind), str(kind))
    return word if missing(percentile) else f"{word}, top {100 - float(percentile):g} %"


def cuts(frame: pd.DataFrame) -> list[tuple[str, float | None]]:
    """The ways to choose exemplars that a table holds, modal ones first, then by percentile."""
    pairs = {
        (str(kind), None if missing(percentile) else float(percentile))
        for kind, percentile in zip(frame["kind"], frame["percentile"], strict=True)
    }
    order = list(_KINDS)
    known = [pair for pair in pairs if pair[0] in order]
    return sorted(known, key=lambda pair: (order.index(pair[0]), pair[1] or 0.0))


def at_cut(frame: pd.DataFrame, cut: tuple[str, float | None]) -> pd.DataFrame:
    """The rows of one way to choose exemplars."""
    kind, percentile = cut
    own = frame["kind"] == kind
    found = frame["percentile"].isna() if percentile is None else frame["percentile"] == percentile
    return frame[own & found]


def usual_cut(frame: pd.DataFrame) -> tuple[str, float | None]:
    """The choice that a figure with room for one shows: the widest Taxicab cut, else the modal."""
    known = cuts(frame)
    return min(known, key=lambda pair: (_PREFERRED.index(pair[0]), pair[1] or 0.0))


_UNTOLD = ("not_estimable", "small", "cannot tell", "suppressed")


def untold(row: dict[str, Any]) -> str | None:
    """Why a row cannot be told, in words; None where it can, whatever else its status notes.

    >>> untold({"status": "not_estimable: one member", "n": 5})
    'cannot tell (one member)'
    >>> untold({"status": "small_group: n < 10", "n": 4}), untold({"status": "ok", "n": 4})
    ('cannot tell (n = 4)', None)
    """
    status = text(row.get("status")) or "ok"
    if not status.startswith(_UNTOLD):
        return None
    kind, _, reason = status.partition(": ")
    if kind.startswith("small") and not missing(row.get("n")):
        return f"cannot tell (n = {int(row['n']):,})"
    return f"cannot tell ({reason or kind.replace('_', ' ')})"


def noted(row: dict[str, Any]) -> str | None:
    """What the status of a row says, whether it is told or not; None for `ok`.

    >>> noted({"status": "no noise floor: 1 baseline member"}), noted({"status": "ok"})
    ('no noise floor: 1 baseline member', None)
    """
    status = text(row.get("status")) or "ok"
    return None if status == "ok" else untold(row) or status


def correlation(row: dict[str, Any]) -> str:
    """A correlation with its interval.

    >>> correlation({"correlation": 0.43, "correlation_low": -0.27, "correlation_high": 0.83})
    '0.43 [−0.27, 0.83]'
    """
    names = ("correlation", "correlation_low", "correlation_high")
    middle, low, high = (f"{real(row[name]):.2f}".replace("-", MINUS) for name in names)
    return f"{middle} [{low}, {high}]"
