"""Hint: the blocks' outputs themselves."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from fairweight.lab.distill.losses.shapes import pairs_of, require_same_shape
from fairweight.lab.distill.registry import Features, distillation_loss


@distillation_loss(
    "hint",
    reads="blocks",
    weight=1.0,
    summary="The outputs of all blocks; what the code of Simon Says calls FSP",
    source="Blakeney et al. 2021, code",
)
def hint(student: Features, teacher: Features) -> Tensor:
    """The sum over blocks of mean((student − teacher)²), over examples, channels and places.

    Not negative; 0 where all outputs are equal. Both networks need the same shapes.

    Notes
    -----
    The code of Simon Says (`AllHint`) computes this where the paper says FSP. In torchdistill it is
    a sum of `torch.nn.MSELoss`, one per block.

    Examples
    --------
    >>> import torch
    >>> student = {"block1": torch.tensor([[1.0, 2.0]]), "block2": torch.tensor([[3.0]])}
    >>> teacher = {"block1": torch.tensor([[1.0, 4.0]]), "block2": torch.tensor([[2.0]])}
    >>> hint(student, teacher).item()  # (0 + 4) / 2 + 1
    3.0
    """
    return summed_squares("hint", student, teacher)


def summed_squares(loss: str, student: Features, teacher: Features) -> Tensor:
    """The sum over features of their mean squared differences."""
    terms = []
    for pair in pairs_of(loss, student, teacher):
        require_same_shape(loss, pair)
        terms.append(mse_loss(pair.student, pair.teacher))
    return torch.stack(terms).sum()
