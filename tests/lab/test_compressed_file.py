"""Files of any architecture: ONNX by torch and by hand, exported programs, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import fairweight as fw
from fairweight.base.trust import trusting
from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.onnx_models import QUANTISED, program_to_onnx, write_onnx

RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.normal(size=(40, 3, 12, 12)).astype(np.float32)
COLUMNS = RANDOM.normal(size=(40, 6)).astype(np.float32)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, groups=16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    ).eval()


def program(free: bool) -> Any:
    """An exported program of any batch size, or of single images as torch exports by default."""
    size = ({0: torch.export.Dim("batch")},) if free else None
    example = torch.from_numpy(IMAGES[: 4 if free else 1])
    return torch.export.export(network(), (example,), dynamic_shapes=size)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """free.onnx, single.onnx, free.pt2 from torch; by-hand.onnx of columns, in an old opset."""
    folder = tmp_path_factory.mktemp("files")
    for name, free in (("free", True), ("single", False)):
        write_onnx(program_to_onnx(program(free), name), folder / f"{name}.onnx")
    torch.export.save(program(True), folder / "free.pt2")
    write_onnx(by_hand(), folder / "by-hand.onnx")
    return folder


def by_hand(opset: int = 11) -> onnx.ModelProto:
    """Six columns to three classes; its weights are nodes, as older tools wrote them."""

    def constant(name: str, values: NDArray[Any]) -> onnx.NodeProto:
        held = numpy_helper.from_array(values.astype(np.float32), name)
        return helper.make_node("Constant", [], [name], value=held)

    random = np.random.default_rng(0)
    nodes = [
        constant("w", random.normal(size=(6, 32))),
        constant("v", random.normal(size=(32, 3))),
        helper.make_node("MatMul", ["columns", "w"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("MatMul", ["positive", "v"], ["sums"]),
        helper.make_node("Softmax", ["sums"], ["probabilities"], axis=1),
    ]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "by hand",
        [helper.make_tensor_value_info("columns", floats, ["n", 6])],
        [helper.make_tensor_value_info("probabilities", floats, ["n", 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def answers(path: Path, inputs: NDArray[Any]) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    held = session.get_inputs()[0]
    at_once = held.shape[0] if isinstance(held.shape[0], int) else len(inputs)
    batches = [inputs[at : at + at_once] for at in range(0, len(inputs), at_once)]
    return np.concatenate([session.run(None, {held.name: batch})[0] for batch in batches])


@pytest.mark.parametrize("method", ["int8-static", "int8-dynamic"])
@pytest.mark.parametrize(
    ("name", "inputs"), [("free", IMAGES), ("single", IMAGES), ("by-hand", COLUMNS)]
)
def test_any_file_becomes_int8(
    files: Path, tmp_path: Path, name: str, inputs: NDArray[Any], method: str
) -> None:
    source, out = files / f"{name}.onnx", tmp_path / "int8.onnx"
    made = fw.lab.compress(source, method, inputs, out=out)
    ops = {node.op_type for node in onnx.load(str(out)).graph.node}
    assert ops & QUANTISED
    before, after = answers(source, inputs), answers(out, inputs)
    assert 0 < np.abs(before - after).max() < 0.1 * np.abs(before).max()
    same = int((before.argmax(1) == after.argmax(1)).sum())
    assert (made.examples, made.same_class) == (40, same)
    assert made.size_bytes == out.stat().st_size


def test_an_exported_program_gives_what_its_module_gives(files: Path, tmp_path: Path) -> None:
    source = files / "free.pt2"
    with pytest.raises(InputError, match="--trust-file"):
        fw.lab.compress(source, "int8-static", IMAGES, out=tmp_path / "int8.onnx")
    with trusting(files=[source]):
        made = fw.lab.compress(source, "int8-static", IMAGES, out=tmp_path / "int8.onnx")
    with torch.inference_mode():
        expected = network()(torch.from_numpy(IMAGES)).numpy()
    given = answers(made.path, IMAGES)
    assert np.abs(given - expected).max() < 0.1 * np.abs(expected).max()


def test_images_of_a_data_set_are_scaled_and_spread_over_classes(
    files: Path, tmp_path: Path
) -> None:
    # Sorted by class, as folders are: dark images first. Ranges must come from bright ones too.
    pixels = np.repeat(np.array([0, 255], np.uint8), 300)[:, None, None, None]
    images = Images(
        name="mine",
        images=np.broadcast_to(pixels, (600, 12, 12, 3)).copy(),
        labels=np.repeat([0, 1], 300),
        classes=("dark", "bright"),
        groups={},
        example_id=np.arange(600).astype(str),
        split=np.full(600, "all"),
    )
    with pytest.raises(InputError, match="--mean and --std"):
        fw.lab.compress(files / "free.onnx", "int8-static", images, out=tmp_path / "a.onnx")
    scaling = Scaling((0.5,) * 3, (0.5,) * 3)
    made = fw.lab.compress(
        files / "free.onnx", "int8-static", images, out=tmp_path / "a.onnx", scaling=scaling
    )
    assert made.examples == 100
    held = onnx.load(str(made.path))
    scales = {t.name: numpy_helper.to_array(t) for t in held.graph.initializer}
    first = next(n for n in held.graph.node if n.op_type == "QuantizeLinear")
    # Pixels go from -1 to 1: 255 steps of 2/255.
    assert scales[first.input[1]] == pytest.approx(2 / 255, rel=1e-6)


def test_a_file_with_a_card_keeps_it(tmp_path: Path) -> None:
    net = network()
    card = fw.lab.Card(classes=("a", "b", "c", "d"), variant="dense", seed=4)
    source = fw.lab.to_onnx(net, torch.from_numpy(IMAGES), tmp_path / "dense.onnx", card=card)
    made: Any = fw.lab.compress(
        source, "int8-dynamic", None, out=tmp_path / "int8.onnx", variant="q"
    )
    assert made.card is not None
    assert (made.card.variant, made.card.parent, made.card.seed) == ("q", "dense:4", 4)
    assert made.card.classes == card.classes
    assert (made.examples, made.same_class) == (0, None)


def test_weight_bits_says_that_nothing_is_smaller(files: Path, tmp_path: Path) -> None:
    spec = {"method": "weight-bits", "bits": 4}
    made = fw.lab.compress(files / "free.onnx", spec, IMAGES, out=tmp_path / "bits.onnx")
    assert made.note is not None
    assert "neither smaller nor faster" in made.note


def without_weights() -> onnx.ModelProto:
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "no weights",
        [helper.make_tensor_value_info("x", floats, ["n", 6])],
        [helper.make_tensor_value_info("y", floats, ["n", 6])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_cannot_be_compressed_says_what_to_do(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    free = files / "free.onnx"

    def refused(source: Path, method: Any, data: Any, words: str) -> None:
        with pytest.raises(InputError, match=words):
            fw.lab.compress(source, method, data, out=out)
        assert not out.exists()

    refused(free, "int8-static", None, "needs training examples")
    refused(free, {"method": "global-magnitude", "sparsity": 0.5}, IMAGES, "exported file; use")
    refused(free, "int8-static", COLUMNS, r"cannot take a batch of shape \(40, 6\)")
    refused(free, "int8-static", IMAGES[:0], "hold no examples")
    refused(free, "int8-static", np.where(IMAGES > 3, np.nan, IMAGES), "not finite")
    for name in ("net.pt", "net.safetensors"):
        (tmp_path / name).write_bytes(b"held")
        refused(tmp_path / name, "int8-static", IMAGES, r"fairweight\.lab\.compress\(net")
    (tmp_path / "net.tflite").write_bytes(b"held")
    refused(tmp_path / "net.tflite", "int8-static", IMAGES, "cannot be compressed")
    refused(tmp_path / "gone.onnx", "int8-static", IMAGES, "no ONNX file")
    refused(tmp_path / "gone.pt2", "int8-static", IMAGES, "There is no file")
    write_onnx(without_weights(), tmp_path / "bare.onnx")
    refused(tmp_path / "bare.onnx", "int8-dynamic", None, "no layer that ONNX Runtime makes int8")
    int8 = fw.lab.compress(free, "int8-dynamic", None, out=tmp_path / "int8.onnx").path
    refused(int8, "int8-dynamic", None, "quantised already")
    with pytest.raises(InputError, match="name it where it is used"):
        fw.lab.compress(free, "int8-dynamic", None, out=out, variant="mine")
    with pytest.raises(InputError, match="cannot be trained further"):
        fw.lab.compress(free, "int8-dynamic", None, out=out, training={"epochs": 1})
