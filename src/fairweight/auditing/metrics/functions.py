"""Metrics on plain arrays, with the arguments that scikit-learn users know.

`plain(entry)` turns a registered metric into a function of labels and predictions (or scores). It
returns a float, or a pandas Series by level where `sensitive_features` is given and the metric is
not itself a property of the whole column. Where an argument is lacking the functions raise; where
the data leave a value undefined it is NaN, as in an audit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import amplification, arrays, changes, rates, scores
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.base.types import Floats
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PlainMetric: TypeAlias = Callable[..., Any]


# -- helpers -----------------------------------------------------------------------------------


def _result(
    values: Floats, sensitive_features: ArrayLike | None, names: tuple[str, ...] | None = None
) -> float | pd.Series[float]:
    """A float, or a Series with the names of the levels."""
    if sensitive_features is None:
        return float(np.asarray(values).item())
    import pandas as pd  # a float costs no import of it

    if names is None:
        names = arrays.code_levels(sensitive_features).names
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
    if sensitive_features is None:
        raise InputError(f"{entry.name} is a property of groups; pass sensitive_features=.")
    names = arrays.code_levels(sensitive_features).names
    known = np.array([name != arrays.MISSING_LEVEL for name in names])
    return counts.levels(known), tuple(name for name in names if name != arrays.MISSING_LEVEL)


def _levels_and_weights(
    sensitive_features: ArrayLike | None, sample_weight: ArrayLike | None, **columns: NDArray[Any]
) -> tuple[arrays.Codes, int, Floats]:
    """Every example's level, how many levels there are, and weights: as many as `columns` hold."""
    n = len(next(iter(columns.values())))
    weights = np.ones(n) if sample_weight is None else arrays.check_weights(sample_weight)
    codes, n_levels = np.zeros(n, dtype=np.intp), 1
    if sensitive_features is not None:
        levels = arrays.code_levels(sensitive_features)
        codes, n_levels = levels.codes, len(levels.names)
    arrays.check_same_length(**columns, sensitive_features=codes, sample_weight=weights)
    return codes, n_levels, weights


def _shares(
    entry: Metric,
    happened: NDArray[np.bool_],
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> float | pd.Series[float]:
    """The share of examples to which something happened, by level."""
    codes, n_levels, weights = _levels_and_weights(
        sensitive_features, sample_weight, examples=happened
    )
    part = np.bincount(codes, weights * happened, n_levels)
    whole = np.bincount(codes, weights, n_levels)
    return _result(entry.function(part, whole), sensitive_features)


def _of_scores_and_outcomes(
    entry: Metric,
    score: Floats,
    outcome: NDArray[np.bool_],
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> float | pd.Series[float]:
    """A metric of scores and of whether that happened whose probability they state."""
    happened = outcome.astype(np.float64)
    codes, n_levels, weights = _levels_and_weights(
        sensitive_features, sample_weight, y_true=happened, y_score=score
    )
    column = scores.ScoreColumn(score, happened, codes, n_levels)
    return _result(entry.function(column, weights[None, :])[0], sensitive_features)


def _probabilities(y_score: ArrayLike) -> Floats:
    score = arrays.column(y_score, "y_score")
    if score.dtype.kind not in "fiub":
        raise InputError("y_score must be numbers between 0 and 1, one per example.")
    score = score.astype(np.float64)
    if not ((score >= 0) & (score <= 1)).all():
        raise InputError(
            "y_score has values outside [0, 1] or missing ones; pass probabilities "
            "(logits need a sigmoid first)."
        )
    return score


def _labels(y_true: ArrayLike, positive: object) -> tuple[Counts, arrays.Codes]:
    """Labels as codes, with the counts that know their classes and the positive one."""
    counts = arrays.count_arrays(y_true, y_true, positive=positive)
    array = arrays.column(y_true, "y_true")
    return counts, arrays.code(array, truth_as_number=arrays.truth_as_number(array)).codes


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


def _pair(
    y_true: ArrayLike,
    y_pred_baseline: ArrayLike,
    y_pred_compressed: ArrayLike,
    sensitive_features: ArrayLike | None,
    sample_weight: ArrayLike | None,
    positive: object = None,
) -> tuple[Counts, Counts]:
    """Counts of both models."""
    _coded_predictions(
        y_true, y_pred_baseline=y_pred_baseline, y_pred_compressed=y_pred_compressed
    )  # for its checks, which name the argument
    base, compressed = (
        arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
        for y_pred in (y_pred_baseline, y_pred_compressed)
    )
    return base, compressed


def _training_counts(
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


# -- one function per kind or signature: the metric, then the arguments that a user gives --------


def _of_predictions(
    entry: Metric,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    positive: object = None,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
    _require_positive(entry, counts)
    return _result(summary_of(entry, entry.function(counts), counts), sensitive_features)


def _of_groups(
    entry: Metric,
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


def _of_identity(
    entry: Metric,
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
    counts = arrays.count_arrays(y_true, y_pred, sensitive_features, sample_weight, positive)
    _require_positive(entry, counts)
    counts, names = _known_levels(entry, counts, sensitive_features)
    if (y_train is None) != (train_sensitive_features is None):
        raise InputError("y_train and train_sensitive_features belong together; pass both.")
    train = None
    if y_train is not None and train_sensitive_features is not None:
        train = _training_counts(y_train, train_sensitive_features, counts, names)
    side = None
    if fixed_side is not None:
        text = arrays.code(np.array([fixed_side], dtype=object)).names
        if not text or text[0] not in names:
            raise InputError(f"fixed_side={fixed_side!r} is not a level of sensitive_features.")
        side = names.index(text[0])
    sides = amplification.sides_of(counts, train, filters=filters, fixed_side=side)
    if entry.of is None:
        return _result(entry.function(counts, sides), sensitive_features, names)
    return float(entry.function(metric(entry.of).function(counts, sides), sides))


def _of_rarer_value(
    entry: Metric,
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
        reference = _training_counts(y_train, everyone, counts, ("0",))
    values = entry.function(counts, amplification.rarer_value(reference)[0])
    return _result(values, sensitive_features)


def _of_scores(
    entry: Metric,
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
    outcome = labels == counts.positive
    return _of_scores_and_outcomes(entry, score, outcome, sensitive_features, sample_weight)


def _of_top_label(
    entry: Metric,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    score = _probabilities(y_score)
    labels, predictions = _coded_predictions(y_true, y_pred=y_pred)
    outcome = labels == predictions
    return _of_scores_and_outcomes(entry, score, outcome, sensitive_features, sample_weight)


def _of_promises(
    entry: Metric,
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
        outcome = labels == counts.positive
    elif y_pred is None:
        raise InputError(
            f"{entry.name} of {len(counts.classes)} classes reads y_score as the probability "
            "of the predicted class; pass y_pred=."
        )
    else:
        labels, predictions = _coded_predictions(y_true, y_pred=y_pred)
        outcome = labels == predictions
    return _of_scores_and_outcomes(entry, score, outcome, sensitive_features, sample_weight)


def _of_uncertain_scores(
    entry: Metric,
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


def _of_ranks(
    entry: Metric,
    label_rank: ArrayLike,
    *,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    rank = arrays.column(label_rank, "label_rank")
    if rank.dtype.kind not in "fiu" or not (rank >= 1).all():
        raise InputError("label_rank must be 1 (top) or more for every example.")
    return _shares(entry, rank <= 5, sensitive_features, sample_weight)


def _of_pair(
    entry: Metric,
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
    return _result(values, sensitive_features)


def _relative_to_baseline(
    entry: Metric,
    y_true: ArrayLike,
    y_pred_baseline: ArrayLike,
    y_pred_compressed: ArrayLike,
    *,
    zero_baseline: changes.ZeroBaseline = "drop",
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    pair = _pair(y_true, y_pred_baseline, y_pred_compressed, sensitive_features, sample_weight)
    return _result(entry.function(*pair, zero_baseline=zero_baseline), sensitive_features)


def _of_flips(
    entry: Metric,
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


def _of_pair_and_groups(
    entry: Metric,
    y_true: ArrayLike,
    y_pred_baseline: ArrayLike,
    y_pred_compressed: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    pair = _pair(y_true, y_pred_baseline, y_pred_compressed, sensitive_features, sample_weight)
    base, names = _known_levels(entry, pair[0], sensitive_features)
    compressed, _ = _known_levels(entry, pair[1], sensitive_features)
    values = entry.function(base, compressed)
    return float(values) if values.ndim == 0 else _result(values, sensitive_features, names)


def _of_lost(
    entry: Metric,
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
    values = entry.function(np.bincount(levels.codes, lost, len(levels.names)))
    return _result(values, sensitive_features, levels.names)


def _of_outcomes(
    entry: Metric,
    outcome: ArrayLike,
    *,
    denominator: ArrayLike | None = None,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float | pd.Series[float]:
    """Σ weight × outcome / Σ weight × denominator, of everybody or by level."""
    value = np.asarray(outcome, dtype=np.float64)
    size = np.ones(len(value)) if denominator is None else np.asarray(denominator, np.float64)
    weight = np.ones(len(value)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    arrays.check_same_length(outcome=value, denominator=size, sample_weight=weight)
    if sensitive_features is None:
        return _result(entry.function(value * weight, size * weight), None)
    levels = arrays.code_levels(sensitive_features)
    arrays.check_same_length(outcome=value, sensitive_features=levels.codes)
    masks = levels.codes == np.arange(len(levels.names))[:, None]
    values = entry.function(masks * (value * weight), masks * (size * weight))
    return _result(values, sensitive_features, levels.names)


_BY_SIGNATURE: dict[str, PlainMetric] = {
    "uncertain": _of_uncertain_scores,
    "ranks": _of_ranks,
    "rarer": _of_rarer_value,
    "top_label": _of_top_label,
    "promise": _of_promises,
    "worst_identity": _of_identity,
    "zero_baseline": _relative_to_baseline,
    "flips": _of_flips,
    "pair_by_group": _of_pair_and_groups,
    "lost": _of_lost,
}
_BY_KIND: dict[str, PlainMetric] = {
    "rate": _of_predictions,
    "value": _of_predictions,
    "grouping": _of_groups,
    "identity": _of_identity,
    "score": _of_scores,
    "comparison": _of_pair,
    "outcome": _of_outcomes,
}


def offered(entry: Metric) -> bool:
    """Whether the metric has a meaning on plain arrays (else an audit computes it)."""
    return entry.signature is not None or entry.kind in _BY_KIND


@cache
def plain(entry: Metric) -> PlainMetric:
    """The metric as a function of arrays, with a signature and a documentation of its own."""
    compute = _BY_SIGNATURE[entry.signature] if entry.signature else _BY_KIND[entry.kind]
    signature = inspect.signature(compute)
    signature = signature.replace(parameters=[*signature.parameters.values()][1:])

    def function(*values: Any, **named: Any) -> Any:
        try:
            signature.bind(*values, **named)
        except TypeError as error:
            raise TypeError(f"{entry.name}(): {error}") from None
        return compute(entry, *values, **named)

    made: Any = function
    made.__name__ = made.__qualname__ = entry.name
    made.__module__ = "fairweight.metrics"
    made.__signature__ = signature
    made.__doc__ = documentation(entry, function)
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
    "outcome": [1, 0, 1, 1, 0, 1, 1, 0],
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
        lines.append(f">>> fw.metrics.{entry.name}({call})")
        # A user's own metric may not accept the example; then it has no value.
        with suppress(Exception):
            lines += repr(function(**given)).splitlines()
    return "\n".join(lines) + "\n"
