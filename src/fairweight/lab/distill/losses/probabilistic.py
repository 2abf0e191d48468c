"""PKT: the chances that examples of a batch are taken for each other's neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from fairweight.lab.distill.losses.shapes import one_pair, require_several_examples
from fairweight.lab.distill.registry import Features, distillation_loss

EPSILON = 1e-7


@distillation_loss(
    "pkt",
    reads="pooled",
    weight=30_000.0,
    relates=True,
    summary="How likely examples of a batch are each other's neighbours",
    source="Passalis, Tefas 2018",
)
def probabilistic_transfer(student: Features, teacher: Features) -> Tensor:
    """The mean over pairs of examples of P ln((P + ε) / (Q + ε)), ε = 1e-7.

    P (the teacher's) and Q (the student's) are (cosine + 1) / 2 with rows divided by their sums, so
    that widths may differ; norms have ε added. Not negative but for rounding; 0 where all
    cosines are equal. Undefined for one example.

    Notes
    -----
    Equal to `torchdistill.losses.PKTLoss`. Where all activations of an example are 0, that one's
    gradient is not a number; here it is.

    Examples
    --------
    Rows of P are (2/3, 1/3), because unlike examples have the cosine 0; rows of Q are (1/2, 1/2):
    (2/3 ln 4/3 + 1/3 ln 2/3) / 2.

    >>> import torch
    >>> student, teacher = {"pooled": torch.ones(2, 1)}, {"pooled": torch.eye(2)}
    >>> round(probabilistic_transfer(student, teacher).item(), 4)
    0.0283
    """
    pair = one_pair("pkt", student, teacher)
    require_several_examples("pkt", pair)
    mine, theirs = _chances(pair.student), _chances(pair.teacher)
    return (theirs * ((theirs + EPSILON) / (mine + EPSILON)).log()).mean()


def _chances(values: Tensor) -> Tensor:
    rows = values.flatten(1)
    rows = rows / (torch.linalg.vector_norm(rows, dim=1, keepdim=True) + EPSILON)
    similarities = (rows @ rows.T + 1) / 2
    chances: Tensor = similarities / similarities.sum(dim=1, keepdim=True)
    return chances
