"""Models as people ship them: every kind of file gives the answers of the network in it."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from torch import Tensor, nn

from fairweight.base.trust import trusting
from fairweight.cli.options import read_scaling
from fairweight.errors import InputError
from fairweight.lab.artifacts import Card, save
from fairweight.lab.batches import Scaling, as_floats
from fairweight.lab.loaders import open_model
from fairweight.lab.models.registry import architecture, unregister

Floats = NDArray[np.float32]
HALF = Scaling((0.5,), (0.5,))


def logits(pixels: Floats) -> Floats:
    return pixels.reshape(len(pixels), -1)[:, :3]


@pytest.fixture
def artefact(pick: nn.Module, tmp_path: Path) -> Any:
    """A saved model whose architecture is registered while the test runs."""

    def small(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))

    architecture("pick", summary="for tests", source="tests")(small)
    card = Card(
        architecture="pick",
        options={"classes": 3, "channels": 1, "size": 2},
        classes=("a", "b", "c"),
        preprocessing=HALF,
    )
    save(pick, tmp_path / "saved", card)
    yield tmp_path / "saved"
    unregister("pick")


def test_a_saved_folder_and_its_weights(artefact: Path, pixels: Floats) -> None:
    for path in (artefact, str(artefact), artefact / "weights.safetensors"):
        loaded = open_model(path, "m")
        np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
        assert loaded.classes == ("a", "b", "c")
        assert (loaded.outputs, loaded.tasks) == ("logits", False)
        assert loaded.identity


def test_bytes_are_scaled_as_the_card_says(artefact: Path) -> None:
    images = np.array([[255, 0, 51, 0]], dtype=np.uint8).reshape(1, 2, 2, 1)
    # 1, 0 and 0.2, less 0.5, over 0.5; the scaling that is given does not replace the card's
    for scaling in (None, Scaling((0.0,), (1.0,))):
        found = open_model(artefact, "m", scaling=scaling).run(images)
        np.testing.assert_allclose(found, [[1, -1, -0.6]], atol=1e-6)


def test_bytes_without_a_scaling(pick: nn.Module, onnx_file: Callable[..., Path]) -> None:
    images = np.zeros((1, 2, 2, 1), dtype=np.uint8)
    for model in (pick, onnx_file()):
        with pytest.raises(InputError, match="does not say how images are scaled"):
            open_model(model, "m").run(images)
        np.testing.assert_allclose(open_model(model, "m", scaling=HALF).run(images), [[-1] * 3])
    with pytest.raises(InputError, match=r"1 channel, but the bytes have the shape \(1, 2, 2, 3"):
        open_model(pick, "m", scaling=HALF).run(np.zeros((1, 2, 2, 3), dtype=np.uint8))


def test_one_number_scales_every_channel(pick: nn.Module) -> None:
    """As `--mean 0 --std 1` gives it: images of three channels are taken with it too."""
    images = np.full((1, 2, 2, 3), 51, dtype=np.uint8)
    every = read_scaling("0", "1")
    assert every is not None
    found = as_floats(images, every, "m")
    assert found.shape == (1, 3, 2, 2)
    np.testing.assert_allclose(found.numpy(), 0.2)
    assert repr(every) == repr(Scaling((0.0,), (1.0,)))  # stored predictions stay known by it
    with pytest.raises(InputError, match="2 channels, but the bytes"):
        as_floats(images, read_scaling("0,0", "1,1"), "m")


def test_onnx(onnx_file: Callable[..., Path], pixels: Floats) -> None:
    card = Card(classes=("a", "b", "c"), preprocessing=HALF)
    loaded = open_model(onnx_file(card=card), "m")
    np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
    np.testing.assert_allclose(loaded.run(torch.from_numpy(pixels)), logits(pixels))
    assert loaded.classes == ("a", "b", "c")
    assert loaded.outputs == "logits"


@pytest.mark.parametrize("size", [1, 2, 8])
def test_onnx_of_a_fixed_batch_size(
    onnx_file: Callable[..., Path], pixels: Floats, size: int
) -> None:
    loaded = open_model(onnx_file(sizes=(size, 1, 2, 2)), "m")
    np.testing.assert_allclose(loaded.run(pixels), logits(pixels))


def test_onnx_of_other_types(onnx_file: Callable[..., Path], pixels: Floats) -> None:
    for kind in (TensorProto.DOUBLE, TensorProto.FLOAT16):
        loaded = open_model(onnx_file(kind=kind), "m")
        np.testing.assert_allclose(loaded.run(pixels), logits(pixels))


def test_onnx_with_channels_last(onnx_file: Callable[..., Path]) -> None:
    images = np.arange(3 * 2 * 2, dtype=np.float32).reshape(1, 3, 2, 2)
    loaded = open_model(onnx_file(sizes=("n", 2, 2, 3), matrix=np.eye(12, dtype=np.float32)), "m")
    assert loaded.run(images).tolist() == [[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]


def test_onnx_with_several_outputs(onnx_file: Callable[..., Path], pixels: Floats) -> None:
    loaded = open_model(onnx_file(outputs=("hidden", "logits")), "m")
    np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
    with pytest.raises(InputError, match=r"has 2 outputs \('p', 'q'\) and none is called 'logits'"):
        open_model(onnx_file(outputs=("p", "q")), "m")


def test_onnx_with_two_inputs(tmp_path: Path) -> None:
    held = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "abc"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "g", held[:2], held[2:])
    path = tmp_path / "two.onnx"
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=opset), str(path))
    with pytest.raises(InputError, match=r"The model 'm' has 2 inputs \('a', 'b'\)"):
        open_model(path, "m")


def test_onnx_of_another_size(onnx_file: Callable[..., Path]) -> None:
    loaded = open_model(onnx_file(), "m")
    with pytest.raises(InputError, match=r"cannot take a batch of shape \(2, 1, 3, 3\); it takes"):
        loaded.run(np.zeros((2, 1, 3, 3), dtype=np.float32))


def test_an_exported_program(tmp_path: Path, pick: nn.Module, pixels: Floats) -> None:
    example = torch.zeros(2, 1, 2, 2)
    free = ({0: torch.export.Dim("batch")},)
    for name, shapes in (("free.pt2", free), ("fixed.pt2", None)):
        program = torch.export.export(pick, (example,), dynamic_shapes=shapes)
        torch.export.save(program, tmp_path / name)
        with pytest.raises(InputError, match=rf"can run any code .* --trust-file .*{name}"):
            open_model(tmp_path / name, "m")
        with trusting(files=[tmp_path / name]):
            loaded = open_model(tmp_path / name, "m")
        np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
    with pytest.raises(InputError, match=r"cannot take a batch of shape \(2, 1, 3, 3\)"):
        loaded.run(np.zeros((2, 1, 3, 3), dtype=np.float32))


def test_objects_that_hold_logits(pixels: Floats) -> None:
    class Wrapped(nn.Module):
        def __init__(self, form: Callable[[Tensor], Any]) -> None:
            super().__init__()
            self.form = form

        def forward(self, x: Tensor) -> Any:
            return self.form(x.flatten(1)[:, :3])

    for form in (lambda x: {"logits": x}, lambda x: types.SimpleNamespace(logits=x)):
        assert open_model(Wrapped(form), "m").run(pixels).shape == (5, 3)
        assert open_model(lambda x, form=form: form(torch.from_numpy(logits(x))), "m").run(
            pixels
        ).shape == (5, 3)
    with pytest.raises(InputError, match="returns list; it must return logits"):
        open_model(Wrapped(lambda x: [x]), "m").run(pixels)


def test_what_cannot_be_opened(tmp_path: Path, onnx_file: Callable[..., Path]) -> None:
    for name, content, told in (
        ("a.pt", b"x", "may be a pickle, which can run any code"),
        ("a.txt", b"x", "of an unknown kind; give a folder"),
        ("a.safetensors", b"x", r"no model\.json beside it"),
        ("a.onnx", b"not a model", "cannot be read as an ONNX model"),
        ("a.pt2", b"not a program", "cannot be read as an exported program"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=told), trusting(files=[tmp_path / "a.pt2"]):
            open_model(tmp_path / name, "m")
    cut = onnx_file("cut.onnx")
    cut.write_bytes(cut.read_bytes()[:60])
    with pytest.raises(InputError, match="cannot be read as an ONNX model"):
        open_model(cut, "m")
    with pytest.raises(InputError, match=r"neither model\.json nor config\.json"):
        open_model(tmp_path, "m")
    with pytest.raises(InputError, match="there is no"):
        open_model(tmp_path / "none.onnx", "m")
    with pytest.raises(InputError, match="is given as int"):
        open_model(3, "m")


def test_identities(pick: nn.Module, onnx_file: Callable[..., Path]) -> None:
    """They change with the weights and the scaling, and not otherwise."""
    first = open_model(pick, "m").identity
    assert open_model(pick, "n").identity == first
    assert open_model(pick, "m", scaling=HALF).identity != first
    with torch.no_grad():
        pick[1].bias += 1
    assert open_model(pick, "m").identity != first
    assert open_model(lambda x: x, "m").identity is None
    path = onnx_file()
    before = open_model(path, "m").identity
    onnx_file(matrix=np.ones((3, 4), dtype=np.float32))
    assert open_model(path, "m").identity != before


# --- engines that are not installed here, stood in for by what they promise --------------------


class FakeInterpreter:
    """What LiteRT's interpreter does, for the model of these tests."""

    kind: Any = np.float32
    scale: tuple[float, int] = (0.0, 0)

    def __init__(self, *, model_path: str, num_threads: int) -> None:
        if Path(model_path).read_bytes() != b"tflite":
            raise ValueError("Model provided has model identifier 'xxxx', should be 'TFL3'")
        self.values: Any = None

    def get_input_details(self) -> list[dict[str, Any]]:
        shape = np.array([1, 2, 2, 1])
        return [
            {
                "name": "x",
                "index": 0,
                "shape": shape,
                "dtype": self.kind,
                "quantization": self.scale,
            }
        ]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{"name": "y", "index": 1, "dtype": self.kind, "quantization": self.scale}]

    def resize_tensor_input(self, index: int, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def allocate_tensors(self) -> None:
        self.values = None

    def set_tensor(self, index: int, values: NDArray[Any]) -> None:
        assert values.dtype == self.kind
        assert values.shape == tuple(self.shape)
        self.values = values

    def invoke(self) -> None:
        self.answer = self.values.reshape(len(self.values), -1)[:, :3]

    def get_tensor(self, index: int) -> NDArray[Any]:
        return self.answer


@pytest.fixture
def litert(monkeypatch: pytest.MonkeyPatch) -> type[FakeInterpreter]:
    class Interpreter(FakeInterpreter):
        pass

    module = types.ModuleType("ai_edge_litert.interpreter")
    module.Interpreter = Interpreter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ai_edge_litert", types.ModuleType("ai_edge_litert"))
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", module)
    return Interpreter


def test_tflite(litert: type[FakeInterpreter], pixels: Floats, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(b"tflite")
    loaded = open_model(path, "m", scaling=HALF)
    np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
    images = np.array([[255, 0, 51, 0]], dtype=np.uint8).reshape(1, 2, 2, 1)
    np.testing.assert_allclose(loaded.run(images), [[1, -1, -0.6]], atol=1e-6)
    with pytest.raises(InputError, match=r"takes images of shape \(2, 2, 1\)"):
        loaded.run(np.zeros((1, 1, 3, 3), dtype=np.float32))
    (tmp_path / "bad.tflite").write_bytes(b"xxxx")
    with pytest.raises(InputError, match="cannot be read as a TFLite model"):
        open_model(tmp_path / "bad.tflite", "m")


def test_tflite_int8(litert: type[FakeInterpreter], pixels: Floats, tmp_path: Path) -> None:
    """Quantised on the way in (5 is 5 / 0.5 + 3 = 13) and turned back on the way out."""
    litert.kind, litert.scale = np.int8, (0.5, 3)
    path = tmp_path / "m.tflite"
    path.write_bytes(b"tflite")
    np.testing.assert_allclose(open_model(path, "m").run(pixels), logits(pixels))
    litert.kind, litert.scale = np.uint8, (1 / 255, 0)
    images = np.array([[255, 0, 51, 0]], dtype=np.uint8).reshape(1, 2, 2, 1)
    np.testing.assert_allclose(open_model(path, "m").run(images), [[1, 0, 0.2]], rtol=1e-6)


def test_tflite_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    (tmp_path / "m.tflite").write_bytes(b"tflite")
    with pytest.raises(InputError, match=r"pip install 'fairweight\[tflite\]'"):
        open_model(tmp_path / "m.tflite", "m")


def test_hugging_face(
    pick: nn.Module, pixels: Floats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = pick
            self.config = types.SimpleNamespace(id2label={2: "c", 0: "a", 1: "b"})

        def forward(self, x: Tensor) -> Any:
            return types.SimpleNamespace(logits=self.inner(x))

        @classmethod
        def from_pretrained(cls, folder: str, **options: Any) -> Classifier:
            asked.append(options)
            return cls()

    class Processor:
        @staticmethod
        def from_pretrained(folder: str, **options: Any) -> Any:
            said = json.loads((Path(folder) / "preprocessor_config.json").read_text())
            return types.SimpleNamespace(**said)

    transformers = types.ModuleType("transformers")
    transformers.AutoModelForImageClassification = Classifier  # type: ignore[attr-defined]
    transformers.AutoImageProcessor = Processor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    (tmp_path / "config.json").write_text("{}")
    said = {"do_normalize": True, "image_mean": [1.0], "image_std": [1.0]}
    said["rescale_factor"] = 2 / 255  # pixels from 0 to 2, less 1: from -1 to 1
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    loaded = open_model(tmp_path, "m")
    assert loaded.classes == ("a", "b", "c")
    assert loaded.tasks is False
    np.testing.assert_allclose(loaded.run(pixels), logits(pixels))
    images = np.array([[255, 0, 51, 0]], dtype=np.uint8).reshape(1, 2, 2, 1)
    np.testing.assert_allclose(loaded.run(images), [[1, -1, -0.6]], atol=1e-6)
    assert asked == [
        {"use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
    ]


def test_hugging_face_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="pip install transformers"):
        open_model(tmp_path, "m")
