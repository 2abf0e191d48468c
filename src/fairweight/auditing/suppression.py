"""Small cells: what a published report must not show, because it would point at people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.archive import stored_cube
from fairweight.auditing.result import BOOLEAN_COLUMNS, INTEGER_COLUMNS, TEXT_COLUMNS, AuditResult
from fairweight.auditing.schema import SUPPRESSED, Status
from fairweight.tables.names import column_of

LEAST = 10
NOT_ABOUT_PEOPLE = frozenset({"n_seeds_baseline", "n_seeds_compressed", "n_family"})


def suppressed(result: AuditResult, least: int = LEAST) -> AuditResult:
    """The result without numbers that rest on fewer than `least` examples.

    Rows of `results` stay, their numbers go and their status says why; rows of the other frames
    go. Where a single level of a column (or a single class) is hidden, its number would follow
    from the others by subtraction: then the next smallest one is hidden too.
    """
    hidden = _hidden_names(result.data, result.groupings, least)

    def small(frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Rows of fewer examples, or of a name that is hidden."""
        few: NDArray[np.bool_] = (frame["n"] < least).fillna(False).to_numpy(dtype=bool)
        return few | _named(frame, hidden)

    rows = result.results.copy()
    away = small(rows)
    for column in rows.columns:
        if column not in TEXT_COLUMNS and column not in NOT_ABOUT_PEOPLE:
            rows.loc[away, column] = (
                pd.NA if column in INTEGER_COLUMNS | BOOLEAN_COLUMNS else np.nan
            )
    bounds = result.bounds.copy()
    few = small(bounds)
    for column in bounds.columns:
        if column.startswith(("low_", "high_")) or column in ("estimate", "n"):
            bounds.loc[few, column] = pd.NA if column == "n" else np.nan
    bounds.loc[few, "status"] = str(Status(SUPPRESSED, f"n < {least}"))
    groups = {group for group, cls in hidden if cls is None}
    rows.loc[away | rows["level"].isin(groups).to_numpy(dtype=bool), "level"] = None
    rows.loc[away, "status"] = str(Status(SUPPRESSED, f"n < {least}"))
    rows.loc[away, "interval"] = None  # of a calibration error it tells numbers

    def shown(frame: pd.DataFrame, count: str | None = "n") -> pd.DataFrame:
        keep = ~_named(frame, hidden)
        if count is not None:
            keep &= (frame[count] >= least).to_numpy(dtype=bool)
        return frame[keep].reset_index(drop=True)

    # Examples left out: small numbers become unknown; their rows stay, so that a gate sees them.
    left_out = result.left_out.copy()
    unknown = small(left_out)
    left_out.loc[unknown, "n"] = pd.NA
    left_out.loc[unknown, "n_weighted"] = np.nan
    # The cube stays if no cell of it is small; a part of it would show the rest by subtraction.
    cube = stored_cube(result)
    if cube is not None:
        sizes = [*cube.count.tolist(), *(part.n for part in cube.left_out)]
        if any(0 < size < least for size in sizes):
            cube = None
    parts = result.concentration.rename(columns={"part": "group"})
    lost = parts["lost"].to_numpy(dtype=float)
    parts = shown(parts[(lost == 0) | (lost >= least)])
    return replace(
        result,
        results=rows,
        per_seed=shown(result.per_seed),
        confusion=shown(result.confusion, "count"),
        reliability=shown(result.reliability),
        data=shown(result.data),
        power=shown(result.power),
        concentration=parts.rename(columns={"group": "part"}),
        group_error=shown(result.group_error, None),
        bounds=bounds,
        lead=result.lead[~small(result.lead)].reset_index(drop=True),
        left_out=left_out,
        explanations={},  # of single examples, individuals and small slices
        cube=cube,
        notes=(
            *result.notes,
            f"Numbers that rest on fewer than {least} examples were left out on request"
            + (", and so were exemplars and explanations." if result.explanations else "."),
            *([_NO_CUBE.format(least)] if cube is None and result.cube is not None else []),
        ),
    )


_NO_CUBE = (
    "The counts (tables/cube.parquet) were left out too: they have cells of fewer than {} "
    "examples, and without these cells the tables would tell by subtraction what was in them."
)


def _hidden_names(
    data: pd.DataFrame, groupings: tuple[str, ...], least: int
) -> set[tuple[str | None, str | None]]:
    """(group, class) pairs to hide: the small ones, and one more where a lone one would show."""
    hidden: set[tuple[str | None, str | None]] = set()
    test = data[(data["split"] == "test") & data["by"].isin(["class", "group", "group*class"])]
    # Of classes there is one list; of groups one for each column and intersection.
    columns = [column_of(_text(group) or "", groupings) or "" for group in test["group"]]
    keys: list[Any] = [test["task"].fillna("").to_numpy(), test["by"].to_numpy(), columns]
    crossed = test["by"] == "group*class"
    keys.append(np.where(crossed, test["group"].fillna(""), ""))
    for _, part in test.groupby(keys, sort=False):
        few = part["n"] < least
        away = part[few]
        if len(away) == 1 and len(part) > 1:
            away = part.nsmallest(2, "n")
        hidden |= set(zip(away["group"], away["class"], strict=True))
    return {(_text(group), _text(cls)) for group, cls in hidden}


def _named(frame: pd.DataFrame, hidden: set[tuple[str | None, str | None]]) -> NDArray[np.bool_]:
    """Rows that speak of a hidden group, class, or class within a group."""
    nothing = [None] * len(frame)
    groups = [_text(g) for g in frame["group"]] if "group" in frame else nothing
    classes = [_text(k) for k in frame["class"]] if "class" in frame else nothing
    return np.array(
        [
            (group, cls) in hidden or (cls is not None and (group, None) in hidden and bool(group))
            for group, cls in zip(groups, classes, strict=True)
        ],
        dtype=bool,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
