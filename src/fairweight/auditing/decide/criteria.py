"""What a rule asks of one row, on a scale on which more is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import fairweight.auditing.metrics as registered
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fairweight.auditing.metrics import Metric
    from fairweight.specs.policy import Criterion, Policy, Rule

# Their value is itself a change against the baseline: 0 when both models answer alike.
CHANGES = frozenset(
    {"flips", "harmful_flips", "helpful_flips", "worst_group_shift", "excess_shift_standardised"}
)
# Means over the examples of a row although they are no registered events: one example more adds
# at most one n-th.
MEANS = frozenset({"flips", "harmful_flips", "helpful_flips"})
# Percent of a baseline that may be near 0: a tiny baseline makes any change look enormous.
RELATIVE = frozenset({"cev", "sde"})
# Published numbers whose limits do not hold: a gate on them passed 40 to 72 % at the margin.
WITHDRAWN = dict.fromkeys(
    ("ece", "ece_top_label"),
    "is too large by an amount that depends on n, so it has no limits and cannot be gated; use "
    "calibration_error_sq",
)
INSTEAD = {
    "calibration_gap": "calibration_error_sq",  # 0 is best: no side of it is harmful by itself
    "cev": "cev_pp",
    "sde": "sde_pp",
    "normalized_error_change": "error_rate",
    "normalized_fpr_change": "fpr",
    "normalized_fnr_change": "fnr",
    "selection_rate": "selection_rate_group_gap",
    "bias": "worst_case_bias_amplification",
    "bias_amplification": "worst_case_bias_amplification",
    "tcb": "selection_rate_group_gap",
    "heterogeneity": "group_gap",
    "heterogeneity_within_classes": "group_gap",
    "concentration": "harmful_flips",
    "class_impact": "recall",
    "disparate_impact": "demographic_parity_difference",
    "ppv_ratio": "predictive_parity_difference",
}


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

    def is_mean(self, by: str, n_classes: int) -> bool:
        """Whether the metric is a mean over the examples of such a row.

        Recall, FPR and FNR of many classes together are means of the classes' rates instead.
        """
        of_classes = self.metric.per_class and by != "class" and n_classes > 2
        return by != "grouping" and (
            self.metric.name in MEANS or (self.metric.event is not None and not of_classes)
        )

    def chance(self, n_classes: int) -> float:
        """What guessing among the classes at random gives."""
        assert self.metric.event is not None
        guesses = 5 if self.metric.event.happens == "top5" else 1
        return min(1.0, guesses / max(n_classes, 1))


def demands(policy: Policy) -> tuple[tuple[Demand, ...], ...]:
    """The demands of each rule; an InputError where a metric cannot carry one."""
    return tuple(_of_rule(number, rule) for number, rule in enumerate(policy.rule, start=1))


def _of_rule(number: int, rule: Rule) -> tuple[Demand, ...]:
    name = f"Rule {number} of the policy"
    known = {entry.name: entry for entry in registered.metrics()}
    if rule.metric not in known:
        raise UnknownNameError(f"{name}: the metric", rule.metric, known)
    metric = known[rule.metric]
    if metric.name in WITHDRAWN:
        raise InputError(f"{name}: {metric.name} {WITHDRAWN[metric.name]}.")
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
        change = metric.kind == "comparison" or metric.name in CHANGES
        quantity: Literal["shift", "value"] = (
            "shift" if criterion in ("margin", "recovery") and not change else "value"
        )
        if quantity == "shift":
            worst = metric.low - metric.high
        else:
            worst = metric.low if sign == 1 else -metric.high
        demand = Demand(number, metric, criterion, limit, quantity, sign, worst)
        _check_limit(name, metric, demand)
        made.append(demand)
    return tuple(made)


def _direction(name: str, metric: Metric, criterion: Criterion) -> int:
    """+1 where higher is better, −1 where lower is; refuses what has no direction."""
    if criterion == "recovery" and (metric.kind != "rate" or metric.better != "higher"):
        fit = [m.name for m in registered.metrics() if m.kind == "rate" and m.better == "higher"]
        raise InputError(
            f"{name}: recovery is a share of the baseline's {' or '.join(fit)}, not of "
            f"{metric.name}; use one of them, or a margin."
        )
    relative = metric.name in RELATIVE or metric.name.startswith("normalized_")
    ratio = metric.better == "one" and metric.high <= 1  # its best value is its largest
    directed = metric.better in ("higher", "lower") and not metric.name.startswith("heterogeneity")
    if relative or not (directed or (ratio and criterion == "min")):
        why = (
            "is relative to a baseline that may be near 0"
            if relative
            else "has a floor (min) but no margin"
            if ratio
            else "has no better direction in its own unit"
        )
        instead = INSTEAD.get(metric.name)
        remedy = f"use {instead}" if instead else "use a metric with a direction, or a group gap"
        raise InputError(f"{name}: {metric.name} {why}, so {criterion} cannot be asked; {remedy}.")
    sign = 1 if ratio or metric.better == "higher" else -1
    wrong = {"min": -1, "max": 1}.get(criterion)
    if sign == wrong:
        better, other = ("higher", "min") if sign == 1 else ("lower", "max")
        raise InputError(
            f"{name}: {criterion} of {metric.name} would limit how good it may be ({better} is "
            f"better); use {other}."
        )
    return sign


def _check_limit(name: str, metric: Metric, demand: Demand) -> None:
    """A demand that every model meets, or none, is a slip: mostly points written for shares."""
    given = f"{name}: {demand.criterion} = {demand.limit:g}"
    if demand.criterion == "recovery":  # the format has seen to it
        return
    if demand.criterion == "margin":
        if demand.worst >= 0:  # a change that has only one side, the good one
            raise InputError(
                f"{given} cannot be missed, because {metric.name} is never below 0; use min."
            )
        if demand.threshold <= demand.worst:
            raise InputError(
                f"{given} cannot be missed, because {metric.name} can lose at most "
                f"{-demand.worst:g}; give a smaller margin (two points are 0.02)."
            )
    elif not metric.low < demand.limit < metric.high:
        raise InputError(
            f"{given} must lie between {metric.low:g} and {metric.high:g}, the range of "
            f"{metric.name}."
        )
