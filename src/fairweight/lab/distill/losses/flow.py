"""FSP: how activations flow from one block to the next."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from fairweight.errors import InputError
from fairweight.lab.distill.losses.maps import pooled_to_smaller
from fairweight.lab.distill.losses.shapes import pairs_of, require_maps, unlike
from fairweight.lab.distill.registry import Features, distillation_loss


@distillation_loss(
    "fsp",
    reads="stem-and-blocks",
    weight=50.0,
    initial=True,
    summary="Flow matrices between consecutive blocks, in a stage before the training",
    source="Yim, Joo, Bae, Kim 2017",
)
def flow_of_solution(student: Features, teacher: Features) -> Tensor:
    """The sum over consecutive features of mean((G(student) − G(teacher))²).

    G[c, d] is the mean over places of channel c of the one times channel d of the next, one matrix
    per example; of the two maps the larger is average-pooled. Not negative; 0 where all flow
    matrices are equal. Both networks need the same numbers of channels; sizes may differ.

    Notes
    -----
    `torchdistill.losses.FSPLoss` differs in two ways: it pools by the maximum, and it sums the L2
    norms of the columns of G(student) − G(teacher) and divides them by the batch size. What Simon
    Says calls FSP is another loss: see `hint`.

    Examples
    --------
    One place, so that G is a product: 2 × 3 − 1 × 1 = 5, squared.

    >>> import torch
    >>> def maps(*values):
    ...     return {str(i): torch.full((1, 1, 1, 1), v) for i, v in enumerate(values)}
    >>> flow_of_solution(maps(2.0, 3.0), maps(1.0, 1.0)).item()
    25.0
    """
    pairs = pairs_of("fsp", student, teacher)
    if len(pairs) < 2:
        raise InputError(
            f"The loss 'fsp' compares what flows from one feature to the next, and got "
            f"'{pairs[0].name}' alone; give it two or more features."
        )
    for pair in pairs:
        require_maps("fsp", pair)
        if pair.student.shape[1] != pair.teacher.shape[1]:
            raise unlike("fsp", pair, "both need the same number of channels")
    terms = []
    for lower, upper in pairwise(pairs):
        names = (f"'{lower.name}'", f"'{upper.name}'")
        mine = _flow(lower.student, upper.student, names)
        theirs = _flow(lower.teacher, upper.teacher, names)
        terms.append(mse_loss(mine, theirs))
    return torch.stack(terms).sum()


def _flow(lower: Tensor, upper: Tensor, names: tuple[str, str]) -> Tensor:
    lower, upper = pooled_to_smaller("fsp", lower, upper, names)
    places = lower.shape[2] * lower.shape[3]
    return lower.flatten(2) @ upper.flatten(2).mT / places
