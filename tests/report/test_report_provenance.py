"""The provenance of a report: the printed command makes the same numbers from the same inputs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight import cli
from fairweight.auditing.result import AuditResult
from fairweight.report.html import provenance_lines, render


def tables(folder: Path, *, n: int = 300, members: int = 5) -> None:
    """A population of five dense and five pruned models, groups beside them, and their parents."""
    rng = np.random.default_rng(11)
    label = rng.integers(3, size=n)
    people = pd.DataFrame({"example_id": np.arange(n), "label": label})
    people["sex"] = rng.choice(["F", "M"], size=n)
    people["my age"] = rng.choice(["old", "young"], size=n)
    parts = []
    for variant, errors in (("dense", 0.1), ("pruned", 0.2)):
        for seed in range(members):
            wrong = rng.random(n) < errors
            answer = np.where(wrong, (label + 1) % 3, label)
            score = np.where(wrong, 0.55, 0.9) + 0.05 * rng.random(n)
            part = pd.DataFrame({"example_id": np.arange(n), "prediction": answer, "score": score})
            parts.append(part.assign(variant=variant, seed=seed, label=label))
    pd.concat(parts, ignore_index=True).to_csv(folder / "preds.csv", index=False)
    people.to_csv(folder / "the people.csv", index=False)


def audited(words: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["fairweight", *words])
    assert cli.run(words) == cli.DONE
    (written,) = folder.glob("*/audit.json")
    document: dict[str, Any] = json.loads(fw.load(written).to_json())
    return document


def no_page(*_: object) -> str:
    """Instead of drawing, where only numbers are compared."""
    return "<!doctype html>"


def command_on(page: str) -> str:
    found = re.search(r"<dt>command</dt>\s*<dd>\s*<p><code>(.*?)</code>", page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def test_the_command_on_the_page_makes_the_same_numbers_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    tables(here)
    words = [
        "audit", "preds.csv", "--examples", "the people.csv", "--groups", "sex,my age,sex*my age",
        "--n-boot", "60", "--random-state", "7", "--alpha", "0.1", "--out", "first out", "--quiet",
    ]  # fmt: skip
    first = audited(words, monkeypatch, here)
    page = (here / "first out" / "report.html").read_text(encoding="utf-8")
    assert command_on(page) == first["provenance"]["command"]
    program, *again = shlex.split(command_on(page))
    assert program == "fairweight"
    for name in ("preds.csv", "the people.csv"):
        shutil.copy(here / name, there / name)
    monkeypatch.setattr("fairweight.report.html.render", no_page)
    second = audited(again, monkeypatch, there)
    assert len(first["results"]) > 100
    for name in ("results", "per_seed", "confusion", "power", "bounds"):
        assert second[name] == first[name], name  # exactly, to the last digit
    for key in ("inputs", "options", "version", "command"):
        assert second["provenance"][key] == first["provenance"][key]
    assert second["pairing"] == first["pairing"]


def test_another_random_state_makes_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else the test above could pass without a random state in the command.
    tables(tmp_path, members=1)
    monkeypatch.setattr("fairweight.report.html.render", no_page)
    words = ["audit", "preds.csv", "--n-boot", "60", "--quiet", "--random-state"]
    first = audited([*words, "1"], monkeypatch, tmp_path)
    shutil.rmtree(tmp_path / "fairweight-audit")
    assert audited([*words, "2"], monkeypatch, tmp_path)["results"] != first["results"]


def test_every_part_of_the_provenance_is_on_the_page(population: AuditResult) -> None:
    origin = replace(
        population.provenance,
        options={"alpha": 0.05, "random_state": 7},
        inputs=({"name": "a & b.csv", "sha256": "cd" * 32, "rows": 4000},),
    )
    audit = replace(population, provenance=origin, pairing={"int8": "seed", "pruned-90": "parent"})
    lines = {line.key: line.values for line in provenance_lines(audit)}
    assert lines["random state"] == ("7",)
    assert lines["inputs"] == (f"a & b.csv, 4,000 rows, sha256 {'cd' * 32}",)
    assert lines["options"] == ("alpha = 0.05",)
    assert [value.split(" (")[0] for value in lines["members paired"]] == [
        "int8: by seed",
        "pruned-90: by parent",
    ]
    page = render(replace(audit, variants=audit.variants[:1]))
    part = page[page.index('id="provenance"') :]
    for said in ("0.1.0", "2026-11-03T10:20:30Z", "a &amp; b.csv", "cd" * 32, "by seed"):
        assert said in part


def test_an_audit_from_python_has_no_command(result: AuditResult) -> None:
    audit = replace(result, provenance=replace(result.provenance, command=None))
    (line,) = [line for line in provenance_lines(audit) if line.key == "command"]
    assert line.values == ("none: called from Python",)
    assert not line.code
