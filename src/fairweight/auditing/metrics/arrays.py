"""Counts of plain arrays, for single metrics without a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.counts.groupings import resolve_positive
from fairweight.auditing.vocabulary import some
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.frames import as_array, wide_table

MISSING_LEVEL = "(missing)"

Codes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True)
class Coded:
    """A column as integer codes of its canonical texts; -1 where a value is missing."""

    codes: Codes  # (n,)
    names: tuple[str, ...]  # in class order

    def recoded(self, names: tuple[str, ...]) -> Codes:
        """Codes with respect to other names; `len(names)` for a value that is none of them."""
        place = {name: i for i, name in enumerate(names)}
        table = np.array([place.get(name, len(names)) for name in self.names] + [-1], dtype=np.intp)
        return table[self.codes]


def column(values: ArrayLike, name: str) -> NDArray[Any]:
    """One-dimensional, not empty; a frame of one column counts as that column."""
    try:
        array = as_array(values)
    except ValueError as error:
        raise InputError(f"{name} is not one value per example; pass one column.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}), but one value per example "
            "is needed; pass one column."
        )
    if array.size == 0:
        raise InputError(f"{name} is empty; pass at least one example.")
    return array


def check_same_length(**columns: NDArray[Any] | None) -> None:
    """Every column given has as many values as the first."""
    given = {name: values for name, values in columns.items() if values is not None}
    first = next(iter(given))
    for name, values in given.items():
        if len(values) != len(given[first]):
            raise InputError(
                f"{name} has {len(values)} values but {first} has {len(given[first])}; "
                "pass one value per example in each."
            )


def truth_as_number(*arrays: NDArray[Any]) -> bool:
    """Whether booleans stand beside numbers, so that True is to be read as 1.

    >>> truth_as_number(np.array([True, False]), np.array([1, 0]))
    True
    """
    kinds: set[str] = {array.dtype.kind for array in arrays if array.dtype.kind != "O"}
    for array in arrays:
        if array.dtype.kind == "O":
            # NaN is how a missing value looks in a column of objects, not a number beside booleans.
            seen = dict.fromkeys((type(value), value) for value in array.tolist() if value == value)
            kinds |= {np.asarray(value).dtype.kind for _, value in seen}
    return "b" in kinds and bool(kinds & {"i", "u", "f"})


def code(array: NDArray[Any], *, truth_as_number: bool = False) -> Coded:
    """Canonical texts of a column as codes; each distinct value is canonicalised once.

    >>> coded = code(np.array([2.0, 1.0, float("nan"), 2.0]))
    >>> coded.codes.tolist(), coded.names
    ([1, 0, -1, 1], ('1', '2'))
    """
    if array.dtype.kind == "O":
        listed = array.tolist()
        try:
            # With its type: Python holds True and 1 to be equal.
            keys = dict.fromkeys((type(value), value) for value in listed)
        except TypeError as error:
            raise InputError(f"Values must be numbers or text: {error}.") from error
        distinct: list[Any] = [value for _, value in keys]
        place = {key: i for i, key in enumerate(keys)}
        # NaN is equal to nothing, itself included, but a dictionary finds the same object.
        raw = np.fromiter((place[type(v), v] for v in listed), dtype=np.intp, count=len(listed))
    else:
        values, raw = np.unique(array, return_inverse=True)
        distinct = list(values)
    absent = [type(v).__name__ in ("NAType", "NaTType") or v != v for v in distinct]
    texts = [
        None if gone else canonical(value, truth_as_number=truth_as_number)
        for gone, value in zip(absent, distinct, strict=True)
    ]
    names = class_order(text for text in texts if text is not None)
    place_of_text = {text: i for i, text in enumerate(names)}
    table = np.array([-1 if t is None else place_of_text[t] for t in texts], dtype=np.intp)
    return Coded(table[raw], names)


def code_labels(y_true: NDArray[Any], *, truth_as_number: bool) -> Coded:
    """Labels as codes; a missing label is an error."""
    labels = code(y_true, truth_as_number=truth_as_number)
    missing = int((labels.codes < 0).sum())
    if missing:
        raise InputError(
            f"y_true has {missing} missing labels among {len(labels.codes)}; "
            "drop these examples before."
        )
    return labels


def code_levels(sensitive_features: ArrayLike) -> Coded:
    """Levels of a group column; missing values are a level of their own, the last.

    >>> levels = code_levels(["b", None, "a"])
    >>> levels.codes.tolist(), levels.names
    ([1, 2, 0], ('a', 'b', '(missing)'))
    """
    levels = code(column(sensitive_features, "sensitive_features"))
    if (levels.codes >= 0).all():
        return levels
    names = (*levels.names, MISSING_LEVEL)
    return Coded(np.where(levels.codes < 0, len(names) - 1, levels.codes), names)


def check_weights(sample_weight: ArrayLike) -> Floats:
    """Weights as floats, all finite and not negative."""
    weights = column(sample_weight, "sample_weight").astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("sample_weight has negative or missing values; weights are 0 or more.")
    return weights


def count_arrays(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sensitive_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    positive: object = None,
) -> Counts:
    """Counts of plain arrays: (C,), or (levels, C) with `sensitive_features` (see `code_levels`).

    Classes are the labels that occur, compared by canonical text; a missing prediction is an
    abstention; weights replace the number of examples.

    >>> counts = count_arrays([1, 1, 0], [1.0, None, 2], sensitive_features=["m", "f", "m"])
    >>> counts.classes, counts.positive
    (('0', '1'), 1)
    >>> counts.label.tolist(), counts.correct.tolist(), counts.abstained.tolist()
    ([[0.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    """
    label_array, prediction_array = column(y_true, "y_true"), column(y_pred, "y_pred")
    levels = None if sensitive_features is None else code_levels(sensitive_features)
    weights = None if sample_weight is None else check_weights(sample_weight)
    check_same_length(
        y_true=label_array,
        y_pred=prediction_array,
        sensitive_features=None if levels is None else levels.codes,
        sample_weight=weights,
    )
    as_number = truth_as_number(label_array, prediction_array)
    labels = code_labels(label_array, truth_as_number=as_number)
    predictions = code(prediction_array, truth_as_number=as_number)
    classes = labels.names
    if len(classes) > 1 and predictions.names and not set(classes) & set(predictions.names):
        raise InputError(
            f"No prediction in y_pred ({some(predictions.names)}) is equal to any label in y_true "
            f"({some(classes)}); give both the same names."
        )
    predicted = predictions.recoded(classes)
    slices = np.zeros(len(labels.codes), dtype=np.intp) if levels is None else levels.codes
    n_slices = 1 if levels is None else len(levels.names)

    def count(codes: Codes, chosen: NDArray[np.bool_] | None = None) -> Floats:
        """Weight per slice and class; codes outside the classes are counted nowhere."""
        inside = (codes >= 0) & (codes < len(classes))
        if chosen is not None:
            inside &= chosen
        keys = slices[inside] * len(classes) + codes[inside]
        weight = None if weights is None else weights[inside]
        flat = np.bincount(keys, weight, n_slices * len(classes)).astype(np.float64)
        shape = (len(classes),) if levels is None else (n_slices, len(classes))
        return flat.reshape(shape)

    missing = predicted < 0
    abstained = np.bincount(
        slices[missing], None if weights is None else weights[missing], n_slices
    ).astype(np.float64)
    return Counts(
        label=count(labels.codes),
        predicted=count(predicted),
        correct=count(labels.codes, labels.codes == predicted),
        abstained=abstained if levels is not None else np.asarray(abstained[0]),
        classes=classes,
        positive=resolve_positive(classes, positive),
    )


# One number from plain arrays, without an audit: the worst group's shift.


def least_shift(
    y_true: Any,
    y_pred: Mapping[str, Any],
    sensitive_features: Any,
    *,
    baseline: str | None,
    min_group: int,
) -> float:
    """Least shift of accuracy over variants, columns and their levels of at least `min_group`."""
    table, columns = wide_table(y_true, y_pred, sensitive_features=sensitive_features)
    names = list(columns.predictions)
    first = names[0] if baseline is None else str(baseline)
    if first not in names:
        raise UnknownNameError("The baseline", first, names)
    if len(names) < 2:
        raise InputError(
            f"y_pred has only '{first}'; give the predictions of a compressed model too."
        )
    if not columns.groups:
        raise InputError("sensitive_features names no group; give at least one column.")
    shifts: list[float] = []
    for group in columns.groups:
        accuracies = {}
        # Examples without a value are no group that could pay.
        known = np.array([canonical(value) is not None for value in table[group]])
        if not known.any():
            continue
        level, label = np.asarray(table[group])[known], np.asarray(table["label"])[known]
        for name in names:
            members = [
                count_arrays(label, np.asarray(table[column])[known], level, None, None)
                for column in columns.predictions[name]
            ]
            n = members[0].n
            with np.errstate(invalid="ignore", divide="ignore"):
                accuracies[name] = np.mean([m.correct.sum(-1) / m.n for m in members], axis=0)
        enough = n >= min_group
        for name in names:
            if name != first:
                shifts += (accuracies[name] - accuracies[first])[enough].tolist()
    return round(min(shifts), 12) if shifts else float("nan")
