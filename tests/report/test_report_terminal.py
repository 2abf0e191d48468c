from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fairweight.auditing.result import AuditResult
from fairweight.report.terminal import five_lines, show, summary
from fairweight.report.view_model import view


def printed(result: AuditResult, width: int, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system="truecolor")
    made = view(result)
    console.print(five_lines(made.brief))
    console.print(summary(made, **options))
    return out.getvalue()


def plain(result: AuditResult, width: int, **options: object) -> str:
    out = io.StringIO()
    console, made = Console(file=out, width=width), view(result)
    console.print(five_lines(made.brief))
    console.print(summary(made, **options))
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
    assert f"\nReport: {path} (-v for everything here)\n" in out.getvalue()


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
    assert len(text.splitlines()) <= 60


def test_what_is_read_first_fits_half_a_screen(result: AuditResult) -> None:
    out = io.StringIO()
    show(replace(result, variants=("int8",)), Console(file=out, width=100), report="r.html")
    lines = out.getvalue().splitlines()
    assert len(lines) <= 24
    heads = [line.partition("  ")[0] for line in lines if line[:1].strip()]
    assert heads[:8] == [
        "int8 against dense: 4,000 examples, 10 classes, groups by sex, age and sex*age",
        "Overall", "Loses most", "More than the rest", "Ruled out", "Too small", "dense", "int8",
    ]  # fmt: skip
    assert not any("│" in line for line in lines)  # the panels are for -v


def test_a_bare_audit_prints(bare: AuditResult) -> None:
    assert "Accuracy 92.5 %" in plain(bare, 80)
