"""Notes by hand on a generated page: they outlive it."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- notes by hand: kept when this page is written again -->", "<!-- end of notes -->"


def kept_notes(page: Path) -> str:
    """What stands between the marks of a page; nothing where there is no page or no mark."""
    if not page.is_file():
        return ""
    _, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    notes, end, _ = rest.partition(END)
    if begin and not end:
        raise SystemExit(f"{page} has notes without an end; put '{END}' after them.")
    return notes.strip()


def between_marks(notes: str) -> list[str]:
    """Lines of the page that hold the notes."""
    return [BEGIN, "", notes, "", END]
