"""Global pruning of a large network beside torch's own."""

from __future__ import annotations

import copy
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.lines import Line
from benchmarks.measure import Settings, processor_seconds

if TYPE_CHECKING:
    from torch import nn

TITLE = "Global pruning beside torch"
SETTING = (
    "The smallest 90 % of all weights of the convolutions and the linear layer of a ResNet-50, one "
    "thread: `prune` of fairweight, which also copies the network, beside "
    "`torch.nn.utils.prune.global_unstructured` on a copy that is ready. Medians of processor "
    "time, in turns; both leave the same number of weights."
)
NEEDS = ("torch",)
SPARSITY = 0.9


def run(settings: Settings) -> list[Line]:
    from fairweight.lab.compression.pruner import prune
    from fairweight.lab.compression.registry import spec_of
    from fairweight.lab.measurement import torch_threads
    from fairweight.lab.models import build

    network = build("resnet50", classes=1000, size=224, width=1.0 if settings.full_size else 0.05)
    spec = spec_of("global-magnitude", sparsity=SPARSITY)
    ours: list[float] = []
    theirs: list[float] = []
    with torch_threads(1):
        for _ in range(settings.rounds):
            ours.append(processor_seconds(lambda: prune(network, spec)))
            ready = copy.deepcopy(network)
            theirs.append(processor_seconds(partial(global_unstructured, ready)))
    n = sum(p.numel() for p in network.parameters() if p.dim() > 1)
    peer = "torch.nn.utils.prune.global_unstructured"
    return [Line(f"{n / 1e6:.1f} million weights", median(ours), peer, median(theirs), target=1.0)]


def global_unstructured(network: nn.Module) -> None:
    from torch import nn
    from torch.nn.utils import prune

    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    prune.global_unstructured(
        [(layer, "weight") for layer in layers],
        pruning_method=prune.L1Unstructured,
        amount=SPARSITY,
    )
