"""Small networks made by construction, in which rounding hurts one group in one layer or in all.

Eight products with weights carry a label's sign in a channel that everyone has. Some examples of
the group carry it in a channel of their own, which joins the common one by a weight that is a tenth
of its neighbour: rounding to 3 bits makes it 0, and these examples are decided by chance. Rounding
any layer also takes a little noise away, which turns a few predictions of everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LAYERS = 8
N, MEMBERS = 4000, 600
RELY = 0.3  # of the group rely on channels of their own: .9 of them right become .5, 12 points
SMALL = 0.1
NOISE = 0.004  # of a channel that means nothing and reaches the common one in every layer
BITS = 3


@dataclass(frozen=True)
class Planted:
    """A network as a file, and examples with their group."""

    file: Path
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    group: NDArray[np.str_]


def planted(folder: Path, seed: int, *, spread: bool) -> Planted:
    """Harm in layer 3 alone, or a share of it in each layer."""
    rng = np.random.default_rng([seed, spread])
    joins = list(range(LAYERS)) if spread else [3]
    file = folder / f"{'spread' if spread else 'one'}-{seed}.onnx"
    _write(file, _weights(rng, joins))
    labels = rng.integers(0, 2, N)
    member = np.zeros(N, dtype=bool)
    member[rng.permutation(N)[:MEMBERS]] = True
    sign = np.where(labels == 0, 1.0, -1.0)
    sign[rng.random(N) < 0.1] *= -1  # the network errs on a tenth
    signal = sign * rng.exponential(1.0, N)
    cause = rng.integers(0, len(joins), N)
    relies = member & (rng.random(N) < RELY)
    inputs = np.zeros((N, 2 + len(joins)))
    inputs[~relies, 0] = signal[~relies]
    inputs[:, 1] = rng.standard_normal(N)
    inputs[relies, 2 + cause[relies]] = signal[relies] / SMALL
    # What decides where nothing is left.
    inputs[:, 0] += rng.normal(0, 0.02, N)
    group = np.where(member, "few", "many")
    return Planted(file, inputs.astype(np.float32), labels, group)


def _weights(rng: np.random.Generator, joins: list[int]) -> list[NDArray[np.float32]]:
    """Of each layer (inputs, outputs); signs travel as two channels, above and below 0."""
    waiting = list(joins)  # channels that have not joined the common one
    made = []
    for layer in range(LAYERS):
        first, last = layer == 0, layer == LAYERS - 1
        kept = [join for join in waiting if join > layer]
        n_in = (2 + len(waiting)) * (1 if first else 2)
        n_out = 2 if last else 2 * (2 + len(kept))
        weight = np.zeros((n_in, n_out))

        channels = [(0, 0, 1.0), (1, 0, NOISE)]  # from, to, weight
        channels += [] if last else [(1, 1, 1.0)]
        for place, join in enumerate(waiting, start=2):
            own = join > layer
            target = 2 + kept.index(join) if own else 0
            channels.append((place, target, 1.0 if own else SMALL))
        for source, target, size in channels:
            for side in (0, 1):  # the output above 0, and the one below
                if first:
                    weight[source, 2 * target + side] = size if side == 0 else -size
                else:
                    weight[2 * source + side, 2 * target + side] = size
                    if last:
                        weight[2 * source + 1 - side, 2 * target + side] = -size
        noise = 1 + 0.04 * rng.standard_normal(weight.shape)
        made.append((weight * noise).astype(np.float32))
        waiting = kept
    return made


def _write(file: Path, weights: list[NDArray[np.float32]]) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, tensors, value = [], [], "image"
    for place, weight in enumerate(weights):
        tensors.append(numpy_helper.from_array(weight, f"layer{place}.weight"))
        out = "logits" if place == len(weights) - 1 else f"sum{place}"
        nodes.append(helper.make_node("MatMul", [value, f"layer{place}.weight"], [out]))
        value = out
        if place < len(weights) - 1:
            nodes.append(helper.make_node("Relu", [out], [f"value{place}"]))
            value = f"value{place}"
    graph = helper.make_graph(
        nodes,
        "planted",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", weights[0].shape[0]])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.save(model, str(file))
