"""ONNX files: read with an error that names the file, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.tables.write import atomic_file

if TYPE_CHECKING:
    import onnx


def read_onnx(path: str | Path) -> onnx.ModelProto:
    """The model in a file, its external data included."""
    import onnx
    from google.protobuf.message import DecodeError

    file = Path(path)
    if not file.is_file():
        raise InputError(f"There is no ONNX file '{file}'; check the path.")
    try:
        model = onnx.load(str(file))
        onnx.checker.check_model(model)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise unreadable(file, error) from None
    return model


def unreadable(file: str | Path, error: Exception) -> InputError:
    """What to say of a file that is no ONNX model, or only the first part of one."""
    said = " ".join(str(error).split())[:200]
    return InputError(
        f"'{file}' cannot be read as an ONNX model ({said}); it may be cut off or of another "
        "kind: export it again."
    )


def write_onnx(model: onnx.ModelProto, path: str | Path) -> Path:
    """Write a model without what the exporter noted about the machine that made it.

    Exporters store stack traces, with the paths of source files, in every node; and types of
    initialisers, which quantisation makes wrong.
    """
    graph: Any = model.graph
    model.doc_string = ""
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info):
        part.doc_string = ""
        del part.metadata_props[:]
    initialisers = {tensor.name for tensor in graph.initializer}
    kept = [info for info in graph.value_info if info.name not in initialisers]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    with atomic_file(path, "wb") as file:
        file.write(model.SerializeToString())
    return Path(path)


def only_input(model: onnx.ModelProto, where: str) -> str:
    """The name of the one input; an error if there are none or several."""
    initialisers = {tensor.name for tensor in model.graph.initializer}
    names = [held.name for held in model.graph.input if held.name not in initialisers]
    return one_input(names, where)


def one_input(names: list[str], where: str) -> str:
    """The only name of a list of inputs."""
    if len(names) != 1:
        shown = ", ".join(f"'{name}'" for name in names) or "none"
        raise InputError(
            f"{where} has {len(names)} inputs ({shown}), but predictions are made from one: the "
            "images; export a model with one input."
        )
    return names[0]
