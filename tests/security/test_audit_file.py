"""`audit.json` comes from anybody: one reader checks it, and nobody after it falls over it."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fairweight.api import Audit
from fairweight.auditing.archive import from_json
from fairweight.auditing.gate.verdict import decide
from fairweight.errors import InputError
from fairweight.report import terminal
from fairweight.report.figures import draw, figures
from fairweight.report.html import render
from fairweight.report.junit import to_junit
from fairweight.report.junit import verdict_to_junit as verdict_as_junit
from fairweight.specs.policy import read_policy

from .mutations import CASES, fuzz, mutated

AUDITS = Path(__file__).parents[1] / "fixtures" / "audits-0.1.0"
POLICY = {
    "schema": 1,
    "min_group_size": 5,
    "rule": [
        {"metric": "accuracy", "by": "group", "margin": 0.1},
        {"metric": "recall", "by": "class", "recovery": 0.9},
        {"metric": "accuracy", "by": "overall", "min": 0.5},
    ],
}
METRICS = {"accuracy", "recall", "flips", "cev", "sde", "worst_group", "heterogeneity", "class_gap"}


@cache
def audits() -> tuple[dict[str, Any], ...]:
    """Small audits of every kind: a pair, a population, tasks; the first one explained."""
    found = []
    for path in sorted(AUDITS.glob("*/audit.json")):
        document = json.loads(path.read_text())
        for name, rows in document.items():
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                kept = [row for row in rows if row.get("metric", "accuracy") in METRICS]
                document[name] = kept[:40]
        found.append(document)
    (name,) = found[0]["variants"]
    found[0]["explanations"] = {
        "slices": [{"variant": name, "slice": "sex=F", "columns": "sex", "n": 40, "excess": -0.1,
                    "excess_low": -0.2, "excess_high": 0.0, "n_confirmation": 20,
                    "p_adjusted": 0.01, "parent": None, "status": "ok"}],
        "individuals": [{"variant": name, "individual": str(i), "group": None, "n": 9,
                         "baseline": 0.9, "compressed": 0.8, "shift": -0.1, "shift_shrunk": -0.05,
                         "shift_low": -0.1, "shift_high": 0.1, "rank": i + 1} for i in range(3)],
        "exemplar_counts": [{"variant": name, "kind": "modal", "percentile": None, "n_examples": 80,
                             "n_exemplars": 9, "share": 0.11, "status": "ok"}],
    }  # fmt: skip
    return tuple(found)


def verdict(audit: Audit) -> None:
    found = decide(audit.result, read_policy(POLICY), "all")
    verdict_as_junit(found)
    audit.to_markdown(verdict=found)


def views(audit: Audit) -> None:
    repr(audit), audit.overall, audit.by_class, audit.by_group, audit.worst_group_shift()


def drawn(audit: Audit) -> None:
    for entry in figures():
        draw(entry.id, audit.result, None if entry.once else audit.result.variants[0])


# What is done with an audit that was read, and how often one case of the fuzzer does it.
READERS: dict[Callable[[Audit], object], int] = {
    lambda audit: audit.to_json(): 4,
    lambda audit: audit.to_markdown(): 4,
    lambda audit: to_junit(audit.result): 4,
    lambda audit: audit.card(audit.result.variants[0]): 4,
    lambda audit: audit._repr_html_(): 2,
    lambda audit: audit.suppressed(20).to_markdown(): 2,
    lambda audit: terminal.show(audit.result, Console(file=io.StringIO())): 4,
    verdict: 4,
    views: 4,
    drawn: 1,
    lambda audit: render(audit.result): 1,
}


def attempt(given: tuple[str, Callable[[Audit], object]]) -> None:
    text, read = given
    audit = Audit(from_json(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numbers that no audit has
        read(audit)


def make(rng: random.Random) -> tuple[str, Callable[[Audit], object]]:
    document = mutated(rng.choice(audits()), rng)
    return json.dumps(document), rng.choices(list(READERS), list(READERS.values()))[0]


@CASES
def test_mutated_audits(cases: int) -> None:
    tally = fuzz(attempt, make, cases)
    assert tally["refused"] > cases / 4
    assert tally["accepted"] > cases / 20


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.pop("notes"), "notes"),
        (lambda d: d.update(variants=[]), "variants"),
        (lambda d: d.update(variants=["a", "a"]), "variants"),
        (lambda d: d.update(n_examples=-1), "n_examples"),
        (lambda d: d.update(n_examples=True), "n_examples"),
        (lambda d: d.update(groupings=[1]), "groupings"),
        (lambda d: d["pairing"].update(x=1), "pairing"),
        (lambda d: d["provenance"].update(command=7), "provenance.command"),
        (lambda d: d["provenance"]["inputs"][0].pop("rows"), "provenance.inputs.0.rows"),
        (lambda d: d["provenance"]["options"].update(alpha=2.0), "provenance.options.alpha"),
        (lambda d: d["results"].append(1), "results"),
        (lambda d: d["results"][0].update(variant="other"), "results.variant"),
        (lambda d: d["results"][0].update(shift="x"), "results.shift"),
        (lambda d: d["results"][0].update(shift=1e300), "results.shift"),
        (lambda d: d["results"][0].update(by="everybody"), "results.by"),
        (lambda d: d["results"][0].update(n=10**30), "results.n"),
        (lambda d: d["results"][0].update(n=None), "results.n"),
        (lambda d: d["results"][0].update(metric=None), "results.metric"),
        (lambda d: d["results"][0].pop("metric"), "results"),
        (lambda d: d["per_seed"][0].update(task="none such"), "per_seed.task"),
        (lambda d: d.update(variants_table=[{"variant": 1}]), "variants_table.variant"),
        (lambda d: d["explanations"].update(slices=[{"n": "x"}]), "explanations.slices.n"),
        (lambda d: d["explanations"].update(slices={}), "explanations.slices"),
    ],
)
def test_the_field_of_another_form_is_named(
    change: Callable[[dict[str, Any]], object], field: str
) -> None:
    document = copy.deepcopy(audits()[0])
    from_json(json.dumps(document))
    change(document)
    with pytest.raises(InputError, match=re.escape(f"'{field}'")) as refusal:
        from_json(json.dumps(document))
    assert "give the audit.json that fairweight wrote" in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "[" * 100_000, '{"schema": 1, "n_examples": NaN}', "9" * 5000,
     '{"schema": 1, "baseline": "\\ud800"}', '{"schema": true}'],
)  # fmt: skip
def test_what_is_no_audit_at_all(text: str) -> None:
    with pytest.raises(InputError):
        from_json(text)


@pytest.mark.parametrize("end", ["sim_low", "sim_high"])
def test_limits_of_one_side_alone_are_shown(end: str) -> None:
    document = copy.deepcopy(audits()[0])
    (row,) = [
        row
        for row in document["results"]
        if (row["metric"], row["by"], row["task"]) == ("accuracy", "overall", None)
    ]
    row[end] = None
    assert "—" in render(from_json(json.dumps(document)))
