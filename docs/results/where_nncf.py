"""NNCF's accuracy control on the ONNX file that where.py exports, as a peer.

    python -m venv nncf && nncf/bin/pip install nncf==3.4.0 onnx onnxruntime
    NNCF_CI=1 nncf/bin/python docs/results/where_nncf.py STORE/peer --max-drop 0.005

Needs no fairweight, and fairweight does not need it. The folder has `float.onnx`, the calibration
examples, and the validation examples with their labels, as where.py wrote them; `peer.onnx` and
`peer.json` (time) are added, which where.py reads.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import nncf
import numpy as np
import onnx
import onnxruntime
from nncf.quantization.advanced_parameters import (
    AdvancedQuantizationParameters,
    QuantizationParameters,
)


def accuracy(model: onnx.ModelProto, batches: object) -> tuple[float, list[float]]:
    """Mean and each example's; NNCF asks for both."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    right: list[float] = []
    for inputs, labels in batches:  # type: ignore[attr-defined]
        found = session.run(None, {session.get_inputs()[0].name: inputs})[0]
        right += (found.argmax(axis=1) == labels).astype(float).tolist()
    return float(np.mean(right)), right


def main(folder: Path, max_drop: float) -> None:
    """Quantise within a drop of mean accuracy on the validation examples."""
    model = onnx.load(str(folder / "float.onnx"))
    name = model.graph.input[0].name
    calibration = np.load(folder / "calibration.npy")
    inputs = np.load(folder / "validation.npy", mmap_mode="r")
    labels = np.load(folder / "labels.npy")
    # One example each: NNCF ranks by single examples, which it chooses by their place.
    batches = [(np.ascontiguousarray(inputs[at : at + 1]), labels[at]) for at in range(len(labels))]
    begun = time.process_time()
    made = nncf.quantize_with_accuracy_control(
        model,
        nncf.Dataset([one[None] for one in calibration], lambda one: {name: one}),
        nncf.Dataset(batches, lambda pair: {name: pair[0]}),
        validation_fn=lambda held, data: accuracy(held, data),
        subset_size=len(calibration),
        max_drop=max_drop,
        # Its default for depthwise convolutions, a range per channel, has no kernel in ONNX Runtime
        # ("input zero point must be a scalar").
        advanced_quantization_parameters=AdvancedQuantizationParameters(
            activations_quantization_params=QuantizationParameters(per_channel=False)
        ),
    )
    took = time.process_time() - begun
    onnx.save(made, str(folder / "peer.onnx"))
    facts = {"nncf": version("nncf"), "max_drop": max_drop, "cpu_seconds": round(took, 1)}
    (folder / "peer.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
    print(facts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--max-drop", type=float, required=True)
    asked = parser.parse_args()
    main(asked.folder, asked.max_drop)
