"""Small data sets and small encoded images, for every test of this folder."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fairweight.data import Images

Encode = Callable[..., bytes]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or leaves decoded images in the user's cache."""
    folder = tmp_path / "decoded"
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def encode() -> Encode:
    """Bytes of an image of one colour; PNG by default, so that pixels come back exactly."""

    image = pytest.importorskip("PIL.Image")

    def encoded(colour: tuple[int, int, int], *, size: tuple[int, int] = (4, 4)) -> bytes:
        stream = io.BytesIO()
        image.new("RGB", (size[1], size[0]), colour).save(stream, "PNG")
        return stream.getvalue()

    return encoded


@pytest.fixture
def small() -> Images:
    """Twelve images of one pixel and three classes, four each; two splits."""
    n = 12
    return Images(
        name="small",
        images=np.arange(n, dtype=np.uint8).reshape(n, 1, 1, 1),
        labels=np.arange(n, dtype=np.int64) % 3,
        classes=("a", "b", "c"),
        groups={"writer": np.array([f"w{i // 3}" for i in range(n)])},
        example_id=np.array([f"id-{i}" for i in range(n)]),
        split=np.array(["train"] * 9 + ["test"] * 3),
    )
