"""Audit five made-up tables and write into docs/four-audits.md what the terminal prints of each.

    python docs/generate_four_audits.py

The words around what is printed are written by hand. A test fails when the page holds something
else than the code prints.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

import fairweight as fw
from fairweight.report.terminal import show

PAGE = Path(__file__).parent / "four-audits.md"
PRINTED = re.compile(
    r"(<!-- printed: (\w+)( whole)? -->\n)```text\n.*?^```\n", re.MULTILINE | re.DOTALL
)
WIDTH = 80
CLASSES = ("bicycle", "bus", "car", "lorry", "tram")
RACES = {
    "Black": 0.14, "East Asian": 0.14, "Indian": 0.14, "Latino": 0.15, "Middle Eastern": 0.11,
    "Southeast Asian": 0.13, "White": 0.19,
}  # fmt: skip


def street(n: int, lost: float = 0.0, harmed: float = 0.0, *, seed: int) -> pd.DataFrame:
    """Pictures of vehicles by camera and weather; `harmed` more are lost in fog.

    In fog models are less sure, so predictions change there in both directions more often.
    """
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "label": rng.choice(CLASSES, size=n, p=(0.15, 0.15, 0.4, 0.2, 0.1)),
            "weather": rng.choice(("clear", "rain", "fog"), size=n, p=(0.6, 0.33, 0.07)),
            "camera": rng.choice(("north", "east", "south", "west"), size=n),
        }
    )
    fog = (table["weather"] == "fog").to_numpy()
    accuracy = np.where(fog, 0.80, 0.92)
    churn = np.where(fog, 0.04, 0.01)  # lost, and as many gained
    return _answered(table, CLASSES, accuracy, churn + lost + harmed * fog, churn, rng)


def faces(n: int = 10_954, *, seed: int) -> pd.DataFrame:
    """Portraits whose label, the race, is a group column too; men of one race lose 17 points."""
    rng = np.random.default_rng(seed)
    race = rng.choice(list(RACES), size=n, p=list(RACES.values()))
    sex = rng.choice(("Female", "Male"), size=n)
    table = pd.DataFrame({"label": race, "race": race, "sex": sex})
    harmed = (race == "Latino") & (sex == "Male")
    accuracy = np.where(race == "Latino", 0.60, 0.74)
    churn = np.where(race == "Latino", 0.07, 0.03)
    return _answered(table, tuple(RACES), accuracy, churn + 0.17 * harmed, churn, rng)


def _answered(
    table: pd.DataFrame,
    classes: tuple[str, ...],
    accuracy: Any,
    lost: Any,
    gained: Any,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """The table with the predictions of a dense and a compressed model; shares of all examples."""
    n = len(table)
    label = table["label"].to_numpy()
    place = np.searchsorted(classes, label)
    wrong = np.asarray(classes)[(place + rng.integers(1, len(classes), size=n)) % len(classes)]
    right = rng.random(n) < accuracy
    draw = rng.random(n)
    kept = np.where(right, draw >= lost / accuracy, draw < gained / (1 - accuracy))
    return table.assign(
        example_id=np.arange(n),
        dense=np.where(right, label, wrong),
        int8=np.where(kept, label, wrong),
    )


AUDITS: dict[str, tuple[Callable[[], pd.DataFrame], list[str]]] = {
    "unchanged": (lambda: street(8_000, seed=1), ["weather", "camera"]),
    "uniform": (lambda: street(8_000, lost=0.04, seed=2), ["weather", "camera"]),
    "harmed": (lambda: street(8_000, harmed=0.10, seed=8), ["weather", "camera"]),
    "small": (lambda: street(240, harmed=0.10, seed=4), ["weather", "camera"]),
    "faces": (lambda: faces(seed=4), ["race", "sex", "race*sex"]),
}


@cache
def audited(name: str) -> fw.Audit:
    """One of the audits."""
    draw, groups = AUDITS[name]
    sides = {"dense": "dense", "int8": "int8"}
    return fw.audit_table(draw(), predictions=sides, groups=groups, n_boot=200, random_state=0)


def printed(name: str, *, whole: bool = True) -> str:
    """What the terminal prints of one audit; else without the caveats below."""
    text = io.StringIO()
    show(audited(name).result, Console(file=text, width=WIDTH))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    ends = [i for i, line in enumerate(lines) if not line]
    return "\n".join(lines if whole else lines[: ends[-1]]) + "\n"


def filled(text: str) -> str:
    """The page with what is printed now."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}```text\n{printed(found[2], whole=bool(found[3]))}```\n"

    return PRINTED.sub(block, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
