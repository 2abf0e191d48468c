"""The words of what people read: no dialect, and no sentence that has to be read twice.

Scored are real outputs, not templates: what audits, gates, explanations and mitigations print and
write, and the help of every command.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from tests.scripts import loaded

import fairweight as fw
from fairweight.auditing.result import AuditResult
from fairweight.cli.app import NAMES, parser
from fairweight.report.card import to_card
from fairweight.report.explanation_sentences import explanation_sentences
from fairweight.report.html import render
from fairweight.report.junit import to_junit
from fairweight.report.markdown import to_markdown, verdict_to_markdown
from fairweight.report.notebook import fragment
from fairweight.report.terminal import show, show_verdict

MOST = 25  # words between full stops, colons, semicolons
BANNED = (
    r"\bis told\b", r"\bare told\b", r"\bbe told\b", r"\bnobody\b", r"\bsomebody\b",
    r"\bheld against\b", r"\bstands? under\b", r"\bare exemplars, modal\b", r"\bpays? more\b",
    r"\bpay differently\b", r"\bpays? in excess\b", r"\bwithout a verdict\b",
    r"\bleast loss found\b", r"\bneither excluded\b", r"\bthese data certify\b",
    r"\bendpoints?\b", r"\babstains on\b",
    r"\bnot right\b", r"\bcan be had\b", r"\bcannot be had\b", r"\bare best found by\b",
    r"\bis not shown to help\b", r"\bnowhere shown\b", r"\bgoes along\b", r"\banswers? otherwise\b",
    r"\bwhat it is called\b", r"\bearlier / later\b", r"\bways to relabel\b", r"\bunbiased\b",
    r"\bin the trials behind these rules\b",
)  # fmt: skip


class Blocks(HTMLParser):
    """The text of a page by block: a paragraph, a cell, an item."""

    INLINE = frozenset(("a", "b", "strong", "em", "code", "span", "i", "sub", "kbd"))
    SILENT = frozenset(("script", "style", "svg", "pre", "code"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found, self.depth = [""], 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag in self.SILENT
        if tag not in self.INLINE:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in self.SILENT
        if tag not in self.INLINE:
            self.found.append("")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.found[-1] += data


def sentences(blocks: list[str]) -> Iterator[str]:
    """What stands between full stops, colons, semicolons; numbers and paths are no words."""
    for block in blocks:
        for sentence in re.split(r"[.:;?…](?=\s|$|\)|”)|\n\s*\n|\s[·•|]\s", block):
            yield " ".join(sentence.split())


def too_long(blocks: list[str]) -> list[str]:
    """Sentences with too many words; a list of names is long without being hard."""
    words = re.compile(r"[A-Za-z][A-Za-z'’-]+")
    return [s for s in sentences(blocks) if len(words.findall(re.sub(r"\w+=\S+", "", s))) > MOST]


def printed(write: Callable[[Console], None]) -> list[str]:
    out = io.StringIO()
    write(Console(file=out, width=100_000))
    return re.split(r"[\n│]", out.getvalue())


@cache
def small() -> fw.Audit:
    """Two variants of which one loses in one group."""
    rng = np.random.default_rng(0)
    n = 900
    label, sex = rng.choice(list("abc"), n), rng.choice(["F", "M"], n)
    right = rng.random(n) < 0.9
    answers = {"dense": np.where(right, label, "a")}
    for name, lost in (("int8", 0.0), ("pruned", 0.2)):
        kept = right & (rng.random(n) > lost * (sex == "F"))
        answers[name] = np.where(kept, label, "b")
    return fw.audit(label, answers, sensitive_features={"sex": sex}, n_boot=20, random_state=0)


@pytest.fixture(scope="module")
def outputs(
    result: AuditResult, population: AuditResult, explained: AuditResult, bare: AuditResult
) -> dict[str, list[str]]:
    """At least twenty."""
    audits = {"pair": result, "population": population, "bare": bare, "groups": small().result}
    made: dict[str, list[str]] = {}
    for name, audit in audits.items():
        made[f"terminal, {name}"] = printed(lambda console, a=audit: show(a, console))
        made[f"verbose, {name}"] = printed(lambda console, a=audit: show(a, console, verbose=True))
        made[f"notebook, {name}"] = Blocks(fragment(audit)).found
        made[f"markdown, {name}"] = to_markdown(audit).splitlines()
        made[f"page, {name}"] = Blocks(render(audit)).found
    made["explanations"] = explanation_sentences(explained)
    made["page, explained"] = Blocks(render(explained)).found
    card = to_card(replace(population, variants=("int8",)))
    made["card"] = card.partition("\n---\n")[2].splitlines()
    made["JUnit"] = re.findall(r'message="([^"]*)"', to_junit(result))
    for margin in (0.001, 0.02, 0.5):
        policy = {"rule": [{"metric": "accuracy", "by": "group", "margin": margin}]}
        verdict = small().gate(policy)
        made[f"gate {margin}"] = printed(lambda console, v=verdict: show_verdict(v, console))
        made[f"gate {margin}, markdown"] = verdict_to_markdown(verdict).splitlines()
    script = loaded("docs/generate_four_audits.py")
    for name in ("unchanged", "uniform", "small"):
        audit = script.audited(name).result
        made[f"docs, {name}"] = printed(lambda console, a=audit: show(a, console, verbose=True))
    return made


def test_outputs_are_many(outputs: dict[str, list[str]]) -> None:
    assert len(outputs) >= 20
    assert all(any(block.strip() for block in blocks) for blocks in outputs.values())


def test_no_output_has_a_banned_phrase(outputs: dict[str, list[str]]) -> None:
    banned = re.compile("|".join(BANNED), re.IGNORECASE)
    found = {
        (where, phrase.group()): block.strip()[:200]
        for where, blocks in outputs.items()
        for block in set(blocks)
        if (phrase := banned.search(block))
    }
    assert found == {}


def test_sentences_are_short(outputs: dict[str, list[str]]) -> None:
    found = {where: long for where, blocks in outputs.items() if (long := too_long(blocks))}
    assert found == {}


def test_a_long_sentence_and_a_phrase_would_be_found() -> None:
    assert too_long(["word " * 26])
    assert not too_long([("word " * 20 + ". ") * 3])
    assert any(re.search(phrase, "Nobody asked in this audit.", re.IGNORECASE) for phrase in BANNED)


def helps() -> dict[str, str]:
    """The help of every command."""
    found = {}
    for name in NAMES:
        command = parser(name)
        for one in (command, *getattr(command, "commands", {}).values()):
            texts = [one.help or "", *(getattr(p, "help", "") or "" for p in one.params)]
            found[f"{name} {one.name}"] = "\n\n".join(texts)
    return found


def test_no_help_has_a_banned_phrase() -> None:
    found = {
        (name, phrase)
        for name, text in helps().items()
        for phrase in BANNED
        if re.search(phrase, text, re.IGNORECASE)
    }
    assert found == set()
