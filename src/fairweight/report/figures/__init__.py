"""Figures as Vega-Lite specifications: a catalogue per paper, drawn by a few chart forms."""

from __future__ import annotations

# Importing a catalogue registers its figures; `figures.toml` has their texts and their order.
from fairweight.report.figures import (
    characterising_bias,
    individuals,
    own,
    prune_responsibly,
    pruned_vision_bias,
    resource_efficient,
    simon_says,
)
from fairweight.report.figures.export import save_figure
from fairweight.report.figures.registry import Drawing, Figure, draw, figure, figures
from fairweight.report.figures.theme import Absent, Spec

__all__ = ["Absent", "Drawing", "Figure", "Spec", "draw", "figure", "figures", "save_figure"]

CATALOGUES = (
    own,
    characterising_bias,
    prune_responsibly,
    individuals,
    resource_efficient,
    simon_says,
    pruned_vision_bias,
)
