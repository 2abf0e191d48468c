"""Models of every kind that can be run: modules, functions, estimators, folders, files."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from fairweight.base.trust import require_file
from fairweight.errors import InputError
from fairweight.lab.artifacts import CARD, MASKS, WEIGHTS, Card, Outputs, card_from_json, load
from fairweight.lab.batches import Scaling, as_array, as_floats
from fairweight.lab.onnx_models import KEY, one_input, unreadable
from fairweight.tables.canonical import canonical

# Digests by which an interrupted run knows that it goes on with the same models.

CHUNK = 1 << 20


def digest_of_files(files: Iterable[Path]) -> str:
    """Digest of the names and contents of files."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.name.encode())
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                total.update(chunk)
    return total.hexdigest()


def digest_of_module(model: nn.Module) -> str:
    """Digest of a module's printed structure and of all its tensors, quantised ones too."""
    total = hashlib.sha256(f"{type(model).__module__}.{model!r}".encode())

    def add(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            value = value.detach().cpu()
            total.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
            if is_traceable_wrapper_subclass(value):  # torchao's, made of plain tensors
                parts, context = value.__tensor_flatten__()
                total.update(repr(context).encode())
                for part in parts:
                    add(part, getattr(value, part))
                return
            if value.is_quantized:  # torch's own: whole numbers, and how they are scaled
                per_channel = value.qscheme() in (torch.per_channel_affine,)
                scale = value.q_per_channel_scales() if per_channel else value.q_scale()
                zero = value.q_per_channel_zero_points() if per_channel else value.q_zero_point()
                total.update(f"{value.qscheme()}{scale}{zero}".encode())
                value = value.int_repr()
            # As bytes, because numpy does not know every type of torch.
            total.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        elif isinstance(value, tuple | list):  # packed weights and biases
            for place, part in enumerate(value):
                add(f"{name}.{place}", part)
        else:
            total.update(f"{name}{value!r}".encode())

    for name, value in model.state_dict().items():
        add(name, value)
    return total.hexdigest()


# What every kind of model becomes: a function of a batch, and what is known of it.


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to predict.

    run        a batch of inputs to outputs, one row per example
    classes    names of the outputs in their order; None where the model does not say
    tasks      whether the outputs are several binary tasks; None where it does not say
    outputs    what they are; None where it does not say
    identity   digest of everything that decides the answers; None where that cannot be known
    by_value   whether whole numbers among the labels are names of classes, not their places
    """

    run: Callable[[Any], NDArray[Any]]
    classes: tuple[str, ...] | None = None
    tasks: bool | None = None
    outputs: Outputs | None = None
    identity: str | None = None
    by_value: bool = False


# Torch modules in memory.


def open_module(
    model: nn.Module, shown: str, *, scaling: Scaling | None, device: str, card: Card | None = None
) -> Loaded:
    """A module as it is now; it is put into evaluation mode for each batch and back."""
    model.to(device)
    card = card or Card()
    scaling = card.preprocessing or scaling
    return Loaded(
        run=runner(model, shown, scaling=scaling, device=device),
        classes=card.classes or None,
        tasks=card.tasks if card.classes else None,
        outputs=card.outputs if card.classes else None,
        identity=f"{digest_of_module(model)}{scaling}",
    )


def runner(
    model: nn.Module, shown: str, *, scaling: Scaling | None, device: str
) -> Callable[[Any], NDArray[Any]]:
    """A function from a batch to the logits as an array."""

    def run(inputs: Any) -> NDArray[Any]:
        images = as_floats(inputs, scaling, shown).to(device)
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                output = tensor_of(model(images), shown)
        except RuntimeError as error:
            said = (str(error).strip().splitlines() or ["no reason given"])[0][:300]
            raise InputError(
                f"{shown} cannot take a batch of shape {tuple(images.shape)} ({said}); give "
                "images of the size and channels that it was trained on."
            ) from error
        finally:
            model.train(training)
        return output.detach().to(torch.float32).cpu().numpy()

    return run


def tensor_of(output: Any, shown: str) -> Tensor:
    """The logits in what a module returned: a tensor, or an object or dict that holds them."""
    if isinstance(output, Tensor):
        return output
    held = output.get("logits") if isinstance(output, dict) else getattr(output, "logits", None)
    if isinstance(held, Tensor):
        return held
    raise InputError(
        f"{shown} returns {type(output).__name__}; it must return logits as one tensor, or an "
        "object with 'logits'."
    )


def open_artefact(folder: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """The model of a folder; its own scaling of pixels comes before the one given."""
    model, card = load(folder)
    opened = open_module(model, shown, scaling=scaling, device=device, card=card)
    files = [folder / name for name in (CARD, WEIGHTS, MASKS) if (folder / name).is_file()]
    return replace(
        opened,
        outputs=card.outputs,
        identity=f"{digest_of_files(files)}{card.preprocessing or scaling}",
    )


# Models that take one batch size only, asked with batches of any size.

Run = Callable[[NDArray[Any]], NDArray[Any]]


def in_batches_of(size: int, run: Run) -> Run:
    """A function that calls `run` with exactly `size` rows at a time.

    The last batch is filled up with its own last row, and what that adds is cut off.

    >>> doubled = in_batches_of(2, lambda rows: rows * 2)
    >>> doubled(np.array([[1], [2], [3]])).tolist()
    [[2], [4], [6]]
    """

    def fitted(rows: NDArray[Any]) -> NDArray[Any]:
        answers = []
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            missing = size - len(batch)
            filled = np.concatenate([batch, np.repeat(batch[-1:], missing, axis=0)])
            answers.append(run(filled)[: len(batch)])
        return np.concatenate(answers) if answers else run(rows)

    return fitted


# `.pt2` files of `torch.export.save`.


def open_program(file: Path, shown: str) -> ExportedProgram:
    """An exported program. Torch may unpickle parts of such a file: it must be trusted by name."""
    if not file.is_file():
        raise InputError(f"There is no file '{file}'; check the path.")
    require_file(file, shown)
    try:
        return torch.export.load(str(file))
    except Exception as error:  # torch raises whatever its archive reader meets
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{file}' cannot be read as an exported program ({said}); write it again with "
            "torch.export.save."
        ) from None


def open_exported(file: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """A model that runs an exported program."""
    program = open_program(file, shown)
    name = one_input(list(program.graph_signature.user_inputs), shown)
    size = next(n.meta["val"].shape[0] for n in program.graph.nodes if n.name == name)
    module = program.module().to(device)

    def run_one(batch: NDArray[Any]) -> NDArray[Any]:
        images = torch.from_numpy(batch).to(device)
        try:
            with torch.inference_mode():
                output = tensor_of(module(images), shown)
        except (AssertionError, RuntimeError) as error:  # torch's guards are assertions
            said = " ".join(str(error).split())[:200]
            raise InputError(
                f"{shown} cannot take a batch of shape {tuple(images.shape)} ({said}); give "
                "images as it was exported for."
            ) from error
        return output.detach().to(torch.float32).cpu().numpy()

    run = in_batches_of(size, run_one) if isinstance(size, int) else run_one
    return Loaded(
        run=lambda inputs: run(as_floats(inputs, scaling, shown).cpu().numpy()),
        identity=f"{digest_of_files([file])}{scaling}",
    )


# Image classifiers in the layout of Hugging Face, where `transformers` is installed.

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"


def open_hugging_face(folder: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """A folder with config.json and safetensors; nothing is downloaded and no code of it is run.

    Classes come from its `id2label`, the scaling of pixels from its image processor. Images are
    not resized: give them in the size that the model was trained on.
    """
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError:
        raise InputError(
            f"{shown} is a Hugging Face model, which needs transformers: pip install transformers."
        ) from None
    kept: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model: nn.Module = transformers.AutoModelForImageClassification.from_pretrained(
            str(folder), use_safetensors=True, **kept
        )
        processor = (
            transformers.AutoImageProcessor.from_pretrained(str(folder), **kept)
            if (folder / PROCESSOR).is_file()
            else None
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{folder}' cannot be read as an image classifier ({said}); save it again with "
            "save_pretrained."
        ) from None
    config: Any = model.config
    names = {int(index): str(name) for index, name in config.id2label.items()}
    # Mean and deviation of pixels from 0 to 1, as the processor says; None if it does not.
    own = None
    factor = 255 * getattr(processor, "rescale_factor", 1 / 255)  # of what 0 to 1 becomes
    if processor is not None and factor and getattr(processor, "do_normalize", False):
        means, deviations = processor.image_mean, processor.image_std
        own = Scaling(tuple(m / factor for m in means), tuple(s / factor for s in deviations))
    card = Card(
        classes=tuple(names[index] for index in sorted(names)),
        preprocessing=own,
        tasks=getattr(config, "problem_type", None) == "multi_label_classification",
    )
    opened = open_module(model, shown, scaling=scaling, device=device, card=card)
    files = sorted(file for file in folder.iterdir() if file.is_file())
    return replace(opened, identity=f"{digest_of_files(files)}{own or scaling}")


# ONNX files, run by ONNX Runtime on the CPU.

LOGITS = "logits"
_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True)
class OnnxInput:
    """How an ONNX file is asked: one input, and one output or `logits`.

    sizes    as the file gives them, text or None where free; empty where it gives none
    type     of the numbers that it takes
    """

    name: str
    sizes: tuple[Any, ...]
    type: Any
    output: str

    @classmethod
    def of(cls, session: Any, shown: str) -> OnnxInput:
        described = session.get_inputs()
        name = one_input([held.name for held in described], shown)
        names = [held.name for held in session.get_outputs()]
        if len(names) > 1 and LOGITS not in names:
            listed = ", ".join(f"'{one}'" for one in names)
            raise InputError(
                f"{shown} has {len(names)} outputs ({listed}) and none is called '{LOGITS}'; "
                "export it with one output."
            )
        kind = described[0].type
        if kind not in _TYPES:
            raise InputError(f"{shown} takes {kind}; a model that takes floats is needed.")
        output = LOGITS if len(names) > 1 else names[0]
        return cls(name, tuple(described[0].shape), _TYPES[kind], output)

    def array(self, inputs: Any, scaling: Scaling | None, shown: str) -> NDArray[Any]:
        """A batch in the type and the order of axes that the file takes; bytes are scaled."""
        images = as_floats(inputs, scaling, shown).cpu().numpy()
        if _channels_last(self.sizes) and not _channels_last(images.shape):
            images = images.transpose(0, 2, 3, 1)
        return np.ascontiguousarray(images, dtype=self.type)

    def runner(self, session: Any, shown: str) -> Run:
        """A function from a batch of any size to the file's output."""

        def run(batch: NDArray[Any]) -> NDArray[Any]:
            try:
                return np.asarray(session.run([self.output], {self.name: batch})[0])
            except Exception as error:  # ONNX Runtime's exceptions have no other common base
                side = self.sizes[-2] if len(self.sizes) == 4 else None  # height, or width
                other = isinstance(side, int) and side not in batch.shape
                option = f"size={side}" if other else ""
                if (
                    len(self.sizes) == 4
                    and 1 in (self.sizes[1], self.sizes[3])
                    and 3 in batch.shape
                ):
                    option = "greyscale=true"
                size = f" (folders of images: --dataset-option {option})" if option else ""
                raise InputError(
                    f"{shown} cannot take a batch of shape {batch.shape}; it takes "
                    f"{list(self.sizes)}{size}: {' '.join(str(error).split())[:200]}"
                ) from error

        return run if self.batch_size is None else in_batches_of(self.batch_size, run)

    @property
    def batch_size(self) -> int | None:
        """The only size of batches that it takes; None where any."""
        return self.sizes[0] if self.sizes and isinstance(self.sizes[0], int) else None


def open_onnx(file: Path, shown: str, *, scaling: Scaling | None) -> Loaded:
    """A session with as many threads as torch has; one input, and one output or `logits`."""
    session = session_of(file, threads=torch.get_num_threads())
    wanted = OnnxInput.of(session, shown)
    held = session.get_modelmeta().custom_metadata_map.get(KEY)
    card = Card() if held is None else card_from_json(held, f"The card in '{file}'")
    scaling = card.preprocessing or scaling
    run = wanted.runner(session, shown)
    return Loaded(
        run=lambda inputs: run(wanted.array(inputs, scaling, shown)),
        classes=card.classes or None,
        tasks=card.tasks if card.classes else None,
        outputs=None if held is None else card.outputs,
        identity=f"{digest_of_files([file])}{scaling}",
    )


def session_of(file: str | Path, *, threads: int) -> Any:
    """An ONNX Runtime session on the CPU; an error that names the file if it is no model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; they are raised as well
    if not Path(file).is_file():
        raise InputError(f"There is no ONNX file '{file}'; check the path.")
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions have no other common base
        raise unreadable(file, error) from None


def _channels_last(sizes: Sequence[Any]) -> bool:
    """Whether a shape says (N, H, W, C): few channels at its end and not in second place."""
    if len(sizes) != 4:
        return False
    few = (1, 3, 4)
    return sizes[3] in few and sizes[1] not in few


# Classifiers of scikit-learn, and of packages that have its methods.


def open_estimator(estimator: Any, shown: str) -> Loaded:
    """A fitted classifier: probabilities where it gives them, else its predictions.

    Labels are the values that it was fitted on. Where these are 0, 1, 2 …, places say the same.
    """
    held = getattr(estimator, "classes_", None)
    if held is None:
        raise InputError(
            f"{shown} is a {type(estimator).__name__} without classes_: it is no classifier, or it "
            "was not fitted; fit it, or give a function of a batch that returns classes."
        )
    if isinstance(held, list):
        raise InputError(
            f"{shown} predicts {len(held)} labels at once; give one estimator per label."
        )
    values = np.asarray(held)
    classes = tuple(canonical(value) or "" for value in values.tolist())
    in_places = values.dtype.kind == "b" or values.tolist() == list(range(len(values)))
    has_shares = hasattr(estimator, "predict_proba")

    def run(inputs: Any) -> NDArray[Any]:
        batch = as_array(inputs) if isinstance(inputs, Tensor) else inputs
        try:
            if has_shares:
                return np.asarray(estimator.predict_proba(batch), dtype=np.float64)
            predicted = np.asarray(estimator.predict(batch))
        except (ValueError, TypeError) as error:
            said = " ".join(str(error).split())[:200]
            raise InputError(
                f"{shown} cannot take a batch of shape {np.shape(batch)} ({said}); give rows of "
                "the features that it was fitted on: (N, features)."
            ) from error
        return np.array([canonical(value) for value in predicted.tolist()], dtype=object)

    return Loaded(
        run=run,
        classes=classes,
        tasks=False,
        outputs="probabilities" if has_shares else None,
        by_value=not in_places,
    )


# Any model as it was given: a module, a function, an estimator, or a path, by its kind.


class Estimator(Protocol):
    """A fitted classifier of scikit-learn."""

    def predict(self, rows: Any, /) -> Any: ...


Model: TypeAlias = nn.Module | Loaded | Callable[[Any], Any] | Estimator | str | os.PathLike[str]

PICKLES = frozenset({".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle", ".joblib"})
KINDS = (
    "a folder that `train` or `compress` wrote, its weights.safetensors, .onnx, .pt2, .tflite, or "
    "a Hugging Face folder"
)


def open_model(
    given: Model, name: str, *, scaling: Scaling | None = None, device: str = "cpu"
) -> Loaded:
    """Open a model of any kind, so that it is ready to predict.

    Parameters
    ----------
    name
        How messages call it.
    scaling
        How bytes of images are scaled for models that do not say it themselves. Functions get
        batches as they come.
    """
    shown = f"The model '{name}'"
    if isinstance(given, Loaded):
        return given
    if isinstance(given, nn.Module):
        return open_module(given, shown, scaling=scaling, device=device)
    if isinstance(given, str | os.PathLike):
        return _open_path(Path(given), shown, scaling, device)
    if callable(given):
        function = given

        def run(inputs: Any) -> NDArray[Any]:
            with torch.inference_mode():
                output = function(inputs)
            if isinstance(output, dict) or hasattr(output, "logits"):
                output = tensor_of(output, shown)
            return as_array(output)

        return Loaded(run=run)
    if hasattr(given, "predict"):
        return open_estimator(given, shown)
    raise InputError(
        f"{shown} is given as {type(given).__name__}; give a module, a function of a batch, a "
        f"scikit-learn classifier, or a path: {KINDS}."
    )


def _open_path(path: Path, shown: str, scaling: Scaling | None, device: str) -> Loaded:
    if not path.exists():
        raise InputError(f"{shown}: there is no '{path}'; check the path.")
    if path.is_dir():
        if (path / CARD).is_file():
            return open_artefact(path, shown, scaling=scaling, device=device)
        if (path / CONFIG).is_file():
            return open_hugging_face(path, shown, scaling=scaling, device=device)
        raise InputError(
            f"{shown}: the folder '{path}' has neither {CARD} nor {CONFIG}; give {KINDS}."
        )
    kind = path.suffix.lower()
    if kind == ".safetensors":
        if not (path.parent / CARD).is_file():
            raise InputError(
                f"{shown}: '{path}' has weights only, and no {CARD} beside it says of which "
                "network; give a folder that `train` or `compress` wrote."
            )
        return open_artefact(path.parent, shown, scaling=scaling, device=device)
    if kind == ".onnx":
        return open_onnx(path, shown, scaling=scaling)
    if kind == ".pt2":
        return open_exported(path, shown, scaling=scaling, device=device)
    if kind == ".tflite":
        return open_tflite(path, shown, scaling=scaling)
    if kind in PICKLES:
        raise InputError(
            f"{shown}: '{path}' may be a pickle, which can run any code when it is opened; save "
            "the weights with fairweight.lab.artifacts.save, or export the model to .onnx."
        )
    raise InputError(f"{shown}: '{path}' is of an unknown kind; give {KINDS}.")


# `.tflite` files, run by LiteRT (the extra `tflite`).


def open_tflite(file: Path, shown: str, *, scaling: Scaling | None) -> Loaded:
    """A LiteRT interpreter; images (N, H, W, C) are quantised on the way in where it asks for it.

    A model of bytes is given bytes as they are; integer outputs are turned back into numbers.
    """
    try:
        litert = importlib.import_module("ai_edge_litert.interpreter")
    except ModuleNotFoundError:
        raise InputError(
            f"'{file}' needs LiteRT, which is not installed: pip install 'fairweight[tflite]'."
        ) from None
    try:
        interpreter = litert.Interpreter(model_path=str(file), num_threads=torch.get_num_threads())
    except (ValueError, RuntimeError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{file}' cannot be read as a TFLite model ({said}); convert it again."
        ) from None
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    one_input([str(held["name"]) for held in inputs], shown)
    if len(outputs) != 1:
        raise InputError(f"{shown} has {len(outputs)} outputs; a model with one is needed.")
    wanted, given = inputs[0], outputs[0]

    def run(batch: Any) -> NDArray[Any]:
        images = _images(batch, wanted, scaling, shown)
        sizes = tuple(int(size) for size in wanted["shape"][1:])
        if sizes != images.shape[1:]:
            raise InputError(
                f"{shown} takes images of shape {sizes}, but they have the "
                f"shape {images.shape[1:]}; give (N, H, W, C) of its size."
            )
        interpreter.resize_tensor_input(wanted["index"], images.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(wanted["index"], images)
        interpreter.invoke()
        values = interpreter.get_tensor(given["index"])
        if np.dtype(given["dtype"]).kind == "f":
            return np.array(values)
        scale, zero = given["quantization"]
        return np.asarray((values.astype(np.float32) - zero) * scale, dtype=np.float32)

    return Loaded(run=run, identity=f"{digest_of_files([file])}{scaling}")


def _images(
    batch: Any, wanted: dict[str, Any], scaling: Scaling | None, shown: str
) -> NDArray[Any]:
    """A batch in the type that the model takes, channels last."""
    kind = np.dtype(wanted["dtype"])
    array = as_array(batch)
    if array.dtype == np.uint8 and kind == np.uint8:
        return np.ascontiguousarray(array)
    floats = as_floats(batch, scaling, shown).cpu().numpy()
    # Floats come as torch has them, channels first, unless they fit as they are.
    if floats.ndim == 4 and floats.shape[1:] != tuple(wanted["shape"][1:]):
        floats = floats.transpose(0, 2, 3, 1)
    if kind.kind == "f":
        return np.ascontiguousarray(floats, dtype=kind)
    scale, zero = wanted["quantization"]
    limits = np.iinfo(kind)
    whole = np.clip(np.rint(floats / scale) + zero, limits.min, limits.max)
    return np.asarray(whole, dtype=kind)
