"""An int8 model in memory, which answers like a module does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.lab.loaders.inputs import as_array
from fairweight.tables.write import atomic_file


class Int8Model:
    """A function from inputs (N, C, H, W) to logits, run by ONNX Runtime on the CPU."""

    def __init__(self, content: bytes) -> None:
        import onnxruntime
        import torch

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self._content = content
        self._session = onnxruntime.InferenceSession(
            content, options, providers=["CPUExecutionProvider"]
        )
        self._input = self._session.get_inputs()[0].name

    def __call__(self, inputs: Any) -> NDArray[np.float32]:
        batch = np.ascontiguousarray(as_array(inputs), dtype=np.float32)
        return np.asarray(self._session.run(None, {self._input: batch})[0])

    def save(self, path: str | Path) -> Path:
        """Write the ONNX file."""
        with atomic_file(path, "wb") as file:
            file.write(self._content)
        return Path(path)
