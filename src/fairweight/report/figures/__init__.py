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
from fairweight.report.figures import hk_t1 as _hk_t1
from fairweight.report.figures import hk_f4 as _hk_f4
from fairweight.report.figures import hk_f2 as _hk_f2
from fairweight.report.figures import pa_f1 as _pa_f1
from fairweight.report.figures import pa_f2 as _pa_f2
from fairweight.report.figures import hk_t2 as _hk_t2
from fairweight.report.figures import hk_t4 as _hk_t4
from fairweight.report.figures import hk_f1 as _hk_f1
from fairweight.report.figures import hk_f3 as _hk_f3
from fairweight.report.figures import ss_f1 as _ss_f1
from fairweight.report.figures import ss_t3 as _ss_t3
from fairweight.report.figures import ss_f5 as _ss_f5
from fairweight.report.figures import ss_t2 as _ss_t2
from fairweight.report.figures import io_t1 as _io_t1
from fairweight.report.figures import io_f1b as _io_f1b
from fairweight.report.figures import io_f2 as _io_f2
from fairweight.report.figures import io_f3 as _io_f3
from fairweight.report.figures import io_f4 as _io_f4
from fairweight.report.figures import io_f5a as _io_f5a
from fairweight.report.figures import io_f5b as _io_f5b
from fairweight.report.figures import io_f1a as _io_f1a
from fairweight.report.figures import io_tj as _io_tj
from fairweight.report.figures import pa_t1 as _pa_t1
from fairweight.report.figures import pa_f13 as _pa_f13
from fairweight.report.figures import pa_f8 as _pa_f8
from fairweight.report.figures import pa_f11 as _pa_f11
from fairweight.report.figures import pa_f10 as _pa_f10
from fairweight.report.figures import pa_f6 as _pa_f6
from fairweight.report.figures import pa_f3a as _pa_f3a
from fairweight.report.figures import pa_f3b as _pa_f3b
from fairweight.report.figures import pa_f3c as _pa_f3c
from fairweight.report.figures import pa_f4a as _pa_f4a
from fairweight.report.figures import pa_f4b as _pa_f4b
from fairweight.report.figures import fw_5 as _fw_5
from fairweight.report.figures import pa_t2 as _pa_t2
from fairweight.report.figures import pa_f14 as _pa_f14
from fairweight.report.figures import pa_f15 as _pa_f15
from fairweight.report.figures import fw_4 as _fw_4
from fairweight.report.figures import io_f6 as _io_f6

# isort: on
from fairweight.report.figures.files import save_figure
from fairweight.report.figures.registry import Absent, Drawing, Figure, Spec, draw, figure, figures

__all__ = ["Absent", "Drawing", "Figure", "Spec", "draw", "figure", "figures", "save_figure"]
_MODULES = (
    _fw_1, _fw_7, _fw_6, _ss_f2, _hk_t3, _ss_f3, _sg_f1, _fw_3, _fw_2,
    _sg_t1, _sg_f2, _sg_f3, _sg_f4, _sg_f5, _sg_f6,
    _hk_t1, _hk_f4, _hk_f2, _pa_f1, _pa_f2, _hk_t2, _hk_t4, _hk_f1, _hk_f3, _ss_f1,
    _ss_t3, _ss_f5, _ss_t2,
    _io_t1, _io_f1b, _io_f2, _io_f3, _io_f4, _io_f5a, _io_f5b, _io_f1a, _io_tj, _pa_t1,
    _pa_f13, _pa_f8, _pa_f11, _pa_f10, _pa_f6, _pa_f3a, _pa_f3b, _pa_f3c,
    _pa_f4a, _pa_f4b, _fw_5, _pa_t2, _pa_f14, _pa_f15,
    _fw_4, _io_f6,
)  # fmt: skip
