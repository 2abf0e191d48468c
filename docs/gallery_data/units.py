"""A small network whose layers are pruned one by one: which of them hurts whom."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fairweight as fw
from fairweight.precision import audited_units
from gallery_data.classes import N_BOOT

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


def audit_of_units() -> AuditResult:
    """LeNet on the bundled digits, the smallest 60 % of all weights set to 0."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "dense-0"
        fw.lab.train(
            {"name": "digits"}, {"architecture": "lenet"}, {"epochs": 12, "lr": 0.05}, place
        )
        spec = {"method": "global-magnitude", "sparsity": 0.6}
        made = fw.lab.sensitivity(place, spec)
    named = replace(made, compressed="pruned-60")
    return audited_units(named, options=fw.AuditOptions(n_boot=N_BOOT)).result
