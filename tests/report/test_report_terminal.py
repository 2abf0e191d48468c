from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fairweight.auditing.result import AuditResult
from fairweight.report.terminal import show, summary


def printed(result: AuditResult, width: int, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system="truecolor")
    console.print(summary(result, **options))
    return out.getvalue()


def plain(result: AuditResult, width: int, **options: object) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(summary(result, **options))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(hostile: AuditResult, width: int) -> None:
    lines = plain(hostile, width).splitlines()
    assert max(len(line) for line in lines) <= width


def test_markup_and_escape_sequences_in_names_have_no_effect(hostile: AuditResult) -> None:
    text = printed(hostile, 200)
    assert "\x1b[31mld" not in text
    assert r"[red]o\x1b[31mld[/red]" in plain(hostile, 200)


def test_the_path_of_the_report_stays_in_one_piece(result: AuditResult) -> None:
    path = "out/" + "deep/" * 30 + "report.html"
    out = io.StringIO()
    show(result, Console(file=out, width=60), report=path)
    assert out.getvalue().endswith(f"Report: {path}\n")


def test_what_is_left_out_is_counted(result: AuditResult) -> None:
    noted = replace(result, notes=tuple(f"note {i}" for i in range(9)))
    text = plain(noted, 100, max_variants=1, max_notes=2)
    assert "1 more variant is in the report." in text
    assert "7 more notes are in the report." in text


def test_everything_that_a_reader_needs_is_on_one_screen(result: AuditResult) -> None:
    text = plain(replace(result, variants=("int8",)), 100)
    headings = ("Overall", "Loses most", "More than the rest", "Loses", "Ruled out", "Differences")
    places = [text.index(f"│ {word}  ") for word in (*headings, "Too small")]
    assert places == sorted(places)  # what is acted on first
    assert "at most 6.5 % get any line about a loss or a difference" in " ".join(text.split())
    assert len(text.splitlines()) <= 40


def test_a_bare_audit_prints(bare: AuditResult) -> None:
    assert "Accuracy 92.5 %" in plain(bare, 80)
