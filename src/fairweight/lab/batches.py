"""Images as a model takes them: bytes in memory, floats only for the batch at hand."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fairweight.base.wording import counted
from fairweight.errors import InputError
from fairweight.specs.training import Augment

if TYPE_CHECKING:
    from fairweight.data.dataset import Images


# Random changes of a batch: a slice per image for crops and flips, one grid for the rest.


def cropped(images: Tensor, spec: Augment, random: torch.Generator) -> Tensor:
    """Random crops after padding with 0, and mirrored images; (N, H, W, C) in and out.

    Works on bytes, before they become floats: a quarter of the memory to move. Slices of numpy
    arrays are quicker here than a gather over the batch, of small images as of large ones.
    """
    if not spec.crop and not spec.flip:
        return images
    n, height, width, _ = images.shape
    mirrored = (torch.rand(n, generator=random) < spec.flip / 2).tolist()
    down, right = torch.randint(0, 2 * spec.crop + 1, (2, n), generator=random).tolist()
    padded = functional.pad(images, (0, 0, *[spec.crop] * 4)).numpy()
    made = torch.empty_like(images)
    for source, target, mirror, y, x in zip(
        padded, made.numpy(), mirrored, down, right, strict=True
    ):
        part = source[y : y + height, x : x + width]
        target[:] = part[:, ::-1] if mirror else part
    return made


def moved(images: Tensor, spec: Augment, random: torch.Generator) -> Tensor:
    """Random rotations, shifts and zooms by one bilinear grid; floats (N, C, H, W) in and out."""
    if not spec.rotate and not spec.shift and not spec.zoom:
        return images
    n = len(images)

    def between(reach: float) -> Tensor:
        return (2 * torch.rand(n, generator=random) - 1) * reach

    angle = between(math.radians(spec.rotate))
    size = 1 + between(spec.zoom)
    # The grid is in units of half an image, hence the factor 2.
    right, down = between(2 * spec.shift), between(2 * spec.shift)
    cosine, sine = torch.cos(angle) / size, torch.sin(angle) / size
    matrix = torch.stack(
        [torch.stack([cosine, -sine, right], 1), torch.stack([sine, cosine, down], 1)], 1
    )
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid.to(images.device), align_corners=False)


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation per channel by which pixels (0 to 1) are scaled."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


class OneScaling(Scaling):
    """One mean and one deviation, for as many channels as the images have."""

    def __repr__(self) -> str:
        return repr(Scaling(self.mean, self.std))  # stored predictions are known by it


@dataclass(frozen=True)
class Examples:
    """Images (N, H, W, C) as bytes with their labels: (N,) classes, or (N, attributes) 0 and 1.

    groups  columns by which a training may draw them
    """

    images: Tensor
    labels: Tensor
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.images)


def examples(
    images: NDArray[np.uint8],
    labels: NDArray[np.integer],
    groups: Mapping[str, NDArray[Any]] | None = None,
) -> Examples:
    """Arrays as tensors, after a check of their shapes."""
    if images.ndim != 4 or images.dtype != np.uint8:
        raise InputError(
            f"images must be bytes of shape (N, H, W, C), and are {images.dtype} of shape "
            f"{images.shape}; single channels need a last axis of 1."
        )
    if len(images) != len(labels):
        raise InputError(f"There are {len(images):,} images and {len(labels):,} labels.")
    return Examples(
        torch.from_numpy(np.ascontiguousarray(images)),
        torch.from_numpy(np.ascontiguousarray(labels)).to(torch.int64),
        groups or {},
    )


def scaling_of(images: Tensor) -> Scaling:
    """Mean and standard deviation of every channel over all pixels."""
    values = torch.arange(256, dtype=torch.float64) / 255
    means, deviations = [], []
    for channel in range(images.shape[-1]):
        share = torch.bincount(images[..., channel].reshape(-1).to(torch.int64), minlength=256)
        weight = share / share.sum()
        mean = float((weight * values).sum())
        variance = float((weight * (values - mean) ** 2).sum())
        means.append(mean)
        deviations.append(max(variance, 1e-12) ** 0.5)
    return Scaling(tuple(means), tuple(deviations))


def model_input(
    images: Tensor,
    scaling: Scaling,
    *,
    augment: Augment | None = None,
    random: torch.Generator | None = None,
) -> Tensor:
    """Bytes (N, H, W, C) as scaled floats (N, C, H, W), in channels-last memory."""
    if augment is not None and random is not None:
        images = cropped(images, augment, random)
    scaled = images.to(torch.float32)
    factor = torch.tensor([1 / (255 * s) for s in scaling.std])
    offset = torch.tensor([-m / s for m, s in zip(scaling.mean, scaling.std, strict=True)])
    scaled = scaled.mul_(factor).add_(offset).permute(0, 3, 1, 2)
    if augment is not None and random is not None:
        scaled = moved(scaled, augment, random)
    return scaled


def generator(*numbers: int) -> torch.Generator:
    """A generator for (seed, epoch, step), the same wherever it is made."""
    made = torch.Generator()
    state = np.random.SeedSequence(list(numbers)).generate_state(1, np.uint64)[0]
    made.manual_seed(int(state >> np.uint64(1)))
    return made


def in_order(data: Examples, size: int, only: Sequence[int] | None = None) -> list[slice]:
    """Slices of at most `size` examples."""
    n = len(data) if only is None else len(only)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


# How a network and its images lie in memory while it trains.

# oneDNN's block of channels on AVX-512; it is 8 on AVX2.
BLOCK = 16


def lay_out(model: nn.Module) -> torch.memory_format:
    """Put a network's weights as it is trained best, in place; the format is for its images.

    Channels last, which is quickest, unless torch cannot train the network that way. The gradient
    of a 1 × 1 convolution with a stride that reads few channels writes outside of its memory
    there: the process hangs or dies, or the weights are wrong (uxlfoundation/oneDNN issue 6035,
    seen with torch 2.13). Narrow ResNets have such convolutions.
    """
    breaks = any(
        isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and module.stride != (1, 1)
        and module.in_channels < BLOCK
        for module in model.modules()
    )
    layout = torch.contiguous_format if breaks else torch.channels_last
    model.to(memory_format=layout)  # type: ignore[call-overload]
    if breaks:
        for weight in model.parameters():
            weight.data = in_format(weight.data, layout)
    return layout


def in_format(values: Tensor, layout: torch.memory_format) -> Tensor:
    """Images or weights in a format.

    With one channel the two formats hold the same bytes, so that `contiguous` changes nothing;
    but convolutions go by the strides.
    """
    if layout is torch.contiguous_format:
        return values.clone(memory_format=layout)
    return values.contiguous(memory_format=layout)


def arithmetic(precision: str, device: str | torch.device) -> torch.autocast:
    """The context of a training's forward passes: layers in `bfloat16`, or all in `float32`."""
    kind = torch.device(device).type
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bfloat16")


# Batches as models take them: floats (N, C, H, W), from floats as they are or scaled bytes.


def as_array(values: Any) -> NDArray[Any]:
    """A tensor (of any device) or anything like an array, as an array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def as_floats(inputs: Any, scaling: Scaling | None, shown: str) -> Tensor:
    """Floats are taken as they are; bytes (N, H, W, C) are scaled as the model was trained.

    Parameters
    ----------
    shown
        How messages call the model.
    """
    if isinstance(inputs, Tensor):
        tensor = inputs.detach()
    else:
        array = np.asarray(inputs)
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"A batch holds {array.dtype} instead of numbers; give arrays of images."
            )
        # A memory map is read-only, which torch does not like.
        writable = array.flags.writeable
        tensor = torch.from_numpy(np.ascontiguousarray(array) if writable else np.array(array))
    if tensor.dtype != torch.uint8:
        return tensor.to(torch.float32)
    if scaling is None:
        raise InputError(
            f"{shown} does not say how images are scaled, but was given bytes; give mean "
            "and deviation per channel (--mean and --std, in Python scaling=; --mean 0 --std 1 "
            "for pixels from 0 to 1), or floats as it takes them."
        )
    if isinstance(scaling, OneScaling) and tensor.dim() == 4:
        channels = tensor.shape[-1]
        scaling = Scaling(scaling.mean * channels, scaling.std * channels)
    if tensor.dim() != 4 or tensor.shape[-1] != len(scaling.mean):
        grey = len(scaling.mean) == 1 and tensor.shape[-1] == 3
        raise InputError(
            f"{shown} takes images with {counted(len(scaling.mean), 'channel')}, but the bytes "
            f"have the shape {tuple(tensor.shape)}; give (N, H, W, C)"
            + ("; for folders of images: --dataset-option greyscale=true." if grey else ".")
        )
    return model_input(tensor, scaling)


# Batches as they are given: inputs, labels, ids and groups, checked and made alike.

INPUTS = ("image", "images", "inputs", "pixel_values")
LABELS = ("label", "labels")
ID = "example_id"
# Columns that have a meaning of their own in a prediction table.
TAKEN = frozenset(
    ("example_id", "task", "variant", "seed", "label", "prediction", "score", "scores")
) | {"label_rank", "weight"}


@dataclass(frozen=True)
class Batch:
    """Some examples: inputs as given, labels (N,) or (N, tasks), ids, and columns of groups."""

    inputs: Any
    labels: NDArray[Any]
    ids: NDArray[Any]
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    def digest(self) -> str:
        """A digest by which an interrupted run recognises the batch."""
        total = hashlib.sha256()
        held = {"inputs": self.inputs, "labels": self.labels, "ids": self.ids, **self.groups}
        for name, values in held.items():
            array = as_array(values)
            total.update(f"{name}{array.dtype}{array.shape}".encode())
            if array.dtype.hasobject:
                total.update(repr(array.tolist()).encode())
            else:
                total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()


def batches_of(data: Images, size: int = 256) -> Iterator[dict[str, Any]]:
    """The images of a data set in batches for `predict`: bytes, labels, ids and groups.

    Missing values of groups become None.
    """
    for start in range(0, len(data), size):
        part = slice(start, start + size)
        groups = {
            name: np.array([value or None for value in values[part].tolist()], dtype=object)
            for name, values in data.groups.items()
        }
        yield {
            "image": data.images[part],
            "label": data.labels[part],
            ID: data.example_id[part],
            **groups,
        }


def read_batches(
    batches: Iterable[Any],
    *,
    ids: Sequence[Any] | NDArray[Any] | None,
    groups: Mapping[str, Any] | None,
) -> Iterator[Batch]:
    """Every batch in its order, with its share of the ids and groups that were given for all."""
    ids = None if ids is None else as_array(ids)
    columns = {name: as_array(values) for name, values in (groups or {}).items()}
    _check_columns(columns)
    start = 0
    kept: tuple[str, ...] | None = None
    for number, given in enumerate(batches):
        batch = _batch(given, number)
        stop = start + len(batch)
        part = slice(start, stop)
        for name, values in (("ids", ids), *((f"groups['{n}']", c) for n, c in columns.items())):
            if values is not None and len(values) < stop:
                raise InputError(
                    f"{name} has {len(values):,} values, but the batches hold at least {stop:,} "
                    "examples; give one value per example."
                )
        own = batch.ids if len(batch.ids) else np.arange(start, stop)
        batch = Batch(
            batch.inputs,
            batch.labels,
            own if ids is None else ids[part],
            {**batch.groups, **{name: values[part] for name, values in columns.items()}},
        )
        kept = kept if kept is not None else tuple(batch.groups)
        if tuple(batch.groups) != kept:
            raise InputError(
                f"Batch {number} has the group columns {list(batch.groups)}, earlier ones have "
                f"{list(kept)}; give every batch the same."
            )
        yield batch
        start = stop
    for name, values in (("ids", ids), *((f"groups['{n}']", c) for n, c in columns.items())):
        if values is not None and len(values) != start:
            raise InputError(
                f"{name} has {len(values):,} values, but the batches hold {start:,} examples; "
                "give one value per example."
            )
    if not start:
        raise InputError("There are no examples to predict: the batches are empty.")


def _batch(given: Any, number: int) -> Batch:
    """A batch as it was given, with labels and lengths checked."""
    if isinstance(given, Batch):
        return given
    groups: dict[str, NDArray[Any]] = {}
    if isinstance(given, Mapping):
        named = next((name for name in INPUTS if name in given), None)
        label = next((name for name in LABELS if name in given), None)
        if named is None or label is None:
            raise InputError(
                f"Batch {number} has the keys {', '.join(repr(str(name)) for name in given)}; it "
                "needs 'image' and 'label'."
            )
        groups = {
            str(name): as_array(values)
            for name, values in given.items()
            if name not in (named, label, ID)
        }
        _check_columns(groups)
        inputs, labels, ids = given[named], given[label], given.get(ID)
    elif isinstance(given, tuple | list) and len(given) in (2, 3):
        inputs, labels, ids = (*given, None)[:3]
    else:
        raise InputError(
            f"Batch {number} is {type(given).__name__}; give (inputs, labels), (inputs, labels, "
            "ids), or a dictionary with 'image', 'label', 'example_id' and group columns."
        )
    batch = Batch(
        inputs, _labels(labels, number), np.empty(0) if ids is None else as_array(ids), groups
    )
    lengths = {"inputs": len(batch.inputs), "label": len(batch.labels)}
    lengths |= {ID: len(batch.ids)} if len(batch.ids) else {}
    lengths |= {name: len(values) for name, values in batch.groups.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"Batch {number} has parts of different lengths: {shown}.")
    return batch


def _labels(given: Any, number: int) -> NDArray[Any]:
    labels = as_array(given)
    if labels.dtype.kind == "f" and bool(np.isfinite(labels).all()):
        whole = np.rint(labels)
        labels = whole.astype(np.int64) if bool((whole == labels).all()) else labels
    if labels.dtype.kind == "b":
        labels = labels.astype(np.int64)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "iuUOS":
        raise InputError(
            f"The labels of batch {number} are {labels.dtype} of shape {labels.shape}; give "
            "classes (N,), or 0 and 1 for several tasks (N, tasks)."
        )
    return labels


def _check_columns(columns: Mapping[str, NDArray[Any]]) -> None:
    for name, values in columns.items():
        if name in TAKEN:
            raise InputError(
                f"A group column cannot be called '{name}', which has a meaning of its own in a "
                "prediction table; rename it."
            )
        if values.ndim != 1:
            raise InputError(
                f"The group column '{name}' has the shape {values.shape}; give one value per "
                "example."
            )
