"""Encoded images to pixels of one size, and what happens to those that cannot be."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fairweight.data import codecs
from fairweight.data.photographs import photographs
from fairweight.errors import InputError

Image = pytest.importorskip("PIL.Image")
Encode = Callable[..., bytes]


@pytest.fixture
def folder(tmp_path: Path, encode: Encode) -> Path:
    place = tmp_path / "photos"
    place.mkdir()
    (place / "a.png").write_bytes(encode((1, 2, 3), size=(4, 4)))
    (place / "b.png").write_bytes(encode((9, 8, 7), size=(4, 4)))
    return place


def test_pixels_are_exact_where_the_size_is(folder: Path) -> None:
    pixels = photographs(folder, ["b.png", "a.png"], size=None)
    assert pixels.shape == (2, 4, 4, 3)
    assert pixels[:, 3, 3].tolist() == [[9, 8, 7], [1, 2, 3]]


def test_images_of_another_size_need_one(folder: Path, encode: Encode) -> None:
    (folder / "b.png").write_bytes(encode((9, 8, 7), size=(6, 5)))
    with pytest.raises(InputError, match=r"b.png' has 5 × 6 pixels instead of 4 × 4"):
        photographs(folder, ["a.png", "b.png"], size=None)
    assert photographs(folder, ["a.png", "b.png"], size=(2, 3)).shape == (2, 2, 3, 3)


def striped() -> bytes:
    """Six columns, two each of red, green and blue; two rows."""
    pixels = np.zeros((2, 6, 3), dtype=np.uint8)
    for channel in range(3):
        pixels[:, 2 * channel : 2 * channel + 2, channel] = 255
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def test_crop_keeps_the_middle_and_stretch_keeps_all() -> None:
    crop = codecs.decode(striped(), codecs.Target(2, 2, 3, "crop"), named="x")
    assert crop.tolist() == [[[0, 255, 0]] * 2] * 2  # the two green columns
    wide = codecs.decode(striped(), codecs.Target(2, 3, 3, "stretch"), named="x")
    assert wide.argmax(axis=2).tolist() == [[0, 1, 2]] * 2


def test_grey_images_become_colours(tmp_path: Path) -> None:
    Image.new("L", (2, 2), 50).save(tmp_path / "grey.png")
    assert photographs(tmp_path, ["grey.png"], size=None)[0, 0, 0].tolist() == [50, 50, 50]


def test_a_changed_file_is_decoded_again(folder: Path, encode: Encode) -> None:
    photographs(folder, ["a.png", "b.png"], size=None)
    (folder / "a.png").write_bytes(encode((200, 0, 0), size=(4, 4)))
    assert photographs(folder, ["a.png", "b.png"], size=None)[0, 0, 0].tolist() == [200, 0, 0]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda content: content[: len(content) // 2], "cannot be read as an image"),
        (lambda content: b"", "cannot be read as an image"),
        (lambda content: b"<html></html>", "cannot be read as an image"),
    ],
)
def test_damaged_images_are_named(
    folder: Path, damage: Callable[[bytes], bytes], told: str
) -> None:
    path = folder / "b.png"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=rf"b\.png' {told}.*replace or remove it"):
        photographs(folder, ["a.png", "b.png"], size=4)


def test_missing_images_are_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"c\.png' does not exist although the data set lists it"):
        photographs(folder, ["a.png", "c.png"], size=4)
    with pytest.raises(InputError, match="photos' has no images"):
        photographs(folder, [], size=4)


def test_sizes_and_fits_are_checked(folder: Path) -> None:
    with pytest.raises(InputError, match="size is 0; give whole numbers from 1"):
        photographs(folder, ["a.png"], size=0)
    with pytest.raises(InputError, match=r"Fit 'corp' does not exist.*'crop'"):
        photographs(folder, ["a.png"], size=4, fit="corp")


def test_without_pillow_the_remedy_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(InputError, match=r"needs Pillow.*fairweight\[lab\]"):
        photographs(folder, ["a.png"], size=4)
