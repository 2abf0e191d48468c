"""Figures as Vega-Lite specifications: a catalogue per paper, drawn by a few chart forms."""

from __future__ import annotations

from fairweight.report.figures.registry import Drawing, Figure, draw, figure, figures
from fairweight.report.figures.theme import Absent, Spec

__all__ = ["Absent", "Drawing", "Figure", "Spec", "draw", "figure", "figures"]
