"""Values and gradients beside torchdistill, and each documented difference from it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, adaptive_max_pool2d, cross_entropy, normalize

from fairweight.lab.distillation.contrastive import ContrastiveRepresentation
from fairweight.lab.distillation.losses import (
    attention_transfer,
    flow_of_solution,
    knowledge_distillation,
    probabilistic_transfer,
    similarity_preserving,
)
from fairweight.lab.distillation.registry import BatchPositions, LossSetting

peer = pytest.importorskip(
    "torchdistill.losses.mid_level", reason="torchdistill is not installed: make test installs it"
)

Dict = dict[str, Tensor]
CLOSE = {"rtol": 1e-6, "atol": 1e-9}


def random_features(seed: int, shapes: dict[str, tuple[int, ...]]) -> Dict:
    random = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=random, dtype=torch.float64)
        for name, shape in shapes.items()
    }


def io(features: Dict) -> dict[str, dict[str, Tensor]]:
    """Features as torchdistill takes them."""
    return {name: {"output": value} for name, value in features.items()}


def with_gradients(loss: Callable[[Dict], Tensor], student: Dict) -> list[Tensor]:
    """The value and the gradient of every feature of the student."""
    leaves = {name: value.clone().requires_grad_() for name, value in student.items()}
    value = loss({name: leaf * 1 for name, leaf in leaves.items()})  # torchdistill writes into it
    return [value.detach().squeeze(), *torch.autograd.grad(value.sum(), list(leaves.values()))]


def assert_alike(mine: Callable[[Dict], Tensor], other: Callable[[Dict], Tensor], x: Dict) -> None:
    for a, b in zip(with_gradients(mine, x), with_gradients(other, x), strict=True):
        assert float(b.abs().max()) > 0
        torch.testing.assert_close(a, b, **CLOSE)


@pytest.mark.parametrize("temperature", [1.0, 4.0, 20.0])
def test_kd(temperature: float) -> None:
    student, teacher = (random_features(seed, {"logits": (6, 10)}) for seed in (0, 1))
    labels = torch.arange(6)
    paths = ("logits", "output", "logits", "output", temperature)

    def mine(x: Dict) -> Tensor:
        return knowledge_distillation(x, teacher, temperature=temperature)

    whole = peer.KDLoss(*paths, alpha=0.1, beta=0.9)
    assert_alike(
        lambda x: 0.1 * cross_entropy(x["logits"], labels) + 0.9 * mine(x),
        lambda x: whole(io(x), io(teacher), labels),
        student,
    )
    # Without the cross-entropy it leaves T² out.
    bare = peer.KDLoss(*paths, alpha=0, beta=1)
    assert_alike(mine, lambda x: temperature**2 * bare(io(x), io(teacher), labels), student)


BLOCKS = {"block1": (3, 4, 8, 8), "block2": (3, 6, 4, 4), "block3": (3, 8, 2, 2)}


def test_at() -> None:
    student, teacher = (random_features(seed, BLOCKS) for seed in (0, 1))
    pairs = {
        name: {side: {"io": "output", "path": name} for side in ("student", "teacher")}
        for name in BLOCKS
    }
    theirs = peer.ATLoss(pairs, mode="code")
    assert_alike(
        lambda x: attention_transfer(x, teacher), lambda x: theirs(io(x), io(teacher)), student
    )


def test_at_of_other_sizes_pools_and_torchdistill_does_not() -> None:
    student = random_features(0, {"block1": (3, 4, 8, 8)})
    teacher = random_features(1, {"block1": (3, 6, 4, 4)})
    theirs = peer.ATLoss(
        {"one": {side: {"io": "output", "path": "block1"} for side in ("student", "teacher")}}
    )
    with pytest.raises(RuntimeError, match="size of tensor"):
        theirs(io(student), io(teacher))

    def pooled(x: Dict) -> Dict:
        return {"block1": adaptive_avg_pool2d(x["block1"], (4, 4))}

    assert_alike(
        lambda x: attention_transfer(x, teacher),
        lambda x: theirs(io(pooled(x)), io(teacher)),
        student,
    )


def test_sp_differs_by_the_norm_of_the_rows() -> None:
    shape = {"block3": (5, 4, 3, 3)}
    student, teacher = (random_features(seed, shape) for seed in (0, 1))

    def transcribed(x: Dict, order: float) -> Tensor:
        rows = [features["block3"].flatten(1) for features in (x, teacher)]
        grams = [normalize(values @ values.T, p=order) for values in rows]
        return torch.linalg.matrix_norm(grams[1] - grams[0]) ** 2 / 25

    assert_alike(lambda x: similarity_preserving(x, teacher), lambda x: transcribed(x, 2), student)
    theirs = peer.SPKDLoss("block3", "block3", "batchmean")
    assert_alike(lambda x: transcribed(x, 1), lambda x: theirs(io(x), io(teacher)), student)


def test_fsp_differs_by_pooling_and_norm() -> None:
    student, teacher = (random_features(seed, BLOCKS) for seed in (0, 1))
    steps = list(pairwise(BLOCKS))

    def flows(x: Dict, pool: Callable[[Tensor, tuple[int, int]], Tensor]) -> list[Tensor]:
        found = []
        for lower, upper in steps:
            bottom, top = pool(x[lower], x[upper].shape[2:]), x[upper]
            found.append((bottom.unsqueeze(2) * top.unsqueeze(1)).mean(dim=(3, 4)))
        return found

    def squares(x: Dict) -> Tensor:
        pairs = zip(flows(x, adaptive_avg_pool2d), flows(teacher, adaptive_avg_pool2d), strict=True)
        return sum((a - b).pow(2).mean() for a, b in pairs)  # type: ignore[return-value]

    assert_alike(lambda x: flow_of_solution(x, teacher), squares, student)

    def norms(x: Dict) -> Tensor:
        pairs = zip(flows(x, adaptive_max_pool2d), flows(teacher, adaptive_max_pool2d), strict=True)
        return sum((a - b).norm(dim=1).sum() for a, b in pairs) / 3

    theirs = peer.FSPLoss(
        {
            lower: {
                f"{side}_{place}": {"io": "output", "path": path}
                for side in ("student", "teacher")
                for place, path in (("first", lower), ("second", upper))
            }
            for lower, upper in steps
        }
    )
    assert_alike(norms, lambda x: theirs(io(x), io(teacher)), student)


def test_pkt() -> None:
    student = random_features(0, {"pooled": (7, 5)})
    teacher = random_features(1, {"pooled": (7, 9)})
    theirs = peer.PKTLoss("pooled", "output", "pooled", "output")
    assert_alike(
        lambda x: probabilistic_transfer(x, teacher),
        lambda x: theirs(io(x), io({"pooled": teacher["pooled"].clone()})),
        student,
    )


def test_pkt_of_an_example_without_activations_has_a_gradient() -> None:
    student = random_features(0, {"pooled": (4, 5)})
    student["pooled"][1] = 0
    teacher = random_features(1, {"pooled": (4, 5)})
    theirs = peer.PKTLoss("pooled", "output", "pooled", "output")
    value, gradient = with_gradients(lambda x: probabilistic_transfer(x, teacher), student)
    same, broken = with_gradients(
        lambda x: theirs(io(x), io({"pooled": teacher["pooled"].clone()})), student
    )
    torch.testing.assert_close(value, same, **CLOSE)
    assert bool(gradient.isfinite().all())
    assert bool(broken.isnan().any())


@pytest.mark.parametrize(("negatives", "whole"), [(8, False), (40, True)])
def test_crd_over_several_steps(negatives: int, whole: bool) -> None:
    """Losses, gradients, constants and banks, with both ways of computing scores."""
    n, dimension, size = 64, 5, 4
    student, teacher = (
        [random_features(start + step, {"pooled": (size, width)}) for step in range(3)]
        for start, width in ((0, 6), (10, 7))
    )
    setting = LossSetting(torch.arange(n) % 3, student[0], teacher[0], 0, size)
    mine = ContrastiveRepresentation(setting, negatives=negatives, dimension=dimension).double()
    assert mine.memory.multiplies_whole_banks is whole
    theirs = peer.CRDLoss("s", "input", "t", dimension, n, negatives, n).double()
    theirs.params[1] = 0.07
    theirs.memory_v1.copy_(mine.student_bank)
    theirs.memory_v2.copy_(mine.teacher_bank)
    for step in range(3):
        index = torch.tensor([3, 50, 3 + step * 7 + 1, 63])
        places = {"pos_idx": index, "contrast_idx": mine.contrasts(index)}

        def other(x: Dict, places: Dict = places, t: Dict = teacher[step]) -> Tensor:
            s = normalize(mine.student_projection(x["pooled"]))
            t_vectors = normalize(mine.teacher_projection(t["pooled"]))
            return theirs(
                {"s": {"output": s}, "input": {"input": places}}, {"t": {"output": t_vectors}}
            )

        def own(x: Dict, index: Tensor = index, t: Dict = teacher[step]) -> Tensor:
            return mine(x, t, BatchPositions(index, index % 3))

        assert_alike(own, other, student[step])
        torch.testing.assert_close(mine.student_bank, theirs.memory_v1, **CLOSE)
        torch.testing.assert_close(mine.teacher_bank, theirs.memory_v2, **CLOSE)
        torch.testing.assert_close(mine.log_constants.exp(), theirs.params[2:4], **CLOSE)


def test_crd_of_torchdistill_cannot_draw() -> None:
    """The difference that the docstring names; when this fails, the sentence can go."""
    theirs = peer.CRDLoss("s", "input", "t", 5, 64, 8, 64)
    with pytest.raises(AttributeError, match="prob"):
        theirs.draw(3)
