"""Frames and arrays in memory as Arrow tables, with one meaning for everything that is missing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.spec import kind_of_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_COLUMNS = 30_000  # DuckDB finds the columns of a CSV file in 2 s at 20,000, in 40 s at 100,000


def to_arrow(given: Any, kind: str, name: str) -> pa.Table:
    """An in-memory frame as an Arrow table. Streams and data sets are not for this function."""
    columns: list[tuple[str, Any]] = []
    if kind == "pandas DataFrame":
        # A named index often is the example's identity; an unnamed one is a row number.
        if any(label is not None for label in given.index.names):
            given = given.reset_index()
        for position, label in enumerate(given.columns):
            columns.append((str(label), given.iloc[:, position]))
    elif kind.startswith("polars"):
        for column in (given.collect() if kind == "polars LazyFrame" else given).get_columns():
            held = str(column.dtype)
            if held in ("Int128", "UInt128"):  # Arrow has no such type; the text is the same number
                from polars import String

                column = column.cast(String)
            values = column.to_list() if held == "Object" else column.to_arrow()
            columns.append((str(column.name), values))
    elif kind.startswith("pyarrow"):
        plain = pa.Table.from_batches([given]) if kind == "pyarrow RecordBatch" else given
        check_names(plain.column_names, name)
        return plain
    else:
        columns = [(str(key), value) for key, value in given.items()]
    check_names([label for label, _ in columns], name)
    arrays = {
        label: column_to_arrow(values, f"column '{label}' of {name}") for label, values in columns
    }
    lengths = {label: len(array) for label, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"'{label}' has {length:,}" for label, length in lengths.items())
        raise InputError(f"The columns of {name} have different lengths: {shown}.")
    table: pa.Table = pa.table(arrays)
    return table


DIGEST_ROWS = 10_000
SUM_TOLERANCE = 1e-3  # of probabilities in single precision


def digest_of_frame(given: Any) -> str | None:
    """SHA-256 of the columns, the number of rows and the first rows of a frame.

    None for streams and queries, which can be read only once, and for what is no table: the reader
    says what is wrong with it.
    """
    kind = kind_of_frame(given)
    try:
        if kind in ("pandas DataFrame", "polars DataFrame"):
            rows, head = len(given), given.head(DIGEST_ROWS)
        elif kind in ("pyarrow Table", "pyarrow RecordBatch"):
            rows, head = given.num_rows, given.slice(0, DIGEST_ROWS)
        elif kind == "mapping":
            rows = max((len(values) for values in given.values()), default=0)
            head = {name: values[:DIGEST_ROWS] for name, values in given.items()}
        else:
            return None
        table = to_arrow(head, kind, "frame").combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as writer:
            writer.write_table(table.replace_schema_metadata())
    except Exception:
        return None
    return hashlib.sha256(str(rows).encode() + sink.getvalue()).hexdigest()


def check_names(names: Sequence[str], name: str) -> None:
    """Raise where there are too many columns, or two have one name; for DuckDB `Sex` is `sex`.

    >>> check_names(["sex", "Sex"], "'a.csv'")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: 'a.csv' has the columns 'sex' and 'Sex', which differ in upper
    and lower case alone; rename one of them.
    >>> check_names(["sex", ""], "'a.parquet'")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: 'a.parquet' has a column without a name; name it, or drop it.
    """
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(names):,} columns, and at most {MOST_COLUMNS:,} are read; save those "
            "that the audit needs as a table of their own."
        )
    if "" in names:  # DuckDB would call it C2, and C2 would be a group
        raise InputError(f"{name} has a column without a name; name it, or drop it.")
    seen: dict[str, str] = {}
    for label in names:
        other = seen.get(label.lower())
        if other == label:
            raise InputError(f"{name} has two columns named '{label}'; rename one of them.")
        if other is not None:
            raise InputError(
                f"{name} has the columns '{other}' and '{label}', which differ in upper and lower "
                "case alone; rename one of them."
            )
        seen[label.lower()] = label


def column_to_arrow(values: Any, name: str) -> pa.Array | pa.ChunkedArray:
    """One column as Arrow: what is missing becomes null, mixed types become canonical text.

    >>> column_to_arrow([1, "b", None], "x").to_pylist()
    ['1', 'b', None]
    >>> column_to_arrow([1, 2], "x").type
    DataType(int64)
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(f"{name} is {values!r}; give one value per example (a list or an array).")
    shape = getattr(values, "shape", (len(values),))
    if len(shape) > 2:
        raise InputError(f"{name} has {len(shape)} dimensions; give one or two.")
    if len(shape) == 2:
        values = np.asarray(values)
        flat = column_to_arrow(values.reshape(-1), name)
        offsets = np.arange(0, values.size + 1, max(values.shape[1], 1), dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), flat)
    try:
        return _without_nan(pa.array(values, from_pandas=True))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        pass  # values of mixed types are told apart by their texts
    texts: list[str | None] = []
    for value in values:
        if hasattr(value, "__len__") and not isinstance(value, str | bytes):
            raise InputError(
                f"{name} holds lists beside single values or lists of mixed types; "
                "give one number or text per example."
            )
        try:
            # pandas' own missing values (NA, NaT) are the only ones not equal to themselves.
            absent = value is None or bool(value != value)
        except TypeError:
            absent = True
        texts.append(None if absent else canonical(value))
    return _without_nan(pa.array(texts, type=pa.string()))


def _without_nan(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`nan` among texts that are numbers is a missing one, as in a column of a CSV file.

    >>> _without_nan(pa.array(["1", "nan", "2.5"])).to_pylist()
    ['1', None, '2.5']
    >>> _without_nan(pa.array(["1", "nan", "007"])).to_pylist()
    ['1', 'nan', '007']
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    found = pc.is_in(pc.utf8_lower(column), pa.array(["nan", "-nan"], column.type))
    if not pc.any(found).as_py():
        return column
    others = pc.unique(pc.drop_null(column)).to_pylist()
    if not all(_is_number(text) for text in others):
        return column
    return pc.if_else(pc.fill_null(found, False), pa.scalar(None, column.type), column)


def _is_number(text: str) -> bool:
    """Whether a text is a number as the reader of CSV files sees it; a leading zero is a code's."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and not re.match("-?0[0-9]", text)


# Plain arrays (what scikit-learn and fairlearn users have) as one wide table.


@dataclass(frozen=True)
class WideColumns:
    """Which columns of the table are what."""

    predictions: dict[str, list[str]]
    scores: dict[str, list[str]]
    groups: list[str]
    denominator: str | dict[str, list[str]] | None = None
    clusters: tuple[str, ...] = ()
    score_classes: tuple[str, ...] | None = None  # of probabilities that were given as predictions
    notes: tuple[str, ...] = ()


def wide_table(
    y_true: Any,
    y_pred: Mapping[str, Any],
    *,
    sensitive_features: Any = None,
    sample_id: Any = None,
    y_score: Mapping[str, Any] | None = None,
    cluster: Any = None,
    sample_weight: Any = None,
    denominator: Any = None,
    given_as: str = "y_pred",
    score_classes: Sequence[Any] | None = None,
) -> tuple[dict[str, Any], WideColumns]:
    """A dict of equally long columns, and their roles; lengths are checked with their names.

    Outcomes (`given_as`) have no `y_true`; their denominator is one for all, or one per variant.
    """
    (y_true, y_pred, sensitive_features, sample_id, y_score, cluster, sample_weight,
     denominator) = _in_one_order(
        y_true, y_pred, sensitive_features, sample_id, y_score, cluster, sample_weight, denominator
    )  # fmt: skip
    if not isinstance(y_pred, Mapping) or not y_pred:
        raise InputError(
            f"{given_as} is a {type(y_pred).__name__}; give a dict from variant to values, as in "
            "{'dense': ..., 'int8': ...}."
        )
    if y_true is None:
        n = len(as_array(next(iter(y_pred.values()))))
    else:
        label = _one_dimensional(y_true, "y_true")
        n = len(label)
    if n == 0:
        named = given_as if y_true is None else "y_true"
        raise InputError(f"{named} is empty; give at least one example.")
    table: dict[str, Any] = {"example_id": range(n)}
    if y_true is not None:
        table["label"] = label
    if sample_id is not None:
        table["example_id"] = _of_length(_one_dimensional(sample_id, "sample_id"), n, "sample_id")
    predictions: dict[str, list[str]] = {}
    y_pred, shares = dict(y_pred), {}
    classes: tuple[str, ...] | None = None
    for name, given in y_pred.items() if y_true is not None else ():
        if (found := _class_shares(given, f"y_pred[{name!r}]", label, score_classes)) is None:
            continue
        shares[name], own = found
        if classes not in (None, own):
            raise InputError(
                f"y_pred[{name!r}] holds probabilities of other classes, or in another order, than "
                f"those before: {', '.join(own)}; {', '.join(classes or ())}. Give all of them in "
                "one order."
            )
        classes = own
        y_pred[name] = np.array(own, dtype=object)[shares[name].argmax(axis=1)]
    notes: tuple[str, ...] = ()
    if classes is not None:
        named = ", ".join(f"'{name}'" for name in shares)
        shown = ", ".join(classes[:5]) + (", …" if len(classes) > 5 else "")
        notes = (
            f"y_pred of {named} holds class probabilities: the most probable class is taken as the "
            f"prediction (classes {shown}).",
        )
        if y_score is None and len(shares) == len(y_pred):
            y_score = shares  # of some models alone they could not be compared
    for name, given in y_pred.items():
        columns = _members(given, f"{given_as}[{name!r}]", n)
        predictions[str(name)] = []
        for seed, values in enumerate(columns):
            column = f"prediction:{name}:{seed}"
            table[column] = values
            predictions[str(name)].append(column)
    sizes: str | dict[str, list[str]] | None = None
    if isinstance(denominator, Mapping):
        sizes = {}
        for name, given in denominator.items():
            columns = _members(given, f"denominator[{name!r}]", n)
            sizes[str(name)] = [f"denominator:{name}:{seed}" for seed in range(len(columns))]
            table |= dict(zip(sizes[str(name)], columns, strict=True))
    elif denominator is not None:
        sizes = "denominator"
        table[sizes] = _of_length(_one_dimensional(denominator, sizes), n, sizes)
    scores: dict[str, list[str]] = {}
    for name, given in (y_score or {}).items():
        if str(name) not in predictions:
            raise InputError(
                f"y_score has scores of '{name}', which y_pred does not have; its variants are "
                f"{', '.join(predictions)}."
            )
        scores[str(name)] = []
        for seed, values in enumerate(_scores(given, name, n, len(predictions[str(name)]))):
            column = f"score:{name}:{seed}"
            table[column] = values
            scores[str(name)].append(column)
    groups: list[str] = []
    for column, values in _features(sensitive_features, n):
        if column in table:
            raise InputError(
                f"The group name '{column}' is taken by another column; rename the feature."
            )
        table[column] = values
        groups.append(column)
    bound = _clusters(cluster)
    beside = {**bound, **({} if sample_weight is None else {"weight": sample_weight})}
    for column, given in beside.items():
        if column in table:
            raise InputError(f"A group is named '{column}', as a column in use; rename it.")
        table[column] = _of_length(_one_dimensional(given, column), n, column)
    used = classes if y_score is shares and shares else None
    return table, WideColumns(
        predictions, scores, groups, sizes, tuple(bound), score_classes=used, notes=notes
    )


def _clusters(given: Any) -> dict[str, Any]:
    """One column of clusters, or two of examples that are bound in two ways."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        held = list(given.values())
    elif hasattr(given, "columns"):
        held = [given[name] for name in given.columns]
    elif getattr(given, "ndim", 1) == 2:
        held = [given[:, i] for i in range(given.shape[1])]
    else:
        held = [given]
    if not 1 <= len(held) <= 2:
        raise InputError(
            f"cluster has {len(held)} columns; give one, or two where examples are bound in two "
            "ways: {'first_person': ..., 'second_person': ...}."
        )
    return dict(zip(("cluster", "second_cluster"), held, strict=False))


def _in_one_order(*inputs: Any) -> tuple[Any, ...]:
    """The inputs with every pandas object in the row order of the first of them.

    An index says which example a row is; ignoring it would pair predictions with other examples.
    """
    first: Any = None

    def ordered(given: Any) -> Any:
        nonlocal first
        if isinstance(given, Mapping):
            return {name: ordered(values) for name, values in given.items()}
        if type(given).__module__.partition(".")[0] != "pandas" or not hasattr(given, "index"):
            return given
        if first is None:
            first = given.index
        if given.index.equals(first):
            return given
        same = len(given) == len(first) and given.index.is_unique and first.is_unique
        if same and not len(first.difference(given.index)):
            return given.reindex(first)
        raise InputError(
            "The pandas objects have different indexes, so it is unclear which rows belong "
            "together; give all of them the same index, or plain arrays (.to_numpy()) in one order."
        )

    return tuple(ordered(given) for given in inputs)


def as_array(values: Any) -> NDArray[Any]:
    """An array that leaves the values of a list what they are.

    By itself numpy makes text of a missing value beside text, and rounds whole numbers of twenty
    digits that stand beside negative ones or fractions.

    >>> as_array([12345678901234567890, -1]).tolist(), as_array([1, 2.5]).tolist()
    ([12345678901234567890, -1], [1.0, 2.5])
    """
    array = np.asarray(values)
    if not isinstance(values, list | tuple):
        return array
    rounded = array.dtype.kind == "f" and any(
        isinstance(value, int) and abs(value) > 2**53 for value in values
    )
    return np.asarray(values, dtype=object) if rounded or array.dtype.kind in "US" else array


def _one_dimensional(given: Any, name: str) -> Any:
    if hasattr(given, "to_numpy") and getattr(given, "ndim", 1) == 1:
        return given  # a Series keeps its dtype: categories, nullable integers
    missing = isinstance(given, list | tuple) and any(value is None for value in given)
    array = np.asarray(given, dtype=object) if missing else as_array(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} has the shape {array.shape}; give one value per example.")
    return array


def _of_length(values: Any, n: int, name: str) -> Any:
    if len(values) != n:
        raise InputError(f"{name} has {len(values):,} values, but y_true has {n:,}.")
    return values


def _members(given: Any, name: str, n: int) -> list[Any]:
    """One column per seed."""
    listed = isinstance(given, list | tuple) and bool(given) and np.ndim(given[0]) == 1
    if not listed and getattr(given, "ndim", 1) < 2:
        return [_of_length(_one_dimensional(given, name), n, name)]
    if listed:
        sizes = {np.shape(row): np.size(row) for row in given}
        if len(sizes) > 1:
            least, most = min(sizes.values()), max(sizes.values())
            raise InputError(
                f"{name} has rows of {least:,} to {most:,} values; every example needs the "
                "prediction of every seed: give an array (examples, seeds)."
            )
    array = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
    if array.ndim != 2 or array.shape[0] != n or array.shape[1] == 0:
        turned = array.ndim == 2 and array.shape[1] == n
        hint = " (one column per seed: transpose it)" if turned else ""
        raise InputError(f"{name} has the shape {array.shape}; give ({n},) or ({n}, seeds){hint}.")
    return [array[:, seed] for seed in range(array.shape[1])]


def _class_shares(
    given: Any, name: str, label: Any, score_classes: Sequence[Any] | None
) -> tuple[NDArray[np.float64], tuple[str, ...]] | None:
    """Class probabilities (n, classes) that were given as predictions, and their classes by name.

    None for predictions. Classes are `score_classes`, else the columns of a frame, else the labels
    in sorted order, which is scikit-learn's.
    """
    try:
        array = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
    except ValueError:  # rows of different lengths are no matrix
        return None
    if array.ndim != 2 or array.dtype.kind != "f" or array.shape[1] < 2 or not len(array):
        return None
    inside = bool(((array >= 0) & (array <= 1)).all())
    sums = array.sum(axis=1, dtype=np.float64)
    if not inside or bool((np.abs(sums - 1) > SUM_TOLERANCE).any()):
        return None
    k = array.shape[1]
    if bool(np.isin(array, (0, 1)).all()):
        raise InputError(
            f"{name} is a matrix of 0.0 and 1.0 whose rows sum to 1: the classes one-hot, or the "
            f"predictions of {k} seeds. Of one-hot rows give the classes (classes[y.argmax(axis=1)"
            "]); of seeds give whole numbers (y.astype(int))."
        )
    labels = np.asarray(label)
    held = class_order({t for v in set(labels.tolist()) if (t := canonical(v)) is not None})
    columns = getattr(given, "columns", None)
    if score_classes is not None:
        classes = tuple(canonical(value) or "" for value in score_classes)
    elif columns is not None and {canonical(c) for c in columns} >= set(held):
        classes = tuple(canonical(value) or "" for value in columns)
    else:
        classes = held
        by_text = tuple(sorted(held)) if labels.dtype.kind in "OUS" else held
        if len(held) == k and by_text != held:
            raise InputError(
                f"{name} holds probabilities of {k} classes, and the labels can be sorted as "
                f"numbers ({', '.join(held[:4])} …) or as text ({', '.join(by_text[:4])} …); say "
                "the order of its columns: score_classes=[...] (model.classes_)."
            )
    if len(classes) != k or len(set(classes)) != k:
        raise InputError(
            f"{name} has the shape {array.shape} with rows that sum to 1, so it holds class "
            f"probabilities, but {len(classes)} classes are known ({', '.join(classes[:5])}); name "
            "the class of each column (score_classes=[...]), or give predicted classes."
        )
    return array.astype(np.float64), classes


def _scores(given: Any, name: object, n: int, seeds: int) -> list[Any]:
    """Scores per seed: single numbers, or lists with one number per class."""
    array = np.asarray(given, dtype=float)
    if array.shape == (n,) and seeds == 1:
        return [array]
    if array.ndim == 2 and array.shape[0] == n and seeds == 1:
        return [list(array)]
    if array.shape == (n, seeds):
        return list(array.T)
    if array.ndim == 3 and array.shape[:2] == (n, seeds):
        return [list(array[:, seed]) for seed in range(seeds)]
    raise InputError(
        f"y_score[{name!r}] has the shape {array.shape}; give ({n},), ({n}, classes), or with "
        f"{seeds} members ({n}, {seeds}) or ({n}, {seeds}, classes)."
    )


def _features(given: Any, n: int) -> Iterator[tuple[str, Any]]:
    """Names and columns of whatever describes the groups."""
    held: list[tuple[str, str, Any]] = []  # name, name in messages, values
    if isinstance(given, Mapping):
        held = [(str(name), str(name), values) for name, values in given.items()]
    elif hasattr(given, "columns"):
        held = [(str(name), str(name), given[name]) for name in given.columns]
    elif getattr(given, "ndim", 1) == 2:
        for i in range(given.shape[1]):
            held.append((f"feature_{i}", f"sensitive_features[:, {i}]", given[:, i]))
    elif given is not None:
        name = getattr(given, "name", None)
        held = [("group" if name is None else str(name), "sensitive_features", given)]
    for column, shown, values in held:
        plain = _one_dimensional(values, shown)
        yield column, _of_length(plain, n, f"sensitive_features '{shown}'")
