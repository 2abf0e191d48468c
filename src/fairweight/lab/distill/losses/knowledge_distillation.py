"""KD: the teacher's softened class probabilities."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from fairweight.lab.distill.losses.options import positive
from fairweight.lab.distill.losses.shapes import one_pair, require_same_shape, unlike
from fairweight.lab.distill.registry import Features, distillation_loss


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
    temperature = positive("kd", "temperature", temperature)
    pair = one_pair("kd", student, teacher)
    require_same_shape("kd", pair)
    if pair.student.dim() != 2 or pair.student.shape[1] < 2:
        raise unlike("kd", pair, "it needs (examples, classes) of at least two classes")
    mine = log_softmax(pair.student / temperature, dim=1)
    theirs = log_softmax(pair.teacher / temperature, dim=1)
    divergence = kl_div(mine, theirs, reduction="sum", log_target=True)
    return divergence * (temperature**2 / len(mine))
