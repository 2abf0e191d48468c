"""docs/four-audits.md: what the terminal prints of audits whose truth is known says one thing."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from types import ModuleType

import pandas as pd
import pytest
from rich.console import Console
from tests.scripts import loaded

import fairweight as fw
from fairweight.report.finding import find
from fairweight.report.sentences import headline, sentences
from fairweight.report.terminal import show

HARMED = "race=Latino & sex=Male"
NOBODY = "No class or group is shown to lose more than the rest."


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return loaded("docs/generate_four_audits.py")


def said(audit: fw.Audit, topic: str) -> list[str]:
    return [s.text for s in sentences(find(audit.result), limit=100) if s.topic == topic]


def test_the_page_holds_what_the_terminal_prints(script: ModuleType) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    assert [found[1] for found in script.PRINTED.findall(text)] == list(script.AUDITS)
    assert script.filled(text) == text, "run: python docs/generate_four_audits.py"


def test_another_word_on_the_page_would_be_found(script: ModuleType) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    assert (
        script.filled(text.replace("is ruled out for all 12", "is ruled out for 11 of 12")) == text
    )


def test_nothing_changed(script: ModuleType) -> None:
    audit = script.audited("unchanged")
    assert said(audit, "most") == []
    assert said(audit, "pays more") == [NOBODY]
    assert said(audit, "loses") == ["No class or group shows a clear loss."]
    assert said(audit, "ruled out") == [
        "A loss beyond 2 points is ruled out for all 12 classes and groups."
    ]
    assert all(": no difference shown (p = " in line for line in said(audit, "columns"))
    assert said(audit, "cannot tell") == []  # whoever is certain is not too small


def test_everybody_lost_and_nobody_is_named(script: ModuleType) -> None:
    audit = script.audited("uniform")
    assert said(audit, "most") == []
    assert said(audit, "pays more") == [NOBODY]
    assert said(audit, "loses")[0].startswith("All 12 classes and groups, by ")
    assert all(": no difference shown (p = " in line for line in said(audit, "columns"))
    lead = headline([find(audit.result)])
    assert re.match(
        r"Overall −4\.\d points \[−\d\.\d, −\d\.\d\] in int8; no class or group is ", lead
    )


def test_one_group_lost(script: ModuleType) -> None:
    audit = script.audited("harmed")
    (most,) = said(audit, "most")
    assert most.startswith("weather=fog: −")
    (more,) = said(audit, "pays more")
    assert more.startswith("weather=fog: by ")
    differing = [line for line in said(audit, "columns") if "the change differs" in line]
    assert [line.partition(":")[0] for line in differing] == ["By weather"]
    assert headline([find(audit.result)]).startswith("weather=fog loses most: ")


def test_too_few_examples_to_conclude(script: ModuleType) -> None:
    audit = script.audited("small")
    assert said(audit, "pays more") == [NOBODY]
    (line,) = said(audit, "ruled out")
    assert "ruled out for none of 12 classes and groups; open: weather=fog (up to " in line
    assert "weather=fog (14 examples; about 1,386 needed)" in said(audit, "cannot tell")[0]


def by_label(table: pd.DataFrame) -> fw.Audit:
    """The audit of faces through arrays."""
    return fw.audit(
        table["label"],
        {"dense": table["dense"], "int8": table["int8"]},
        sensitive_features=table[["race", "sex"]],
        groups=["race", "sex", "race*sex"],
        n_boot=40,
        random_state=0,
    )


def named(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield re.split(r": (?:by |−|\+)", line)[0]


@pytest.mark.parametrize("seed", range(4, 8))
def test_where_the_label_is_also_a_group_the_summary_says_one_thing(
    script: ModuleType, seed: int
) -> None:
    """A race classifier by race, sex and both: one race of one sex loses 17 points."""
    audit = by_label(script.faces(seed=seed))
    (most,) = said(audit, "most")
    assert most.startswith(f"{HARMED}: −")
    assert headline([find(audit.result)]).startswith(f"{HARMED} loses most: −")
    paying = list(named(said(audit, "pays more")))
    # The harmed, what they are a part of, and the class that is their race; nobody else.
    assert set(paying) == {"race=Latino", "class Latino", "sex=Male", HARMED}
    assert set(named(said(audit, "loses"))) <= set(paying)
    # Every column line agrees with the lines of its groups.
    columns = {line.partition(":")[0]: line for line in said(audit, "columns")}
    assert list(columns) == ["By race", "By sex", "By race*sex", "By class"]
    assert all(": the change differs (p " in line for line in columns.values())
    assert columns["By race"].endswith("differs (p < 0.001).")  # within a class all have one race
    assert columns["By class"].endswith("differs (p < 0.001).")
    assert ", also among examples of one class (p " in columns["By sex"]
    assert ", also among examples of one class (p " in columns["By race*sex"]
    # The class and the group are the same people: the same numbers.
    both = {line.partition(": ")[2] for line in said(audit, "pays more") if "Latino:" in line}
    assert len(both) == 1
    # What is printed is this.
    out = io.StringIO()
    show(audit.result, Console(file=out, width=200), verbose=True)
    printed = out.getvalue()
    for line in (most, *columns.values()):
        assert line in printed
    assert f"Loses most          {HARMED}, −" in printed
    assert "no evidence" not in printed


@pytest.mark.parametrize("name", ["unchanged", "uniform", "harmed", "small", "faces"])
def test_a_column_line_never_contradicts_the_lines_of_its_groups(
    script: ModuleType, name: str
) -> None:
    model = find(script.audited(name).result).model
    for column in model.columns:
        own = [
            p
            for p in model.excesses
            if p.kind == column.kind and (p.kind == "class" or p.column == column.name)
        ]
        assert own
        assert column.differs == any(p.p <= 0.05 for p in own)
        # Limits exclude 0 exactly where p is at most 0.05, so the interval says the same again.
        assert all((p.p <= 0.05) == (p.high < 0 or p.low > 0) for p in own)
