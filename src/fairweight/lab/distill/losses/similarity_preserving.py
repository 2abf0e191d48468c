"""SP: which examples of a batch activate a network alike."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize

from fairweight.lab.distill.losses.shapes import one_pair, require_several_examples
from fairweight.lab.distill.registry import Features, distillation_loss


@distillation_loss(
    "sp",
    reads="last-block",
    weight=3000.0,
    relates=True,
    summary="Which examples of a batch the last block finds alike",
    source="Tung, Mori 2019",
)
def similarity_preserving(student: Features, teacher: Features) -> Tensor:
    """‖G(teacher) − G(student)‖² / B², G = F Fᵀ with rows divided by their L2 norms.

    F has one row of all activations per example, so that shapes may differ. Between 0 and 4 / B;
    0 where all similarities are proportional. Undefined for one example.

    Notes
    -----
    `torchdistill.losses.SPKDLoss` divides rows by their L1 norms: it passes 1 to `normalize` as its
    second argument, which is the order of the norm and not the dimension. The paper and
    RepDistiller take the L2 norm. Apart from that they are equal.

    Examples
    --------
    Two like examples have rows (1, 1) / √2, two unlike ones (1, 0) and (0, 1): each of the four
    squares is (1 − 1/√2)² or 1/2, together 2 (1 − 1/√2)² + 1, divided by 4.

    >>> import torch
    >>> student, teacher = {"block3": torch.ones(2, 1)}, {"block3": torch.eye(2)}
    >>> round(similarity_preserving(student, teacher).item(), 4)
    0.2929
    """
    pair = one_pair("sp", student, teacher)
    require_several_examples("sp", pair)
    difference = _similarities(pair.teacher) - _similarities(pair.student)
    return difference.square().mean()


def _similarities(values: Tensor) -> Tensor:
    rows = values.flatten(1)
    return normalize(rows @ rows.T)
