"""What compression gains in ONNX Runtime: int8, removed channels, and mere zeros."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

if TYPE_CHECKING:
    from torch import Tensor, nn

TITLE = "Compressed networks in ONNX Runtime"
SETTING = (
    "A ResNet-18 for images of 32 pixels, exported and run on a batch, one thread; medians of "
    "processor time, in turns. int8 is what `quantize_static` makes: weights of 7 bits where the "
    "processor's 8-bit arithmetic saturates. A processor with VNNI multiplies and adds bytes in "
    "one instruction; one with AVX2 alone needs three, so that int8 has little more than fp32's "
    "arithmetic speed there, and gains less the smaller the layers are."
)
NEEDS = ("torch", "onnx", "onnxruntime", "onnxscript", "torch_pruning")
FULL_ROUNDS = 15
CPU_DESCRIPTION = Path("/proc/cpuinfo")
FP32, INT8, SMALLER, ZEROS = "fp32", "int8 static", "50 % of channels removed", "90 % zeros"
TARGETS = {INT8: 2.0, SMALLER: 2.5}


@dataclass(frozen=True)
class Network:
    """What is exported, and the batch that it is run on."""

    architecture: str
    width: float
    size: int
    batch: int
    variants: Sequence[str] = (FP32, INT8, SMALLER, ZEROS)
    judged: bool = True  # the targets are for a small ResNet-18


FULL = (
    Network("resnet18", 0.25, 32, 64),
    Network("resnet18", 1.0, 32, 16, variants=(FP32, INT8), judged=False),
)
TINY = (Network("lenet", 1.0, 32, 8, variants=(FP32, INT8)),)


def run(settings: Settings) -> list[Line]:
    from fairweight.lab.measurement import torch_threads

    rounds = FULL_ROUNDS if settings.full_size else settings.rounds
    lines: list[Line] = []
    with torch_threads(1):
        for network in FULL if settings.full_size else TINY:
            taken = interleaved(_jobs(network), rounds, processor_seconds)
            shown = f"{network.architecture}, width {network.width:g}, batch {network.batch}"
            for variant in network.variants[1:]:
                lines.append(
                    Line(
                        f"{shown}: {variant}{_remark(variant)}",
                        taken[variant],
                        FP32,
                        taken[FP32],
                        target=TARGETS.get(variant) if network.judged else None,
                        faster=True,
                    )
                )
    return lines


def _jobs(network: Network) -> dict[str, Callable[[], object]]:
    """A call per variant that answers one batch."""
    import torch

    from fairweight.lab.loaders import session_of
    from fairweight.lab.models import build
    from fairweight.lab.onnx_models import INPUT

    torch.manual_seed(0)
    model = build(
        network.architecture, classes=10, channels=3, size=network.size, width=network.width
    ).eval()
    images = torch.randn(network.batch, 3, network.size, network.size)
    feed = {INPUT: images.numpy()}
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as folder:
        files = {variant: Path(folder) / f"{variant}.onnx" for variant in network.variants}
        for variant in files:
            _write(files, variant, model, images)
        sessions = {variant: session_of(file, threads=1) for variant, file in files.items()}
    return {name: partial(session.run, None, feed) for name, session in sessions.items()}


def _write(files: Mapping[str, Path], variant: str, model: nn.Module, images: Tensor) -> None:
    from fairweight.lab.compression.channels import remove_channels
    from fairweight.lab.compression.pruner import prune
    from fairweight.lab.compression.quantisation import quantize_static
    from fairweight.lab.compression.registry import spec_of
    from fairweight.lab.onnx_models import to_onnx

    if variant == INT8:
        quantize_static(files[FP32], files[INT8], [images.numpy()])
        return
    if variant == SMALLER:
        model = remove_channels(model, spec_of("l1-structured", sparsity=0.5), images)
    elif variant == ZEROS:
        model = prune(model, spec_of("global-magnitude", sparsity=0.9))
    to_onnx(model, images, files[variant])


def _remark(variant: str) -> str:
    if variant != INT8:
        return ""
    vnni = has_vnni()
    if vnni is None:
        return ""
    return " (processor with VNNI)" if vnni else " (processor without VNNI)"


def has_vnni() -> bool | None:
    """Whether the processor adds products of bytes in one instruction; None: nothing says so."""
    if not CPU_DESCRIPTION.exists():
        return None
    text = CPU_DESCRIPTION.read_text(encoding="utf-8")
    if "flags" not in text:
        return None
    return "vnni" in text
