"""Which stored rows a claim speaks of, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan, nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.schema import AUDIT_TABLES, NOT_ESTIMABLE, OK, UNKNOWN, Status
from fairweight.base.files import settle
from fairweight.base.wording import missing, real
from fairweight.errors import InputError
from fairweight.specs.claims import Claim, Claims, Direction, Where
from fairweight.studies.stages import BASELINE

if TYPE_CHECKING:
    import pandas as pd


# The published tables of a study, read once each.

CHANGE_FITS = "individual_change_fits"  # lines through the changes of individuals


class NotThereError(Exception):
    """Why a table or a row is not available; a claim that needs it cannot be judged."""


class Stored:
    """Reads tables of a study's published folder and keeps them: claims share most of them."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(
                f"There are no results in '{root}'; run the study, or give --results DIR."
            )
        self.root = root
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}

    def table(self, folder: str, name: str) -> pd.DataFrame:
        """A table of an experiment's audit, or of another folder with `tables`."""
        key = (folder, name)
        if key not in self._frames:
            self._frames[key] = self._read(folder, name)
        return self._frames[key]

    def _read(self, folder: str, name: str) -> pd.DataFrame:
        place = self.root / folder
        settle(place)
        if (place / "audit").is_dir():
            place = place / "audit"
        if not place.is_dir():
            raise NotThereError(f"these results have no {folder}")
        if name == CHANGE_FITS:
            from fairweight.auditing.explain.individuals import individual_fits

            return individual_fits(self.table(folder, "individuals"), sides=("shift",))
        from fairweight.auditing.archive import AUDIT, load
        from fairweight.auditing.table_files import read_table

        if (place / AUDIT).is_file():
            result = load(place)
            held: dict[str, pd.DataFrame] = dict(result.explanations)
            held |= {one: getattr(result, one) for one in AUDIT_TABLES}
            for one, frame in held.items():
                self._frames.setdefault((folder, one), frame)
            if name in held:
                return held[name]
        elif (path := place / "tables" / f"{name}.parquet").is_file():
            return read_table(path)
        raise NotThereError(f"{folder} has no table {name}")


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
class ClaimedValue:
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


def stored_estimate(claim: Claim, where: Where, stored: Stored) -> ClaimedValue:
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
    status = Status.of(row.get("status"))
    reason = ""
    if status.kind in (NOT_ESTIMABLE, UNKNOWN):
        reason = status.reason or status.kind
    elif isnan(low) or isnan(high):
        reason = "no interval" if status == Status(OK) else str(status)
    return ClaimedValue(
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


# What the members of a population say where an audit stored no interval.

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


def dense_estimate(claim: Claim, where: Where, stored: Stored) -> ClaimedValue:
    """The dense members' mean, for rows without limits because the compressed side is undefined."""
    dense: dict[str, Any] = {**where, "variant": BASELINE}
    values = by_member(stored.table(str(claim.folder), PER_SEED), dense, "value", "seed")
    value, low, high = student(values, 0.05)
    return ClaimedValue(value, low, high, f"Student's t over {len(values)} dense members", SCOPE)


# Differences between two variants, settings or groups for which no interval is stored.


def paired_estimate(
    claim: Claim, line: dict[str, Any], stored: Stored, n_lines: int = 1, alpha: float = 0.05
) -> ClaimedValue:
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
    return ClaimedValue(value, low, high, how, SCOPE)


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


# From an interval to a verdict.

REPRODUCES = "reproduces"
SMALLER = "reproduces, smaller than what matters"
DOES_NOT = "does not reproduce"
CANNOT_TELL = "cannot tell at this scale"
VERDICTS = (REPRODUCES, SMALLER, DOES_NOT, CANNOT_TELL)


def verdict(direction: Direction, low: float, high: float, smallest: float) -> str:
    """The verdict on a difference from no effect.

    A claim of a change reproduces where the interval excludes 0 in its direction, and does not
    where it excludes the smallest effect that matters. A claim of no change is the negation: it
    reproduces where the interval excludes the smallest effect, and does not where it excludes 0
    and reaches the smallest effect.

    >>> verdict("up", 0.01, 0.09, 0.05), verdict("up", 0.01, 0.04, 0.05)
    ('reproduces', 'reproduces, smaller than what matters')
    >>> verdict("up", -0.02, 0.04, 0.05), verdict("down", -0.02, 0.04, 0.01)
    ('does not reproduce', 'cannot tell at this scale')
    >>> verdict("none", -0.02, 0.04, 0.05), verdict("none", 0.01, 0.04, 0.03)
    ('reproduces', 'does not reproduce')
    """
    if isnan(low) or isnan(high):
        return CANNOT_TELL
    if direction in ("down", "not-down"):
        low, high = -high, -low
    there = low > 0
    negligible = high < smallest
    if direction == "none":
        there = low > 0 or high < 0
        negligible = -smallest < low and high < smallest
    if direction in ("up", "down"):
        if there:
            return SMALLER if negligible else REPRODUCES
        return DOES_NOT if negligible else CANNOT_TELL
    if negligible:
        return REPRODUCES
    return DOES_NOT if there else CANNOT_TELL


def of_all_lines(claim: Claim, verdicts: Sequence[str]) -> str:
    """The verdict on a claim from those on its lines.

    Reproducing in all lines at once needs no correction; `some` has corrected limits.
    """
    if not verdicts:
        return CANNOT_TELL
    seen = [v in (REPRODUCES, SMALLER) for v in verdicts]
    against = verdicts.count(DOES_NOT)
    half = len(verdicts) / 2
    holds = {"all": all(seen), "most": sum(seen) > half, "some": any(seen)}[claim.needs]
    fails = {"all": against > 0, "most": against > half, "some": against == len(verdicts)}
    if holds:
        large = verdicts.count(REPRODUCES)
        matters = {"all": large == len(verdicts), "most": large > half, "some": large > 0}
        return REPRODUCES if matters[claim.needs] else SMALLER
    return DOES_NOT if fails[claim.needs] else CANNOT_TELL


# All claims of a study judged: as a frame, and as Markdown.


@dataclass(frozen=True)
class Judged:
    """A claim with its lines: the values of `each`, the estimate, the verdict."""

    claim: Claim
    lines: tuple[tuple[str, ClaimedValue, str], ...]
    verdict: str


def judged(claims: Claims, results: Path) -> list[Judged]:
    """Judge every claim from the published results of a study."""
    stored = Stored(results)
    return [_judge(claim, stored) for claim in claims.claim]


def _judge(claim: Claim, stored: Stored) -> Judged:
    if claim.unjudged is not None:
        return _untold(claim, claim.unjudged)
    try:
        asked = list(lines(claim, stored))
    except NotThereError as error:
        return _untold(claim, str(error))
    if not asked:
        return _untold(claim, NO_ROW)
    made = []
    for line in asked:
        found = _estimate(claim, line, stored, len(asked))
        told = CANNOT_TELL
        if not found.reason:
            low, high = found.low - claim.null, found.high - claim.null
            told = verdict(claim.direction, low, high, claim.smallest)
        made.append((", ".join(str(value) for value in line.values()), found, told))
    return Judged(claim, tuple(made), of_all_lines(claim, [told for _, _, told in made]))


def _untold(claim: Claim, reason: str) -> Judged:
    return Judged(claim, (("", ClaimedValue(reason=reason), CANNOT_TELL),), CANNOT_TELL)


def _estimate(claim: Claim, line: dict[str, Any], stored: Stored, n_lines: int) -> ClaimedValue:
    try:
        if claim.against is not None:
            return paired_estimate(claim, line, stored, n_lines)
        where = {**claim.where, **line}
        found = stored_estimate(claim, where, stored)
        if found.reason and claim.value == "baseline" and table_of(claim) == RESULTS:
            return dense_estimate(claim, where, stored)
        return found
    except NotThereError as error:
        return ClaimedValue(reason=str(error))


def frame(found: Sequence[Judged]) -> pd.DataFrame:
    """A row per line of every claim."""

    rows = [
        {
            "claim": one.claim.id, "statement": one.claim.statement, "place": one.claim.place,
            "quantity": one.claim.quantity, "line": line, "direction": one.claim.direction,
            "null": one.claim.null, "smallest": one.claim.smallest, "why": one.claim.why,
            "value": estimate.value, "low": estimate.low, "high": estimate.high,
            "interval": estimate.interval, "scope": estimate.scope, "retraining": estimate.floor,
            "verdict": told, "reason": estimate.reason, "claim_verdict": one.verdict,
        }
        for one in found
        for line, estimate, told in one.lines
    ]  # fmt: skip
    return schema.frame("claims", rows)
