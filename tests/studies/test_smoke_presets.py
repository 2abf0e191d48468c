"""Every study's smoke preset, as a user runs it: all of it, in seconds.

Two of them in `make test`. Of the others `make check` makes all that comes after prediction
(tests/same/studies.py), and their networks and methods have tests of their own (tests/lab).
"""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
import pytest

from fairweight import cli
from fairweight.studies.library import names

pytest.importorskip("torch")

EXPECTED = {
    "resource-efficient": ("structured/audit/figures/SG-T1-one-layer-50.svg",),
    "mnist-lenet": ("digits/audit/report.html",),
    "deployed-face-gender": ("digits/audit/report.html",),
    "characterising-bias": (
        "digits/audit/figures/HK-F4-pruned-95.svg",
        "digits/audit/tables/enrichment.parquet",
    ),
    "simon-says": (
        "balanced/audit/figures/SS-T3.svg",
        "balanced/audit/tables/similarity_points.parquet",
        "imbalanced/audit/figures/SS-T2.svg",
    ),
    "pruned-vision-bias": (
        "joint/audit/figures/IO-F2.svg",
        "joint/audit/figures/IO-F5b.svg",
        "joint/audit/tables/attributes.parquet",
        "joint/validation/gmp-90/0.parquet",
        "settings/figures/IO-F4.svg",
        "settings/tables/settings.parquet",
    ),
    "prune-responsibly": (
        "classes/figures/all/PA-T2.svg",
        "classes/figures/digits/PA-F3b.svg",
        "digits/audit/tables/example_properties.parquet",
    ),
}


def test_every_study_has_a_smoke_preset_that_is_run_here() -> None:
    assert set(EXPECTED) == set(names())


QUICK = ("characterising-bias",)  # `make same` runs the smoke preset of every study


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in EXPECTED]
)
def test_smoke(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begun = time.process_time()
    code = cli.run(["study", "run", name, "--preset", "smoke", "--workers", "0"])
    taken = time.process_time() - begun
    assert code == cli.DONE
    results = tmp_path / "fairweight-runs" / "results" / f"{name}-smoke"
    for file in EXPECTED[name]:
        assert (results / file).stat().st_size > 500
    for table in results.glob("*/audit/tables/results.parquet"):
        rows = pd.read_parquet(table)
        accuracy = rows[(rows["metric"] == "accuracy") & (rows["by"] == "overall")]
        assert accuracy["baseline"].between(0.1, 1).all()
    # Processor time: other work on the machine must not fail it.
    assert taken < 15
