"""Each network is exported to ONNX once: a second, of which most tests look at what comes after."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import onnx
    from torch import Tensor, nn

EXPORTED: dict[tuple[Any, ...], bytes] = {}


@pytest.fixture(scope="module")
def exported_once() -> Iterator[None]:
    """Take the file of an earlier export of the same modules and weights.

    What it predicts is compared with the network each time, as always (`to_onnx`).
    """
    import onnx

    from fairweight.lab import onnx_models

    export = onnx_models._export

    def once(network: nn.Module, example: Tensor) -> onnx.ModelProto:
        weights = hashlib.sha256()
        for name, value in network.state_dict().items():
            weights.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            weights.update(value.contiguous().numpy().tobytes())
        kinds = tuple(type(part) for part in network.modules())
        key = (kinds, repr(network), tuple(example.shape[1:]), weights.hexdigest())
        if key not in EXPORTED:
            EXPORTED[key] = export(network, example).SerializeToString()
        return onnx.ModelProto.FromString(EXPORTED[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_models, "_export", once)
        yield
