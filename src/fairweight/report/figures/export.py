"""A figure as a file: SVG, PNG, its data as CSV, or its Vega-Lite specification."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing.table_files import cell_text
from fairweight.base.files import atomic_file
from fairweight.errors import InputError
from fairweight.report.figures.registry import draw
from fairweight.report.figures.theme import Spec

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

INK, PAPER = "#24292f", "#ffffff"  # a file knows no page whose colours it could take
# Of equal width on every system, so that text fits the room that was measured for it.
FONT = "Arial, 'Liberation Sans', Arimo, Helvetica, sans-serif"
WIDER = 0.2  # what another font may add to the width of text, where none of these is installed
VEGA_LITE = "6.4"
_FORMATS = (".svg", ".png", ".csv", ".json")
PICTURE = "data:image/"
_TEXT = re.compile(
    r'<text(?=[^>]*text-anchor="(?P<anchor>\w+)")(?=[^>]*font-size="(?P<size>[\d.]+)px")[^>]*>'
    r"(?P<said>[^<]*)"
)


def save_figure(
    result: AuditResult,
    id: str,
    path: str | Path,
    *,
    variant: str | None = None,
    task: str | None = None,
) -> Path:
    """Write one figure of an audit; the suffix says as what: `.svg`, `.png`, `.csv`, `.json`.

    Parameters
    ----------
    id
        As in the reference of figures, `SG-F4`.
    variant, task
        Whose figure it is; the first variant by default.

    Raises
    ------
    InputError
        The audit has not what the figure needs, or the suffix is another.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(
            f"path must end in {', '.join(_FORMATS)}; given was '{target.name}'; rename it."
        )
    drawing = draw(id, result, variant, task)
    if drawing.spec is None:
        raise InputError(
            f"Figure '{id}' cannot be drawn: {drawing.reason}; `fairweight report figures DIR` "
            "lists those that can."
        )
    content = rendered(drawing.spec, suffix)
    with atomic_file(target, "wb") as stream:
        stream.write(content)
    return target


def rendered(spec: Spec, suffix: str) -> bytes:
    """A specification as the bytes of a file, in dark ink on white."""
    if suffix == ".json":
        return (json.dumps(spec, allow_nan=False, indent=1) + "\n").encode()
    if suffix == ".csv":
        return to_csv(spec).encode()
    import vl_convert

    on_paper = _inked({**spec, "config": {**spec["config"], "background": PAPER, "font": FONT}})
    text = json.dumps(on_paper, allow_nan=False)
    if suffix == ".svg":
        drawn: str = vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE)
        padded = json.dumps({**on_paper, "padding": _room(drawn)}, allow_nan=False)
        drawn = vl_convert.vegalite_to_svg(padded, vl_version=VEGA_LITE)
        return drawn.encode()
    image: bytes = vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=2)
    return image


def _room(svg: str) -> dict[str, int]:
    """Padding for a viewer whose font is wider than the one that the drawing was measured with.

    Row names end at their axis and grow to the left, titles begin there and grow to the right.

    >>> _room('<svg width="100"><text text-anchor="end" font-size="10px">0123456789</text>')
    {'left': 17, 'right': 5, 'top': 5, 'bottom': 5}
    >>> _room('<svg width="50"><text text-anchor="start" font-size="10px">0123456789</text>')
    {'left': 5, 'right': 27, 'top': 5, 'bottom': 5}
    """
    width = float(re.findall(r'width="(\d+)"', svg)[0])
    longest = {"start": 0.0, "end": 0.0, "middle": 0.0}
    for text in _TEXT.finditer(svg):
        across = 0.6 * float(text["size"]) * len(text["said"])
        longest[text["anchor"]] = max(longest[text["anchor"]], across)
    beyond = (1 + WIDER) * longest["start"] - width
    return {
        "left": 5 + round(WIDER * longest["end"]),
        "right": 5 + max(0, round(beyond)),
        "top": 5,
        "bottom": 5,
    }


def _inked(part: Any) -> Any:
    """The same with the page's colour replaced by ink, in configuration and marks."""
    if isinstance(part, dict):
        return {key: _inked(held) if key != "values" else held for key, held in part.items()}
    if isinstance(part, list):
        return [_inked(held) for held in part]
    return INK if part == "currentColor" else part


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
        if not str(
            next((row[name] for rows in parts for row in rows if row.get(name) is not None), "")
        ).startswith(PICTURE)
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


def _cell(value: Any) -> str:
    """A value as a cell of a CSV file."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cell_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # as a browser writes it
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
