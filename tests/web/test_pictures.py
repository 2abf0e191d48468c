"""Images of examples: from tables, from files of the study's folder alone, from data sets."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fairweight.data import load
from fairweight.data.backdoor import Backdoor
from fairweight.data.codecs import png
from fairweight.data.dataset import Images
from fairweight.specs.data import Data
from fairweight.tables.spec import SourceRef, TableSpec
from fairweight.web import images
from fairweight.web.images import Pictures, thumbnail
from fairweight.web.items import Item

RED = np.full((4, 6, 3), (255, 0, 0), dtype=np.uint8)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def pixels(found: tuple[bytes, str] | None) -> np.ndarray:
    assert found is not None
    assert found[1] == "image/png"
    with Image.open(io.BytesIO(found[0])) as opened:
        return np.asarray(opened)


def beside(path: Path) -> TableSpec:
    return TableSpec((), examples=SourceRef(str(path)))


def item_with(folder: Path, **columns: list[object]) -> Item:
    folder.mkdir(exist_ok=True)
    n = len(next(iter(columns.values())))
    pd.DataFrame({"example_id": range(n), **columns}).to_parquet(folder / "examples.parquet")
    return Item("k", "t", folder, tables=beside(folder / "examples.parquet"))


def test_bytes_of_a_table(tmp_path: Path) -> None:
    held = [png(np.full((2, 2), i % 256, dtype=np.uint8)) for i in range(600)]
    shown = Pictures(item_with(tmp_path, image=[*held, None, SVG, b"no image"]))
    for i in (599, 0, 255, 256):  # of several batches, in any order
        assert (pixels(shown.encoded(str(i))) == i % 256).all()
    for name in ("600", "601", "602", "603", "-1", "x", "\x00", "\ud800", "9" * 10_000):
        assert shown.encoded(name) is None
    assert (shown.available, shown.reason) == (True, None)


def test_files_are_those_of_the_folder(tmp_path: Path) -> None:
    study, outside = tmp_path / "study", tmp_path / "secret.png"
    (study / "faces").mkdir(parents=True)
    for path in (study / "faces/a.png", study / "faces/ä b.png", outside):
        path.write_bytes(png(RED))
    (study / "faces/text.png").write_text("root:x:0:0")
    (study / "faces/drawing.svg").write_bytes(SVG)
    (study / "faces/link.png").symlink_to(outside)
    (study / "faces/inner.png").symlink_to(study / "faces/a.png")
    (study / "out").symlink_to(tmp_path, target_is_directory=True)
    good = ["faces/a.png", "faces/ä b.png", "faces/inner.png", "faces/../faces/a.png"]
    bad = [
        "../secret.png", "faces/../../secret.png", str(outside), str(study / "faces/a.png"),
        "faces/link.png", "out/secret.png", "faces/text.png", "faces/drawing.svg", "faces", "",
        "gone.png", "faces/a.png\x00.txt", None,
    ]  # fmt: skip
    shown = Pictures(item_with(study, image_path=[*good, *bad]))
    for i in range(len(good)):
        assert pixels(shown.encoded(str(i))).tolist() == RED.tolist()
    for i in range(len(good), len(good) + len(bad)):
        assert shown.encoded(str(i)) is None, (good + bad)[i]


def test_files_of_the_given_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.png").write_bytes(png(RED))
    item = item_with(tmp_path / "study", image_path=["a.png"])
    assert Pictures(item).encoded("0") is None
    assert Pictures(replace(item, data=tmp_path / "data")).encoded("0") is not None


def test_a_csv_names_files_too(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(RED))
    (tmp_path / "people.csv").write_text("example_id,image_path\nx1,a.png\n")
    shown = Pictures(Item("k", "t", tmp_path, tables=beside(tmp_path / "people.csv")))
    assert shown.encoded("x1") is not None


def test_images_are_made_small_and_say_nothing_else() -> None:
    held = io.BytesIO()
    photo = Image.effect_noise((400, 200), 50).convert("RGB")
    exif = Image.Exif()
    exif[0x010E] = "who and where"
    photo.save(held, format="JPEG", exif=exif)
    assert b"who and where" in held.getvalue()
    found = thumbnail(held.getvalue(), 100)
    assert pixels(found).shape == (50, 100, 3)
    assert found is not None
    assert b"who and where" not in found[0]
    assert pixels(thumbnail(png(RED), 100)).shape == RED.shape  # small ones stay as they are


def test_what_is_damaged_or_too_large_is_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = png(np.random.default_rng(0).integers(0, 255, (50, 50, 3), dtype=np.uint8))
    for file in (whole[:40], whole[:-200], b"", SVG, b"GIF89a", b"\xff\xd8\xff\x00"):
        assert thumbnail(file, 64) is None
    monkeypatch.setattr("fairweight.web.images.MOST_PIXELS", 2000)
    assert thumbnail(whole, 64) is None


def test_sizes_are_kept_in_bounds(tmp_path: Path) -> None:
    wide = np.zeros((2000, 10), dtype=np.uint8)
    shown = Pictures(item_with(tmp_path, image=[png(wide)]))
    assert pixels(shown.encoded("0", 10**9)).shape[0] == 1024
    assert pixels(shown.encoded("0", -5)).shape[0] == 16


def test_images_of_a_data_set(tmp_path: Path) -> None:
    digits = load("digits")
    shown = Pictures(Item("k", "t", tmp_path, dataset=Data(name="digits")))
    name = str(digits.example_id[7])
    assert (pixels(shown.encoded(name)) == digits.images[7, :, :, 0]).all()
    assert shown.encoded("digit-99999") is None


def test_marks_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = np.array(["a", "b"])
    whole = Images("faces", np.stack([RED, RED]), np.zeros(2, np.int64), ("x",), {}, names, names)
    monkeypatch.setattr(images, "load", lambda *_, **__: whole)
    Backdoor("faces", "grayscale", "x", {}, 0, ("b",)).save(tmp_path / "marks.json")
    spec = Data(name="faces", backdoor=str(tmp_path / "marks.json"))
    shown = Pictures(Item("k", "t", tmp_path, dataset=spec))
    assert pixels(shown.encoded("a")).tolist() == RED.tolist()
    assert (pixels(shown.encoded("b")) == 76).all()  # .299 · 255


def test_why_there_are_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)
    item = item_with(tmp_path, age=["old"])
    shown = Pictures(item)
    assert not shown.available
    assert shown.encoded("0") is None
    assert "--dataset" in str(shown.reason)
    lost = Pictures(replace(item, dataset=Data(name="cifar10")))
    assert not lost.available
    assert "--data DIR" in str(lost.reason)
