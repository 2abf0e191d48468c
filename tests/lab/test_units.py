"""Units of a network: layers with what follows them, blocks by name, and what is refused."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.units import chosen_layers, name_nodes, units_of

np = pytest.importorskip("numpy")


def network(weights: dict[str, str], joins: dict[str, list[str]]) -> onnx.ModelProto:
    """Products in a row (output by weight), then weightless nodes (output by inputs)."""
    tensors, nodes, value = [], [], "x"
    for out, name in weights.items():
        if name not in [tensor.name for tensor in tensors]:
            tensors.append(numpy_helper.from_array(np.eye(3, dtype=np.float32), name))
        nodes.append(helper.make_node("MatMul", [value, name], [out]))
        value = out
    for out, inputs in joins.items():
        nodes.append(helper.make_node("Relu" if len(inputs) == 1 else "Add", inputs, [out]))
    info: Any = helper.make_tensor_value_info
    last = nodes[-1].output[0]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, ["n", 3])],
        [info(last, TensorProto.FLOAT, ["n", 3])],
        tensors,
    )
    made = helper.make_model(graph)
    name_nodes(made)
    return made


def test_a_weightless_node_belongs_to_the_last_unit_that_it_reads() -> None:
    made = network(
        {"a": "stem.weight", "b": "body.0.weight"}, {"r": ["a"], "s": ["r", "b"], "t": ["s"]}
    )
    stem, body = units_of(made, "the model")
    assert (stem.name, body.name) == ("stem", "body.0")
    assert [node.split("_")[0] for node in stem.nodes] == ["MatMul", "Relu"]
    assert [node.split("_")[0] for node in body.nodes] == ["MatMul", "Add", "Relu"]
    assert stem.weights == ("stem.weight",)


def test_blocks_are_what_names_share() -> None:
    weights = {"a": "stem.conv.weight", "b": "body.0.a.weight", "c": "body.0.b.weight"}
    made = network({**weights, "d": "fc.weight"}, {})
    assert [unit.name for unit in units_of(made, "it", "block")] == ["stem", "body.0", "fc"]
    assert units_of(made, "it", "block")[1].layers == ("body.0.a", "body.0.b")
    with pytest.raises(UnknownNameError, match="kind of unit"):
        units_of(made, "it", "stage")  # type: ignore[arg-type]


def test_weights_without_a_path_are_called_after_their_nodes() -> None:
    made = network({"a": "onnx::MatMul_3", "b": "onnx::MatMul_4"}, {})
    assert [unit.name for unit in units_of(made, "it")] == ["MatMul_0", "MatMul_1"]


def test_shared_weights_cannot_be_left_out_alone() -> None:
    made = network({"a": "x.0.tied.weight", "b": "x.0.tied.weight"}, {})
    said = r"units 'x.0.tied:1' and 'x.0.tied:2' share .*--unit block"
    with pytest.raises(InputError, match=said):
        units_of(made, "it")
    assert [unit.name for unit in units_of(made, "it", "block")] == ["x.0"]


def test_a_model_without_weights_has_no_units() -> None:
    made = network({"a": "w.weight"}, {})
    del made.graph.initializer[:]
    with pytest.raises(InputError, match="nothing to compress"):
        units_of(made, "'net.onnx'")


def test_layers_by_patterns() -> None:
    layers = ["stem.conv", "body.0.a", "body.0.b", "fc"]
    assert chosen_layers(layers, ["body"]) == ("body.0.a", "body.0.b")
    assert chosen_layers(layers, ["*", "!@last", "!@first"]) == ("body.0.a", "body.0.b")
    with pytest.raises(UnknownNameError, match="boddy"):
        chosen_layers(layers, ["!boddy"])
