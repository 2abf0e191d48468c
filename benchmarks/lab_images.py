"""Images to train on: MNIST where its files are, else bytes of the same shape."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.measure import ROOT
from fairweight.data import load
from fairweight.data.registry import FOLDER_VARIABLE
from fairweight.lab.batches import Examples, examples

CLASSES = 10


def mnist(n: int) -> tuple[Examples, str]:
    """The first n training images, and what to call them."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or ROOT.parent / "shared" / "data")
    if not (folder / "mnist").is_dir():
        return made(n, size=28, channels=1), "made images of 28 pixels"
    found = load("mnist", folder, splits="train")
    return examples(np.asarray(found.images[:n]), np.asarray(found.labels[:n])), "MNIST"


def made(n: int, *, size: int, channels: int) -> Examples:
    """Random bytes with random labels: how long a step takes does not depend on the image."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, size, size, channels), dtype=np.uint8)
    return examples(images, rng.integers(0, CLASSES, n))
