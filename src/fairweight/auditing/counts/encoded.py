"""Columns of an Arrow table as arrays: codes of canonical text, numbers, score vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Codes
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pyarrow as pa

    from fairweight.tables.align import Aligned


def encode(
    table: pa.Table, name: str, *, truth_as_number: bool = False
) -> tuple[list[str | None], Codes]:
    """Canonical text of the distinct values of a column, and a code per row."""
    import pyarrow as pa
    import pyarrow.compute as compute

    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = compute.dictionary_encode(column, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    held = encoded.dictionary
    raw: list[Any] = held.to_pylist()
    if pa.types.is_float32(held.type) or pa.types.is_float16(held.type):
        # As a Python float 0.1 in single precision would be 0.10000000149011612.
        raw = [None if v is None else held.type.to_pandas_dtype()(v) for v in raw]
    values = [canonical(v, truth_as_number=truth_as_number) for v in raw]
    return values, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)


def encode_answers(
    table: pa.Table, names: Sequence[str]
) -> dict[str, tuple[list[str | None], Codes]]:
    """Labels and predictions, encoded alike: truth values beside 0 and 1 are 1 and 0 too."""
    import pyarrow.types as kinds

    coded = {name: encode(table, name) for name in names}
    truths = [name for name in names if kinds.is_boolean(table.schema.field(name).type)]
    others = {value for name in names if name not in truths for value in coded[name][0]}
    if truths and others & {"0", "1"}:
        return {name: encode(table, name, truth_as_number=True) for name in names}
    return coded


def numbers(table: pa.Table, name: str) -> Floats:
    import pyarrow as pa

    # Whole numbers beyond 2^53 are rounded to the nearest double.
    column = table.column(name).cast(pa.float64(), safe=False)
    numbers: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def vector_classes(vector: Floats, aligned: Aligned, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Which class each entry of a score vector is of: as said, or the labels in their order."""
    length = vector.shape[2]
    named = aligned.score_classes
    if named is None:
        if length != len(labels):
            raise InputError(
                f"The score vectors have {length} entries, but {len(labels)} classes occur as "
                "labels; say which class each entry is of with score_classes=."
            )
        return labels
    absent = [name for name in labels if name not in named]
    if absent:
        raise InputError(
            f"The score vectors have no entry for the label '{absent[0]}'; score_classes= must "
            "name every class that occurs as a label."
        )
    return named


def vectors(table: pa.Table, names: list[str | None]) -> Floats | None:
    """(rows, members, classes) of the list columns; every list has the same length."""
    import pyarrow.compute as compute

    if not all(names):
        return None
    stacked: list[NDArray[np.float64]] = []
    for name in names:
        column = table.column(str(name)).combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        lengths = set(compute.unique(compute.list_value_length(column)).to_pylist())
        if len(lengths) != 1 or None in lengths:
            raise InputError(
                f"The score vectors of '{name}' have different lengths or gaps; give every row "
                "one probability per class."
            )
        stacked.append(flat.reshape(table.num_rows, -1))
    if len({part.shape[1] for part in stacked}) > 1:
        raise InputError(
            "The members' score vectors have different lengths; give every member one probability "
            "per class, in the same order."
        )
    return np.stack(stacked, axis=1)
