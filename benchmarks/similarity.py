"""SVCCA beside a plain transcription with numpy, and maps beside a loop over locations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

NEEDS = ("torch",)
TITLE = "Similarity of representations"
SETTING = (
    "SVCCA as in Simon Says (singular values, threshold .99). Vectors: two activations of 10,000 "
    "samples and 512 features, beside a transcription of the definition with numpy (two "
    "decompositions of the activations, two of the reductions, one of their product). Maps: 3,000 "
    "samples of 64 channels at 16 × 16 locations, channels last as the lab's networks give them, "
    "beside a Python loop of the same transcription over the 256 locations. Single precision in, "
    'double inside. Processor time; the results are checked to agree to 10⁻⁶. "Products and '
    "decompositions alone\" is what no exact SVCCA of these sizes can do without: x'x, y'y and x'y "
    "in double precision by numpy, two decompositions of 512 × 512 and the values of a third."
)
SAMPLES, FEATURES = 10_000, 512
MAP_SAMPLES, CHANNELS, SIDE = 3_000, 64, 16
AGREE = 1e-6


def run(settings: Settings) -> list[Line]:
    import torch

    from fairweight.lab.representations.blocks import as_samples
    from fairweight.lab.representations.moments import RunningMoments
    from fairweight.lab.representations.svcca import SIMON_SAYS, svcca, svcca_of

    full = settings.full_size
    x, y = activations(settings.rows_or(SAMPLES), FEATURES if full else 64)
    side = SIDE if full else 4
    shape = (settings.rows_or(MAP_SAMPLES), CHANNELS if full else 8, side, side)
    maps_x, maps_y = (
        torch.from_numpy(held).contiguous(memory_format=torch.channels_last)
        for held in maps(*shape)
    )

    def batched() -> float:
        sums = RunningMoments()
        for start in range(0, len(maps_x), 256):
            part = slice(start, start + 256)
            sums.add(
                as_samples(maps_x[part], "per-location", side),
                as_samples(maps_y[part], "per-location", side),
            )
        return svcca_of(sums.moments(), SIMON_SAYS).distance

    def own_loop() -> float:
        return float(np.mean([svcca(*pair).distance for pair in places(maps_x, maps_y)]))

    def plain_loop() -> float:
        return float(np.mean([transcription(*pair) for pair in places(maps_x, maps_y)]))

    wide = [side.astype(np.float64) for side in (x, y)]

    def least() -> None:
        first, second = wide
        np.linalg.eigh(first.T @ first)
        np.linalg.eigh(second.T @ second)
        cross = first.T @ second
        np.linalg.eigvalsh(cross.T @ cross)

    found: dict[str, float] = {}

    def kept(name: str, value: float) -> None:
        found[name] = value

    taken = interleaved(
        {
            "svcca": lambda: kept("svcca", svcca(x, y).distance),
            "least": least,
            "plain": lambda: kept("plain", transcription(x, y)),
            "batched": lambda: kept("batched", batched()),
            "own loop": lambda: kept("own loop", own_loop()),
            "plain loop": lambda: kept("plain loop", plain_loop()),
        },
        settings.rounds,
        settled,
    )
    for ours, theirs in (("svcca", "plain"), ("batched", "plain loop"), ("own loop", "batched")):
        if not abs(found[ours] - found[theirs]) <= AGREE:
            raise RuntimeError(f"{ours} {found[ours]} and {theirs} {found[theirs]} differ")
    return [
        Line("vectors", taken["svcca"], "numpy transcription", taken["plain"], target=10.0,
             faster=True),
        Line("vectors: products and decompositions alone", taken["least"], "numpy transcription",
             taken["plain"], faster=True),
        Line("maps, 256 locations", taken["batched"], "Python loop, transcription",
             taken["plain loop"], target=5.0, faster=True),
        Line("maps, 256 locations", taken["batched"], "Python loop, our SVCCA",
             taken["own loop"], faster=True),
    ]  # fmt: skip


def settled(work: Callable[[], object]) -> float:
    """Processor time of a call, once threads of the call before it have stopped waiting for more.

    OpenBLAS's threads stay busy for a tenth of a second, which would be counted here.
    """
    time.sleep(0.3)
    return processor_seconds(work)


def activations(samples: int, features: int) -> tuple[Any, Any]:
    """Two rectified activations that share directions of falling size."""
    rng = np.random.default_rng(0)
    sizes = np.arange(1.0, features + 1) ** -0.5
    shared = rng.normal(size=(samples, features)) * sizes
    sides = [
        (shared + 0.5 * rng.normal(size=shared.shape) * sizes)
        @ np.linalg.qr(rng.normal(size=(features, features)))[0]
        for _ in range(2)
    ]
    first, second = (np.maximum(side, 0).astype(np.float32) for side in sides)
    return first, second


def maps(samples: int, channels: int, height: int, width: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(samples, channels, height, width)).astype(np.float32)
    noise = rng.normal(size=shared.shape).astype(np.float32)
    return np.maximum(shared, 0), np.maximum(shared + noise, 0)


def places(x: Any, y: Any) -> Any:
    """The activations of every location."""
    for row in range(x.shape[2]):
        for column in range(x.shape[3]):
            yield x[:, :, row, column].numpy(), y[:, :, row, column].numpy()


def transcription(x: Any, y: Any) -> float:
    """anatome's rule in numpy, in double precision."""
    first, second = (reduced(side.astype(np.float64)) for side in (x, y))
    left, right = (
        np.linalg.svd(side - side.mean(0), full_matrices=False)[0] for side in (first, second)
    )
    rho = np.linalg.svd(left.T @ right, compute_uv=False)
    return float(1 - rho.sum() / min(first.shape[1], second.shape[1]))


def reduced(x: Any) -> Any:
    _, sizes, right = np.linalg.svd(x, full_matrices=False)
    kept = int((np.cumsum(sizes) / sizes.sum() < 0.99).sum())
    return x @ right[:kept].T
