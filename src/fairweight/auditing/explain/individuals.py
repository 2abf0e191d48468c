"""Who among the people (writers, patients, cameras) loses: accuracy of each, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.groupings import MISSING
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.changed_answers import changes
from fairweight.auditing.explain.measurements import measurements
from fairweight.auditing.explain.shrinkage import (
    effective_answers,
    share_limits,
    shift_limits,
    shrink,
)
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, class_order

if TYPE_CHECKING:
    import pandas as pd

SEVERAL = "(several)"  # the group of an individual whose examples are of more than one

Codes = NDArray[np.int64]


def individuals(
    answers: Answers,
    variant: str,
    *,
    by: str = "cluster",
    group: str | None = None,
    properties: Mapping[str, ArrayLike] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """One row per individual: raw rates, shrunken ones and their credible limits.

    Parameters
    ----------
    by
        `cluster`, or the column that says whose an example is. Examples without a value are left
        out.
    group
        Group column to name beside each individual. It takes no part in the shrinkage: nobody is
        drawn towards the mean of a group.
    properties
        Further numbers per example, in the order of the answers; the individual's mean of each,
        and of the numeric columns of the data, is a column of its own.
    alpha
        One minus the probability of the credible limits.

    Returns
    -------
    DataFrame
        `baseline, compressed, lost, gained, shift` are shares of the individual's examples, means
        over (pairs of) members; `*_shrunk` are posterior means; `rank` orders by `shift_shrunk`,
        1 loses most, equal ones share a rank.

    Notes
    -----
    The models are fixed; the limits speak of further examples of the same individual. Accuracy is
    beta-binomial, the shift Dirichlet-multinomial on (lost, gained, same); see `shrink`. With
    several members the example is the unit and its mean over members the observation, worth
    `effective_answers` answers; taking members' answers as independent would pretend to more
    examples than there are. Weights are not used.

    On average over individuals the limits cover as stated, and so they do for those ranked worst
    where all are draws from one distribution. Where a few are of another kind, they are drawn
    towards the rest, and the limits of those ranked worst say too little loss: 79–87 % instead of
    95 % (docs/statistics.md). The raw values stand beside them.
    """
    import pandas as pd

    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    names, code = _whose(answers, by)
    measured = measurements(answers, properties)
    measured.pop(by, None)
    clash = sorted(set(measured) & set(COLUMNS["individuals"]))
    if clash:
        raise InputError(
            f"The property '{clash[0]}' has the name of a column of the result; rename it."
        )
    known = code >= 0
    at, size = code[known], np.bincount(code[known], minlength=len(names)).astype(np.float64)
    changed = changes(answers, variant)

    def mean(values: Floats) -> Floats:
        found: Floats = np.bincount(at, values[known], minlength=len(names)) / size
        return found

    columns: dict[str, object] = {
        "variant": variant,
        "task": answers.task,
        "individual": names,
        "group": _groups(answers, group, code, len(names)),
        "n": size.astype(np.int64),
    }
    for side, right in (("baseline", changed.baseline), ("compressed", changed.compressed)):
        rate = mean(right)
        worth = effective_answers(rate, _within(mean(right**2), rate, size), size)
        shrunk = shrink(
            (worth * size)[:, None] * np.stack([rate, 1 - rate], axis=1), np.array([1.0, 0.0])
        )
        columns[side], columns[f"{side}_shrunk"] = rate, shrunk.mean[:, 0]
        columns[f"{side}_low"], columns[f"{side}_high"] = share_limits(shrunk, alpha)
    lost, gained = mean(changed.lost), mean(changed.gained)
    shift = gained - lost
    spread = _within(mean((changed.gained - changed.lost) ** 2), shift, size)
    worth = effective_answers(shift, spread, size, second_moment=lost + gained)
    shares = np.stack([lost, gained, np.maximum(1 - lost - gained, 0.0)], axis=1)
    shrunk = shrink((worth * size)[:, None] * shares, np.array([-1.0, 1.0, 0.0]))
    low, high = shift_limits(shrunk, alpha)
    expected = shrunk.mean[:, 1] - shrunk.mean[:, 0]
    columns |= {
        "lost": lost,
        "gained": gained,
        "shift": shift,
        "shift_shrunk": expected,
        "shift_low": low,
        "shift_high": high,
        "rank": _ranks(expected),
    }
    columns |= {name: _property_mean(values, code, len(names)) for name, values in measured.items()}
    return pd.DataFrame(columns)[[*COLUMNS["individuals"], *measured]]


def _whose(answers: Answers, by: str) -> tuple[list[str], Codes]:
    """Names of the individuals, and whose each example is; −1 where it is not known."""
    names, code = _named(answers, by)
    present, dense = np.unique(code[code >= 0], return_inverse=True)
    if not len(present):
        raise InputError(f"No example has a value in '{by}', so there are no individuals.")
    found = np.full(len(code), -1, dtype=np.int64)
    found[code >= 0] = dense
    return [names[i] for i in present], found


def _named(answers: Answers, by: str) -> tuple[list[str], Codes]:
    if by == "cluster" and answers.cluster is not None:
        last = int(answers.cluster.max(initial=-1))
        return list(answers.cluster_names) or [str(i) for i in range(last + 1)], answers.cluster
    for column in answers.columns:
        if column.name == by:
            names = [MISSING if value is None else value for value in column.values]
            missing = np.array([value is None for value in column.values])
            return names, np.where(missing[column.code], -1, column.code)
    if by in answers.texts or by in answers.numbers:
        values = answers.texts[by] if by in answers.texts else answers.numbers[by]
        texts = [canonical(value) for value in values.tolist()]
        names = list(class_order(text for text in texts if text is not None))
        place: dict[str | None, int] = {name: i for i, name in enumerate(names)} | {None: -1}
        return names, np.array([place[text] for text in texts], dtype=np.int64)
    if by == "cluster":
        raise InputError(
            "The data have no cluster column, so whose an example is is unknown; name the column "
            "of individuals (by='writer') or give it as the cluster."
        )
    known = [column.name for column in answers.columns] + [*answers.texts, *answers.numbers]
    raise UnknownNameError("The column of individuals", by, known)


def _groups(answers: Answers, group: str | None, code: Codes, n: int) -> list[str | None]:
    """The level of each individual; (several) where its examples are of more than one."""
    if group is None:
        return [None] * n
    columns = {column.name: column for column in answers.columns}
    if group not in columns:
        raise UnknownNameError("The group column", group, list(columns))
    known = code >= 0
    level, whose = columns[group].code[known], code[known]
    lowest, highest = np.full(n, len(columns[group].values)), np.full(n, -1)
    np.minimum.at(lowest, whose, level)
    np.maximum.at(highest, whose, level)
    values = [MISSING if value is None else value for value in columns[group].values]
    return [
        values[low] if low == high else SEVERAL for low, high in zip(lowest, highest, strict=True)
    ]


def _ranks(values: Floats) -> Codes:
    """1 for the least; equal values, up to rounding errors, share the lower rank."""
    rounded = np.round(values, 12)
    return 1 + np.searchsorted(np.sort(rounded), rounded)


def _within(mean_square: Floats, mean: Floats, n: Floats) -> Floats:
    """Unbiased variance over an individual's examples; 0 where there is one."""
    several = np.maximum(n - 1, 1)
    return np.maximum(mean_square - mean**2, 0.0) * n / several


def _property_mean(values: Floats, code: Codes, n: int) -> Floats:
    there = (code >= 0) & ~np.isnan(values)
    size = np.bincount(code[there], minlength=n).astype(np.float64)
    total = np.bincount(code[there], values[there], minlength=n)
    mean: Floats = np.divide(total, size, out=np.full(n, np.nan), where=size > 0)
    return mean
