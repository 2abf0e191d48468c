"""Pictures small enough that a page can hold hundreds."""

import base64
import io
import sys

import numpy as np
import pytest

from fairweight.data.codecs import MOST_BYTES, SIDE, thumbnail_uri


def decoded(uri: str) -> tuple[str, bytes]:
    head, _, text = uri.partition(";base64,")
    return head.removeprefix("data:image/"), base64.b64decode(text)


def test_a_small_image_keeps_every_pixel() -> None:
    from PIL import Image

    image = np.arange(64, dtype=np.uint8).reshape(8, 8)
    kind, held = decoded(thumbnail_uri(image[:, :, None]))
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(held))), image)


@pytest.mark.parametrize("shape", [(64, 64, 3), (300, 200, 3), (218, 178), (1, 2000, 3)])
def test_noise_of_any_size_stays_below_the_budget(shape: tuple[int, ...]) -> None:
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    kind, held = decoded(thumbnail_uri(noise))
    assert len(held) <= MOST_BYTES
    width, height = Image.open(io.BytesIO(held)).size
    assert max(width, height) == min(SIDE, max(shape[:2]))
    assert kind == ("jpeg" if max(shape[:2]) > 8 else "png")


def test_without_pillow_pixels_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setitem(sys.modules, "PIL", None)
    image = np.arange(200 * 100, dtype=np.uint64).reshape(200, 100).astype(np.uint8)
    kind, held = decoded(thumbnail_uri(image))
    monkeypatch.undo()
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(held))), image[::3, ::3])
