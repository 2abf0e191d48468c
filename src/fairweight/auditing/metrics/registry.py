"""The registry of metrics: each is one pure function of counts (or of sorted scores).

`kind` says what the function receives and how its uncertainty is found:

kind        function receives                                   returns   interval, test
rate        Counts (..., C); `event` is the paired event        (...)     Wilson, Tango, McNemar
value       Counts (..., C)                                     (...)     bootstrap, swap null
grouping    Counts (..., L, C), usable levels of one column     (...)     bootstrap, swap null
identity    Counts (..., L, C) and Sides, levels of a column    (..., L)  bootstrap, swap null
score       ScoreColumn, weights (R, n)                         (R, S)    bootstrap, swap null
comparison  two Counts (..., C), baseline and compressed        (...)     basic bootstrap, swap null
table       arguments of its own: called by its own module in auditing/compare

A `linear` metric of scores is the mean of what examples add: t limits and test, without draws.

A function with `per_class` returns (..., C); for overall and group rows the value of the positive
class is taken if the labels are binary, else the unweighted mean over classes.

Other packages add metrics by an entry point of the group `fairweight.metrics` that names a module;
it is imported when metrics are first listed, and registers its own with `@register`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from fairweight.auditing.metrics.harm import Harm
from fairweight.errors import InputError, UnknownNameError
from fairweight.other_packages import load_entry_points

ENTRY_POINTS = "fairweight.metrics"

Kind = Literal["rate", "value", "grouping", "identity", "score", "comparison", "table"]
Given = Literal["all", "label", "not_label"]
Happens = Literal["correct", "wrong", "predicted", "abstained", "uncertain", "top5"]
Level = Literal["overall", "class", "group", "group*class", "grouping"]


@dataclass(frozen=True)
class Event:
    """A yes-or-no event of one example: `happens` among the examples in `given`.

    `label` and `not_label` are relative to the class of the row (or the positive class).
    """

    happens: Happens
    given: Given = "all"


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    kind: Kind
    function: Callable[..., Any]
    by: tuple[Level, ...]
    better: Literal["higher", "lower", "zero", "one", "none"]
    low: float
    high: float
    summary: str  # one line, shown by `fairweight metrics`
    formula: str
    source: str
    undefined: str  # when the value is NaN
    per_class: bool = False
    event: Event | None = None
    rates_first: bool = False  # average rates over members, then compute (else the reverse)
    needs: frozenset[str] = field(default_factory=frozenset)  # positive, train, score, scores, ...
    level: Callable[..., Any] | None = None  # same input: index of the level that the value is of
    harm: Harm | None = None  # the most that few changed predictions can cost it, for the gate
    changed: Event | None = None  # which changed predictions enter the value; None: all of them
    linear: bool = False  # t limits from what every example adds, not from draws
    no_limits: str | None = None  # why the value has neither limits nor a test


_METRICS: dict[str, Metric] = {}


def register(**fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a metric; the decorated function stays usable as it is.

    >>> from fairweight.auditing.metrics.registry import register
    >>> @register(name="doctest_share_right", kind="value", by=("overall", "group"),
    ...           better="higher", low=0, high=1, summary="share of right answers",
    ...           formula="sum correct / n", source="example", undefined="no examples")
    ... def share_right(counts):
    ...     return counts.correct.sum(-1) / counts.n
    >>> metric("doctest_share_right").kind
    'value'
    >>> unregister("doctest_share_right")
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        fields.setdefault("name", function.__name__)
        fields["needs"] = frozenset(fields.get("needs", ()))
        entry = Metric(function=function, **fields)
        if entry.name in _METRICS:
            raise InputError(
                f"A metric named '{entry.name}' is registered already; choose another name."
            )
        _METRICS[entry.name] = entry
        return function

    return add


def unregister(name: str) -> None:
    """Remove a metric (for tests and notebooks that define one again)."""
    _METRICS.pop(name)


def metric(name: str) -> Metric:
    """The metric of that name."""
    if name not in _METRICS:
        _load_others()
    if name not in _METRICS:
        raise UnknownNameError("Metric", name, _METRICS)
    return _METRICS[name]


def metrics() -> tuple[Metric, ...]:
    """Every registered metric, in order of registration; those of other packages last."""
    _load_others()
    return tuple(_METRICS.values())


@cache
def _load_others() -> None:
    load_entry_points(ENTRY_POINTS, "metric")
