"""Methods, metrics and data sets of another package, as the how-to writes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairweight.auditing.metrics import registry

PAGE = Path(__file__).resolve().parents[1] / "docs/how-to/add-a-method.md"
FILES = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PROGRAM = """
import contextlib, io, json
import torch
import fairweight as fw
from fairweight import cli
from fairweight.data import load
from fairweight.lab.masks import masks
from fairweight.lab.compression.pruner import prune
from fairweight.lab.compression.registry import spec_of


def listed(command):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.run([command, "--json"]) == cli.DONE
    return [row["name"] for row in json.loads(out.getvalue())]


layer = torch.nn.Linear(4, 1)
pruned = prune(layer, spec_of("first-weights", sparsity=0.5, backwards=True))
squares = load("squares", examples=6)
audit = fw.audit(
    [0, 1, 1, 1], {"dense": [0, 1, 1, 1], "small": [0, 1, 0, 1]}, n_boot=20, random_state=0
)
rows = audit.results.query("metric == 'share_wrong' and by == 'overall'")
print(json.dumps({
    "methods": listed("methods"),
    "metrics": listed("metrics"),
    "datasets": listed("datasets"),
    "mask": masks(pruned)["weight"].tolist(),
    "examples": len(squares),
    "classes": list(squares.classes),
    "on arrays": fw.metrics.share_wrong([0, 1], [1, 1]),
    "audited": rows[["baseline", "compressed"]].to_numpy().tolist(),
}))
"""


def install(folder: Path) -> None:
    """Put the files of the page where pip would: modules, and what `pyproject.toml` declares."""
    import tomllib

    files = dict(FILES.findall(PAGE.read_text(encoding="utf-8")))
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    for name, text in files.items():
        place = folder / name.removeprefix("src/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_the_package_of_the_how_to_adds_all_three(tmp_path: Path) -> None:
    install(tmp_path)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert "first-weights" in told["methods"]
    assert told["metrics"][-1] == "share_wrong"
    assert told["datasets"][-1] == "squares"
    assert told["mask"] == [[True, True, False, False]]
    assert told["examples"] == 6
    assert told["classes"] == ["small", "large"]
    assert told["on arrays"] == 0.5
    assert told["audited"] == [[0.0, 0.25]]


def test_a_metric_that_cannot_be_loaded_is_named_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "fairweight_broken_metric-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-metric\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairweight.metrics]\nnone = no_such_module_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry.METRICS, "_loaded", False)
    try:
        with pytest.warns(UserWarning, match=r"package 'broken-metric' .*ModuleNotFoundError"):
            found = registry.metrics()
    finally:
        monkeypatch.undo()
    assert "accuracy" in {entry.name for entry in found}
    assert registry.metrics() == found
