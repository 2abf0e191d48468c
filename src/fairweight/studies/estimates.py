"""Estimates from the published tables of a study: a row, or a difference over members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import product
from math import isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from fairweight.auditing.archive import AUDIT, load
from fairweight.auditing.explain.individuals import individual_fits
from fairweight.auditing.schema import AUDIT_TABLES, NOT_ESTIMABLE, OK, UNKNOWN, Status
from fairweight.auditing.table_files import read_table
from fairweight.base.files import settle
from fairweight.base.wording import missing, real
from fairweight.errors import InputError
from fairweight.report.numbers import MINUS
from fairweight.specs.claims import PaperLevel, Part, Where
from fairweight.studies.publication import read_experiment
from fairweight.studies.stages import BASELINE


class NotThereError(Exception):
    """Why a table or a row is not available; a claim that needs it cannot be judged."""


class NotReachedError(Exception):
    """Why these models are not in the paper's regime."""


# The published tables of a study, read once each.

CHANGE_FITS = "individual_change_fits"  # lines through the changes of individuals
RESULTS, PER_SEED = "results", "per_seed"


class Stored:
    """Reads tables of a study's published folder and keeps them: claims share most of them."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(
                f"There are no results in '{root}'; run the study, or give --results DIR."
            )
        self.root = root
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}

    def began(self, folder: str) -> datetime | None:
        """When the first model of an experiment was begun; None where that is not known."""
        place = self.root / folder
        published = read_experiment(place) if place.is_dir() else None
        return None if published is None else published.began

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
            return individual_fits(self.table(folder, "individuals"), sides=("shift",))
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


# Which rows are meant.

# What a row is about: empty unless a claim names it.
KEYS = ("task", "group", "class", "category", "percentile")
ANY = "*"
LEVEL = "{level}"
NO_ROW = "these results have no such row"


def lines(part: Part, stored: Stored) -> Iterator[dict[str, Any]]:
    """The values of `each`, one line per combination: those that are listed, else those stored."""
    choices = []
    for column in part.each:
        listed = part.where.get(column)
        if listed is None:
            rows = chosen(
                stored.table(str(part.folder), table_of(part)), part.where, free=part.each
            )
            listed = tuple(dict.fromkeys(v for v in rows[column] if not missing(v)))
        choices.append(listed if isinstance(listed, tuple) else (listed,))
    for values in product(*choices):
        yield dict(zip(part.each, values, strict=True))


def table_of(part: Part) -> str:
    """The table that a part reads: by default of results, or of members where they are paired."""
    return part.table or (RESULTS if part.against is None else PER_SEED)


def chosen(table: pd.DataFrame, where: Where, *, free: tuple[str, ...] = ()) -> pd.DataFrame:
    """The rows with these values; key columns that are neither named nor free are empty."""
    asked = dict(where)
    if "by" in table and "by" not in where:  # of results: rows of all examples, unless one is named
        named = [key for key in ("group", "class") if key in where or key in free]
        asked = {"by": "*".join(named) or "overall", **asked}
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


def _is(column: pd.Series, value: Any) -> pd.Series:
    values = value if isinstance(value, tuple) else (value,)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        cells = column.to_numpy(dtype=float, na_value=nan)
        near = [np.isclose(cells, v, rtol=0, atol=1e-9) for v in values]
        return pd.Series(np.logical_or.reduce(near), index=column.index)
    found: pd.Series = column.notna() & column.astype(object).map(str).isin(map(str, values))
    return found


# Which variant stands for a level of the paper.


@dataclass(frozen=True)
class Matched:
    """A variant that stands for a level, and the loss of accuracy by which it does."""

    variant: str
    loss: float
    paper: float | None = None  # the paper's loss at that level


def losses(level: PaperLevel, folder: str, task: str | None, stored: Stored) -> dict[str, float]:
    """The loss of accuracy of every variant of a family, as shares of 1."""
    where: dict[str, Any] = {"metric": "accuracy"} | ({} if task is None else {"task": task})
    rows = chosen(stored.table(level.folder or folder, RESULTS), where)
    found: dict[str, float] = {}
    for variant, own in rows.groupby("variant", sort=False):
        if fnmatchcase(str(variant), level.family):
            loss = -real(in_scope(own, "shift")["shift"])
            if not isnan(loss):
                found[str(variant)] = loss
    return found


def matched(
    level: PaperLevel, folder: str, task: str | None, stored: Stored, number: int = 0
) -> Matched:
    """The variant that stands for a level; of several losses that it names for one, by number."""
    found = losses(level, folder, task, stored)
    if not found:
        raise NotThereError(f"these results have no variant {level.family}")
    have = ", ".join(f"{100 * x:.1f}" for x in sorted(found.values())).replace("-", MINUS)
    if level.between is not None:
        low, high = level.between
        inside = {name: loss for name, loss in found.items() if low <= loss <= high}
        if not inside:
            span = f"at most {100 * high:g}" if low < 0 else f"{100 * low:g} to {100 * high:g}"
            raise NotReachedError(f"no level loses {span} points (they lose {have})")
        name = max(inside, key=inside.__getitem__)
        return Matched(name, inside[name])
    paper = level.loss[number]
    near = {
        name: abs(log(loss / paper))
        for name, loss in found.items()
        if paper / 2 <= loss <= 2 * paper
    }
    if not near:
        raise NotReachedError(
            f"no level loses about {100 * paper:.1f} points, as the paper's does (they lose {have})"
        )
    name = min(near, key=near.__getitem__)
    return Matched(name, found[name], paper)


# One stored row with its limits.

ENOUGH_MEMBERS = 4  # with fewer, a study speaks of these models only
_LIMITS = {
    "excess_shift": "excess", "odds_ratio": "or", "beyond_random": "beyond",
    "retraining_odds_ratio": "retraining", "shift_shrunk": "shift",
}  # fmt: skip


@dataclass(frozen=True)
class ClaimedValue:
    """A study's estimate of a quantity; `reason` says why where there is none."""

    value: float = nan
    low: float = nan
    high: float = nan
    interval: str = ""
    scope: str = ""  # model: these models; method: members are a sample too
    floor: float = nan  # what retraining alone moves
    reason: str = ""


def stored_estimate(part: Part, where: Where, stored: Stored) -> ClaimedValue:
    """The one row that these values select, with the limits beside it."""
    name = table_of(part)
    value = part.value or "shift"
    table = stored.table(str(part.folder), name)
    if value == "baseline" and "variant" in table and "variant" not in where and len(table):
        where = {**where, "variant": str(table["variant"].iloc[0])}  # all have the same dense side
    rows = chosen(table, where)
    if value not in rows:
        raise NotThereError(f"the table {name} has no column {value}")
    if not len(rows):
        raise NotThereError(NO_ROW)
    row = in_scope(rows, value)
    low, high, how = limits(row, value, part.corrected)
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


def in_scope(rows: pd.DataFrame, value: str) -> Mapping[str, Any]:
    """The row of scope `method` where enough members were trained, else that of `model`."""
    if "scope" in rows and rows["scope"].nunique() > 1:
        method = rows[rows["scope"] == "method"]
        sides = ("baseline", "compressed") if value not in ("baseline", "compressed") else (value,)
        few = min(method[f"n_seeds_{side}"].min() for side in sides) < ENOUGH_MEMBERS
        known = (method["status"] == "ok").all() and not any(
            isnan(limit) for limit in limits(_row(method), value, False)[:2]
        )
        rows = method if known and not few else rows[rows["scope"] == "model"]
    if len(rows) > 1:
        raise NotThereError(f"{len(rows)} rows are meant; the claim must name more columns")
    return _row(rows)


def _row(rows: pd.DataFrame) -> dict[str, Any]:
    return {str(column): rows[column].iloc[0] for column in rows}


def limits(row: Mapping[str, Any], value: str, corrected: bool) -> tuple[float, float, str]:
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
        reach = float(stdtrit(real(row["n"]) - 2, 0.975)) * real(row[f"{value}_se"])
        middle = real(row[value])
        return middle - reach, middle + reach, "t of the fit"
    if "low" in row:
        return real(row["low"]), real(row["high"]), ""
    return nan, nan, ""


# What the members of a population say where an audit stored no interval.

ROUNDING = 1e-12  # a spread below this is that of the arithmetic
SCOPE = "members"  # other members, the same test examples


def student(values: pd.Series, alpha: float, what: str = "members") -> tuple[float, float, float]:
    """The mean with Student's t limits; refuses values without spread."""
    undefined = int(values.isna().sum())
    k = len(values)
    if undefined:  # a mean of those that are defined would be one of chosen members
        raise NotThereError(f"undefined for {undefined} of {k} {what}")
    if k < ENOUGH_MEMBERS:
        raise NotThereError(f"{k} {what}, {ENOUGH_MEMBERS} are needed")
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
    # Everybody who is meant, also those for whom the quantity was undefined and left out.
    if "variant" in table and isinstance(where.get("variant"), str):
        table = table[table["variant"] == where["variant"]]
    return grouped.first().reindex(sorted(set(table[member].astype(str))))


def dense_estimate(part: Part, where: Where, stored: Stored) -> ClaimedValue:
    """The dense members' mean, for rows without limits because the compressed side is undefined."""
    dense: dict[str, Any] = {**where, "variant": BASELINE}
    values = by_member(stored.table(str(part.folder), PER_SEED), dense, "value", "seed")
    value, low, high = student(values, 0.05)
    return ClaimedValue(value, low, high, f"Student's t over {len(values)} dense members", SCOPE)


# Differences between two variants, settings or groups for which no interval is stored.


def paired_estimate(
    part: Part, where: Where, stored: Stored, n_lines: int = 1, alpha: float = 0.05
) -> ClaimedValue:
    """Mean difference over pairs of members, with Student's t; of a ratio that of logarithms.

    Both sides answered the same test examples, which are held: the interval speaks of other
    members. Pairing by seed is valid whether or not equal seeds have anything in common.

    Parameters
    ----------
    n_lines
        Of a claim whose limits hold for all its lines together.
    """
    assert part.against is not None
    folder = str(part.folder)
    other = part.against.folder or folder
    subtracted = {column: _replaced(value, part.against.replace) for column, value in where.items()}
    if part.against.level is not None:
        task = where.get("task")
        level = matched(part.against.level, other, task if isinstance(task, str) else None, stored)
        subtracted["variant"] = level.variant
    subtracted |= part.against.where
    first = _values(part, stored.table(folder, table_of(part)), where)
    second = _values(part, stored.table(other, table_of(part)), subtracted)
    if part.mean_over is not None:
        shared = first.columns.intersection(second.columns)
        first, second = first[shared].dropna(axis=1), second[shared].dropna(axis=1)
        shared = first.columns.intersection(second.columns)
        if not len(shared):
            raise NotThereError(f"no {part.mean_over} is defined for all members of both sides")
        first, second = first[shared], second[shared]
    one, two = first.mean(axis=1, skipna=False), second.mean(axis=1, skipna=False)
    if part.ratio:
        if min(one.min(), two.min()) <= 0:
            raise NotThereError("a ratio needs values above 0")
        one, two = np.log(one), np.log(two)
    both = one.index.intersection(two.index)
    differences = one[both] - two[both]
    level_of_lines = alpha / n_lines if part.corrected else alpha
    found = np.array(student(differences, level_of_lines, "pairs of members"))
    value, low, high = (np.exp(found) if part.ratio else found).tolist()
    how = f"Student's t over {len(both)} pairs by {part.pair_by}"
    return ClaimedValue(value, low, high, how, SCOPE)


def _replaced(value: Any, parts: Mapping[str, str]) -> Any:
    for old, new in parts.items() if isinstance(value, str) else ():
        value = value.replace(old, new)
    return value


def _values(part: Part, table: pd.DataFrame, where: Where) -> pd.DataFrame:
    """A row per member, a column per level of `mean_over` (else a single one)."""
    value, over = part.value or "value", part.mean_over
    for column in (part.pair_by, value):
        if column not in table:
            raise NotThereError(f"the table has no column {column}")
    if over is None:
        return by_member(table, where, value, part.pair_by).to_frame()
    levels = chosen(table, where, free=(over,))[over].dropna().unique()
    if not len(levels):
        raise NotThereError("these results have no such members")
    columns = {
        str(level): by_member(table, {**where, over: level}, value, part.pair_by)
        for level in levels
    }
    return pd.DataFrame(columns)
