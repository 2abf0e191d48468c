"""What overrides would do at every budget, beside a random choice of equal size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.mitigate.curves import (
    Curve,
    columns_of,
    draws_of_units,
    in_orders,
    limits_of_each,
    mean_curve,
    measured,
    n_having,
    series,
    stepwise,
)
from fairweight.auditing.mitigate.mitigation import dense_partners, same_examples
from fairweight.auditing.mitigate.overrides import (
    dense_labels,
    human_codes,
    n_within,
    uncertain_order,
)
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.base.types import Progress
from fairweight.errors import InputError

BUDGETS: tuple[float, ...] = tuple(percent / 100 for percent in range(21))
RANDOM_DRAWS = 20


@dataclass(frozen=True)
class _Settings:
    """What all curves share: budgets, level, seed, and draws once they are made."""

    budgets: tuple[float, ...]
    alpha: float
    random_state: int
    drawn: dict[int, NDArray[Any]] = field(default_factory=dict)  # by the number of units
    shuffled: dict[int, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Pair:
    """In the order of doubt, at random in expectation, and in random draws."""

    ordered: Curve
    expected: Curve
    random: Curve  # of the data, a row per draw


def override_curves(
    tasks: Sequence[Answers],
    variants: Sequence[str],
    *,
    labels: Mapping[str | None, Mapping[str, str]] | None = None,
    budgets: Sequence[float] = BUDGETS,
    min_group: int = 10,
    n_boot: int = 200,
    alpha: float = 0.05,
    random_state: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """The table `override_curves`: a row per variant, task, source, metric, column and budget.

    Parameters
    ----------
    tasks
        The tasks to be overridden, on the rows on which overrides are judged. With several, rows
        without a task are means over them.
    labels
        Task → example → label from annotation; without it the tables' own labels stand for those
        of people, as in the paper.

    Notes
    -----
    Which examples come first depends on the dense model's scores alone, never on labels. The
    order and the sets of a budget are held in bootstrap draws of examples (clusters). `random` is
    the mean over 20 seeded draws; its interval is the bootstrap of the expectation over all draws.
    """
    given = tuple(float(b) for b in budgets)
    if not given or given[0] != 0 or list(given) != sorted(set(given)) or given[-1] > 1:
        raise InputError(
            f"Budgets must begin with 0, grow, and not exceed 1; given were {list(given)}."
        )
    settings = _Settings(given, alpha, random_state)
    rows: list[dict[str, Any]] = []
    same = same_examples(tasks)
    for variant in variants:
        whole: dict[str, list[_Pair]] = {}
        for number, answers in enumerate(tasks):
            if progress is not None:
                progress(f"overrides of {variant}", number, len(tasks))
            found = _pairs(answers, variant, labels, settings, min_group, n_boot)
            for source, pair in found.items():
                rows += _rows(variant, answers.task, source, [pair], answers.n_examples, settings)
                whole.setdefault(source, []).append(pair)
        if len(tasks) > 1 and same:
            for source, pairs in whole.items():
                rows += _rows(variant, None, source, pairs, tasks[0].n_examples, settings)
    return schema.frame("override_curves", rows)


def _pairs(
    answers: Answers,
    variant: str,
    labels: Mapping[str | None, Mapping[str, str]] | None,
    settings: _Settings,
    min_group: int,
    n_boot: int,
) -> dict[str, _Pair]:
    """By source of labels, the mean over the variant's members."""
    columns = columns_of(answers, min_group)
    n, steps = answers.n_examples, len(settings.budgets)
    step = _steps(uncertain_order(answers), settings.budgets)
    dense = dense_labels(answers)
    human, known = answers.label, np.ones(n, dtype=np.bool_)
    if labels is not None:
        human, known = human_codes(answers, labels.get(answers.task, {}))
    units = n if answers.cluster is None else int(answers.cluster.max()) + 1
    if units not in settings.drawn:
        settings.drawn[units] = draws_of_units(answers, n_boot, settings.random_state)
    if n not in settings.shuffled:
        rng = stream(settings.random_state, "random overrides")
        settings.shuffled[n] = np.array(
            [_steps(rng.permutation(n), settings.budgets) for _ in range(RANDOM_DRAWS)]
        )
    found: dict[str, list[_Pair]] = {"dense": [], "human": []}
    dense_rows = answers.prediction[dense_partners(answers, variant)]
    for own, reference in zip(answers.of(variant), dense_rows, strict=True):
        others = [dense, np.where(known, human, own)]
        made = stepwise(
            answers, columns, own, reference, others, step, steps, settings.drawn[units]
        )
        at_random = in_orders(answers, columns, own, reference, others, settings.shuffled[n], steps)
        for source, (ordered, expected), random in zip(found, made, at_random, strict=True):
            found[source].append(_Pair(ordered, expected, random))
    return {source: _mean(pairs) for source, pairs in found.items()}


def _steps(order: NDArray[np.intp], budgets: Sequence[float]) -> NDArray[np.int64]:
    """The first budget that includes each example; their number where none does."""
    n = len(order)
    within = [n_within(budget, n) for budget in budgets]
    step = np.empty(n, dtype=np.int64)
    step[order] = np.searchsorted(within, np.arange(n), side="right")
    return step


def _mean(pairs: Sequence[_Pair]) -> _Pair:
    """The mean of curves over members or tasks."""
    if len(pairs) == 1:
        return pairs[0]
    return _Pair(
        mean_curve([p.ordered for p in pairs]),
        mean_curve([p.expected for p in pairs]),
        mean_curve([p.random for p in pairs]),
    )


def _rows(
    variant: str,
    task: str | None,
    source: str,
    pairs: Sequence[_Pair],
    n: int,
    settings: _Settings,
) -> list[dict[str, Any]]:
    """Of a task, or of the mean over several."""
    rows = []
    pair = _mean(pairs)
    at_random = [s.values.mean(axis=0) for s in measured(pair.random)]
    expected = list(series(pair.expected, settings.alpha))
    ordered = list(series(pair.ordered, settings.alpha))
    changes = [own.values - own.values[:, :1] for own in ordered]
    beyond = [own.values - other.values for own, other in zip(ordered, expected, strict=True)]
    ends = limits_of_each([*changes, *beyond], settings.alpha)
    for number, own in enumerate(ordered):
        random, change, beyond_ends = at_random[number], ends[number], ends[len(ordered) + number]
        moved = random - expected[number].values[0]  # from the expectation to the mean of draws
        columns = {
            "value": own.values[0],
            "low": own.low,
            "high": own.high,
            "change": changes[number][0],
            "change_low": change[0],
            "change_high": change[1],
            "random": random,
            "random_low": expected[number].low + moved,
            "random_high": expected[number].high + moved,
            "beyond_random": own.values[0] - random,
            "beyond_low": beyond_ends[0] - moved,
            "beyond_high": beyond_ends[1] - moved,
        }
        table = {name: values.tolist() for name, values in columns.items()}
        n_tasks = n_having([pair.ordered for pair in pairs], own.metric, own.group)
        for place, budget in enumerate(settings.budgets):
            value = table["value"][place]
            rows.append(
                {
                    "variant": variant,
                    "task": task,
                    "source": source,
                    "metric": own.metric,
                    "group": own.group,
                    "budget": budget,
                    "n": n,
                    "n_overridden": n_within(budget, n),
                    "n_tasks": n_tasks,
                    "status": "ok" if value == value else "not_estimable: undefined",
                    **{name: values[place] for name, values in table.items()},
                }
            )
    return rows
