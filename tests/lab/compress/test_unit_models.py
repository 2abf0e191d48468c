"""Models of which some units are compressed: every method, and what the whole compression gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import numpy_helper
from torch import nn

import fairweight as fw
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.compression.unit_models import UnitModels
from fairweight.lab.masks import bake
from fairweight.lab.onnx_models import to_onnx, write_onnx

SPECS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("int8-static", {"examples": 20, "reduce_range": False}),
    ("int8-dynamic", {}),
    ("weight-bits", {"bits": 3}),
    ("global-magnitude", {"sparsity": 0.6}),
    ("l1-unstructured", {"sparsity": 0.6}),
    ("l2-structured", {"sparsity": 0.5}),
    ("random-unstructured", {"sparsity": 0.5}),
    ("n-of-m", {"indivisible": "leave"}),
)


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
    made = nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 16, 3))
    with torch.no_grad():
        made[1].running_var.uniform_(0.5, 2)  # type: ignore[union-attr, operator]
    return made.eval()


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def exported(network: nn.Module, images: torch.Tensor, tmp_path_factory: Any) -> Path:
    return to_onnx(network, images, tmp_path_factory.mktemp("units") / "float.onnx")


def answers(model: Any, folder: Path, images: torch.Tensor) -> np.ndarray:
    import onnxruntime

    file = str(write_onnx(model, folder / "m.onnx"))
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"image": images.numpy()})[0])


@pytest.mark.parametrize(("name", "fields"), SPECS)
def test_all_units_are_the_whole_compression_and_none_the_float_model(
    name: str,
    fields: dict[str, Any],
    network: nn.Module,
    images: torch.Tensor,
    exported: Path,
    tmp_path: Path,
) -> None:
    spec = spec_of(name, **fields)
    models = UnitModels(exported, spec, images.numpy(), tmp_path, network=network)
    names = [unit.name for unit in models.units]
    assert names == ["0", "3", "6"]
    small = fw.lab.compress(network, spec, images)
    if isinstance(small, nn.Module):
        with torch.inference_mode():
            whole = bake(small)(images).numpy()
    else:
        whole = small(images)
    with torch.inference_mode():
        plain = network(images).numpy()
    np.testing.assert_allclose(answers(models.of(names).model, tmp_path, images), whole, atol=1e-3)
    np.testing.assert_allclose(answers(models.of([]).model, tmp_path, images), plain, atol=2e-4)
    alone = answers(models.of(["3"]).model, tmp_path, images)
    without = answers(models.of(["0", "6"]).model, tmp_path, images)
    assert np.isfinite(alone).all()
    assert np.isfinite(without).all()
    assert models.of([]).saved_bytes == 0


def test_only_the_weights_of_a_unit_are_rounded(
    exported: Path, images: torch.Tensor, tmp_path: Path
) -> None:
    models = UnitModels(exported, spec_of("weight-bits", bits=2), images.numpy(), tmp_path)
    before = {t.name: numpy_helper.to_array(t) for t in models.float_model.graph.initializer}
    made = models.of(["3"])
    changed = [
        t.name
        for t in made.model.graph.initializer
        if not np.array_equal(numpy_helper.to_array(t), before[t.name])
    ]
    assert changed == ["3.weight"]
    # 8 × 8 × 9 weights of 2 bits instead of 32, and a scale for each of 8 outputs.
    assert made.saved_bytes == 576 * 4 - (576 * 2 // 8 + 8 * 4)


def test_files_of_others_are_pruned_by_their_own_weights(
    exported: Path, images: torch.Tensor, tmp_path: Path
) -> None:
    models = UnitModels(
        exported, spec_of("l1-unstructured", sparsity=0.5), images.numpy(), tmp_path
    )
    made = models.of(["6"])
    tensor = next(t for t in made.model.graph.initializer if t.name == "6.weight")
    values = numpy_helper.to_array(tensor)
    assert (values == 0).sum() == values.size // 2
    assert made.saved_bytes == 4 * values.size // 2


def test_what_cannot_be_done_is_said(exported: Path, images: torch.Tensor, tmp_path: Path) -> None:
    spec = spec_of("global-magnitude", sparsity=0.5, schedule="agp")
    with pytest.raises(InputError, match="prunes while a model trains"):
        UnitModels(exported, spec, images.numpy(), tmp_path)
    models = UnitModels(exported, spec_of("weight-bits", bits=2), images.numpy(), tmp_path)
    with pytest.raises(UnknownNameError, match="'stem'"):
        models.of(["stem"])
