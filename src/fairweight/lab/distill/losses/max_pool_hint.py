"""Max-pool hint: what a network's max-pooling layers return."""

from __future__ import annotations

from torch import Tensor

from fairweight.lab.distill.losses.hint import summed_squares
from fairweight.lab.distill.registry import Features, distillation_loss


@distillation_loss(
    "max-pool-hint",
    reads="max-pools",
    weight=1.0,
    ce=0.01,
    summary="The outputs of max-pooling; FSP in the appendix of Simon Says on VGG16",
    source="Blakeney et al. 2021, code of the appendix",
)
def max_pool_hint(student: Features, teacher: Features) -> Tensor:
    """The sum over `MaxPool2d` layers of mean((student − teacher)²).

    Not negative; 0 where all outputs are equal. Both networks need the same shapes.

    Notes
    -----
    The code calls it inner knowledge, and weighs the cross-entropy beside it with 0.01 or 0.1. In
    torchdistill it is a sum of `torch.nn.MSELoss`, one per layer.

    Examples
    --------
    >>> import torch
    >>> student, teacher = {"pool1": torch.zeros(1, 1, 2, 2)}, {"pool1": torch.ones(1, 1, 2, 2)}
    >>> max_pool_hint(student, teacher).item()
    1.0
    """
    return summed_squares("max-pool-hint", student, teacher)
