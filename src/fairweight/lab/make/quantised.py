"""An int8 model from a trained one: exported, quantised, measured, as one ONNX file."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling, model_input
from fairweight.lab.card import Card
from fairweight.lab.compress.quantize import quantize_dynamic, quantize_static
from fairweight.lab.export import to_onnx
from fairweight.lab.flops import count_flops
from fairweight.lab.given_batches import batches_of
from fairweight.lab.loaders.onnx_model import open_onnx
from fairweight.lab.make.fitted import Made, timed_example
from fairweight.lab.make.folder import plain_row
from fairweight.lab.measure import measure
from fairweight.lab.onnx_card import card_of, put_card
from fairweight.lab.onnx_file import read_onnx, write_onnx
from fairweight.lab.plain_weights import plain
from fairweight.lab.prepared_data import Prepared, as_examples
from fairweight.specs.quantization import Int8Static, Quantization


def quantise_model(
    network: nn.Module,
    card: Card,
    spec: Quantization,
    prepared: Prepared,
    scaling: Scaling,
    out: str | Path,
    *,
    variant: str | None = None,
) -> Made:
    """Write a model as an int8 file that ONNX Runtime runs."""
    if Path(out).suffix != ".onnx":
        raise InputError(f"int8 models are ONNX files; '{out}' must end in .onnx.")
    example = timed_example(as_examples(prepared.test), scaling)
    with tempfile.TemporaryDirectory(prefix="fairweight-") as room:
        exported = to_onnx(network, example, Path(room) / "float.onnx", card=card)
        quantised = Path(room) / "int8.onnx"
        if isinstance(spec, Int8Static):
            first = as_examples(prepared.train).images[: spec.examples]
            calibration = np.ascontiguousarray(model_input(first, scaling).numpy())
            quantize_static(
                exported,
                quantised,
                [calibration],
                examples=spec.examples,
                reduce_range=spec.reduce_range,
            )
        else:
            quantize_dynamic(exported, quantised)
        accuracy = _accuracy(quantised, prepared)
        model = read_onnx(quantised)
        held = card_of(model, f"'{out}'") or card
        row = measure(quantised, example, card=held)
    # The file computes what the network does; only its numbers are shorter.
    flops = count_flops(plain(network).cpu(), example)
    row |= {"variant": variant or held.variant, "flops": flops.dense, "flops_sparse": flops.sparse}
    held = replace(
        held,
        variant=variant or held.variant,
        training={**held.training, "test_accuracy": accuracy},
        measured=plain_row(row),
    )
    put_card(model, held)
    return Made(write_onnx(model, out), held, accuracy)


def _accuracy(file: Path, prepared: Prepared) -> float:
    opened = open_onnx(file, "The int8 model", scaling=None)
    right = []
    for batch in batches_of(prepared.test):
        output = opened.run(batch["image"])
        answer = output > 0 if prepared.test.multi_label else output.argmax(axis=1)
        right.append(answer == batch["label"])
    return float(np.concatenate(right).mean())
