"""Which stored rows a claim speaks of, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from fairweight.report.numbers import missing, real
from fairweight.specs.claims import Claim, Where
from fairweight.studies.claims.stored import NotThereError, Stored

if TYPE_CHECKING:
    import pandas as pd

RESULTS, PER_SEED = "results", "per_seed"
# What a row is about: empty unless a claim names it.
KEYS = ("task", "group", "class", "category", "percentile")
ANY = "*"
NO_ROW = "these results have no such row"
ENOUGH_MEMBERS = 4  # statistics: with 2 or 3 members a study speaks of these models only
_LIMITS = {
    "excess_shift": "excess", "odds_ratio": "or", "beyond_random": "beyond",
    "retraining_odds_ratio": "retraining", "shift_shrunk": "shift",
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """What a study says about a quantity; `reason` where it says nothing."""

    value: float = nan
    low: float = nan
    high: float = nan
    interval: str = ""
    scope: str = ""  # model: these models; method: members are a sample too
    floor: float = nan  # what retraining alone moves
    reason: str = ""


def lines(claim: Claim, stored: Stored) -> Iterator[dict[str, Any]]:
    """The values of `each`, one line per combination: those that are listed, else those stored."""
    choices = []
    for column in claim.each:
        listed = claim.where.get(column)
        if listed is None:
            listed = _found(claim, column, stored)
        choices.append(listed if isinstance(listed, tuple) else (listed,))
    for values in product(*choices):
        yield dict(zip(claim.each, values, strict=True))


def table_of(claim: Claim) -> str:
    """The table that a claim reads: by default of results, or of members where they are paired."""
    return claim.table or (RESULTS if claim.against is None else PER_SEED)


def _found(claim: Claim, column: str, stored: Stored) -> tuple[Any, ...]:
    rows = chosen(stored.table(str(claim.folder), table_of(claim)), claim.where, free=claim.each)
    return tuple(dict.fromkeys(v for v in rows[column] if not missing(v)))


def chosen(table: pd.DataFrame, where: Where, *, free: tuple[str, ...] = ()) -> pd.DataFrame:
    """The rows with these values; key columns that are neither named nor free are empty."""
    asked = {**_implied(table, where, free), **where}
    for column, value in asked.items():
        if column not in table:
            raise NotThereError(f"the table has no column {column}")
        if value == ANY:
            continue
        table = table[_is(table[column], value)]
    for column in KEYS:
        if column in table and column not in asked and column not in free:
            table = table[table[column].isna()]
    return table


def stored_estimate(claim: Claim, where: Where, stored: Stored) -> Estimate:
    """The one row that these values select, with the limits beside it."""
    name = table_of(claim)
    rows = chosen(stored.table(str(claim.folder), name), where)
    value = claim.value or "shift"
    if value not in rows:
        raise NotThereError(f"the table {name} has no column {value}")
    if not len(rows):
        raise NotThereError(NO_ROW)
    row = _in_scope(rows, value)
    low, high, how = _limits(row, value, claim.corrected)
    status = "" if missing(row.get("status")) else str(row.get("status"))
    reason = ""
    if status.startswith(("not_estimable", "cannot tell")):
        reason = status.partition(": ")[2] or status
    elif isnan(low) or isnan(high):
        reason = "no interval" if status in ("", "ok") else status
    return Estimate(
        real(row[value]),
        low,
        high,
        how or str(row.get("interval", "")),
        "" if missing(row.get("scope")) else str(row["scope"]),
        real(row.get("noise_floor", nan)) if value == "shift" else nan,
        reason,
    )


def _implied(table: pd.DataFrame, where: Where, free: tuple[str, ...]) -> dict[str, Any]:
    """Of results: rows of all examples, unless a group or a class is named."""
    if "by" not in table or "by" in where:
        return {}
    named = [key for key in ("group", "class") if key in where or key in free]
    return {"by": "*".join(named) or "overall"}


def _is(column: pd.Series, value: Any) -> pd.Series:
    values = value if isinstance(value, tuple) else (value,)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        import numpy as np
        import pandas as pd

        cells = column.to_numpy(dtype=float, na_value=nan)
        near = [np.isclose(cells, v, rtol=0, atol=1e-9) for v in values]
        return pd.Series(np.logical_or.reduce(near), index=column.index)
    found: pd.Series = column.notna() & column.astype(object).map(str).isin(map(str, values))
    return found


def _in_scope(rows: pd.DataFrame, value: str) -> Mapping[str, Any]:
    """The row of scope `method` where enough members were trained, else that of `model`."""
    if "scope" in rows and rows["scope"].nunique() > 1:
        method = rows[rows["scope"] == "method"]
        sides = ("baseline", "compressed") if value not in ("baseline", "compressed") else (value,)
        few = min(method[f"n_seeds_{side}"].min() for side in sides) < ENOUGH_MEMBERS
        known = (method["status"] == "ok").all() and not any(
            isnan(limit) for limit in _limits(_row(method), value, False)[:2]
        )
        rows = method if known and not few else rows[rows["scope"] == "model"]
    if len(rows) > 1:
        raise NotThereError(f"{len(rows)} rows are meant; the claim must name more columns")
    return _row(rows)


def _row(rows: pd.DataFrame) -> dict[str, Any]:
    return {str(column): rows[column].iloc[0] for column in rows}


def _limits(row: Mapping[str, Any], value: str, corrected: bool) -> tuple[float, float, str]:
    """The limits that stand beside a value; of a slope without any, those of its standard error."""
    # A comparison (flips, normalised changes) has no baseline: its limits are those of a shift.
    compared = value == "compressed" and missing(row.get("baseline"))
    if "ci_low" in row and (value == "shift" or compared):
        stem = "sim" if corrected else "ci"
        return real(row[f"{stem}_low"]), real(row[f"{stem}_high"]), ""
    stem = _LIMITS.get(value, value)
    if f"{stem}_low" in row:
        return real(row[f"{stem}_low"]), real(row[f"{stem}_high"]), ""
    if f"{value}_se" in row:
        from scipy.special import stdtrit

        reach = float(stdtrit(real(row["n"]) - 2, 0.975)) * real(row[f"{value}_se"])
        middle = real(row[value])
        return middle - reach, middle + reach, "t of the fit"
    if "low" in row:
        return real(row["low"]), real(row["high"]), ""
    return nan, nan, ""
