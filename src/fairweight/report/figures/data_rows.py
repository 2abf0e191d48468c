"""The numbers that a figure is drawn from, as CSV: `templates/save.js` writes the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from fairweight.auditing.table_files import cell_text
from fairweight.report.figures.registry import Spec

PICTURE = "data:image/"


def to_csv(spec: Spec) -> str:
    r"""Every row of data in the specification; a column `part` where it draws several tables.

    Pictures are left out, and text that a spreadsheet would run is guarded.

    >>> to_csv({"layer": [{"data": {"values": [{"n": 1, "who": "=a"}]}}, {"data": {"values": []}}]})
    "n,who\n1,'=a\n"
    """
    parts = list({json.dumps(values): values for values in _tables(spec)}.values())
    several = len(parts) > 1
    columns = [
        name
        for name in dict.fromkeys(name for rows in parts for row in rows for name in row)
        if not _pictures(name, parts)
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([cell_text(name) for name in (["part", *columns] if several else columns)])
    for i, rows in enumerate(parts, start=1):
        for row in rows:
            cells = [_cell(row.get(name)) for name in columns]
            writer.writerow([i, *cells] if several else cells)
    return stream.getvalue()


def _tables(part: Any) -> Iterator[list[dict[str, Any]]]:
    """Every list of rows in a specification; rows without columns only place a mark."""
    if isinstance(part, list):
        for held in part:
            yield from _tables(held)
    elif isinstance(part, dict):
        data = part.get("data")
        values = data.get("values") if isinstance(data, dict) else None
        if isinstance(values, list) and any(values):
            yield values
        for key, held in part.items():
            if key != "data":
                yield from _tables(held)


def _pictures(name: str, parts: list[list[dict[str, Any]]]) -> bool:
    held = (row[name] for rows in parts for row in rows if row.get(name) is not None)
    first = next(held, None)
    return isinstance(first, str) and first.startswith(PICTURE)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return cell_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # as a browser writes it
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
