"""Networks whose answers can be computed by hand, and ONNX files of them made without torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from fairweight.lab.artifacts import Card
from fairweight.lab.onnx_models import put_card

# Logits of an image (1, 2, 2) are its first three pixels.
PICK: NDArray[np.float32] = np.eye(4, dtype=np.float32)[:3]


@pytest.fixture
def pick() -> nn.Module:
    """Logits are the first three pixels of an image of four."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    with torch.no_grad():
        model[1].weight.copy_(torch.from_numpy(PICK))
        model[1].bias.zero_()
    return model.eval()


@pytest.fixture
def onnx_file(tmp_path: Path) -> Callable[..., Path]:
    """Write an ONNX file that multiplies flattened images by a matrix."""

    def write(
        name: str = "pick.onnx",
        *,
        matrix: NDArray[np.float32] = PICK,
        sizes: tuple[Any, ...] = ("batch", 1, 2, 2),
        kind: int = TensorProto.FLOAT,
        outputs: tuple[str, ...] = ("logits",),
        card: Card | None = None,
    ) -> Path:
        numbers = matrix.T.astype(helper.tensor_dtype_to_np_dtype(kind))
        shape = np.array([-1, matrix.shape[1]], dtype=np.int64)
        nodes = [
            helper.make_node("Reshape", ["image", "shape"], ["flat"]),
            *(helper.make_node("MatMul", ["flat", "weight"], [output]) for output in outputs),
        ]
        graph = helper.make_graph(
            nodes,
            "pick",
            [helper.make_tensor_value_info("image", kind, list(sizes))],
            [helper.make_tensor_value_info(o, kind, [sizes[0], len(matrix)]) for o in outputs],
            [numpy_helper.from_array(numbers, "weight"), numpy_helper.from_array(shape, "shape")],
        )
        opset = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, ir_version=10, opset_imports=opset)
        if card is not None:
            put_card(model, card)
        path = tmp_path / name
        onnx.save(model, str(path))
        return path

    return write


@pytest.fixture
def pixels() -> NDArray[np.float32]:
    """Five images; the largest of the first three pixels is 0, 1, 2, 2 and 0."""
    rows = [[5, 1, 0, 9], [0, 2, 1, 9], [1, 0, 3, 9], [-3, -2, -1, 9], [2, 2, 0, 9]]
    return np.array(rows, dtype=np.float32).reshape(5, 1, 2, 2)


LABELS = np.array([0, 1, 0, 2, 1])


@pytest.fixture
def labels() -> NDArray[np.int64]:
    return LABELS.copy()
