"""The benchmarks of the lab run, and what they compare does the same work."""

from __future__ import annotations

import copy
import importlib
import io
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from torch import nn

LAB = {
    "lab-training": 4,
    "lab-processes": 2,
    "lab-pruning": 1,
    "lab-runtime": 1,
    "lab-units": 3,
    "lab-distillation": 5,
}  # lines


# Trains nothing, at once: to import torch twice would take most of the time.
STAND_IN = "import sys\nprint('ready', flush=True)\nfor _ in sys.stdin: print(0.5, flush=True)"


QUICK = ("lab-processes", "lab-pruning", "lab-distillation")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LAB],
)
def test_every_benchmark_of_the_lab_returns_finite_ratios(
    name: str, benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.lab_processes, "WORKER", ("-c", STAND_IN))
    lines = benchmarks.lines_or_reason(name, benchmarks.Settings(rows=2_000, rounds=1, n_boot=20))
    assert len(lines) == LAB[name]
    assert all(math.isfinite(line.ratio) and line.ratio > 0 for line in lines), lines


def test_a_worker_trains_once_per_line(
    benchmarks: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = importlib.import_module("benchmarks.lab_worker")
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("go\ngo\n"))
    worker.main(batches=2, batch_size=4)
    ready, *taken = capsys.readouterr().out.split()
    assert ready == "ready"
    assert len(taken) == 2
    assert all(float(seconds) > 0 for seconds in taken)


def test_a_worker_that_dies_is_an_error(benchmarks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.lab_processes, "WORKER", ("-c", "raise SystemExit(1)"))
    with pytest.raises(RuntimeError, match="A training process ended"):
        benchmarks.lab_processes.run(benchmarks.Settings(rows=2_000, rounds=1))


def test_there_is_no_benchmark_of_the_lab_without_a_test(benchmarks: Any) -> None:
    assert benchmarks.chosen_names(["lab"]) == list(LAB)
    assert benchmarks.chosen_names(["lab-pruning", "lab"])[0] == "lab-pruning"
    with pytest.raises(typer.BadParameter, match="use one of bootstrap, "):
        benchmarks.chosen_names(["lab-"])


def test_a_missing_package_is_a_sentence(benchmarks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks.lab_pruning, "NEEDS", ("torch", "no_such_package"))
    reason = benchmarks.lines_or_reason("lab-pruning", benchmarks.Settings())
    assert reason.startswith("Not measured: no_such_package not installed; ")
    page = benchmarks.page({"lab-pruning": reason}, benchmarks.Settings(), 1.0)
    assert reason in page


def test_the_usual_loader_gives_scaled_crops(benchmarks: Any) -> None:
    from fairweight.lab.batches import examples, scaling_of

    loops = importlib.import_module("benchmarks.lab_loops")
    images = torch.randint(1, 256, (1, 8, 8, 3), dtype=torch.uint8)
    data = examples(images.numpy(), torch.tensor([7]).numpy())
    scaling = scaling_of(data.images)
    image, label = loops.SingleImages(data, scaling)[0]
    assert (image.shape, label) == ((3, 8, 8), 7)
    mean, std = (torch.tensor(part).view(-1, 1, 1) for part in (scaling.mean, scaling.std))
    pixels = (image * std + mean).mul(255).round().to(torch.uint8).permute(1, 2, 0)
    padded = nn.functional.pad(data.images[0], (0, 0, 2, 2, 2, 2))
    crops = [padded[y : y + 8, x : x + 8] for y in range(5) for x in range(5)]
    assert any(torch.equal(pixels, c) or torch.equal(pixels, c.flip(1)) for c in crops)


def test_both_prunings_leave_the_same_weights(benchmarks: Any) -> None:
    from fairweight.lab.compression.pruner import prune
    from fairweight.lab.compression.registry import spec_of
    from fairweight.lab.masks import bake

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(72, 10))
    theirs = copy.deepcopy(network)
    benchmarks.lab_pruning.global_unstructured(theirs)
    ours = bake(prune(network, spec_of("global-magnitude", sparsity=0.9)))
    assert torch.equal(ours[0].weight, theirs[0].weight)
    assert torch.equal(ours[2].weight, theirs[2].weight)


def test_the_processor_is_asked_for_vnni(
    benchmarks: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = tmp_path / "cpuinfo"
    monkeypatch.setattr(benchmarks.lab_runtime, "CPU_DESCRIPTION", found)
    assert benchmarks.lab_runtime.has_vnni() is None
    for flags, expected in (("avx2 fma", False), ("avx2 avx512_vnni", True)):
        found.write_text(f"flags : {flags}\n")
        assert benchmarks.lab_runtime.has_vnni() is expected
    found.write_text("Features : asimd asimddp\n")  # another kind of processor
    assert benchmarks.lab_runtime.has_vnni() is None
