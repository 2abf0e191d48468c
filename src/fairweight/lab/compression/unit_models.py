"""One network as many models: in each of them only some units are compressed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression.pruner import masks_due
from fairweight.lab.compression.quantisation import RoundedUnits
from fairweight.lab.compression.registry import Method, PartlyCompressed, method_of
from fairweight.lab.compression.schedules import due
from fairweight.lab.masks import weight_name
from fairweight.lab.onnx_models import read_onnx, write_onnx
from fairweight.lab.units import Level, Unit, name_nodes, units_of
from fairweight.specs.compression import OneShot

if TYPE_CHECKING:
    import onnx

FLOAT_BYTES = 4
MOST_BITS = 16  # of weights that are rounded


class UnitModels:
    """Models made of a float ONNX file, without training, in which only some units are compressed.

    Parameters
    ----------
    source
        The float file.
    spec
        What is done to a unit. Pruning is one-shot and without finetuning, since a finetuned copy
        has other weights everywhere; a unit's own share is what the whole compression takes of it.
    inputs
        Calibration examples as the model takes them.
    folder
        Where what all models share is kept, such as the ranges of activations.
    level
        Whether a unit is a layer or a block.
    network
        The module that the file was exported from, if there is one: pruning then chooses by its
        weights, before batch norms became part of them.
    """

    def __init__(
        self,
        source: Path,
        spec: Any,
        inputs: NDArray[Any],
        folder: Path,
        *,
        level: Level = "layer",
        network: nn.Module | None = None,
    ) -> None:
        self.method: Method = method_of(spec)
        self.spec = spec
        self._network = network
        self._saved: dict[frozenset[str], int] = {}
        own = Path(tempfile.mkdtemp(prefix="units-", dir=folder))
        named = read_onnx(source)
        name_nodes(named)
        # Written and read again, without what the exporter noted: sizes are compared with it.
        self.float_model = read_onnx(write_onnx(named, own / "float.onnx"))
        self.units = units_of(self.float_model, f"'{source}'", level)
        self._compressed: Callable[[Sequence[Unit]], PartlyCompressed]
        if self.method.acts_on == "weights":
            self._compressed = _Pruned(self.float_model, spec, self.units, network)
        elif self.method.by_unit is None:
            raise InputError(
                f"{self.method.name} compresses whole files and cannot leave units out; use "
                "another method (fairweight methods lists them)."
            )
        else:
            self._compressed = self.method.by_unit(self.float_model, spec, inputs, own)

    @property
    def simulated(self) -> bool:
        """Whether no speed is claimed: zeros and rounded floats bring none."""
        return self.method.acts_on == "weights" or self.method.simulated

    @property
    def float_bytes(self) -> int:
        return int(self.float_model.ByteSize())

    def of(self, names: Collection[str]) -> PartlyCompressed:
        """The model in which the units of these names are compressed and the others are not."""
        known = [unit.name for unit in self.units]
        for name in names:
            if name not in known:
                raise UnknownNameError("The unit", name, known)
        chosen = [unit for unit in self.units if unit.name in names]
        if not chosen:
            return PartlyCompressed(self.float_model, 0, {})
        made = self._compressed(chosen)
        self._saved[frozenset(names)] = made.saved_bytes
        return made

    def saved_bytes(self, names: Collection[str]) -> int:
        """What compressing these units saves; a model that was made is not made again for it."""
        which = frozenset(names)
        return self._saved[which] if which in self._saved else self.of(which).saved_bytes

    def weaker(self, size: int) -> PartlyCompressed | None:
        """Every unit compressed less, for a model of about this size; None where there is none.

        Pruning removes a smaller share. Numbers get more bits: of weights alone, simulated, since
        no engine has every width.
        """
        wanted = self.float_bytes - size
        if self.method.acts_on == "weights":
            saved = self.of([unit.name for unit in self.units]).saved_bytes
            if not saved or "sparsity" not in {one.name for one in fields(self.spec)}:
                return None
            share = self.spec.sparsity * max(0.0, min(1.0, wanted / saved))
            spec = replace(self.spec, sparsity=share)
            return _Pruned(self.float_model, spec, self.units, self._network)(self.units)
        least = getattr(self.spec, "bits", 1) + 1
        found = [
            RoundedUnits(self.float_model, bits)(self.units) for bits in range(least, MOST_BITS + 1)
        ]
        return min(found, key=lambda made: abs(made.saved_bytes - wanted))

    def layers(self, names: Collection[str]) -> tuple[str, ...]:
        """The layers of some units, which do not depend on whether units are layers or blocks."""
        return tuple(layer for unit in self.units if unit.name in names for layer in unit.layers)


class _Pruned:
    """Weights of some units masked, as the whole pruning would mask them."""

    def __init__(
        self, model: onnx.ModelProto, spec: Any, units: Sequence[Unit], network: nn.Module | None
    ) -> None:
        if not isinstance(spec.schedule, OneShot):
            raise InputError(
                f"The schedule '{spec.schedule.kind}' prunes while a model trains, which changes "
                "weights everywhere; leave the schedule out to prune units at once."
            )
        self._model = model
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        step = due(spec.schedule, spec.sparsity, 1)
        of_weight = {
            weight: layer
            for unit in units
            for layer, weight in zip(unit.layers, unit.weights, strict=False)
        }
        turned = {  # weights of products that are stored with their inputs first
            node.input[1]
            for node in model.graph.node
            if node.op_type in ("MatMul", "Gemm")
            and not any(one.name == "transB" and one.i for one in node.attribute)
        }
        if network is None:
            stand_in = _StandIn()
            for weight, layer in of_weight.items():
                stand_in.add(layer, self._values(weight, weight in turned))
            masks = masks_due(stand_in, spec, step)
            self._masks = {
                weight: _oriented(masks[weight_name(layer)], weight in turned)
                for weight, layer in of_weight.items()
                if weight_name(layer) in masks
            }
        else:
            self._masks = self._of_network(masks_due(network, spec, step), turned)
        self._gone = {name: int((~mask).sum()) for name, mask in self._masks.items()}

    def _values(self, name: str, turned: bool) -> Tensor:
        from onnx import numpy_helper

        values = np.array(numpy_helper.to_array(self._tensors[name]))
        return torch.from_numpy(np.ascontiguousarray(values.T if turned else values))

    def _of_network(
        self, masks: Mapping[str, Tensor], turned: Collection[str]
    ) -> dict[str, NDArray[np.bool_]]:
        """Masks of a module's parameters as masks of the file's tensors of the same names."""
        found = {}
        for name, mask in masks.items():
            tensor = self._tensors.get(name)
            made = None if tensor is None else _oriented(mask, name in turned)
            if tensor is None or made is None or made.shape != tuple(tensor.dims):
                raise InputError(
                    f"The exported file has no weights '{name}' as the network has them, so they "
                    "cannot be pruned unit by unit; give the network as an ONNX file of its own."
                )
            found[name] = made
        return found

    def __call__(self, units: Sequence[Unit]) -> PartlyCompressed:
        import onnx
        from onnx import numpy_helper

        made = onnx.ModelProto()
        made.CopyFrom(self._model)
        own = {weight for unit in units for weight in unit.weights} & self._masks.keys()
        for tensor in made.graph.initializer:
            if tensor.name in own:
                values = numpy_helper.to_array(tensor) * self._masks[tensor.name]
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        return PartlyCompressed(made, FLOAT_BYTES * sum(self._gone[name] for name in own), {})


class _StandIn(nn.Module):
    """Layers that hold weights by their paths: what pruning methods look at."""

    def add(self, path: str, weight: Tensor) -> None:
        kinds = {2: nn.Linear(1, 1), 3: nn.Conv1d(1, 1, 1), 5: nn.Conv3d(1, 1, 1)}
        layer: nn.Module = kinds.get(weight.dim(), nn.Conv2d(1, 1, 1))
        layer.weight = nn.Parameter(weight, requires_grad=False)
        *parents, name = path.strip("/").replace("/", ".").split(".")
        module: nn.Module = self
        for part in parents:
            if not hasattr(module, part):
                module.add_module(part, nn.Module())
            module = getattr(module, part)
        module.add_module(name, layer)


def _oriented(mask: Tensor, turned: bool) -> NDArray[np.bool_]:
    made = mask.cpu().numpy()
    return np.ascontiguousarray(made.T if turned else made)
