"""Metrics on plain arrays, with the arguments that scikit-learn users know.

`plain(entry)` turns a registered metric into a function of labels and predictions (or scores). It
returns a float, or a pandas Series by level where `sensitive_features` is given and the metric is
not itself a property of the whole column. Where an argument is lacking the functions raise; where
the data leave a value undefined it is NaN, as in an audit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import amplification, arrays, changes, harm, rates, scores
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import Metric
from fairweight.base.types import Floats
from fairweight.errors import InputError

PlainMetric: TypeAlias = Callable[..., Any]


# -- helpers -----------------------------------------------------------------------------------


def _levels(sensitive_features: ArrayLike | None) -> arrays.Coded | None:
    return None if sensitive_features is None else arrays.code_levels(sensitive_features)


def _weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    return np.ones(n) if sample_weight is None else arrays.check_weights(sample_weight)


def _result(
    values: Floats, sensitive_features: ArrayLike | None, names: tuple[str, ...] = ()
) -> float | pd.Series[float]:
    """A float, or a Series with the names of the levels."""
    if sensitive_features is None:
        return float(values)

    index = pd.Index(names, name=getattr(sensitive_features, "name", None), dtype=object)
    return pd.Series(values, index=index, dtype="float64")


def _require_positive(entry: Metric, counts: Counts) -> None:
    """Raise where a value of the positive class is asked for and there is no such class."""
    if not entry.per_class and "positive" not in entry.needs:
        return
    if counts.positive is not None:
        return
    if counts.binary:
        raise InputError(
            f"{entry.name} of the binary labels '{counts.classes[0]}' and '{counts.classes[1]}' "
            "needs a positive class; pass positive=."
        )
    if "positive" in entry.needs:
        raise InputError(
            f"{entry.name} needs binary labels, but y_true has {len(counts.classes)} "
            f"class{'' if len(counts.classes) == 1 else 'es'}."
        )


def _known_levels(
    entry: Metric, counts: Counts, sensitive_features: ArrayLike | None
) -> tuple[Counts, tuple[str, ...]]:
    """Counts and names of the levels without the missing one."""
    levels = _levels(sensitive_features)
    if levels is None:
        raise InputError(f"{entry.name} is a property of groups; pass sensitive_features=.")
    known = np.array([name != arrays.MISSING_LEVEL for name in levels.names])
    return counts.levels(known), tuple(n for n in levels.names if n != arrays.MISSING_LEVEL)


def _shares(
    entry: Metric,
    happened: NDArray[np.bool_],
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> float | pd.Series[float]:
    """The share of examples to which something happened, by level."""
    levels = _levels(sensitive_features)
    weights = _weights(sample_weight, len(happened))
    codes = np.zeros(len(happened), dtype=np.intp) if levels is None else levels.codes
    arrays.check_same_length(examples=happened, sensitive_features=codes, sample_weight=weights)
    n_levels = 1 if levels is None else len(levels.names)
    part = np.bincount(codes, weights * happened, n_levels)
    whole = np.bincount(codes, weights, n_levels)
    values = entry.function(part, whole)
    if levels is None:
        return float(values[0])
    return _result(values, sensitive_features, levels.names)


def _probabilities(y_score: ArrayLike, name: str = "y_score") -> Floats:
    score = arrays.column(y_score, name)
    if score.dtype.kind not in "fiub":
        raise InputError(f"{name} must be numbers between 0 and 1, one per example.")
    score = score.astype(np.float64)
    if not ((score >= 0) & (score <= 1)).all():
        raise InputError(
            f"{name} has values outside [0, 1] or missing ones; pass probabilities "
            "(logits need a sigmoid first)."
        )
    return score


# -- one function per kind ---------------------------------------------------------------------


def _of_predictions(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        positive: object = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
        _require_positive(entry, counts)
        levels = _levels(sensitive_features)
        values = summary_of(entry, entry.function(counts), counts)
        return _result(values, sensitive_features, levels.names if levels else ())

    return function


def _of_groups(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        positive: object = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
        _require_positive(entry, counts)
        return float(entry.function(_known_levels(entry, counts, sensitive_features)[0]))

    return function


def _identity_values(
    entry: Metric,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike,
    positive: object,
    sample_weight: ArrayLike | None,
    y_train: ArrayLike | None,
    train_sensitive_features: ArrayLike | None,
    filters: bool,
    fixed_side: object,
) -> tuple[Counts, amplification.Sides, tuple[str, ...]]:
    counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
    _require_positive(entry, counts)
    counts, names = _known_levels(entry, counts, sensitive_features)
    if (y_train is None) != (train_sensitive_features is None):
        raise InputError("y_train and train_sensitive_features belong together; pass both.")
    train = None
    if y_train is not None and train_sensitive_features is not None:
        train = _train_counts(y_train, train_sensitive_features, counts, names)
    side = None
    if fixed_side is not None:
        text = arrays.code(np.array([fixed_side], dtype=object)).names
        if not text or text[0] not in names:
            raise InputError(f"fixed_side={fixed_side!r} is not a level of sensitive_features.")
        side = names.index(text[0])
    return counts, amplification.sides_of(counts, train, filters=filters, fixed_side=side), names


def _train_counts(
    y_train: ArrayLike, features: ArrayLike, test: Counts, names: tuple[str, ...]
) -> Counts:
    """Training labels counted in the classes and levels of the test data, matched by name."""
    array = arrays.column(y_train, "y_train")
    as_number = set(test.classes) <= {"0", "1"}
    labels = arrays.code_labels(array, truth_as_number=as_number).recoded(test.classes)
    levels = arrays.code_levels(features).recoded(names)
    arrays.check_same_length(y_train=labels, train_sensitive_features=levels)
    shape = (len(names), len(test.classes))
    inside = (labels < shape[1]) & (levels < shape[0])
    flat = np.bincount(levels[inside] * shape[1] + labels[inside], minlength=shape[0] * shape[1])
    label = flat.reshape(shape).astype(np.float64)
    nothing = np.zeros_like(label)
    return Counts(label, nothing, nothing, nothing[:, 0], test.classes, test.positive)


def _of_identity(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        positive: object = None,
        sample_weight: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        train_sensitive_features: ArrayLike | None = None,
        filters: bool = True,
        fixed_side: object = None,
    ) -> pd.Series[float] | float:
        counts, sides, names = _identity_values(
            entry, y_true, y_pred, sensitive_features, positive, sample_weight,
            y_train, train_sensitive_features, filters, fixed_side,
        )  # fmt: skip
        return _result(entry.function(counts, sides), sensitive_features, names)

    return function


def _worst_case_bias_amplification(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        positive: object = None,
        sample_weight: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        train_sensitive_features: ArrayLike | None = None,
        filters: bool = True,
        fixed_side: object = None,
    ) -> float:
        counts, sides, _ = _identity_values(
            entry, y_true, y_pred, sensitive_features, positive, sample_weight,
            y_train, train_sensitive_features, filters, fixed_side,
        )  # fmt: skip
        values = amplification.bias_amplification(counts, sides)
        return float(amplification.worst_case(values, sides))

    return function


def _tcb(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        y_train: ArrayLike | None = None,
        positive: object = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
        reference = counts
        if y_train is not None:
            everyone = np.zeros(len(arrays.column(y_train, "y_train")))
            reference = _train_counts(y_train, everyone, counts, ("0",))
        values = amplification.tcb(counts, amplification.rarer_value(reference)[0])
        levels = _levels(sensitive_features)
        return _result(values, sensitive_features, levels.names if levels else ())

    return function


def _of_scores(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        positive: object = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        score = _probabilities(y_score)
        counts, labels = _labels(y_true, positive)
        _require_positive(entry, counts)
        outcome = (labels == counts.positive).astype(np.float64)
        return _score_result(entry, score, outcome, sensitive_features, sample_weight)

    return function


def _labels(y_true: ArrayLike, positive: object) -> tuple[Counts, arrays.Codes]:
    """Labels as codes, with the counts that know their classes and the positive one."""
    counts = arrays.count_arrays(y_true, y_true, positive=positive)
    array = arrays.column(y_true, "y_true")
    return counts, arrays.code(array, truth_as_number=arrays.truth_as_number(array)).codes


def _score_result(
    entry: Metric,
    score: Floats,
    outcome: Floats,
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> float | pd.Series[float]:
    levels = _levels(sensitive_features)
    weights = _weights(sample_weight, len(score))
    codes = np.zeros(len(score), dtype=np.intp) if levels is None else levels.codes
    arrays.check_same_length(
        y_true=outcome, y_score=score, sensitive_features=codes, sample_weight=weights
    )
    n_levels = 1 if levels is None else len(levels.names)
    column = scores.ScoreColumn(score, outcome, codes, n_levels)
    values = entry.function(column, weights[None, :])[0]
    if levels is None:
        return float(values[0])
    return _result(values, sensitive_features, levels.names)


def _ece_top_label(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        y_pred: ArrayLike,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        score = _probabilities(y_score)
        right = _right(y_true, y_pred, "y_pred").astype(np.float64)
        return _score_result(entry, score, right, sensitive_features, sample_weight)

    return function


def _of_promises(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        y_pred: ArrayLike | None = None,
        positive: object = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        score = _probabilities(y_score)
        counts, labels = _labels(y_true, positive)
        if counts.binary:
            if counts.positive is None:
                raise InputError(
                    f"{entry.name} of the binary labels '{counts.classes[0]}' and "
                    f"'{counts.classes[1]}' needs a positive class; pass positive=."
                )
            outcome = (labels == counts.positive).astype(np.float64)
        elif y_pred is None:
            raise InputError(
                f"{entry.name} of {len(counts.classes)} classes reads y_score as the probability "
                "of the predicted class; pass y_pred=."
            )
        else:
            outcome = _right(y_true, y_pred, "y_pred").astype(np.float64)
        return _score_result(entry, score, outcome, sensitive_features, sample_weight)

    return function


def _coded_predictions(y_true: ArrayLike, **predictions: ArrayLike) -> list[arrays.Codes]:
    """Labels and predictions as codes of the same texts; -1 for an abstention."""
    columns = {"y_true": arrays.column(y_true, "y_true")}
    columns |= {name: arrays.column(values, name) for name, values in predictions.items()}
    arrays.check_same_length(**columns)
    as_number = arrays.truth_as_number(*columns.values())
    arrays.code_labels(columns["y_true"], truth_as_number=as_number)
    coded = [arrays.code(values, truth_as_number=as_number) for values in columns.values()]
    names = tuple(sorted(set().union(*(each.names for each in coded))))
    return [each.recoded(names) for each in coded]


def _right(y_true: ArrayLike, y_pred: ArrayLike, name: str) -> NDArray[np.bool_]:
    labels, predictions = _coded_predictions(y_true, **{name: y_pred})
    return np.asarray(labels == predictions)


def _uncertainty(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        score = _probabilities(y_score)
        counts, labels = _labels(y_true, None)
        arrays.check_same_length(y_true=labels, y_score=score)
        uncertain = rates.is_uncertain(score, binary=len(counts.classes) <= 2)
        return _shares(entry, uncertain, sensitive_features, sample_weight)

    return function


def _top5_accuracy(entry: Metric) -> PlainMetric:
    def function(
        label_rank: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        rank = arrays.column(label_rank, "label_rank")
        if rank.dtype.kind not in "fiu" or not (rank >= 1).all():
            raise InputError("label_rank must be 1 (top) or more for every example.")
        return _shares(entry, rank <= 5, sensitive_features, sample_weight)

    return function


def _pair(
    y_true: ArrayLike,
    y_pred_baseline: ArrayLike,
    y_pred_compressed: ArrayLike,
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
    positive: object,
) -> tuple[Counts, Counts]:
    _coded_predictions(
        y_true, y_pred_baseline=y_pred_baseline, y_pred_compressed=y_pred_compressed
    )  # for its checks, which name the argument
    base = arrays.count_arrays(y_true, y_pred_baseline, sensitive_features, sample_weight, positive)
    compressed = arrays.count_arrays(
        y_true, y_pred_compressed, sensitive_features, sample_weight, positive
    )
    return base, compressed


def _of_pair(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred_baseline: ArrayLike,
        y_pred_compressed: ArrayLike,
        *,
        positive: object = None,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        base, compressed = _pair(
            y_true, y_pred_baseline, y_pred_compressed, sensitive_features, sample_weight, positive
        )
        _require_positive(entry, base)
        values = summary_of(entry, entry.function(base, compressed), base)
        levels = _levels(sensitive_features)
        return _result(values, sensitive_features, levels.names if levels else ())

    return function


def _relative_to_baseline(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred_baseline: ArrayLike,
        y_pred_compressed: ArrayLike,
        *,
        zero_baseline: changes.ZeroBaseline = "drop",
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        base, compressed = _pair(
            y_true, y_pred_baseline, y_pred_compressed, sensitive_features, sample_weight, None
        )
        values = entry.function(base, compressed, zero_baseline=zero_baseline)
        levels = _levels(sensitive_features)
        return _result(values, sensitive_features, levels.names if levels else ())

    return function


def _flips(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred_baseline: ArrayLike,
        y_pred_compressed: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        labels, before, after = _coded_predictions(
            y_true, y_pred_baseline=y_pred_baseline, y_pred_compressed=y_pred_compressed
        )
        happened = {
            "changed": before != after,
            "lost": (before == labels) & (after != labels),
            "gained": (before != labels) & (after == labels),
        }[str(entry.pairs)]
        return _shares(entry, happened, sensitive_features, sample_weight)

    return function


def _of_pair_and_groups(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred_baseline: ArrayLike,
        y_pred_compressed: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float | pd.Series[float]:
        pair = _pair(
            y_true, y_pred_baseline, y_pred_compressed, sensitive_features, sample_weight, None
        )
        base, names = _known_levels(entry, pair[0], sensitive_features)
        compressed, _ = _known_levels(entry, pair[1], sensitive_features)
        values = entry.function(base, compressed)
        return float(values) if values.ndim == 0 else _result(values, sensitive_features, names)

    return function


def _concentration(entry: Metric) -> PlainMetric:
    def function(
        y_true: ArrayLike,
        y_pred_baseline: ArrayLike,
        y_pred_compressed: ArrayLike,
        *,
        sensitive_features: ArrayLike,
    ) -> float | pd.Series[float]:
        labels, before, after = _coded_predictions(
            y_true, y_pred_baseline=y_pred_baseline, y_pred_compressed=y_pred_compressed
        )
        levels = arrays.code_levels(sensitive_features)
        arrays.check_same_length(y_true=labels, sensitive_features=levels.codes)
        lost = (before == labels) & (after != labels)
        values = harm.concentration(np.bincount(levels.codes, lost, len(levels.names)))
        return _result(values, sensitive_features, levels.names)

    return function


_BY_SIGNATURE: dict[str, Callable[[Metric], PlainMetric]] = {
    "uncertain": _uncertainty,
    "ranks": _top5_accuracy,
    "rarer": _tcb,
    "top_label": _ece_top_label,
    "promise": _of_promises,
    "worst_identity": _worst_case_bias_amplification,
    "zero_baseline": _relative_to_baseline,
    "flips": _flips,
    "pair_by_group": _of_pair_and_groups,
    "lost": _concentration,
}
_BY_KIND: dict[str, Callable[[Metric], PlainMetric]] = {
    "rate": _of_predictions,
    "value": _of_predictions,
    "grouping": _of_groups,
    "identity": _of_identity,
    "score": _of_scores,
    "comparison": _of_pair,
}


def offered(entry: Metric) -> bool:
    """Whether the metric has a meaning on plain arrays (else an audit computes it)."""
    return entry.signature is not None or entry.kind in _BY_KIND


@cache
def plain(entry: Metric) -> PlainMetric:
    """The metric as a function of arrays, with a signature and a documentation of its own."""
    make = _BY_SIGNATURE[entry.signature] if entry.signature else _BY_KIND[entry.kind]
    function = make(entry)
    function.__name__ = function.__qualname__ = entry.name
    function.__module__ = "fairweight.metrics"
    function.__doc__ = documentation(entry, function)
    return function


# -- documentation -----------------------------------------------------------------------------

_BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "0 is best",
    "one": "1 is best",
    "none": "neither direction is better",
}
_EXAMPLE_ARGUMENTS = {
    "y_true": [1, 1, 0, 0, 1, 0, 1, 0],
    "y_pred": [1, 0, 0, 1, 1, 0, 1, 0],
    "y_pred_baseline": [1, 0, 0, 1, 1, 1, 0, 0],
    "y_pred_compressed": [0, 0, 1, 1, 1, 1, 0, 1],
    "y_score": [0.9, 0.4, 0.2, 0.6, 0.8, 0.1, 0.7, 0.3],
    "label_rank": [1, 1, 6, 2, 1, 9, 3, 1],
    "sensitive_features": ["f", "f", "f", "f", "m", "m", "m", "m"],
}


def documentation(entry: Metric, function: PlainMetric) -> str:
    """What `help` shows: definition, direction, range, source, undefined cases, an example."""
    lines = [
        f"{entry.summary[0].upper()}{entry.summary[1:]}.",
        "",
        f"Formula:    {entry.formula}",
        f"Range:      [{entry.low:g}, {entry.high:g}]; {_BETTER[entry.better]}",
        f"Undefined:  NaN if {entry.undefined}",
        f"Source:     {entry.source}",
    ]
    needed = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    ]
    if all(name in _EXAMPLE_ARGUMENTS for name in needed):
        given = {name: _EXAMPLE_ARGUMENTS[name] for name in needed}
        given |= {"filters": False} if entry.kind == "identity" else {}
        call = ", ".join(f"{name}={value!r}" for name, value in given.items())
        lines += ["", "Examples", "--------", ">>> import fairweight as fw"]
        lines += [f">>> fw.metrics.{entry.name}({call})", *_shown(function, given)]
    return "\n".join(lines) + "\n"


def _shown(function: PlainMetric, given: dict[str, Any]) -> list[str]:
    """The value of the example; a user's own metric may not accept it, and then it has none."""
    try:
        return repr(function(**given)).splitlines()
    except Exception:
        return []
