"""`.pt2` files of `torch.export.save`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.loaders.digest import digest_of_files
from fairweight.lab.loaders.fixed_batch import in_batches_of
from fairweight.lab.loaders.inputs import as_floats
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.loaders.torch_module import tensor_of
from fairweight.lab.onnx_file import one_input
from fairweight.trust import require_file


def open_exported(file: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """An exported program. Torch may unpickle parts of such a file: it must be trusted by name."""
    require_file(file, shown)
    try:
        program = torch.export.load(str(file))
    except Exception as error:  # torch raises whatever its archive reader meets
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{file}' cannot be read as an exported program ({said}); write it again with "
            "torch.export.save."
        ) from None
    name = one_input(list(program.graph_signature.user_inputs), shown)
    size = next(n.meta["val"].shape[0] for n in program.graph.nodes if n.name == name)
    module = program.module().to(device)

    def run_one(batch: NDArray[Any]) -> NDArray[Any]:
        images = torch.from_numpy(batch).to(device)
        try:
            with torch.inference_mode():
                output = tensor_of(module(images), shown)
        except (AssertionError, RuntimeError) as error:  # torch's guards are assertions
            said = " ".join(str(error).split())[:200]
            raise InputError(
                f"{shown} cannot take a batch of shape {tuple(images.shape)} ({said}); give "
                "images as it was exported for."
            ) from error
        return output.to(torch.float32).cpu().numpy()

    run = in_batches_of(size, run_one) if isinstance(size, int) else run_one
    return Loaded(
        run=lambda inputs: run(as_floats(inputs, scaling, shown).cpu().numpy()),
        identity=f"{digest_of_files([file])}{scaling}",
    )
