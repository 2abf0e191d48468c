"""Distillation losses without a state: KD, AT, SP, FSP, PKT and hints."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, kl_div, log_softmax, mse_loss, normalize

from fairweight.errors import InputError
from fairweight.lab.distillation.registry import (
    Features,
    distillation_loss,
    number,
    one_pair,
    pairs_of,
    require_maps,
    require_same_shape,
    require_several_examples,
    unlike,
)


@distillation_loss(
    "kd",
    reads="logits",
    weight=0.9,
    ce=0.1,
    summary="The teacher's class probabilities, softened by a temperature",
    source="Hinton, Vinyals, Dean 2015",
)
def knowledge_distillation(
    student: Features, teacher: Features, *, temperature: float = 4.0
) -> Tensor:
    """T² / B × the sum over examples of KL(softmax(teacher / T) ‖ softmax(student / T)).

    Never negative; 0 where both networks give the same probabilities. Undefined for fewer than
    two classes, of which every network gives the probability 1.

    Notes
    -----
    `torchdistill.losses.KDLoss` holds the cross-entropy as well (`alpha`); with `alpha = 0`, and
    where no labels are given, it leaves T² out.

    Examples
    --------
    Probabilities (1/4, 3/4) of the student and (1/2, 1/2) of the teacher, at T = 1:
    1/2 ln 2 + 1/2 ln 2/3 = 1/2 ln 4/3.

    >>> import torch
    >>> student = {"logits": torch.tensor([[1.0, 3.0]]).log()}
    >>> teacher = {"logits": torch.zeros(1, 2)}
    >>> round(knowledge_distillation(student, teacher, temperature=1.0).item(), 4)
    0.1438
    """
    temperature = number("kd", "temperature", temperature, "a number above 0")
    pair = one_pair("kd", student, teacher)
    require_same_shape("kd", pair)
    if pair.student.dim() != 2 or pair.student.shape[1] < 2:
        raise unlike("kd", pair, "it needs (examples, classes) of at least two classes")
    mine = log_softmax(pair.student / temperature, dim=1)
    theirs = log_softmax(pair.teacher / temperature, dim=1)
    divergence = kl_div(mine, theirs, reduction="sum", log_target=True)
    return divergence * (temperature**2 / len(mine))


# Feature maps of different sizes, brought to the smaller one.


def pooled_to_smaller(
    loss: str, first: Tensor, second: Tensor, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Both maps, the larger one average-pooled; `names` are for the sentence."""
    (high, wide), (other_high, other_wide) = first.shape[2:], second.shape[2:]
    if (high, wide) == (other_high, other_wide):
        return first, second
    if high >= other_high and wide >= other_wide:
        return adaptive_avg_pool2d(first, (other_high, other_wide)), second
    if high <= other_high and wide <= other_wide:
        return first, adaptive_avg_pool2d(second, (high, wide))
    raise InputError(
        f"The loss '{loss}' pools the larger of two maps, and {names[0]} of shape "
        f"{tuple(first.shape)} is neither the larger nor the smaller one beside {names[1]} of "
        f"shape {tuple(second.shape)}; choose other features or another loss."
    )


# AT: where in the image a network's activations are large.


@distillation_loss(
    "at",
    reads="blocks",
    weight=1000.0,
    summary="Where in the image each block's activations are large",
    source="Zagoruyko, Komodakis 2017",
)
def attention_transfer(student: Features, teacher: Features) -> Tensor:
    """The sum over blocks of mean((A(student) − A(teacher))²), over examples and places.

    A is the mean over channels of the squared activations, one value per place, divided by its L2
    norm over places. Between 0 and 2 / places per block; 0 where all maps are proportional. The
    numbers of channels may differ; of maps of different sizes the larger is average-pooled.

    Notes
    -----
    Equal to `torchdistill.losses.ATLoss` in its mode `code` where sizes are equal; that does not
    pool. Its mode `paper` sums the norms of the differences and divides them by the batch size
    instead. RepDistiller pools by height alone; here maps need not be square.

    Examples
    --------
    One channel, two places: squares (9, 16) / √337 and (16, 9) / √337, so (49 + 49) / 337 / 2.

    >>> import torch
    >>> student, teacher = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
    >>> maps = [{"block1": values.view(1, 1, 1, 2)} for values in (student, teacher)]
    >>> round(attention_transfer(*maps).item(), 4)
    0.1454
    """
    terms = []
    for pair in pairs_of("at", student, teacher):
        require_maps("at", pair)
        names = (f"the student's '{pair.name}'", "the teacher's")
        mine, theirs = pooled_to_smaller("at", pair.student, pair.teacher, names)
        terms.append(mse_loss(_attention(mine), _attention(theirs)))
    return torch.stack(terms).sum()


def _attention(maps: Tensor) -> Tensor:
    means: Tensor = _MeanSquare.apply(maps)  # type: ignore[no-untyped-call]
    return normalize(means.flatten(1))


class _MeanSquare(torch.autograd.Function):
    """The mean over channels of squares, with a gradient that passes over the maps once.

    Left to autograd, a step of a narrow ResNet takes 15 % longer.
    """

    @staticmethod
    def forward(ctx: Any, maps: Tensor) -> Tensor:
        ctx.save_for_backward(maps)
        return maps.square().mean(dim=1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        maps: Tensor = ctx.saved_tensors[0]
        return maps * (gradient * (2 / maps.shape[1])).unsqueeze(1)


# SP: which examples of a batch activate a network alike.


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


# FSP: how activations flow from one block to the next.


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


# PKT: the chances that examples of a batch are taken for each other's neighbours.

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


# Hint: the blocks' outputs themselves.


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


# Max-pool hint: what a network's max-pooling layers return.


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
