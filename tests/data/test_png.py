"""PNG files, with Pillow and without it."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from fairweight.data.codecs import png


@pytest.mark.parametrize("shape", [(8, 8), (3, 5, 1), (4, 7, 3), (1, 1, 3)])
@pytest.mark.parametrize("without", [False, True])
def test_pixels_are_kept(
    shape: tuple[int, ...], without: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    with monkeypatch.context() as patched:
        if without:
            patched.setitem(sys.modules, "PIL", None)
        made = png(image)
    with Image.open(io.BytesIO(made)) as opened:
        opened.load()  # checks every checksum
        assert (
            np.asarray(opened).tolist()
            == np.squeeze(image, axis=2 if shape[2:] == (1,) else ()).tolist()
        )
