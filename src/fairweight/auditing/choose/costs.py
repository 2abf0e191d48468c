"""Numbers of the variants table: sparsity, size, latency; the same for whichever examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.choose.objectives import NOT_NUMBERS
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def numeric_columns(table: pd.DataFrame | None) -> list[str]:
    """The columns of a variants table that can be objectives."""
    if table is None:
        return []
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    kinds = {str(name): table[name].dtype for name in table.columns if name not in NOT_NUMBERS}
    return [
        name for name, kind in kinds.items() if is_numeric_dtype(kind) and not is_bool_dtype(kind)
    ]


def costs(table: pd.DataFrame, column: str, variants: Sequence[str]) -> Floats:
    """A column's value of every variant: the mean over its members."""
    names = table["variant"].astype(str)
    known = set(names)
    missing = [name for name in variants if name not in known]
    if missing:
        raise InputError(
            f"The variants table (--variants) has no row for '{missing[0]}', so its {column} is "
            f"not known; add the row, or leave the variant out: --exclude '{missing[0]}'."
        )
    by_name = table.groupby(names)[column].mean()
    found = np.array([float(by_name[name]) for name in variants])
    empty = [name for name, value in zip(variants, found, strict=True) if not np.isfinite(value)]
    if empty:
        raise InputError(
            f"The variants table (--variants) has no {column} for '{empty[0]}'; fill it in, or "
            f"leave the variant out: --exclude '{empty[0]}'."
        )
    return found
