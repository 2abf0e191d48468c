"""What figures read of an audit: rows with their intervals, levels of sparsity, explanations.

Thick intervals speak of these models, thin ones of the method, where members are a sample too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.auditing.metrics import metric
from fairweight.auditing.result import Scope, at_task, records
from fairweight.auditing.schema import (
    NOT_ESTIMABLE,
    SMALL_GROUP,
    SUPPRESSED,
    UNKNOWN,
    Status,
    column_names,
)
from fairweight.base.wording import missing, real, text
from fairweight.errors import UnknownNameError
from fairweight.report.figures.theme import EVERYONE, Absent, label, labels, value
from fairweight.report.numbers import MINUS, count, is_share

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

Side: TypeAlias = Literal["baseline", "compressed"]
Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Row, Row | None]  # the row of these models, and that of the method
Cut: TypeAlias = tuple[str, float | None]  # a way to choose exemplars

# --- rows of metrics -----------------------------------------------------------------------------

UNDEFINED = "undefined in the data"  # the engine's reason where the metric's own says more
SCOPES: tuple[Scope, Scope] = ("model", "method")
_COLUMNS = (
    "variant", "metric", "group", "class", "n", "baseline", "baseline_low", "baseline_high",
    "compressed", "compressed_low", "compressed_high", "shift", "sim_low", "sim_high",
    "noise_floor", "debiased", "ci_low", "ci_high", "status",
)  # fmt: skip


def pairs_of(
    result: AuditResult, variants: Sequence[str], metric: str, by: str, task: str | None = None
) -> dict[str, dict[str | None, Pair]]:
    """Rows of one metric by class or group (or overall, under None), each with its method's row.

    Of several variants, read at once: reading each alone takes a report seconds.
    """
    found: dict[tuple[str, Scope], dict[str | None, Row]] = {}
    for scope in SCOPES:
        each = [result.places.get((variant, metric, by, scope), ()) for variant in variants]
        places = [place for own in each for place in own]
        if not places:
            continue
        rows = at_task(result.results.take(places), result, task)
        for row in records(rows, _COLUMNS):
            name = text(row[by]) if by in ("class", "group") else None
            found.setdefault((row["variant"], scope), {})[name] = row
    return {
        variant: {
            name: (row, found.get((variant, "method"), {}).get(name))
            for name, row in found.get((variant, "model"), {}).items()
        }
        for variant in variants
    }


def side_value(pair: Pair, side: Side, scale: float = 100.0) -> dict[str, Any]:
    """The value of one side with its intervals, its n and, if there is none, the reason."""
    row, method = pair
    own = value(row[side], scale)
    wide = {} if method is None else method
    return {
        "value": own,
        "n": value(row["n"]),
        "low": value(row[f"{side}_low"], scale),
        "high": value(row[f"{side}_high"], scale),
        "wide_low": value(wide.get(f"{side}_low"), scale),
        "wide_high": value(wide.get(f"{side}_high"), scale),
        "why": why_missing(row) if own is None else None,
    }


def retraining_band(pair: Pair, scale: float = 100.0) -> dict[str, float | None]:
    """Where retraining alone could have put a share: the baseline's, and the floor either way.

    >>> retraining_band(({"baseline": 0.01, "noise_floor": 0.02}, None))
    {'floor_low': 0.0, 'floor_high': 3.0}
    """
    row, _ = pair
    base, floor = real(row["baseline"]), real(row["noise_floor"])
    if missing(base) or missing(floor):
        return {"floor_low": None, "floor_high": None}
    low, high = max(0.0, base - floor), min(1.0, base + floor)
    return {"floor_low": value(low, scale), "floor_high": value(high, scale)}


def why_missing(row: Row) -> str:
    """Why a row has no value, in the words of its status or of its metric.

    >>> why_missing({"status": "not_estimable: no scores", "metric": "auc"})
    'no scores'
    >>> why_missing({"status": "not_estimable: undefined in the data", "metric": "precision"})
    'the class is never predicted'
    """
    status = Status.of(row["status"])
    if status != Status(NOT_ESTIMABLE, UNDEFINED):
        told = status.reason if status.kind == NOT_ESTIMABLE else str(status)
        return "no value" if status.ok else told
    return metric(str(row["metric"])).undefined.split(";")[0].split(" (")[0]


def missing_note(values: list[dict[str, Any]]) -> str:
    """What a title says about missing values; empty when there are none.

    >>> missing_note([{"why": "no examples"}, {"why": None}, {"why": "no examples"}])
    '×: 2 values are missing (no examples)'
    """
    reasons = [v["why"] for v in values if v["why"] is not None]
    if not reasons:
        return ""
    many = "1 value is" if len(reasons) == 1 else f"{count(len(reasons))} values are"
    return f"×: {many} missing ({'; '.join(dict.fromkeys(reasons))})"


def size_note(values: list[dict[str, Any]], of: str) -> str:
    """How many examples stand behind the values of a figure.

    >>> size_note([{"n": 900.0}, {"n": 1100.0}], "class"), size_note([{"n": 900.0}], "class")
    ('n 900 to 1,100 per class', 'n 900 per class')
    """
    known = [v["n"] for v in values if v["n"] is not None]
    if not known:
        return ""
    least, most = count(min(known)), count(max(known))
    return f"n {least if least == most else f'{least} to {most}'} per {of}"


def percent_interval(row: Row, side: str) -> str:
    """A rate in percent with its interval, where it has one.

    >>> percent_interval({"baseline": 0.9, "baseline_low": 0.85, "baseline_high": 0.94}, "baseline")
    '90.0 [85.0, 94.0]'
    """
    low, high = real(row[f"{side}_low"]), real(row[f"{side}_high"])
    ends = "" if missing(low) or missing(high) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * real(row[side]):.1f}{ends}"


def shift_values(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Shifts of classes or groups in points, with both intervals and what they say together."""
    made = []
    for name, row in zip(names, rows, strict=True):
        floor = value(row["noise_floor"], 100)
        made.append(
            {
                "name": name,
                "n": value(row["n"]),
                "shift": value(row["shift"], 100),
                "low": value(row["ci_low"], 100),
                "high": value(row["ci_high"], 100),
                "sim_low": value(row["sim_low"], 100),
                "sim_high": value(row["sim_high"], 100),
                "floor_low": None if floor is None else -floor,
                "floor_high": floor,
                "verdict": {-1: "loses", 0: "undecided", 1: "gains"}[direction(row)],
            }
        )
    return made


def direction(row: Row) -> int:
    """Whether the simultaneous limits of a shift lie below 0, above it, or neither."""
    return -1 if real(row["sim_high"]) < 0 else 1 if real(row["sim_low"]) > 0 else 0


# --- levels of sparsity --------------------------------------------------------------------------

NO_LEVELS = "the variants table names fewer than two levels of sparsity"
_METHOD_COLUMNS = ("method", "treatment")
UNTREATED = "not trained again"


@dataclass(frozen=True)
class Level:
    """Where a variant stands on the axis, and on which line."""

    sparsity: float
    method: str


def variant_means(result: AuditResult, column: str) -> dict[str, float]:
    """The mean over members of a column of the variants table, of every variant that has one."""
    import pandas as pd

    table = result.variants_table
    if table is None or not {"variant", column} <= set(table.columns):
        return {}
    names, numbers = table["variant"].astype(str), pd.to_numeric(table[column], errors="coerce")
    means = {v: real(numbers[names == v].mean()) for v in (result.baseline, *result.variants)}
    return {variant: mean for variant, mean in means.items() if not missing(mean)}


def sparsity_levels(result: AuditResult) -> dict[str, Level]:
    """The sparsity (mean over members) and method of every audited variant; none below two levels.

    A variant without a sparsity in the variants table is left out.
    """
    table = result.variants_table
    means = variant_means(result, "sparsity")
    if table is None or not means:
        return {}
    names = table["variant"].astype(str)
    method = next((c for c in _METHOD_COLUMNS if c in table.columns), None)
    found = {}
    for own in result.variants:
        if own not in means:
            continue
        rows = table[names == own]
        given = None if method is None else rows[method].iloc[0]
        line = "compressed" if missing(given) else str(given)
        teacher = rows["distillation"].iloc[0] if "distillation" in rows.columns else None
        # A method with a teacher is a line of its own.
        found[own] = Level(means[own], line if missing(teacher) else f"{line}, {teacher}")
    return found if len({level.sparsity for level in found.values()}) > 1 else {}


def point(
    row: dict[str, Any],
    level: Level,
    *,
    this: bool,
    corrected: bool = False,
    method: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Where a variant stands in one panel, with its interval and what retraining alone gives.

    Parameters
    ----------
    this
        Whether it is the variant that the figure is about.
    corrected
        Take the value corrected for noise.
    method
        The row of scope `method`, whose wider interval is drawn thin.
    """
    share = is_share(row["metric"])
    scale = 100.0 if share else 1.0
    found = row["debiased"] if corrected else row["compressed"]
    low, high = ("compressed_low", "compressed_high") if share else ("ci_low", "ci_high")
    floor, before = real(row["noise_floor"]), real(row["baseline"])
    known = not missing(floor) and not corrected
    wide = {} if method is None else method
    return {
        "variant": label(row["variant"]),
        "method": label(level.method),
        "sparsity": level.sparsity,
        "value": value(found, scale),
        "n": value(row["n"]),
        "low": value(row[low], scale),
        "high": value(row[high], scale),
        "wide_low": value(wide.get(low), scale),
        "wide_high": value(wide.get(high), scale),
        "baseline": value(before, scale) if share else None,
        "floor_low": value(before - floor if share else 0.0, scale) if known else None,
        "floor_high": value(before + floor if share else floor, scale) if known else None,
        "this": this,
    }


def member_values(
    result: AuditResult, levels: dict[str, Level], metric: str, task: str | None
) -> list[dict[str, Any]]:
    """The value of every single member of a population."""
    frame: pd.DataFrame = at_task(result.per_seed, result, task)
    rows = frame[
        (frame["metric"] == metric)
        & (frame["by"] == "overall")
        & frame["variant"].isin(list(levels))
        & frame["value"].notna()
    ]
    if not (rows.groupby("variant")["seed"].nunique() > 1).any():
        return []
    scale = 100.0 if is_share(metric) else 1.0
    return [
        {
            "method": label(levels[row["variant"]].method),
            "sparsity": levels[row["variant"]].sparsity,
            "value": value(row["value"], scale),
        }
        for row in records(rows, ("variant", "value"))
    ]


def by_level(result: AuditResult) -> dict[str, float | None]:
    """Every variant in the order of its sparsity; those without one come last, as given."""
    found = variant_means(result, "sparsity")
    order = sorted(result.variants, key=lambda name: (name not in found, found.get(name, 0.0)))
    return {name: found.get(name) for name in order}


def treatments(result: AuditResult, levels: dict[str, Level]) -> dict[str, str]:
    """How the weights of every variant were treated after pruning; empty where all are alike."""
    table = result.variants_table
    if table is None or not {"method", "treatment"} <= set(table.columns):
        return {}
    known = {
        str(name): str(treatment)
        for name, treatment in zip(table["variant"], table["treatment"], strict=True)
        if not missing(treatment)
    }
    found = {name: known.get(name, UNTREATED) for name in levels}
    return found if len(set(found.values())) > 1 else {}


def technique_levels(result: AuditResult) -> dict[str, Level]:
    """As `sparsity_levels`, with the treatment in the name where there are several."""
    levels = sparsity_levels(result)
    treated = treatments(result, levels)
    return {
        name: Level(
            level.sparsity,
            f"{level.method}, {treated[name]}"
            if treated.get(name, UNTREATED) != UNTREATED
            else level.method,
        )
        for name, level in levels.items()
    }


# --- exemplars and explanations ------------------------------------------------------------------

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
    "sensitivity": "no units of the network were compressed one by one (fairweight sensitivity)",
}
_KINDS = {
    "modal": "modal",
    "unanimous": "unanimous",
    "taxicab": "Taxicab",
    "jaccard": "Jaccard",
    "surrogate": "surrogate",
}
_PREFERRED = ("taxicab", "modal", "jaccard", "unanimous", "surrogate")
_UNTOLD = (NOT_ESTIMABLE, SMALL_GROUP, UNKNOWN, SUPPRESSED)


def explanation_table(
    result: AuditResult, name: str, variant: str | None = None, task: str | None = None
) -> pd.DataFrame:
    """Rows of one table, of one variant and task where it has them; never an empty table.

    Parameters
    ----------
    task
        `None` asks for the rows without a task, else for the first task of the table.

    Raises
    ------
    Absent
        There are none.
    """
    if task is not None and task not in result.tasks:
        raise UnknownNameError("Task", task, result.tasks)
    frame = result.explanations.get(name)
    if frame is None or frame.empty:
        raise Absent(UNMADE[name])
    if variant is not None:
        frame = frame[frame["variant"] == variant]
    if "task" in frame.columns:
        single = frame[frame["task"].isna()]
        if task is not None:
            frame = frame[frame["task"] == task]
        elif len(single):
            frame = single
        elif len(frame):
            frame = frame[frame["task"] == frame["task"].iloc[0]]
    if frame.empty:
        whose = "" if variant is None else f" for {label(variant)}"
        raise Absent(UNMADE[name] + whose + ("" if task is None else f" and the task {task}"))
    return frame


def optional_table(
    result: AuditResult, name: str, variant: str | None = None, task: str | None = None
) -> pd.DataFrame | None:
    """As `explanation_table`, for a figure that can do without."""
    try:
        return explanation_table(result, name, variant, task)
    except Absent:
        return None


def cut_name(kind: Any, percentile: Any) -> str:
    """A way to choose exemplars, in words.

    >>> cut_name("taxicab", 90.0), cut_name("modal", float("nan")), cut_name("taxicab", 99.5)
    ('Taxicab, top 10 %', 'modal', 'Taxicab, top 0.5 %')
    """
    word = _KINDS.get(str(kind), str(kind))
    return word if missing(percentile) else f"{word}, top {100 - float(percentile):g} %"


def cuts(frame: pd.DataFrame) -> list[Cut]:
    """The ways to choose exemplars that a table holds, modal ones first, then by percentile."""
    pairs = {
        (str(kind), None if missing(percentile) else float(percentile))
        for kind, percentile in zip(frame["kind"], frame["percentile"], strict=True)
    }
    order = list(_KINDS)
    known = [pair for pair in pairs if pair[0] in order]
    return sorted(known, key=lambda pair: (order.index(pair[0]), pair[1] or 0.0))


def at_cut(frame: pd.DataFrame, cut: Cut) -> pd.DataFrame:
    """The rows of one way to choose exemplars."""
    kind, percentile = cut
    own = frame["kind"] == kind
    found = frame["percentile"].isna() if percentile is None else frame["percentile"] == percentile
    return frame[own & found]


def usual_cut(frame: pd.DataFrame) -> Cut:
    """The choice that a figure with room for one shows: the widest Taxicab cut, else the modal."""
    known = cuts(frame)
    return min(known, key=lambda pair: (_PREFERRED.index(pair[0]), pair[1] or 0.0))


def why_unknown(row: dict[str, Any]) -> str | None:
    """Why a row is not known, in words; None where it can, whatever else its status notes.

    >>> why_unknown({"status": "not_estimable: one member", "n": 5})
    'cannot tell (one member)'
    >>> [why_unknown({"status": status, "n": 4}) for status in ("small_group: n < 10", "ok")]
    ['cannot tell (n = 4)', None]
    """
    status = Status.of(row.get("status"))
    if status.kind not in _UNTOLD:
        return None
    if status.kind == SMALL_GROUP and not missing(row.get("n")):
        return f"cannot tell (n = {int(row['n']):,})"
    return f"cannot tell ({status.reason or status.kind.replace('_', ' ')})"


def status_note(row: dict[str, Any]) -> str | None:
    """What the status of a row says, whether it is told or not; None for `ok`.

    >>> status_note({"status": "no noise floor: 1 baseline member"}), status_note({"status": "ok"})
    ('no noise floor: 1 baseline member', None)
    """
    status = text(row.get("status")) or "ok"
    return None if status == "ok" else why_unknown(row) or status


def correlation(row: dict[str, Any]) -> str:
    """A correlation with its interval.

    >>> correlation({"correlation": 0.43, "correlation_low": -0.27, "correlation_high": 0.83})
    '0.43 [−0.27, 0.83]'
    """
    names = ("correlation", "correlation_low", "correlation_high")
    middle, low, high = (f"{real(row[name]):.2f}".replace("-", MINUS) for name in names)
    return f"{middle} [{low}, {high}]"


# --- individuals ---------------------------------------------------------------------------------

_WORDS = {
    "tilt": "tilt",
    "abs_tilt": "absolute tilt",
    "ink": "ink (mean pixel)",
    "distance": "distance to the class mean",
}
INDIVIDUALS = 2000  # points of a figure
_SHARES = (
    "baseline", "baseline_shrunk", "compressed", "compressed_shrunk", "compressed_low",
    "compressed_high", "shift", "shift_shrunk", "shift_low", "shift_high",
)  # fmt: skip


def properties(frame: pd.DataFrame) -> list[str]:
    """The columns that describe the individuals and differ between them."""
    own = [str(c) for c in frame.columns if c not in column_names("individuals")]
    return [c for c in own if frame[c].dtype.kind in "fiu" and frame[c].nunique() > 1]


def property_label(name: str) -> str:
    """A property as it stands on an axis.

    >>> property_label("abs_tilt"), property_label("stroke_width")
    ('absolute tilt', 'stroke width')
    """
    return _WORDS.get(name, label(name.replace("_", " ")))


def points(frame: pd.DataFrame, more: list[str]) -> list[dict[str, Any]]:
    """One point per individual, shares in percent, with the properties `more` as p0, p1, …"""
    kept = frame.nlargest(INDIVIDUALS, "n", keep="first") if len(frame) > INDIVIDUALS else frame
    rows = records(kept, ("individual", "group", "n", *_SHARES, *more))
    return [
        {
            "who": text,
            "group": EVERYONE if missing(row["group"]) else label(row["group"]),
            "n": value(row["n"]),
            **{name: value(row[name], 100) for name in _SHARES},
            **{f"p{i}": value(row[name]) for i, name in enumerate(more)},
        }
        for text, row in zip(labels([row["individual"] for row in rows]), rows, strict=True)
    ]
