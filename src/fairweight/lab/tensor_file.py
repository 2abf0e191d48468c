"""Tensors as a safetensors file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file; a full disk is an ordinary OSError, which safetensors' own writer hides."""
    from safetensors.torch import save

    held = None if metadata is None else dict(metadata)
    path.write_bytes(save(dict(tensors), metadata=held))
