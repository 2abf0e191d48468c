"""Sample sizes: how many examples each group needs before a gate can pass, planned beforehand.

By the gate's own rule: a row passes where Tango's one-sided lower limit is above −margin, and all
rows must pass. A row that loses nothing passes by chance alone, more often with more examples and
less often with more churn (answers lost or gained). Nothing here depends on whether a pilot's rows
pass; of a pilot only sizes, churn and clusters are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

import fairweight.auditing.metrics as registered
from fairweight.auditing.gate.endpoints import demands, endpoints
from fairweight.auditing.gate.verdict import divisor
from fairweight.auditing.intervals.power import (
    examples_needed,
    examples_to_pass,
    least_n,
    pass_chance,
)
from fairweight.auditing.result import DIVISORS, GATE_ALPHA, AuditResult, records
from fairweight.auditing.schema import frame
from fairweight.base.wording import counted, real, text
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.policy import Policy, read_policy

MARGIN = 0.02
MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
CHURNS = (0.01, 0.03, 0.06)  # where neither a pilot nor the user says it
POWER = 0.8  # how often a model that loses nothing should pass
POINTS = 60  # of the curve
_FLIPS = ("harmful_flips", "helpful_flips")


@dataclass(frozen=True)
class PlanRequest:
    """What is to be ruled out, how surely, and what is assumed of the models.

    Parameters
    ----------
    margin
        The largest tolerated loss, a fraction; by default a policy's, or 2 points.
    power
        How probably all rows should pass together.
    churn
        Shares of examples on which just one of the two models is right; by default the pilot's.
    n_groups
        How many groups must pass, where there is no pilot.
    expected_loss
        The loss that every group truly has, below the margin.
    looks
        How often the examples may be gated; each look errs with 5 % / looks.
    min_group_size
        Groups of fewer examples are never judged.
    """

    margin: float | None = None
    power: float = POWER
    churn: tuple[float, ...] = ()
    n_groups: int | None = None
    expected_loss: float = 0.0
    looks: int = 1
    min_group_size: int = 100

    def __post_init__(self) -> None:
        _share("--margin", self.margin, "give a fraction such as 0.02 (2 points)", above=0)
        _share("--power", self.power, "give a share such as 0.8", above=0)
        for churn in self.churn:
            _share("--churn", churn, "give a fraction such as 0.03 (3 % of predictions)")
        _share("--expected-loss", self.expected_loss, "give a fraction such as 0.005")
        if self.n_groups is not None and self.n_groups < 1:
            raise InputError(f"--n-groups {self.n_groups} cannot be used; give at least 1.")
        if self.looks < 1 or divisor(self.looks) is None:
            raise InputError(
                f"--looks {self.looks} cannot be used; give a number from 1 to {DIVISORS[-1]:,}."
            )

    @property
    def alpha(self) -> float:
        """The one-sided level of each limit, as the gate has it."""
        return GATE_ALPHA / (divisor(self.looks) or 1)


def _share(name: str, value: float | None, remedy: str, *, above: float = -math.inf) -> None:
    if value is not None and not (0 <= value < 1 and value > above):
        hint = f"; did you mean {value / 100:g}?" if 1 <= value < 100 else f"; {remedy}."
        raise InputError(f"{name} {value:g} cannot be used{hint}")


@dataclass(frozen=True)
class Plan:
    """How many examples each row needs.

    rows   the table `plan`: a row per group (of a pilot), or per margin and churn
    curve  the table `plan_curve`: the chance that all rows pass, by examples per row and churn
    """

    request: PlanRequest
    n_rows: int  # that must pass together
    rows: pd.DataFrame
    curve: pd.DataFrame
    pilot: Pilot | None = None
    notes: tuple[str, ...] = ()

    @property
    def chance_now(self) -> float:
        """How probably all rows pass with the examples of the pilot; NaN without one."""
        return math.nan if self.pilot is None else math.prod(self.rows["chance"].tolist())

    def __repr__(self) -> str:
        needed = self.rows["n_needed"]
        least, most = int(needed.min()), int(needed.max())
        each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        rows = counted(self.n_rows, "row")
        return f"<Plan: {each} examples for each of {rows}, power {self.request.power:g}>"


Key = tuple[str | None, str | None, str | None]  # task, group, class


@dataclass(frozen=True)
class Pilot:
    """What a table says that a plan can use."""

    variant: str  # the one that was asked for, or that changes most
    baseline: str
    n_examples: int
    churn: float  # of all examples
    churns: dict[Key, float] = field(repr=False)  # of each row
    design_effects: dict[Key, float] = field(repr=False)  # how many examples are worth one

    @staticmethod
    def of(result: AuditResult, variant: str | None = None) -> Pilot | None:
        """Of this variant, or of the one that changes most; None where nobody is right or wrong."""
        if variant is not None and variant not in result.variants:
            raise UnknownNameError("Variant", variant, result.variants)
        rows = result.results
        flips = rows[rows["metric"].isin(_FLIPS) & (rows["scope"] == "model")]
        churns: dict[str, dict[Key, float]] = {}  # a change is harmful or helpful
        for row in records(flips, ["variant", "task", "group", "class", "compressed"]):
            own, key = churns.setdefault(row["variant"], {}), _key(row)
            own[key] = own.get(key, 0.0) + real(row["compressed"])
        # Of several variants and tasks the one that changes most counts.
        overall = [
            (share, name)
            for name, own in churns.items()
            if variant in (None, name)
            for (_, group, cls), share in own.items()
            if group is None and cls is None and math.isfinite(share)
        ]
        if not overall:
            return None
        churn, name = max(overall)
        power = result.power[result.power["variant"] == name]
        names = ["task", "group", "class", "design_effect"]
        return Pilot(
            variant=name,
            baseline=result.baseline,
            n_examples=result.n_examples,
            churn=churn,
            churns=churns[name],
            design_effects={_key(row): real(row["design_effect"]) for row in records(power, names)},
        )


def _key(row: dict[str, Any]) -> Key:
    return text(row["task"]), text(row["group"]), text(row["class"])


def planned(request: PlanRequest) -> Plan:
    """The plan without a pilot: a row per margin and assumed churn."""
    margins = MARGINS if request.margin is None else (request.margin,)
    n_rows = request.n_groups or 1
    by = "overall" if request.n_groups is None else "group"
    found = [
        sizes_of(request, n_rows, margin, churn) | {"metric": "accuracy", "by": by}
        for margin in margins
        if margin > request.expected_loss
        for churn in request.churn or CHURNS
    ]
    if not found:
        raise _no_room(request.expected_loss, max(margins))
    curve = _curve(request, n_rows, request.margin or MARGIN, request.churn or CHURNS)
    return Plan(request, n_rows, frame("plan", found), curve)


def plan_of(
    result: AuditResult,
    request: PlanRequest,
    policy: Policy | None = None,
    variant: str | None = None,
) -> Plan:
    """The plan of a policy, or of one margin for every group, with sizes and churn of a pilot."""
    if request.n_groups is not None:
        raise InputError("--n-groups is counted in the pilot; leave it out, or the pilot.")
    if policy is not None and request.margin is not None:
        raise InputError("--margin and --policy were both given; give one of them.")
    asked = policy
    if asked is None:  # one margin, of every kind of group that the pilot has
        held = set(result.bounds["kind"])
        kinds = [k for k in ("group", "intersection") if k in held]
        margin = MARGIN if request.margin is None else request.margin
        metric = leading_metric(result)
        rules = [{"metric": metric, "by": k, "margin": margin} for k in kinds or ["overall"]]
        asked = read_policy({"rule": rules, "min_group_size": request.min_group_size})
    request = replace(request, min_group_size=asked.min_group_size)
    pilot, wanted = Pilot.of(result, variant), demands(asked)
    if pilot is None and result.outcome is not None and not result.outcome.binary:
        raise InputError(
            f"A plan counts predictions that become right or wrong, and '{result.outcome.name}' is "
            "a number. Its audit says how many examples of each group a margin takes: fairweight "
            "audit ... --margin M -v."
        )
    if pilot is None:
        raise InputError(
            "The pilot does not say how many predictions became right or wrong, so nothing can be "
            "planned from it; assume a churn without a pilot: --churn 0.03 --n-groups 17."
        )
    plannable = {
        number: _is_planned(rule.metric, rule.by) for number, rule in enumerate(asked.rule, start=1)
    }
    declared = endpoints(result, asked, wanted)
    declared = declared[(declared["variant"] == pilot.variant) & declared["aside"].isna()]
    fits = declared["rule"].map(plannable) & declared["criterion"].isin(["margin", "recovery"])
    rows = records(
        declared[fits],
        ["variant", "task", "metric", "kind", "group", "class", "n", "threshold"],
    )
    if not rows:
        raise InputError(
            "The policy has no margin (or recovery) of accuracy by group or recall by class, and "
            "only these can be planned; add one, or give --margin."
        )
    found = []
    for row in rows:
        key, margin = _key(row), -real(row["threshold"])
        if not margin > request.expected_loss:
            raise _no_room(request.expected_loss, margin)
        churn, effect = max(request.churn, default=math.nan), pilot.design_effects.get(key, 1.0)
        if not request.churn:
            # A small row's own churn is too uncertain to plan with less than that of all.
            own = pilot.churns.get(key, math.nan)
            churn = max(pilot.churn, own) if math.isfinite(own) else pilot.churn
        effect = effect if math.isfinite(effect) else 1.0
        family = sum(other["kind"] == row["kind"] for other in rows)
        made = sizes_of(request, len(rows), margin, churn, effect, family)
        have = int(real(row["n"]))
        chance = pass_chance(
            have / effect, margin, churn, request.expected_loss, alpha=request.alpha
        )
        made |= {
            "n_pilot": have,
            "n_missing": max(0, made["n_needed"] - have),
            "chance": float(chance) if have >= request.min_group_size else 0.0,
        }
        found.append(made | {"by": row["kind"]} | {k: row[k] for k in _NAMES})
    churns = tuple(dict.fromkeys((pilot.churn, max(made["churn"] for made in found))))
    margin = min(made["margin"] for made in found)
    curve = _curve(request, len(found), margin, request.churn or churns)
    notes = []
    named = dict.fromkeys(
        f"{row['metric']} by {row['kind']} ({row['criterion']})"
        for row in records(declared[~fits], ["metric", "kind", "criterion"])
    )
    if named:
        notes.append(
            f"Not planned: {', '.join(named)}. Only margins and recoveries of accuracy and of "
            "recall by class can be planned; these rows may need more examples."
        )
    if any(made["design_effect"] > 1 for made in found):
        notes.append(
            "Examples of one cluster or of unequal weight are worth fewer, as in the pilot; with "
            "other clusters or weights the numbers differ."
        )
    return Plan(request, len(found), frame("plan", found), curve, pilot, tuple(notes))


_NAMES = ("variant", "task", "metric", "group", "class")


def _is_planned(name: str, by: str) -> bool:
    """Whether a row of the metric changes exactly where right becomes wrong or wrong right."""
    event = registered.metric(name).event
    if event is None or event.happens not in ("correct", "wrong"):
        return False
    return by != "grouping" and (event.given == "all" or by == "class")


def leading_metric(result: AuditResult) -> str:
    """What an audit is about: accuracy, or the outcome that it has in its place."""
    held = dict.fromkeys(result.bounds["metric"])
    leading = (m.name for m in registered.metrics() if "overall" in m.confirmatory)
    return next((name for name in leading if name in held), "accuracy")


def sizes_of(
    request: PlanRequest,
    n_rows: int,
    margin: float,
    churn: float,
    effect: float = 1.0,
    family: int | None = None,
) -> dict[str, Any]:
    """The sizes that one row needs, of `family` that an audit tests together."""
    enough = examples_to_pass(
        margin,
        churn,
        power=request.power,
        rows=n_rows,
        loss=request.expected_loss,
        alpha=request.alpha,
    )
    to_find = examples_needed(
        margin, churn, 0.05 / (family or n_rows), power=request.power, design_effect=effect
    )
    least = request.min_group_size
    identical = math.ceil(least_n(margin, request.alpha) * effect)
    return {
        "margin": margin,
        "churn": churn,
        "design_effect": effect,
        "n_identical": max(least, identical),
        "n_needed": max(least, math.ceil(enough * effect)),
        "n_to_find": max(least, int(to_find)),
    }


def _curve(
    request: PlanRequest, n_rows: int, margin: float, churns: Sequence[float]
) -> pd.DataFrame:
    """The chance that all rows pass, from few examples to more than enough."""
    rows = []
    for churn in sorted(set(churns)):
        loss, alpha = request.expected_loss, request.alpha
        enough = examples_to_pass(
            margin, churn, power=request.power, rows=n_rows, loss=loss, alpha=alpha
        )
        sizes = sorted({max(1, round(enough * 1.8 * i / POINTS)) for i in range(1, POINTS + 1)})
        chance = pass_chance(sizes, margin, churn, loss, alpha=alpha) ** n_rows
        rows += [
            {"margin": margin, "churn": churn, "n": n, "chance": float(one)}
            for n, one in zip(sizes, chance, strict=True)
        ]
    return frame("plan_curve", rows)


def _no_room(loss: float, margin: float) -> InputError:
    return InputError(
        f"--expected-loss {loss:g} is not below the margin of {margin:g}: such a model cannot be "
        "shown to keep it; give a smaller loss or a larger margin."
    )
