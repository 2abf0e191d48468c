"""Families of groups and classes: false alarms, power, and what a loss for everyone looks like."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.compare.harm import power_table, standardised_excess_shift
from fairweight.auditing.compare.rows import value_rows

from .audits import heterogeneity, rate
from .latent import HARD, World, compared, world
from .measured import Share, share, stored

GROUPS, PER_GROUP = 20, 500
ALPHA = 0.05


FAMILIES = {"accuracy by group": ("accuracy", "group"), "recall by class": ("recall", "class")}


@stored
def all_null(family: str, audits: int = 1000, seed: int = 1101) -> dict[str, Share]:
    """20 groups × 500 and 20 classes of about 500; two models that differ like retrained ones."""
    rng = np.random.default_rng(seed)
    alike = world(GROUPS, 20)
    found: dict[str, list[bool]] = {"shift": [], "excess": []}
    for i in range(audits):
        c = compared(alike.cube(alike.draw_per_group(PER_GROUP, rng)), i)
        rows = rate(c, *FAMILIES[family]).block
        assert (rows["n_family"] == GROUPS).all()
        found["shift"].append(bool((rows["p_adjusted"] <= ALPHA).any()))
        found["excess"].append(bool((rows["excess_p_adjusted"] <= ALPHA).any()))
    return {name: share(happened) for name, happened in found.items()}


# 240 and 260 examples of the two labels in every group: all expected counts are whole numbers.
LABELS = ((0.48, 0.52),)


def least_detectable() -> float:
    """The shift that the audit's own power table calls detectable with 80 % in a group of 500."""
    design = world(GROUPS, 2, share=LABELS)
    c = compared(design.expected(GROUPS * PER_GROUP), 0, positive=1)
    rows = power_table(c, [rate(c, "accuracy", "overall"), rate(c, "accuracy", "group")])
    found = {row["min_detectable_shift"] for row in rows if row["by"] == "group"}
    assert len(found) == 1
    return float(found.pop())


@stored
def planted(audits: int = 500, seed: int = 1102) -> dict[str, Share]:
    """That shift in one group of 20, with and without a loss of 2 points for everyone."""
    rng = np.random.default_rng(seed)
    delta = least_detectable()
    found: dict[str, list[bool]] = {name: [] for name in ("shift", "excess", "heterogeneity")}
    for drop in (0.0, 0.02):
        skill = np.full((GROUPS, 1), 0.5 - drop / HARD)
        skill[0] -= delta / HARD
        hurt = world(GROUPS, 2, compressed=skill, share=LABELS)
        for i in range(audits):
            c = compared(hurt.cube(hurt.draw_per_group(PER_GROUP, rng)), i, positive=1)
            groups = rate(c, "accuracy", "group").block
            if drop == 0.0:
                found["shift"].append(bool(groups["p_adjusted"][0] <= ALPHA))
            else:
                found["excess"].append(bool(groups["excess_p_adjusted"][0] <= ALPHA))
                found["heterogeneity"].append(heterogeneity(c) <= ALPHA)
    return {name: share(happened) for name, happened in found.items()}


@stored
def uniform_drop(audits: int = 800, seed: int = 1103) -> dict[str, Share]:
    """Everyone loses 2 points: 20 groups × 500, two classes."""
    rng = np.random.default_rng(seed)
    dropped = world(GROUPS, 2, compressed=0.5 - 0.02 / HARD)
    found: dict[str, list[float]] = {
        name: [] for name in ("shift, rows", "shift, any", "excess, any", "heterogeneity")
    }
    for i in range(audits):
        c = compared(dropped.cube(dropped.draw_per_group(PER_GROUP, rng)), i, positive=1)
        groups = rate(c, "accuracy", "group").block
        found["shift, rows"].append(float(np.mean(groups["p_value"] <= ALPHA)))
        found["shift, any"].append(float((groups["p_adjusted"] <= ALPHA).any()))
        found["excess, any"].append(float((groups["excess_p_adjusted"] <= ALPHA).any()))
        found["heterogeneity"].append(float(heterogeneity(c) <= ALPHA))
    return {name: share(happened) for name, happened in found.items()}


def simpson() -> World:
    """Half of the labels lose 10 points in every group; the first group holds more of them."""
    fragile = np.arange(10) < 5
    held = np.where(fragile, np.array([[0.8], [0.2], [0.2], [0.2]]), [[0.2], [0.8], [0.8], [0.8]])
    return world(4, 10, hard=0.3, compressed=np.where(fragile, 0.5 - 0.1 / 0.3, 0.5), share=held)


@stored
def composition(audits: int = 400, seed: int = 1104) -> dict[str, Share]:
    """Groups of 1,000 that differ in their labels alone."""
    rng = np.random.default_rng(seed)
    mixed = simpson()
    found: dict[str, list[bool]] = {
        name: []
        for name in ("excess, any", "standardised excess, any", "heterogeneity within classes")
    }
    for i in range(audits):
        c = compared(mixed.cube(mixed.draw_per_group(1000, rng)), i)
        groups = rate(c, "accuracy", "group").block
        (standardised,) = value_rows(c, list(standardised_excess_shift(c)))
        found["excess, any"].append(bool((groups["excess_p_adjusted"] <= ALPHA).any()))
        found["standardised excess, any"].append(bool((standardised["p_adjusted"] <= ALPHA).any()))
        within = heterogeneity(c, "heterogeneity_within_classes")
        found["heterogeneity within classes"].append(within <= ALPHA)
    return {name: share(happened) for name, happened in found.items()}
