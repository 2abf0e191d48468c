"""Digests by which an interrupted run knows that it goes on with the same models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn

CHUNK = 1 << 20


def digest_of_files(files: Iterable[Path]) -> str:
    """Of names and contents of files."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.name.encode())
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                total.update(chunk)
    return total.hexdigest()


def digest_of_module(model: nn.Module) -> str:
    """Of a module's structure as it prints itself, and of all its tensors."""
    total = hashlib.sha256(f"{type(model).__module__}.{model!r}".encode())
    for name, value in model.state_dict().items():
        total.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
        # As bytes, because numpy does not know every type of torch.
        flat = value.detach().cpu().contiguous().reshape(-1)
        total.update(flat.view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
