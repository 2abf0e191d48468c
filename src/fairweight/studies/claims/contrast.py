"""Differences between two variants, settings or groups for which no interval is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairweight.specs.claims import Claim, Where
from fairweight.studies.claims.members import SCOPE, by_member, student
from fairweight.studies.claims.select import Estimate, chosen, table_of
from fairweight.studies.claims.stored import NotThereError, Stored

if TYPE_CHECKING:
    import pandas as pd


def paired_estimate(
    claim: Claim, line: dict[str, Any], stored: Stored, n_lines: int = 1, alpha: float = 0.05
) -> Estimate:
    """Mean difference over pairs of members, with Student's t; of a ratio that of logarithms.

    Both sides answered the same test examples, which are held: the interval speaks of other
    members. Pairing by seed is valid whether or not equal seeds have anything in common.

    Parameters
    ----------
    n_lines
        Of a claim whose limits hold for all its lines together.
    """
    import numpy as np

    assert claim.against is not None
    folder = str(claim.folder)
    other = claim.against.folder or folder
    own = {**claim.where, **line}
    first = _values(claim, stored.table(folder, table_of(claim)), own)
    subtracted = {**_replaced(own, claim.against.replace), **claim.against.where}
    second = _values(claim, stored.table(other, table_of(claim)), subtracted)
    if claim.mean_over is not None:
        shared = first.columns.intersection(second.columns)
        first, second = first[shared].dropna(axis=1), second[shared].dropna(axis=1)
        shared = first.columns.intersection(second.columns)
        if not len(shared):
            raise NotThereError(f"no {claim.mean_over} is defined for all members of both sides")
        first, second = first[shared], second[shared]
    one, two = first.mean(axis=1, skipna=False), second.mean(axis=1, skipna=False)
    if claim.ratio:
        if min(one.min(), two.min()) <= 0:
            raise NotThereError("a ratio needs values above 0")
        one, two = np.log(one), np.log(two)
    both = one.index.intersection(two.index)
    differences = one[both] - two[both]
    level = alpha / n_lines if claim.corrected else alpha
    found = np.array(student(differences, level, "pairs of members"))
    value, low, high = (np.exp(found) if claim.ratio else found).tolist()
    how = f"Student's t over {len(both)} pairs by {claim.pair_by}"
    return Estimate(value, low, high, how, SCOPE)


def _replaced(where: Where, parts: Mapping[str, str]) -> dict[str, Any]:
    def other(value: Any) -> Any:
        for old, new in parts.items() if isinstance(value, str) else ():
            value = value.replace(old, new)
        return value

    return {column: other(value) for column, value in where.items()}


def _values(claim: Claim, table: pd.DataFrame, where: Where) -> pd.DataFrame:
    """A row per member, a column per level of `mean_over` (else a single one)."""
    import pandas as pd

    value, over = claim.value or "value", claim.mean_over
    for column in (claim.pair_by, value):
        if column not in table:
            raise NotThereError(f"the table has no column {column}")
    if over is None:
        return by_member(table, where, value, claim.pair_by).to_frame()
    levels = chosen(table, where, free=(over,))[over].dropna().unique()
    if not len(levels):
        raise NotThereError("these results have no such members")
    columns = {
        str(level): by_member(table, {**where, over: level}, value, claim.pair_by)
        for level in levels
    }
    return pd.DataFrame(columns)
