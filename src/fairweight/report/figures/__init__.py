"""Figures as Vega-Lite specifications: one function per figure, found by its id."""

from __future__ import annotations

# Importing a module registers its figure; the order is the order of the report.
# isort: off
from fairweight.report.figures import fw_1 as _fw_1
from fairweight.report.figures import fw_7 as _fw_7
from fairweight.report.figures import fw_6 as _fw_6
from fairweight.report.figures import ss_f2 as _ss_f2
from fairweight.report.figures import hk_t3 as _hk_t3
from fairweight.report.figures import ss_f3 as _ss_f3
from fairweight.report.figures import sg_f1 as _sg_f1
from fairweight.report.figures import fw_3 as _fw_3
from fairweight.report.figures import fw_2 as _fw_2
from fairweight.report.figures import sg_t1 as _sg_t1
from fairweight.report.figures import sg_f2 as _sg_f2
from fairweight.report.figures import sg_f3 as _sg_f3
from fairweight.report.figures import sg_f4 as _sg_f4
from fairweight.report.figures import sg_f5 as _sg_f5
from fairweight.report.figures import sg_f6 as _sg_f6

# isort: on
from fairweight.report.figures.files import save_figure
from fairweight.report.figures.registry import (
    Absent,
    Drawing,
    Figure,
    Spec,
    draw,
    figure,
    figures,
)

__all__ = ["Absent", "Drawing", "Figure", "Spec", "draw", "figure", "figures", "save_figure"]
_MODULES = (
    _fw_1, _fw_7, _fw_6, _ss_f2, _hk_t3, _ss_f3, _sg_f1, _fw_3, _fw_2,
    _sg_t1, _sg_f2, _sg_f3, _sg_f4, _sg_f5, _sg_f6,
)  # fmt: skip
