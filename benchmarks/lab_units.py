"""What `sensitivity` costs beside plain predictions: every unit compressed alone, and left out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, processor_seconds

TITLE = "Units of a network, one by one"
SETTING = (
    "A ResNet32x4 at a quarter of its width (34 layers with weights), images of 32 pixels, one "
    "thread: `fairweight.lab.sensitivity` in both directions with everything that it needs "
    "(export, calibration, making and opening every model), without timing models, in processor "
    "time. Beside it as many plain predictions as it makes, of the float file in the same runtime, "
    "measured on four of them."
)
NEEDS = ("torch", "onnx", "onnxruntime", "onnxscript")
IMAGES = 2000
PLAIN = 4
TARGET = 1.3
METHODS: tuple[dict[str, Any], ...] = (
    {"method": "int8-static"},
    {"method": "weight-bits", "bits": 4},
    {"method": "global-magnitude", "sparsity": 0.5},
)


def run(settings: Settings) -> list[Line]:
    import torch

    from fairweight.lab import build, sensitivity, to_onnx
    from fairweight.lab.loaders import session_of
    from fairweight.lab.measurement import torch_threads

    n = settings.rows_or(IMAGES)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(n, 3, 32, 32)).astype(np.float32)
    batches = [(images[at : at + 256], np.zeros(len(images[at : at + 256]), dtype=np.int64))
               for at in range(0, n, 256)]  # fmt: skip
    calibration = rng.normal(size=(100, 3, 32, 32)).astype(np.float32)
    with torch_threads(1), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        network = build("resnet32x4", classes=10, width=0.25).eval()
        file = to_onnx(network, torch.from_numpy(images[:8]), Path(folder) / "float.onnx")

        def plain() -> None:
            for _ in range(PLAIN):
                session = session_of(file, threads=1)
                for inputs, _ in batches:
                    session.run(None, {session.get_inputs()[0].name: inputs})

        lines = []
        for method in METHODS:
            units: list[int] = []

            def whole(spec: dict[str, Any] = method, held: list[int] = units) -> None:
                made = sensitivity(network, spec, batches, calibration=calibration, latency=False)
                held.append(len(made.units))

            before = processor_seconds(plain)
            taken = processor_seconds(whole)
            one = (before + processor_seconds(plain)) / (2 * PLAIN)
            models = 2 * units[-1]
            lines.append(
                Line(
                    f"{method['method']}: {units[-1]} layers, {n:,} images",
                    taken,
                    f"{models} plain predictions",
                    models * one,
                    target=TARGET,
                )
            )
    return lines
