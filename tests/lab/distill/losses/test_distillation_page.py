"""The page of losses says what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairweight.lab.distillation.losses  # noqa: F401  (registers them)
from fairweight.lab.distillation.registry import loss, losses

PAGE = (Path(__file__).resolve().parents[4] / "docs/reference/distillation.md").read_text("utf-8")
NAMES = ["kd", "at", "sp", "fsp", "pkt", "crd", "hint", "max-pool-hint"]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first row begins so."""
    table = PAGE[PAGE.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in table]


def test_every_loss_has_its_rows() -> None:
    built_in = "fairweight.lab.distillation.losses."
    registered = [e.name for e in losses() if e.function.__module__.startswith(built_in)]
    assert registered == NAMES
    assert [row[0] for row in rows("| loss | formula")] == NAMES
    assert [row[0] for row in rows("| loss | torchdistill")] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_it_reads_and_weighs(name: str) -> None:
    entry = loss(name)
    _, _, reads, alone, with_kd, source = {r[0]: r for r in rows("| loss | formula")}[name]
    assert reads == entry.reads
    assert alone == f"{entry.ce:g}, {entry.weight:g}"
    assert with_kd == ("–" if name == "kd" else f"1, {entry.weight:g}, 1")
    assert re.search(r"\d{4}|Simon Says", source)


def test_every_option_has_its_default() -> None:
    documented = {(row[0], row[1]): row[2] for row in rows("| loss | option")}
    assert documented == {
        (name, option): str(value) for name in NAMES for option, value in loss(name).options.items()
    }
