"""ONNX files, run by ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.card import Card, card_from_json
from fairweight.lab.loaders.digest import digest_of_files
from fairweight.lab.loaders.fixed_batch import in_batches_of
from fairweight.lab.loaders.inputs import as_floats
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.onnx_card import KEY
from fairweight.lab.onnx_file import one_input, unreadable

LOGITS = "logits"
_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}


def open_onnx(file: Path, shown: str, *, scaling: Scaling | None) -> Loaded:
    """A session with as many threads as torch has; one input, and one output or `logits`."""
    session = session_of(file, threads=torch.get_num_threads())
    described = session.get_inputs()
    name = one_input([held.name for held in described], shown)
    output = _output([held.name for held in session.get_outputs()], shown)
    kind = described[0].type
    if kind not in _TYPES:
        raise InputError(f"{shown} takes {kind}; a model that takes floats is needed.")
    sizes = list(described[0].shape)
    held = session.get_modelmeta().custom_metadata_map.get(KEY)
    card = Card() if held is None else card_from_json(held, f"The card in '{file}'")
    scaling = card.preprocessing or scaling

    def run_one(batch: NDArray[Any]) -> NDArray[Any]:
        try:
            return np.asarray(session.run([output], {name: batch})[0])
        except Exception as error:  # ONNX Runtime's exceptions have no other common base
            raise InputError(
                f"{shown} cannot take a batch of shape {batch.shape}; it takes {sizes}: "
                f"{' '.join(str(error).split())[:200]}"
            ) from error

    run = run_one if not isinstance(sizes[0], int) else in_batches_of(sizes[0], run_one)

    def predict(inputs: Any) -> NDArray[Any]:
        images = as_floats(inputs, scaling, shown).cpu().numpy()
        if _channels_last(sizes) and not _channels_last(images.shape):
            images = images.transpose(0, 2, 3, 1)
        return run(np.ascontiguousarray(images, dtype=_TYPES[kind]))

    return Loaded(
        run=predict,
        classes=card.classes or None,
        tasks=card.tasks if card.classes else None,
        outputs=None if held is None else card.outputs,
        identity=f"{digest_of_files([file])}{scaling}",
    )


def session_of(file: str | Path, *, threads: int) -> Any:
    """An ONNX Runtime session on the CPU; an error that names the file if it is no model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    if not Path(file).is_file():
        raise InputError(f"There is no ONNX file '{file}'; check the path.")
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions have no other common base
        raise unreadable(file, error) from None


def _output(names: list[str], shown: str) -> str:
    if len(names) == 1:
        return names[0]
    if LOGITS in names:
        return LOGITS
    listed = ", ".join(f"'{name}'" for name in names)
    raise InputError(
        f"{shown} has {len(names)} outputs ({listed}) and none is called '{LOGITS}'; export it "
        "with one output."
    )


def _channels_last(sizes: Sequence[Any]) -> bool:
    """Whether a shape says (N, H, W, C): few channels at its end and not in second place."""
    if len(sizes) != 4:
        return False
    few = (1, 3, 4)
    return sizes[3] in few and sizes[1] not in few
