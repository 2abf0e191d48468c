"""Endpoints: the rows of an audit's limits that the rules of a policy speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairweight.auditing.metrics as registered
from fairweight.auditing.metrics import Metric
from fairweight.auditing.metrics.outcomes import OUTCOMES
from fairweight.auditing.result import BOUND_COLUMNS, DIVISORS, GATE_ALPHA, AuditResult
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.canonical import canonical
from fairweight.tables.names import (
    column_of,
    grouping_name,
    is_missing,
    known_group,
    split_grouping,
)

if TYPE_CHECKING:  # every audit loads this module, and few have a policy
    from fairweight.specs.policy import Criterion, Policy, Rule

# What a rule asks of one row, on a scale on which more is better.


@dataclass(frozen=True)
class Demand:
    """`sign` × quantity must be above `threshold(baseline)`."""

    rule: int  # place in the policy, from 1
    metric: Metric
    criterion: Criterion
    limit: float  # as the policy has it
    quantity: Literal["shift", "value"]
    sign: int  # −1 where lower is better
    worst: float  # the least that `sign` × quantity can be

    @property
    def threshold(self) -> float:
        """What `sign` × quantity must exceed; of a recovery, per unit of the baseline's value."""
        if self.criterion == "recovery":
            return self.limit - 1
        return self.limit if self.criterion == "min" else -self.limit

    def chance(self, n_classes: int) -> float:
        """What guessing among the classes at random gives."""
        assert self.metric.event is not None
        guesses = 5 if self.metric.event.happens == "top5" else 1
        return min(1.0, guesses / max(n_classes, 1))


def demands(policy: Policy) -> tuple[tuple[Demand, ...], ...]:
    """The demands of each rule; an InputError where a metric cannot carry one."""
    known = {entry.name: entry for entry in registered.metrics()}
    found = []
    for number, rule in enumerate(policy.rule, start=1):
        name = f"Rule {number} of the policy"
        if rule.metric not in known:
            raise UnknownNameError(f"{name}: the metric", rule.metric, known)
        metric = known[rule.metric]
        if metric.no_limits is not None:
            # Limits of a biased number do not hold: a gate on them passed 40 to 72 % at the margin.
            raise InputError(
                f"{name}: {metric.name} has no limits and cannot be gated ({metric.no_limits}); "
                f"use {metric.instead or 'another metric'}."
            )
        levels = {"intersection": "group"}.get(rule.by, rule.by)
        if levels not in metric.by:
            kinds = [f'"{by}"' for by in metric.by if by != "group*class"]
            kinds += ['"intersection"'] if "group" in metric.by else []
            raise InputError(
                f'{name}: {metric.name} has no rows by = "{rule.by}"; use {" or ".join(kinds)}.'
            )
        made = []
        for criterion, limit in rule.criteria():
            sign = _direction(name, metric, criterion)
            of_shift = criterion in ("margin", "recovery") and not metric.is_change
            if of_shift:
                worst = metric.low - metric.high
            else:
                worst = metric.low if sign == 1 else -metric.high
            quantity: Literal["shift", "value"] = "shift" if of_shift else "value"
            demand = Demand(number, metric, criterion, limit, quantity, sign, worst)
            # A demand that every model meets, or none, is a slip: mostly points written for shares.
            given = f"{name}: {criterion} = {limit:g}"
            if criterion == "margin" and worst >= 0:  # a change with one side only, the good one
                raise InputError(
                    f"{given} cannot be missed, because {metric.name} is never below 0; use min."
                )
            if criterion == "margin" and demand.threshold <= worst:
                raise InputError(
                    f"{given} cannot be missed, because {metric.name} can lose at most {-worst:g}; "
                    "give a smaller margin (two points are 0.02)."
                )
            if criterion in ("min", "max") and not metric.low < limit < metric.high:
                raise InputError(
                    f"{given} must lie between {metric.low:g} and {metric.high:g}, the range of "
                    f"{metric.name}."
                )
            made.append(demand)
        found.append(tuple(made))
    return tuple(found)


def _direction(name: str, metric: Metric, criterion: Criterion) -> int:
    """+1 where higher is better, −1 where lower is; refuses what has no direction."""
    kept = (metric.kind == "rate" and metric.better == "higher") or metric.kind == "outcome"
    if criterion == "recovery" and not kept:
        fit = [m.name for m in registered.metrics() if m.kind == "rate" and m.better == "higher"]
        raise InputError(
            f"{name}: recovery is a share of the baseline's {' or '.join(fit)}, not of "
            f"{metric.name}; use one of them, or a margin."
        )
    ratio = metric.is_ratio
    of_shift = criterion in ("margin", "recovery") and not metric.is_change
    if ("shift" if of_shift else "value") not in metric.gated or (ratio and criterion != "min"):
        why = (
            "is relative to a baseline that may be near 0"
            if metric.relative
            else "has a floor (min) but no margin"
            if ratio
            else "has no better direction in its own unit"
        )
        remedy = f"use {metric.instead or 'a metric with a direction, or a group gap'}"
        raise InputError(f"{name}: {metric.name} {why}, so {criterion} cannot be used; {remedy}.")
    sign = 1 if ratio or metric.better == "higher" else -1
    wrong = {"min": -1, "max": 1}.get(criterion)
    if sign == wrong:
        better, other = ("higher", "min") if sign == 1 else ("lower", "max")
        raise InputError(
            f"{name}: {criterion} of {metric.name} would limit how good it may be ({better} is "
            f"better); use {other}."
        )
    return sign


# Which column a level belongs to, and what a policy means by a name.


def known_name(what: str, text: str, known: list[str]) -> str | None:
    """The known task, column, group or class that a policy's text means; None where none is.

    >>> known_name("group", "site=1.0", ["site=1"]), known_name("column", '"sex"', ["sex"])
    ('site=1', 'sex')
    >>> known_name("column", "a*b", ['"a*b"']), known_name("class", "007", ["7"])
    ('"a*b"', None)
    """
    if text in known:
        return text
    if what == "group":
        return known_group(text, known)
    meant = [canonical(text)]
    if what == "column":
        meant = [grouping_name(split_grouping(text)), grouping_name([text])]
    return next((name for name in meant if name in known), None)


_KEYS = ("variant", "task", "metric", "kind", "group", "class", "n", "quantity", "status")
TASK_MEAN = "(mean)"  # how a policy names the mean over tasks
_REMEDIES = {
    "overall": "leave the rule out",
    "class": "leave the rule out",
    "group": "name group columns when auditing (--groups sex,age)",
    "intersection": "ask for intersections when auditing (--groups sex,age,sex*age)",
    "grouping": "name group columns when auditing (--groups sex,age)",
}

_NO_SCORES = "no scores"
_GIVE_SCORES = "give scores when auditing (a column score, or --score NAME=COL), or leave it out"
_DROPPED = "were left out (--missing drop)"  # in the notes of audits, old ones too


def endpoints(
    result: AuditResult, policy: Policy, demands: tuple[tuple[Demand, ...], ...]
) -> pd.DataFrame:
    """One line per variant, rule, criterion and row: its limits, and what keeps it from judgement.

    Columns of the bounds, and: rule, criterion, limit, sign, threshold and worst (`sign` ×
    quantity must be above the threshold and cannot be below the worst), baseline (its value, where
    a recovery is asked), too_small (a reason, or None); n_left_out, lacks and share_left_out (of
    examples that the row would have with those that were left out; NaN where what they do to the
    metric has no bound); aside (`excluded` or `skipped` by the policy, or None: to be judged).
    """
    if result.bounds.empty:
        raise InputError(
            "The audit holds no limits for a gate; make it again with this version of fairweight."
        )
    required, excluded = _check_held(result, policy)
    absences = Absences.of(result)
    bounds = absences.with_absent_rows(result.bounds)
    keys = bounds[list(_KEYS)].reset_index(drop=True)
    asked: list[Demand] = []  # beside them: which rows, and what keeps each from judgement
    places: list[NDArray[np.int_]] = []
    too_small: list[NDArray[np.object_]] = []
    away: list[_Away] = []
    aside: list[list[str | None]] = []
    for variant in result.variants:
        rows = keys[keys["variant"] == variant]
        for rule, of_rule in zip(policy.rule, demands, strict=True):
            for demand in of_rule:
                chosen = _rows(rows, rule, demand, result)
                asked.append(demand)
                places.append(chosen.index.to_numpy())
                small = _too_small(chosen, rows, policy, result.groupings)
                lacking = absences.away(chosen, demand, rule.by)
                too_small.append(small)
                away += lacking
                aside.append(_set_aside(chosen, demand.rule, policy, required, excluded, lacking))
    declared = bounds.iloc[np.concatenate(places)].reset_index(drop=True)
    of = np.repeat(np.arange(len(asked)), [len(place) for place in places])
    declared = declared.assign(
        rule=np.array([demand.rule for demand in asked])[of],
        criterion=np.array([demand.criterion for demand in asked], dtype=object)[of],
        limit=np.array([demand.limit for demand in asked])[of],
        sign=np.array([demand.sign for demand in asked])[of],
        threshold=np.array([demand.threshold for demand in asked])[of],
        worst=np.array([demand.worst for demand in asked], dtype=float)[of],
        too_small=np.concatenate(too_small),
        n_left_out=[part.n for part in away],
        lacks=np.array([part.lacks for part in away], dtype=object),
        share_left_out=[part.share for part in away],
        baseline=np.nan,
        aside=np.array([reason for part in aside for reason in part], dtype=object),
    )
    recovery = (declared["criterion"] == "recovery").to_numpy()
    if recovery.any():
        known = _baselines(result, declared[recovery])
        if result.outcome is None:
            _check_chance(result, declared[recovery], known, [asked[i] for i in of[recovery]])
        declared.loc[recovery, "baseline"] = known
        declared.loc[recovery, "threshold"] *= known
        if result.outcome is not None and not result.outcome.binary:
            declared = _with_recovery_limits(result, declared)
    return declared


def _with_recovery_limits(result: AuditResult, declared: pd.DataFrame) -> pd.DataFrame:
    """The limits of R_c − ρ R_b in the place of those of the shift, where a recovery is asked.

    The limits of the shift against (ρ − 1) R_b, which are right for shares, would pass 9 to 34 %
    at the margin where losses rise by a constant. Of an outcome of which less is better, at most
    1 − ρ of the baseline may be added.
    """
    from fairweight.auditing.archive import stored_cube
    from fairweight.auditing.compare.comparison import comparison
    from fairweight.auditing.compare.outcome import recovery_limits

    cube = stored_cube(result)
    if cube is None:
        raise InputError(
            "A recovery of numbers is judged from the cube of the audit (tables/cube.parquet), "
            "which is not there; give the predictions, or ask for a margin."
        )
    made = declared.copy()
    levels = np.array([2 * GATE_ALPHA / j for j in DIVISORS])
    asked = made[made["criterion"] == "recovery"]
    options = AuditOptions.from_json(result.provenance.options)
    keys = ["variant", "task", "kind", "limit", "sign"]
    of: Any
    for of, rows in asked.groupby(keys, dropna=False, sort=False):
        variant, task, kind, limit, sign = of
        if result.tasks and not isinstance(task, str):
            made.loc[rows.index, "status"] = "not_estimable: no recovery of a mean over tasks"
            continue
        c = comparison(
            cube,
            baseline=result.baseline,
            variant=str(variant),
            task=task if isinstance(task, str) else None,
            grouping_names=result.groupings,
            positive=None,
            options=options,
        )
        rho = float(limit) if sign > 0 else 2 - float(limit)
        found = recovery_limits(c, str(kind), rho, levels)
        for place, group in zip(rows.index, rows["group"], strict=True):
            ends = found.get(group if isinstance(group, str) else None)
            if ends is None:
                continue
            for at, j in enumerate(DIVISORS):
                made.loc[place, [f"low_{j}", f"high_{j}"]] = ends[0][at], ends[1][at]
            if "too few changed values" in str(made.loc[place, "status"]):
                made.loc[place, "status"] = "ok"  # here all examples count as changed
    return made


def unjudged_levels(result: AuditResult, policy: Policy) -> list[str]:
    """Levels of missing values beside the groups that a rule names one by one."""
    bounds = result.bounds
    found: dict[str, None] = {}
    for rule in policy.rule:
        if rule.by in ("group", "intersection") and rule.groups is not None:
            columns = {column_of(name, result.groupings) for name in rule.groups}
            rows = bounds[(bounds["metric"] == rule.metric) & (bounds["kind"] == rule.by)]
            for level in rows["group"].unique():
                beside = column_of(level, result.groupings) in columns
                if beside and is_missing(level) and level not in rule.groups:
                    found[level] = None
    return list(found)


def _check_held(result: AuditResult, policy: Policy) -> tuple[set[str], set[str]]:
    """The groups that are required and excluded, by the names that the audit has for them.

    Raises where the audit lacks what the policy asks for: limits of a rule, or a group. A lone
    audit.json may not hold what a rule asks for; then its tables are needed.
    """
    for number, rule in enumerate(policy.rule, start=1):
        by = {"intersection": "group"}.get(rule.by, rule.by)
        # A gap is judged only where all levels of its column are large enough.
        own = (result.primary, "group")
        needed = {(rule.metric, by)} | ({own} if by == "grouping" else set())
        if policy.require_groups or policy.exclude:
            needed.add(own)
        if needed & result.absent:
            raise InputError(
                f"Rule {number} of the policy: this audit.json alone does not hold the limits of "
                f'{rule.metric} by = "{rule.by}"; give the folder that fairweight audit wrote '
                "(audit.json with its tables/)."
            )
    bounds = result.bounds
    known = bounds.loc[bounds["kind"].isin(["group", "intersection"]), "group"].unique().tolist()
    found: dict[str, set[str]] = {"require_groups": set(), "exclude": set()}
    for key, what in (("require_groups", "requires"), ("exclude", "excludes")):
        for name in getattr(policy, key):
            meant = known_name("group", name, known)
            if meant is None:
                raise UnknownNameError(f"The group that the policy {what} ({key})", name, known)
            found[key].add(meant)
    required, excluded = found["require_groups"], found["exclude"]
    for name in sorted(excluded):
        if name in required:
            raise InputError(
                f"The policy both requires and excludes '{name}'; take it out of require_groups or "
                "of exclude."
            )
        if is_missing(name):
            raise InputError(
                f"The policy excludes '{name}', but examples without a value cannot be left out of "
                "a verdict; give their values, or leave them out of the table and say so."
            )
    return required, excluded


def _set_aside(
    chosen: pd.DataFrame,
    rule: int,
    policy: Policy,
    required: set[str],
    excluded: set[str],
    lacking: list[_Away],
) -> list[str | None]:
    """Which rows the policy excludes or skips; never all rows of a rule.

    A row that is small because its examples were left out is not skipped, nor is a group that is
    required, nor the missing value: they stay "cannot tell".
    """
    found: list[str | None] = []
    columns = zip(chosen["kind"], chosen["group"], _numbers(chosen["n"]), lacking, strict=True)
    for kind, group, n, away in columns:
        small = n + away.n < policy.min_group_size and kind in ("class", "group", "intersection")
        kept = group in required or (isinstance(group, str) and is_missing(group))
        if kind in ("group", "intersection") and group in excluded:
            found.append("excluded")
        elif policy.small_groups == "skip" and small and not kept:
            found.append("skipped")
        else:
            found.append(None)
    if found and all(reason == "excluded" for reason in found):
        raise InputError(
            f"The policy excludes every group that rule {rule} applies to; leave the rule out, or "
            "exclude fewer."
        )
    if None not in found:  # a rule that judges nothing must not pass
        return [None if reason == "skipped" else reason for reason in found]
    return found


def _rows(rows: pd.DataFrame, rule: Rule, demand: Demand, result: AuditResult) -> pd.DataFrame:
    """The rows of one variant that a rule speaks of; every name in the rule must be among them."""
    name = f"Rule {demand.rule} of the policy"
    of_metric = rows[rows["metric"] == rule.metric]
    same_kind = of_metric[of_metric["kind"] == rule.by]
    chosen = same_kind[same_kind["quantity"] == demand.quantity]
    if chosen.empty:  # what is not estimable has one row, which says why
        chosen = same_kind[same_kind["status"] != "ok"]
    if chosen.empty:
        reasons = [str(status) for status in of_metric["status"] if status != "ok"]
        why = f" ({reasons[0].replace('_', ' ')})" if reasons else ""
        remedy = _GIVE_SCORES if reasons and _NO_SCORES in reasons[0] else _REMEDIES[rule.by]
        raise InputError(
            f'{name}: the audit has no {demand.quantity} of {rule.metric} by = "{rule.by}"{why}; '
            f"{remedy}."
        )
    for what, wanted in (
        ("task", rule.tasks),
        ("column", rule.columns),
        ("group", rule.groups),
        ("class", rule.classes),
    ):
        if wanted is not None:
            held = chosen["group"] if what == "column" else chosen[what]
            if what == "task":
                held = held.fillna(result.only_task or TASK_MEAN)
            elif what == "column" and rule.by != "grouping":  # else the column names the row
                held = held.map(lambda level: column_of(level, result.groupings))
            known = held.unique().tolist()
            meant = [known_name(what, one, known) for one in wanted]
            for one, found in zip(wanted, meant, strict=True):
                if found is None:
                    raise UnknownNameError(f"{name}: the {what}", one, known)
            chosen = chosen[held.isin(meant)]
    return chosen


def _too_small(
    chosen: pd.DataFrame, rows: pd.DataFrame, policy: Policy, groupings: tuple[str, ...]
) -> NDArray[np.object_]:
    """Why a row is not judged: its own size, or a level that a gap or a worst group looks past."""
    least = policy.min_group_size
    found: list[str | None] = []
    for n in _numbers(chosen["n"]):
        what = "its size is not known" if np.isnan(n) else "it has too few examples"
        found.append(None if n >= least else f"{what}: min_group_size is {least:,}")
    if (chosen["kind"] == "grouping").any():
        unseen = _unseen_levels(rows, least, groupings)
        keys = zip(chosen["task"].fillna(TASK_MEAN), chosen["group"], strict=True)
        found = [
            reason or unseen.get((str(task), str(column)))
            for reason, (task, column) in zip(found, keys, strict=True)
        ]
    return np.array(found, dtype=object)


def _unseen_levels(
    rows: pd.DataFrame, least: int, groupings: tuple[str, ...]
) -> dict[tuple[str, str], str]:
    """(task, column) → which of its levels are too small, or stand for missing values.

    Gaps and worst groups are of the other levels, so whoever pays may be in these.
    """
    levels = rows[
        rows["metric"].isin(["accuracy", *OUTCOMES])
        & (rows["quantity"] == "value")
        & rows["kind"].isin(["group", "intersection"])
    ]
    few: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], int] = {}
    tasks = levels["task"].fillna(TASK_MEAN)
    for task, level, n in zip(tasks, levels["group"], _numbers(levels["n"]), strict=True):
        key = (task, column_of(level, groupings) or "")
        if is_missing(level):
            missing[key] = missing.get(key, 0) + (0 if np.isnan(n) else int(n))
        elif not n >= least:
            few.setdefault(key, []).append(level)
    found = {
        key: f"{names[0]}{f' and {len(names) - 1} more levels' if len(names) > 1 else ''} in it "
        f"{'have' if len(names) > 1 else 'has'} fewer than min_group_size = {least:,} examples"
        for key, names in few.items()
    }
    for (task, column), n in missing.items():
        told = f"{n:,} examples have no value of {column}, and it looks past them"
        found.setdefault((task, column), told)
    return found


def _baselines(result: AuditResult, declared: pd.DataFrame) -> Floats:
    """The baseline's value in each row; NaN where the audit does not have it."""
    keys = ["variant", "task", "metric", "by", "group", "class"]
    rows = result.results[(result.results["scope"] == "model").to_numpy(dtype=bool)]
    wanted = rows["metric"].isin(declared["metric"].unique()).to_numpy(dtype=bool)
    named = rows.loc[wanted, [*keys, "baseline"]].astype(dict.fromkeys(keys, object))
    known = {
        tuple(None if value != value else value for value in row[:-1]): row[-1]
        for row in named.itertuples(index=False)
    }
    asked = declared[keys].astype(object).itertuples(index=False)
    values = [
        known.get(tuple(None if value != value else value for value in row), np.nan)
        for row in asked
    ]
    return np.array(values, dtype=float)


def _check_chance(
    result: AuditResult, declared: pd.DataFrame, baseline: Floats, demands: list[Demand]
) -> None:
    """A baseline that is no better than guessing has nothing to recover."""
    of_tasks: dict[str | None, int] = {None: len(result.classes)}
    if not result.data.empty:  # classes that occur as labels in each task
        rows = result.data[(result.data["split"] == "test") & (result.data["by"] == "class")]
        counts = rows.groupby("task", dropna=False, sort=False)["class"].nunique()
        # Small counts may all be withheld.
        of_tasks = {
            task if isinstance(task, str) else None: int(n) for task, n in counts.items()
        } or of_tasks
    judged = declared["too_small"].isna()
    columns = (declared[name] for name in ("task", "group", "class"))
    for task, group, cls, here, value, demand in zip(
        *columns, judged, baseline, demands, strict=True
    ):
        # Of the mean over tasks the fewest classes count.
        n_classes = of_tasks[task] if task in of_tasks else min(of_tasks.values())
        chance = demand.chance(n_classes)
        if here and value <= chance:
            names = [name for name in (group, cls) if isinstance(name, str)]
            raise InputError(
                f"Rule {demand.rule} of the policy: recovery = {demand.limit:g} means nothing for "
                f"{demand.metric.name} {'of ' + names[0] if names else 'overall'}: the baseline's "
                f"{value:.3g} is not above chance ({chance:.3g} with {n_classes:,} classes); use "
                "margin or min there."
            )


@dataclass(frozen=True)
class _Away:
    """How many examples a row lacks because they were left out, and who lacks them."""

    n: float  # NaN: it is not known how many
    lacks: str | None
    share: float  # of the examples that the row would have; NaN where it does not bound the metric


_NOBODY = _Away(0, None, 0.0)


@dataclass(frozen=True)
class Absences:
    """Examples that an audit does not have because some variant lacks them."""

    # (task, kind, group or class) → number, the same weighted, who lacks them
    counts: dict[tuple[str | None, str, str | None], tuple[float, float, str]]
    n_classes: int

    @staticmethod
    def of(result: AuditResult) -> Absences:
        rows = result.left_out
        if rows.empty and any(_DROPPED in note for note in result.notes):
            raise InputError(
                "The audit left examples out (--missing drop) and does not say of which groups; "
                "make it again with this version of fairweight."
            )
        counts: dict[tuple[str | None, str, str | None], tuple[float, float, str]] = {}
        names = (rows[name] for name in ("task", "kind", "group", "class", "lacks"))
        for task, kind, group, cls, lacks, n, weighted in zip(
            *names, _numbers(rows["n"]), _numbers(rows["n_weighted"]), strict=True
        ):
            key = (_text(task), str(kind), _text(cls) if kind == "class" else _text(group))
            before = counts.get(key, (0.0, 0.0, ""))
            told = ", ".join(filter(None, [before[2], str(lacks)]))
            counts[key] = (before[0] + n, before[1] + weighted, told)
        for (task, kind, name), held in list(counts.items()):
            # The mean over tasks: no task lacks more than the one that lacks most.
            if task is not None:
                mean = counts.get((None, kind, name), (0.0, 0.0, ""))
                counts[None, kind, name] = held if not held[1] <= mean[1] else mean
        return Absences(counts, len(result.classes))

    def with_absent_rows(self, bounds: pd.DataFrame) -> pd.DataFrame:
        """The bounds, and a row without limits for every level that was left out entirely."""
        made: list[pd.DataFrame] = []
        for (task, kind, name), _ in self.counts.items():
            if kind == "overall":
                continue
            part = "class" if kind == "class" else "group"
            beside = bounds[
                (bounds["kind"] == kind)
                & (bounds["task"].isna() if task is None else bounds["task"] == task)
            ]
            if beside.empty or (beside[part] == name).any():
                continue
            once = beside.drop_duplicates(["variant", "metric", "quantity"])
            empty = {column: np.nan for column in BOUND_COLUMNS if column.startswith(("low", "hi"))}
            made.append(
                once.assign(
                    **{part: name, "n": 0, "estimate": np.nan, "status": _NONE_LEFT}, **empty
                )
            )
        return bounds if not made else pd.concat([bounds, *made], ignore_index=True)

    def away(self, chosen: pd.DataFrame, demand: Demand, by: str) -> list[_Away]:
        """What each chosen row lacks."""
        if not self.counts:
            return [_NOBODY] * len(chosen)
        event = demand.metric.event
        within = by == "class" and event is not None and event.happens in ("correct", "wrong")
        # Is the metric a mean over a row's examples? Recall, FPR and FNR of many classes together
        # are means of the classes' rates instead.
        of_classes = demand.metric.per_class and by != "class" and self.n_classes > 2
        of_events = event is not None and not of_classes
        mean = by != "grouping" and (demand.metric.pairs is not None or of_events)
        found = []
        names = (chosen[name] for name in ("task", "kind", "group", "class"))
        for task, kind, group, cls, size in zip(*names, _numbers(chosen["n"]), strict=True):
            # False positives of a class come from the others, and gaps from every level.
            name = cls if within else group if kind in ("group", "intersection") else None
            where = kind if name is not None else "overall"
            held = self.counts.get((_text(task), where, _text(name)))
            if held is None:
                found.append(_NOBODY)
                continue
            number, weighted, lacks = held
            share = weighted / (size + weighted) if mean else np.nan
            found.append(_Away(number, lacks, float(share)))
        return found


_NONE_LEFT = "not_estimable: all of its examples were left out"


def _numbers(column: pd.Series[float]) -> list[float]:
    numbers: list[float] = column.to_numpy(dtype=float, na_value=np.nan).tolist()
    return numbers


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
