"""What the members of a population say where an audit stored no interval."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from fairweight.specs.claims import Claim, Where
from fairweight.studies.audit_stage import BASELINE
from fairweight.studies.claims.select import PER_SEED, Estimate, chosen
from fairweight.studies.claims.stored import NotThereError, Stored

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 3
ROUNDING = 1e-12  # a spread below this is that of the arithmetic
SCOPE = "members"  # other members, the same test examples


def student(values: pd.Series, alpha: float, what: str = "members") -> tuple[float, float, float]:
    """The mean with the limits of Student's t; refuses what has no spread to speak of."""
    from scipy.special import stdtrit

    undefined = int(values.isna().sum())
    k = len(values)
    if undefined:  # a mean of those that are defined would be one of chosen members
        raise NotThereError(f"undefined for {undefined} of {k} {what}")
    if k < FEWEST:
        raise NotThereError(f"{k} {what}, {FEWEST} are needed")
    middle, spread = float(values.mean()), float(values.std(ddof=1))
    if spread <= ROUNDING * max(1.0, abs(middle)):
        raise NotThereError("members do not differ, so their spread says nothing")
    reach = float(stdtrit(k - 1, 1 - alpha / 2)) * spread / sqrt(k)
    return middle, middle - reach, middle + reach


def by_member(table: pd.DataFrame, where: Where, value: str, member: str) -> pd.Series:
    """A value per member, NaN where it has none; one row of each is meant."""
    rows = chosen(table, where)
    if not len(rows):
        raise NotThereError("these results have no such members")
    grouped = rows.groupby(rows[member].astype(str))[value]
    if (grouped.size() > 1).any():
        raise NotThereError("several rows of a member are meant; the claim must name more columns")
    return grouped.first().reindex(members_of(table, where, member))


def members_of(table: pd.DataFrame, where: Where, member: str) -> list[str]:
    """Everybody who is meant, also those for whom the quantity was undefined and left out."""
    if "variant" in table and isinstance(where.get("variant"), str):
        table = table[table["variant"] == where["variant"]]
    return sorted(set(table[member].astype(str)))


def dense_estimate(claim: Claim, where: Where, stored: Stored) -> Estimate:
    """The dense members' mean, for rows without limits because the compressed side is undefined."""
    dense: dict[str, Any] = {**where, "variant": BASELINE}
    values = by_member(stored.table(str(claim.folder), PER_SEED), dense, "value", "seed")
    value, low, high = student(values, 0.05)
    return Estimate(value, low, high, f"Student's t over {len(values)} dense members", SCOPE)
