"""The units of an ONNX model: what can be compressed, or left as it is, by itself.

A unit is a node with weights and the weightless nodes that follow it, or the block that their
names share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.onnx_models import source_of

if TYPE_CHECKING:
    import onnx

Level: TypeAlias = Literal["layer", "block"]
LEVELS: tuple[Level, ...] = ("layer", "block")
WEIGHTED = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True)
class Unit:
    """Nodes that are compressed together.

    name     the layer's, as the exporter wrote it, or the block's
    layers   names of the layers in it
    nodes    names of all its nodes, the weightless ones too
    weights  names of the stored tensors that its layers multiply by
    """

    name: str
    layers: tuple[str, ...]
    nodes: tuple[str, ...]
    weights: tuple[str, ...]


def name_nodes(model: onnx.ModelProto) -> None:
    """Give every node a name of its own, in place: units are lists of these names."""
    used: set[str] = set()
    for number, node in enumerate(model.graph.node):
        if not node.name or node.name in used:
            node.name = f"{node.op_type}_{number}"
            while node.name in used:
                node.name += "_"
        used.add(node.name)


def units_of(model: onnx.ModelProto, where: str, level: Level = "layer") -> tuple[Unit, ...]:
    """The units in the order of the network; its nodes must have names (`name_nodes`).

    A weightless node belongs to the last unit that it reads from (the first, where it reads the
    images).

    Parameters
    ----------
    where
        How messages call the model.
    """
    if level not in LEVELS:
        raise UnknownNameError("The kind of unit", level, LEVELS)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    made = {name: node for node in model.graph.node for name in node.output}
    weights: dict[str, str] = {}  # of a node with weights: the tensor
    for node in model.graph.node:
        if node.op_type in WEIGHTED:
            source, _ = source_of(node.input[1], None, stored, made)
            if source is not None and len(stored[source].dims) > 1:
                weights[node.name] = source
    if not weights:
        raise InputError(
            f"{where} has no convolution or product with weights of its own, so there is nothing "
            "to compress; give a float model (quantised files hold other operators)."
        )
    layers = _layer_names(weights)
    blocks = {node: name if level == "layer" else block_of(name) for node, name in layers.items()}
    order = list(dict.fromkeys(blocks.values()))
    place: dict[str, int] = {}  # the unit of whatever a node has made
    nodes: list[list[str]] = [[] for _ in order]
    for node in model.graph.node:
        if node.name in blocks:
            own = order.index(blocks[node.name])
        else:
            own = max((place[name] for name in node.input if name in place), default=0)
        for name in node.output:
            place[name] = own
        nodes[own].append(node.name)
    units = []
    for name, members in zip(order, nodes, strict=True):
        held = [node for node in members if node in layers]
        own_weights = tuple(dict.fromkeys(weights[node] for node in held))
        units.append(Unit(name, tuple(layers[node] for node in held), tuple(members), own_weights))
    owner: dict[str, Unit] = {}
    for unit in units:
        for weight in unit.weights:
            other = owner.setdefault(weight, unit)
            if other is not unit:
                raise InputError(
                    f"In {where} the units '{other.name}' and '{unit.name}' share the weights "
                    f"'{weight}', so that neither can be left out alone; take whole blocks "
                    "(--unit block), or export the model with weights of their own."
                )
    return tuple(units)


def _layer_names(weights: dict[str, str]) -> dict[str, str]:
    """Names of layers by their nodes: the weight's path, or the node's own name.

    Exporters call weights after their layer (`layer1.0.conv1.weight`), or give them a number.
    """
    named: dict[str, str] = {}
    for node, weight in weights.items():
        stem = weight
        for ending in (".weight", "/weight", "_weight", ".w", "/kernel"):
            stem = stem.removesuffix(ending)
        numbered = "::" in weight or weight.isdecimal() or stem == weight
        named[node] = node if numbered else stem
    names = list(named.values())
    seen: dict[str, int] = {}
    for node, name in named.items():
        if names.count(name) > 1:  # weights that two layers share
            seen[name] = seen.get(name, 0) + 1
            named[node] = f"{name}:{seen[name]}"
    return named


def block_of(name: str) -> str:
    """The block of a layer, by its name: up to the first number, else all but the last part.

    >>> [block_of(name) for name in ("layer1.0.conv1", "layer1.0.downsample.0", "stem.conv", "fc")]
    ['layer1.0', 'layer1.0', 'stem', 'fc']
    >>> block_of("/features/3/conv/Conv")
    'features.3'
    """
    parts = name.strip("/").replace("/", ".").split(".")
    for place, part in enumerate(parts):
        if part.isdecimal() and place:
            return ".".join(parts[: place + 1])
    return ".".join(parts[:-1]) or parts[0]


def chosen_layers(layers: Sequence[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """The layers that fit any pattern and none of those that begin with `!`.

    A name stands for everything inside it; patterns that only leave out start from all.

    >>> chosen_layers(["stem.conv", "block.0.conv", "fc"], ["!stem"])
    ('block.0.conv', 'fc')
    """
    given = tuple(patterns)

    def fitting(pattern: str) -> set[str]:
        if pattern in ("@first", "@last"):
            return {layers[0 if pattern == "@first" else -1]}
        path = pattern.removesuffix(".weight")
        found = {name for name in layers if fnmatchcase(name, path)}
        found |= {name for name in layers if fnmatchcase(name, f"{path}.*")}
        if not found:
            raise UnknownNameError("The layer in layers", pattern, layers)
        return found

    wanted = [pattern for pattern in given if not pattern.startswith("!")] or ["*"]
    taken = set[str]().union(*(fitting(pattern) for pattern in wanted))
    for pattern in given:
        if pattern.startswith("!"):
            taken -= fitting(pattern[1:])
    return tuple(name for name in layers if name in taken)
