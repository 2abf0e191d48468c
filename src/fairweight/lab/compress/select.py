"""Which entries go: exactly as many as asked, ties by position, never one that is back.

Scores and masks are flat here: an entry is a weight or a slice. True stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from fairweight.lab.compress.schedules import Step


def n_removed(n: int, already: int, step: Step) -> int:
    """How many of n entries are gone after a step, of which some are gone already.

    >>> n_removed(10, 0, Step(0.25)), n_removed(10, 4, Step(0.25))
    (2, 4)
    >>> n_removed(10, 4, Step(0.5, "remaining"))
    7
    """
    if step.of == "remaining":
        return already + round(step.amount * (n - already))
    return max(already, round(step.amount * n))


def keep_largest(scores: Tensor, kept: Tensor, n_gone: int) -> Tensor:
    """All but `n_gone` entries: those that are gone, then the smallest; of equals the first.

    >>> scores = torch.tensor([2.0, 1.0, 1.0, 3.0])
    >>> keep_largest(scores, torch.tensor([True, True, True, True]), 1).tolist()
    [True, False, True, True]
    >>> keep_largest(scores, torch.tensor([True, True, True, False]), 2).tolist()
    [True, False, True, False]
    """
    if n_gone <= 0:
        return kept.clone()
    if n_gone >= scores.numel():
        return torch.zeros_like(kept)
    scores = scores.masked_fill(~kept, -math.inf)
    limit = torch.kthvalue(scores, n_gone).values
    gone = scores < limit
    ties = torch.nonzero(scores == limit).flatten()
    gone[ties[: n_gone - int(gone.sum())]] = True
    return ~gone


def per_layer(
    scores: Mapping[str, Tensor], kept: Mapping[str, Tensor], step: Step
) -> dict[str, Tensor]:
    """The same share of each layer."""
    return {
        name: keep_largest(
            score, kept[name], n_removed(score.numel(), int((~kept[name]).sum()), step)
        )
        for name, score in scores.items()
    }


def over_all(
    scores: Mapping[str, Tensor], kept: Mapping[str, Tensor], step: Step
) -> dict[str, Tensor]:
    """A share of all layers' entries together; the order of layers breaks ties between them."""
    sizes = [score.numel() for score in scores.values()]
    together = torch.cat([score.flatten() for score in scores.values()])
    kept_together = torch.cat([kept[name].flatten() for name in scores])
    gone = n_removed(together.numel(), int((~kept_together).sum()), step)
    parts = keep_largest(together, kept_together, gone).split(sizes)  # type: ignore[no-untyped-call]
    return dict(zip(scores, parts, strict=True))


def of_each_group(scores: Tensor, kept: Tensor, n_kept: int) -> Tensor:
    """The `n_kept` largest entries of each row; of equals the last stay, as everywhere here.

    >>> of_each_group(torch.tensor([[1.0, 1.0, 3.0, 2.0]]), torch.ones(1, 4, dtype=torch.bool), 2)
    tensor([[False, False,  True,  True]])
    """
    order = torch.argsort(scores.masked_fill(~kept, -math.inf), dim=1, stable=True)
    gone = order[:, : scores.shape[1] - n_kept]
    return kept.scatter(1, gone, torch.zeros_like(gone, dtype=torch.bool))
