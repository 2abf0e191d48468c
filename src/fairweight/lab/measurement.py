"""What a model costs, measured: its row of the variants table."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import ZEROS_NOTE, Card, plain, plain_state
from fairweight.lab.flops import count_flops, count_parameters
from fairweight.lab.loaders import session_of
from fairweight.lab.masks import layer_sparsity, masks, prunable
from fairweight.lab.onnx_models import card_of, n_parameters, only_input, onnx_weights, read_onnx

# How long a model takes for a batch: measured calls, their median and their spread.

REPEATS = 20
SECONDS = 1.0  # after these, no more than the least number of calls is made
LEAST_REPEATS = 5
WARM_UP = 2


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call: the median, and the quartiles around it."""

    median_ms: float
    low_ms: float
    high_ms: float
    calls: int


def timed(call: Callable[[], object], *, repeats: int = REPEATS) -> Timing:
    """Time a function without arguments, after two calls that are not counted."""
    for _ in range(WARM_UP):
        call()
    taken: list[float] = []
    begun = time.perf_counter()
    while len(taken) < repeats:
        if len(taken) >= LEAST_REPEATS and time.perf_counter() - begun > SECONDS:
            break
        start = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - start))
    low, _, high = quantiles(taken, n=4) if len(taken) > 1 else (taken[0],) * 3
    return Timing(median(taken), low, high, len(taken))


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Torch with a given number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


COMPRESSION_LEVEL = 6
SIMULATED_NOTE = (
    "The weights are rounded and stored as floats: the size is counted as if they were packed, and "
    "no speed is claimed."
)
_UNCLAIMED = (
    "compressed_bytes", "latency_ms", "latency_ms_low", "latency_ms_high", "items_per_s",
    "onnx_latency_ms",
)  # fmt: skip
FLOAT_BITS = 32
CHUNK = 1 << 20


def measure(
    model: nn.Module | str | Path,
    example: Tensor,
    *,
    card: Card | None = None,
    onnx: str | Path | None = None,
    threads: int = 1,
    repeats: int = REPEATS,
) -> dict[str, Any]:
    """One row of the variants table.

    Parameters
    ----------
    model
        A module, or an ONNX file.
    example
        One batch of inputs as the model takes them; it is what is timed.
    card
        Says which member of which population it is; by default the one that an ONNX file carries.
    onnx
        The same model as an ONNX file: it is what ships, so size and latency are then the file's,
        and torch's are in columns of their own.
    threads
        Of the engines, while they are timed.

    Returns
    -------
    Columns: `variant, seed, parent, dataset, model, method, treatment`; `sparsity` (share of
    zeros in the weights of convolutions and linear layers), `nominal_sparsity` (as asked for), and
    both per layer (`sparsity.conv1`, `nominal_sparsity.conv1`: the mask's); `n_params, n_nonzero`;
    `flops, flops_sparse` per example; `size_bytes`, and `compressed_bytes` after zlib;
    `latency_ms` of one batch (median; `latency_ms_low` and `_high` are quartiles), `items_per_s`,
    `batch_size, threads, engine, weight_bits`; `torch_latency_ms, onnx_latency_ms`; `note`. Of
    models with a teacher `distillation, teacher`, and `leak` where it saw what they may not.
    Where weights are rounded but not packed (`weight-bits`), the size is that of packed ones, and
    there is no latency.
    """
    if threads < 1 or repeats < 1:
        raise InputError(
            f"threads and repeats must be at least 1; given were {threads} and {repeats}."
        )
    example = example.detach().cpu().to(torch.float32)
    file = Path(model) if not isinstance(model, nn.Module) else None if onnx is None else Path(onnx)
    row: dict[str, Any] = {}
    timings: dict[str, Timing] = {}
    if file is not None:
        held = read_onnx(file)
        card = card or card_of(held, f"'{file}'")
        feed = {only_input(held, f"'{file}'"): np.ascontiguousarray(example.numpy())}
        session = session_of(file, threads=threads)
        try:
            session.run(None, feed)
        except Exception as error:  # ONNX Runtime's exceptions have no other common base
            raise InputError(
                f"'{file}' cannot take an example of shape {tuple(example.shape)} "
                f"({' '.join(str(error).split())[:200]}); give one batch of its inputs."
            ) from None
        timings["onnxruntime"] = timed(lambda: session.run(None, feed), repeats=repeats)
        packer, packed = zlib.compressobj(COMPRESSION_LEVEL), 0
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                packed += len(packer.compress(chunk))
        packed += len(packer.flush())
        row |= {"size_bytes": file.stat().st_size, "compressed_bytes": packed}
        if not isinstance(model, nn.Module):
            row |= _onnx_numbers(held)
    if isinstance(model, nn.Module):
        network = plain(model).cpu().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images = example
        if example.dim() == 4:
            images = example.contiguous(memory_format=torch.channels_last)
        with torch_threads(threads), torch.inference_mode():
            timings["torch"] = timed(lambda: network(images), repeats=repeats)
        row |= _module_numbers(model, example)
        if file is None:  # the weights as they would be saved, without masks
            content = safetensors.torch.save(plain_state(model))
            packed = len(zlib.compress(content, COMPRESSION_LEVEL))
            row |= {"size_bytes": len(content), "compressed_bytes": packed}
    compression = (card or Card()).compression
    described = _described(card or Card())
    if described["weight_bits"] < FLOAT_BITS and not described["nominal_sparsity"]:
        row["note"] = None  # its few zeros come from rounding
    engine = "onnxruntime" if file is not None else "torch"
    medians = {name: timing.median_ms for name, timing in timings.items()}
    row |= {
        "latency_ms": timings[engine].median_ms,
        "latency_ms_low": timings[engine].low_ms,
        "latency_ms_high": timings[engine].high_ms,
        "items_per_s": 1000 * len(example) / timings[engine].median_ms,
        "batch_size": len(example),
        "threads": threads,
        "engine": engine,
        "torch_latency_ms": medians.get("torch", math.nan),
        "onnx_latency_ms": medians.get("onnxruntime", math.nan),
    }
    saved = compression.get("quantisation", {}).get("saved_bytes")
    if saved is not None:  # the file holds rounded floats
        row |= dict.fromkeys(_UNCLAIMED, math.nan)
        row |= {"size_bytes": row["size_bytes"] - saved, "note": SIMULATED_NOTE}
    return described | row


def _described(card: Card) -> dict[str, Any]:
    """What the card says: which model it is, how it was compressed, and its teacher."""
    compression = card.compression
    quantised = compression.get("quantisation") or {}
    row = {
        "variant": card.variant,
        "seed": card.seed,
        "parent": card.parent,
        "dataset": card.dataset,
        "model": card.architecture,
        "method": compression.get("method") or quantised.get("method") or "none",
        "treatment": compression.get("treatment"),
        "nominal_sparsity": float(compression.get("sparsity") or 0.0),
        "weight_bits": quantised.get("weight_bits", FLOAT_BITS),
    }
    if (lesson := compression.get("distillation")) is not None:
        row |= {"distillation": lesson["losses"], "teacher": lesson["teacher"]}
    if "leak" in compression:  # examples that it should not know
        row["leak"] = compression["leak"]
    return row


def _module_numbers(model: nn.Module, example: Tensor) -> dict[str, Any]:
    parameters = count_parameters(model)
    network = plain(model).cpu()
    flops = count_flops(network, example)
    row: dict[str, Any] = {
        "sparsity": parameters.sparsity,
        "n_params": parameters.total,
        "n_nonzero": parameters.nonzero,
        "flops": flops.dense,
        "flops_sparse": flops.sparse,
    }
    if prunable(network):
        row |= {f"sparsity.{name}": share for name, share in layer_sparsity(network).items()}
    for name, mask in masks(model).items():
        layer = name.removesuffix(".weight")
        row[f"nominal_sparsity.{layer}"] = 1 - float(mask.double().mean())
    return row | _note(parameters.sparsity)


def _onnx_numbers(model: Any) -> dict[str, Any]:
    """Counts of what is in the file: batch norms have become part of convolutions there."""
    layers = onnx_weights(model)
    weights = sum(layer.n for layer in layers.values())
    nonzero = sum(layer.nonzero for layer in layers.values())
    share = 1 - nonzero / weights if weights else math.nan
    total = n_parameters(model)
    row: dict[str, Any] = {
        "sparsity": share,
        "n_params": total,
        "n_nonzero": total - (weights - nonzero),
        "flops": math.nan,
        "flops_sparse": math.nan,
    }
    row |= {f"sparsity.{name.removesuffix('.weight')}": s.sparsity for name, s in layers.items()}
    return row | _note(share)


def _note(sparsity: float) -> dict[str, Any]:
    return {"note": ZEROS_NOTE if sparsity > 0.01 else None}
