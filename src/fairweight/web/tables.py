"""Tables of a page as both readers get them: a text to read, and the value behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairweight.report import page_tables
from fairweight.report.members import worded
from fairweight.report.rows import records

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cell:
    """What is read, the value behind it (null: there is none, and `why`), and where it leads."""

    shown: str
    value: float | str | None = None
    why: str | None = None
    strong: bool = False
    link: str | None = None


@dataclass(frozen=True)
class Table:
    """Rows under headings; `cut` says so where not every row is here."""

    title: str
    headings: list[str]
    rows: list[list[Cell]]
    total: int
    cut: str | None = None
    note: str | None = None


# A noise floor is read beside the shift: what may stand behind it.
_BEHIND = (
    "simultaneous limits", "p", "p, corrected", "loss that matters ruled out",
    "excess over the others", "simultaneous limits of the excess", "p of the excess",
    "p of the excess, corrected", "churn", "corrected for noise", "p against retraining", "status",
)  # fmt: skip
LinkOf = Callable[[dict[str, Any], str], str | None]  # (row, heading) → address


def converted(
    table: page_tables.PageTable, title: str, *, most: int | None = None, note: str | None = None
) -> Table:
    """A table of the report."""
    rows = [
        [Cell(cell.shown, cell.sort, cell.why, cell.strong) for cell in row]
        for row in table.rows[:most]
    ]
    cut = table.cut if most is None or len(table.rows) <= most else _first(len(rows), table.total)
    return Table(title, list(table.headings), rows, table.total, cut, note)


def _first(n: int, total: int) -> str:
    return f"The first {n} of {total:,} rows; the variant's own page has the others."


def of_results(
    title: str,
    frame: pd.DataFrame,
    link_of: LinkOf,
    without: Sequence[str] = (),
    *,
    members: str,
) -> Table | None:
    """Rows of the results, with names that lead further; None where there are none.

    Columns `without` need not be there, because the title or the page says the same of every row.
    """
    if frame.empty:
        return None
    kept = page_tables.largest(frame)
    made = converted(page_tables.results_table("", title, kept, members), title)
    behind = {worded(heading, members) for heading in _BEHIND}
    order = sorted(made.headings, key=lambda heading: heading in behind)
    places = [made.headings.index(heading) for heading in order if heading not in without]
    made = replace(made, headings=[made.headings[i] for i in places])
    rows = [
        [
            replace(cells[i], link=link_of(row, heading))
            for i, heading in zip(places, made.headings, strict=True)
        ]
        for cells, row in zip(made.rows, records(kept), strict=True)
    ]
    cut = None
    if len(kept) < len(frame):
        cut = f"The {len(kept):,} of {len(frame):,} rows with the largest n; all are in audit.json."
    return replace(made, rows=rows, total=len(frame), cut=cut)


def first_cells_linked(table: Table, links: Sequence[str]) -> Table:
    """The same table with the name in each row leading to its own page."""
    rows = [
        [replace(row[0], link=address), *row[1:]]
        for row, address in zip(table.rows, links, strict=False)
    ]
    return replace(table, rows=rows)
