"""Endpoints: the rows of an audit's limits that the rules of a policy speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.decide.criteria import Demand
from fairweight.auditing.decide.levels import column_of, is_missing, known_name
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult
    from fairweight.specs.policy import Policy, Rule

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


def endpoints(
    result: AuditResult, policy: Policy, demands: tuple[tuple[Demand, ...], ...]
) -> pd.DataFrame:
    """One line per variant, rule, criterion and row: its limits, and what keeps it from judgement.

    Columns of the bounds, and: rule, criterion, limit, sign, threshold and worst (`sign` ×
    quantity must be above the threshold and cannot be below the worst), too_small (a reason, or
    None).
    """
    if result.bounds.empty:
        raise InputError(
            "The audit holds no limits for a gate; make it again with this version of fairweight."
        )
    _check_required(result, policy)
    keys = result.bounds[list(_KEYS)].reset_index(drop=True)
    asked: list[Demand] = []  # beside them: which rows, and what keeps each from judgement
    places: list[NDArray[np.int_]] = []
    too_small: list[NDArray[np.object_]] = []
    for variant in result.variants:
        rows = keys[keys["variant"] == variant]
        for rule, of_rule in zip(policy.rule, demands, strict=True):
            for demand in of_rule:
                chosen = _rows(rows, rule, demand, result)
                asked.append(demand)
                places.append(chosen.index.to_numpy())
                too_small.append(_too_small(chosen, rows, policy, result.groupings))
    declared = result.bounds.iloc[np.concatenate(places)].reset_index(drop=True)
    of = np.repeat(np.arange(len(asked)), [len(place) for place in places])
    return declared.assign(
        rule=np.array([demand.rule for demand in asked])[of],
        criterion=np.array([demand.criterion for demand in asked], dtype=object)[of],
        limit=np.array([demand.limit for demand in asked])[of],
        sign=np.array([demand.sign for demand in asked])[of],
        threshold=np.array([demand.threshold for demand in asked])[of],
        worst=np.array([demand.worst for demand in asked], dtype=float)[of],
        too_small=np.concatenate(too_small),
    )


def unjudged_levels(result: AuditResult, policy: Policy) -> list[str]:
    """Levels of missing values that a rule about all groups passes over."""
    bounds = result.bounds
    found: dict[str, None] = {}
    for rule in policy.rule:
        if rule.by in ("group", "intersection") and rule.groups is None:
            rows = bounds[(bounds["metric"] == rule.metric) & (bounds["kind"] == rule.by)]
            for level in rows["group"].unique():
                column = column_of(level, result.groupings)
                meant = {known_name("column", one, [column or ""]) for one in rule.columns or ()}
                if is_missing(level) and (rule.columns is None or column in meant):
                    found[level] = None
    return list(found)


def _check_required(result: AuditResult, policy: Policy) -> None:
    bounds = result.bounds
    known = bounds.loc[bounds["kind"].isin(["group", "intersection"]), "group"].unique().tolist()
    for name in policy.require_groups:
        if known_name("group", name, known) is None:
            raise UnknownNameError(
                "The group that the policy requires (require_groups)", name, known
            )


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
            held = _named(chosen, what, rule, result.groupings)
            known = held.unique().tolist()
            meant = [known_name(what, one, known) for one in wanted]
            for one, found in zip(wanted, meant, strict=True):
                if found is None:
                    raise UnknownNameError(f"{name}: the {what}", one, known)
            chosen = chosen[held.isin(meant)]
    if rule.by in ("group", "intersection") and rule.groups is None:
        chosen = chosen[~chosen["group"].map(is_missing).to_numpy(dtype=bool)]
        if chosen.empty:
            raise InputError(f"{name} speaks of no group at all; {_REMEDIES[rule.by]}.")
    return chosen


def _named(
    chosen: pd.DataFrame, what: str, rule: Rule, groupings: tuple[str, ...]
) -> pd.Series[str]:
    """The task, column, group or class of each row, as a policy names it."""
    if what == "task":
        return chosen["task"].fillna(TASK_MEAN)
    if what == "column":
        if rule.by == "grouping":  # a row about a whole column is named by it
            return chosen["group"]
        return chosen["group"].map(lambda level: column_of(level, groupings))
    return chosen[what]


def _too_small(
    chosen: pd.DataFrame, rows: pd.DataFrame, policy: Policy, groupings: tuple[str, ...]
) -> NDArray[np.object_]:
    """Why a row is not judged: its own size, or a level that a gap or a worst group looks past."""
    least = policy.min_group_size
    found: list[str | None] = []
    for n in chosen["n"].to_numpy(dtype=float, na_value=np.nan):
        what = "its size is not known" if np.isnan(n) else "it has too few examples"
        found.append(None if n >= least else f"{what}: min_group_size is {least:,}")
    if (chosen["kind"] == "grouping").any():
        few = _small_levels(rows, least, groupings)
        keys = zip(chosen["task"].fillna(TASK_MEAN), chosen["group"], strict=True)
        found = [
            reason or few.get((str(task), str(column)))
            for reason, (task, column) in zip(found, keys, strict=True)
        ]
    return np.array(found, dtype=object)


def _small_levels(
    rows: pd.DataFrame, least: int, groupings: tuple[str, ...]
) -> dict[tuple[str, str], str]:
    """(task, column) → what its small levels are; levels of missing values are in no gap."""
    levels = rows[
        (rows["metric"] == "accuracy")
        & (rows["quantity"] == "value")
        & rows["kind"].isin(["group", "intersection"])
    ]
    few: dict[tuple[str, str], list[str]] = {}
    sizes = levels["n"].to_numpy(dtype=float, na_value=np.nan)
    tasks = levels["task"].fillna(TASK_MEAN)
    for task, level, n in zip(tasks, levels["group"], sizes, strict=True):
        if not n >= least and not is_missing(level):
            few.setdefault((task, column_of(level, groupings) or ""), []).append(level)
    return {
        key: f"{names[0]}{f' and {len(names) - 1} more levels' if len(names) > 1 else ''} in it "
        f"{'have' if len(names) > 1 else 'has'} fewer than min_group_size = {least:,} examples"
        for key, names in few.items()
    }
