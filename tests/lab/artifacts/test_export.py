"""What is exported answers like the model, for any batch size, and tells nothing of the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError, OutputError
from fairweight.lab.masks import set_masks
from fairweight.lab.onnx_models import card_of, to_onnx, write_onnx


def run(path: Path, images: Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"image": images.numpy()})[0])


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_any_batch_size(small: nn.Sequential, images: Tensor, exported: Path, batch: int) -> None:
    with torch.inference_mode():
        wanted = small(images[:batch]).numpy()
    np.testing.assert_allclose(run(exported, images[:batch]), wanted, atol=1e-5)


def test_names_and_card(exported: Path) -> None:
    model = onnx.load(str(exported))
    assert [held.name for held in model.graph.input] == ["image"]
    assert [held.name for held in model.graph.output] == ["logits"]
    card = card_of(model, "the file")
    assert card is not None
    assert card.classes == ("a", "b", "c", "d")
    assert card.preprocessing is not None
    assert card.preprocessing.std == (0.25,)


def test_nothing_of_the_machine_is_in_the_file(exported: Path) -> None:
    content = exported.read_bytes()
    assert b"site-packages" not in content
    assert str(Path(torch.__file__).parents[1]).encode() not in content
    assert b"forward" not in content


def test_masks_become_zeros(small: nn.Sequential, images: Tensor, tmp_path: Path) -> None:
    keep = torch.arange(512).reshape(4, 128) % 2 == 0
    set_masks(small, {"5.weight": keep})
    path = to_onnx(small, images[:3], tmp_path / "masked.onnx")
    tensors = {
        t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer
    }
    assert np.array_equal(tensors["5.weight"] != 0, keep.numpy())
    with torch.inference_mode():
        np.testing.assert_allclose(run(path, images), small(images).numpy(), atol=1e-5)
    assert small[5].parametrizations  # the model itself keeps its masks


def test_a_model_with_two_outputs(images: Tensor, tmp_path: Path) -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x, x

    with pytest.raises(InputError, match="output is tuple for 2 images; it must be one tensor"):
        to_onnx(Pair(), images[:2], tmp_path / "pair.onnx")


def test_an_example_that_does_not_fit(small: nn.Sequential, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot take an example of shape \(2, 3, 8, 8\)"):
        to_onnx(small, torch.zeros(2, 3, 8, 8), tmp_path / "x.onnx")


def test_a_place_that_cannot_be_written(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"):
        write_onnx(onnx.load(str(exported)), tmp_path)
