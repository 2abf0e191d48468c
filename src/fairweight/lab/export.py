"""Torch models as ONNX files, which is what people ship."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.card import Card
from fairweight.lab.onnx_card import put_card
from fairweight.lab.onnx_file import write_onnx
from fairweight.lab.plain_weights import plain

if TYPE_CHECKING:
    import onnx

INPUT, OUTPUT = "image", "logits"
# Engines add in another order than torch does: a share of the largest output.
TOLERANCE = 1e-3


def to_onnx(
    model: nn.Module, example: Tensor, out: str | Path, *, card: Card | None = None
) -> Path:
    """Write a model as an ONNX file with one input `image`, any batch size, and `logits` out.

    Masks become zeros in the weights. What the file answers in ONNX Runtime is compared with the
    model before the file appears.

    Parameters
    ----------
    example
        Inputs as the model takes them: floats of shape (N, C, H, W); their values do not matter.
    card
        Written into the file, so that it carries its classes and the scaling of its pixels.
    """
    network = plain(model).cpu()
    example = example.detach().cpu().to(torch.float32)
    with torch.inference_mode():
        wanted = _checked_output(network, example)
    # An example of one image would be taken as a model for single images.
    traced = torch.cat([example, example]) if len(example) == 1 else example
    exported = _export(network, traced)
    put_card(exported, card or Card())
    _compare(exported, example, wanted, out)
    return write_onnx(exported, out)


def _checked_output(network: nn.Module, example: Tensor) -> Tensor:
    try:
        output = network(example)
    except RuntimeError as error:
        raise InputError(
            f"The model cannot take an example of shape {tuple(example.shape)} "
            f"({_first_line(error)}); give one batch of its inputs."
        ) from None
    if not isinstance(output, Tensor) or output.dim() > 2 or len(output) != len(example):
        held = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"The model's output is {held} for {len(example)} images; it must be one tensor of "
            "logits (images, classes)."
        )
    return output


def _export(network: nn.Module, example: Tensor) -> onnx.ModelProto:
    batch = torch.export.Dim("batch")
    try:
        with _quiet():
            program = torch.onnx.export(
                network,
                (example,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: batch},),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise InputError(
            f"torch cannot export this model to ONNX ({_first_line(error)}); a forward pass "
            "without branches on values, and with any batch size, can be exported."
        ) from None
    assert program is not None
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's remarks on its own parts and on optional packages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _compare(exported: onnx.ModelProto, example: Tensor, wanted: Tensor, out: str | Path) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = session.run(None, {INPUT: example.numpy()})[0]
    expected = wanted.numpy()
    apart = float(np.abs(given - expected).max(initial=0.0))
    if not apart <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0.0))):
        raise InputError(
            f"'{out}' was not written: in ONNX Runtime the exported model's outputs differ from "
            f"torch's by up to {apart:.3g}; check that the forward pass draws no random numbers."
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
