"""Of everything that somebody said about an example, what was said last."""

from __future__ import annotations

from collections.abc import Iterable

from fairweight.tables.annotations.verdict import Annotation, moment


def latest(rows: Iterable[Annotation]) -> list[Annotation]:
    """One annotation per person, task and example: the newest, of equally new ones the last.

    >>> [row.verdict for row in latest([Annotation("1", "fine"), Annotation("1", "ambiguous")])]
    ['ambiguous']
    """
    found: dict[tuple[str, str, str], Annotation] = {}
    for row in rows:
        key = (row.annotator, row.task, row.example_id)
        if key not in found or moment(row.time) >= moment(found[key].time):
            found[key] = row
    return list(found.values())
