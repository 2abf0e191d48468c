"""How often the gate errs where the truth is known, and that it is not blind.

Every simulated audit is a variant of one made audit, so that one call decides them all.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.gate.verdict import decide
from fairweight.auditing.intervals.proportion import tango
from fairweight.specs.policy import read_policy

from .made_bounds import TWO_SIDED, line, made_audit

AUDITS = 300
MARGIN = 0.02
# Three standard errors of a share of 5 % among the audits.
SLACK = 3 * math.sqrt(0.05 * 0.95 / AUDITS)


@cache
def outcomes(shift: float, n: int, groups: int, discordance: float = 0.06) -> dict[str, float]:
    """Share of each outcome over audits in which every group truly has this shift."""
    rng = np.random.default_rng([n, groups, round(1000 * abs(shift))])
    lost, gained = (discordance - shift) / 2, (discordance + shift) / 2
    drawn = rng.multinomial(n, [lost, gained, 1 - discordance], size=(AUDITS, groups))
    low, high = tango(n, drawn[..., :1], drawn[..., 1:2], TWO_SIDED)
    estimate = (drawn[..., 1] - drawn[..., 0]) / n
    rows: list[dict[str, Any]] = [
        line("shift", estimate[a, g], low[a, g], high[a, g], n=n, variant=f"v{a}", group=f"age={g}")
        for a in range(AUDITS)
        for g in range(groups)
    ]
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": MARGIN}]})
    found = list(decide(made_audit(rows), policy).variants.values())
    return {name: found.count(name) / AUDITS for name in ("pass", "fail", "cannot tell")}


@pytest.mark.parametrize("n", [300, 2000])
def test_a_model_at_the_margin_passes_and_fails_in_about_five_percent(n: int) -> None:
    found = outcomes(-MARGIN, n, 1)
    assert found["pass"] <= 0.05 + SLACK
    assert found["fail"] <= 0.05 + SLACK
    assert found["cannot tell"] > 0.8


def test_many_groups_at_the_margin_hardly_ever_fail_any() -> None:
    """Without Holm one of eight would fail in 1 − 0.95⁸ = 34 % of audits."""
    assert outcomes(-MARGIN, 1000, 8)["fail"] <= 0.05 + SLACK


def test_a_model_that_loses_nothing_passes_when_there_are_examples_enough() -> None:
    assert outcomes(0.0, 3000, 1)["pass"] > 0.95


def test_a_model_that_loses_much_fails_in_spite_of_the_correction() -> None:
    assert outcomes(-0.055, 1000, 8)["fail"] > 0.9
