"""Small cells: what a published report must not show, because it would point at people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.result import INTEGER_COLUMNS, TEXT_COLUMNS, AuditResult

if TYPE_CHECKING:
    import pandas as pd

LEAST = 10


def suppressed(result: AuditResult, least: int = LEAST) -> AuditResult:
    """The result without numbers that rest on fewer than `least` examples.

    Rows stay, their numbers go and their status says why. Confusion cells, bins and parts below
    the limit are left out. One small level can still be found by subtraction where all others of
    its column are shown: then the next smallest level goes too.
    """
    import pandas as pd

    rows = result.results.copy()
    hidden = (rows["n"] < least).fillna(False).to_numpy(dtype=bool)
    hidden |= _complementary(rows, hidden)
    kept = {"n_seeds_baseline", "n_seeds_compressed", "n_family"}
    for column in rows.columns:
        if column in TEXT_COLUMNS or column in kept:
            continue
        rows.loc[hidden, column] = pd.NA if column in INTEGER_COLUMNS else np.nan
    rows.loc[hidden, "status"] = f"suppressed: n < {least}"

    def large(frame: pd.DataFrame, column: str) -> pd.DataFrame:
        return frame[frame[column] >= least].reset_index(drop=True)

    concentration = result.concentration
    return replace(
        result,
        results=rows,
        per_seed=large(result.per_seed, "n"),
        confusion=large(result.confusion, "count"),
        reliability=large(result.reliability, "n")
        if len(result.reliability)
        else result.reliability,
        data=large(result.data, "n"),
        power=large(result.power, "n"),
        concentration=concentration[
            (concentration["n"] >= least)
            & ((concentration["lost"] == 0) | (concentration["lost"] >= least))
        ].reset_index(drop=True),
        notes=(
            *result.notes,
            f"Numbers that rest on fewer than {least} examples were left out on request.",
        ),
    )


def _complementary(rows: pd.DataFrame, hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows to hide because exactly one level of their column is hidden already."""
    also = np.zeros(len(rows), dtype=bool)
    grouped = rows[(rows["by"] == "group").to_numpy()]
    if grouped.empty:
        return also
    column = grouped["group"].str.split("=").str[0]
    keys = [grouped["variant"], grouped["metric"], grouped["task"].fillna(""), column]
    for _, part in grouped.groupby(keys, sort=False):
        places = part.index.to_numpy()
        if hidden[places].sum() == 1 and len(places) > 1:
            open_places = places[~hidden[places]]
            also[open_places[np.argmin(rows.loc[open_places, "n"].to_numpy(dtype=float))]] = True
    return also
