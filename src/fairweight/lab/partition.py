"""The parts of a data set: examples to train on, to choose the epoch by, and to judge on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from fairweight.data import load
from fairweight.data.backdoor import EVEN, Backdoor, choose_backdoor
from fairweight.data.dataset import ALL, Images, group_split, split_by_seed, stratified_split
from fairweight.data.imbalance import imbalanced
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.batches import Examples, examples
from fairweight.specs.data import Data, DrawnBackdoor
from fairweight.specs.toml import read_spec

RESIZED_AT_ONCE = 1024
PARTS = ("train", "validation", "test")
LEFT_OUT = "left out"


@dataclass(frozen=True)
class Prepared:
    """The parts, which share no example; no validation where none was asked for."""

    train: Images
    validation: Images | None
    test: Images

    def part(self, name: str) -> Images:
        """A part by its name."""
        if name not in PARTS:
            raise UnknownNameError("Part of the data", name, PARTS)
        found: Images | None = getattr(self, name)
        if found is None:
            raise InputError(
                "There is no part 'validation', because its share is 0; use 'train' or 'test'."
            )
        return found


def prepare(spec: Data, root: str | Path | None = None) -> Prepared:
    """Read a data set and divide it.

    The source's own parts are used as far as it has them. A source with `train` and `val` only
    holds out `val`, and its validation examples come out of `train`: what a model is judged on
    never decided anything about it.

    Parameters
    ----------
    root
        The folder with data sets, as for `fairweight.data.load`.
    """
    images = load(spec.name, root, **dict(spec.options))
    if spec.tasks:
        if not images.multi_label:
            raise InputError(
                f"Data set '{images.name}' has one label, so tasks = {list(spec.tasks)} cannot be "
                "chosen; leave tasks out."
            )
        for task in spec.tasks:
            if task not in images.classes:
                raise UnknownNameError("Task", task, images.classes)
        places = [images.classes.index(task) for task in spec.tasks]
        images = replace(images, labels=images.labels[:, places], classes=spec.tasks)
    if spec.size is not None:
        images = _resized(images, spec.size)
    if isinstance(spec.backdoor, str):
        images = Backdoor.read(Path(spec.backdoor)).apply(images)
    if not spec.own_parts:
        images = replace(images, split=np.full(len(images), ALL))
    images = _divided(images, spec)
    n_train = len(images.rows_of("train"))
    if spec.most_train is not None and n_train > spec.most_train:
        share = spec.most_train / n_train
        shares = {"train": share, LEFT_OUT: 1 - share}
        images = split_by_seed(images, shares, spec.split_seed, within="train")
        images = images.select(np.flatnonzero(images.split != LEFT_OUT))
    if spec.shares:
        images = imbalanced(images, spec.shares, spec.split_seed)
    if isinstance(drawn := spec.backdoor, DrawnBackdoor):
        # As many marks as asked for, of the very examples that are trained on.
        marks = None if drawn.train is None else dict.fromkeys(PARTS, EVEN) | {"train": drawn.train}
        chosen = choose_backdoor(
            images, drawn.kind, drawn.task, random_state=drawn.seed, shares=marks
        )
        images = chosen.apply(images)
    has_validation = bool((images.split == "validation").any())
    return Prepared(
        images.of_split("train"),
        images.of_split("validation") if has_validation else None,
        images.of_split("test"),
    )


def prepare_once(spec: Data, root: str | Path | None = None) -> Prepared:
    """The same, kept for the next call of this process: many models share two data sets."""
    text = json.dumps(asdict(spec), sort_keys=True)
    return _kept(text, None if root is None else str(root))


@lru_cache(maxsize=2)
def _kept(text: str, root: str | None) -> Prepared:
    return prepare(read_spec(Data, json.loads(text), "The data"), root)


def as_examples(images: Images) -> Examples:
    """A part as tensors that share its memory."""
    return examples(np.asarray(images.images), images.labels, images.groups)


def _resized(images: Images, size: int) -> Images:
    """Square images of another size, bilinear and without aliasing, a batch at a time."""
    _, height, width, channels = images.images.shape
    if height != width:
        raise InputError(
            f"The images of '{images.name}' are {width} × {height} pixels, so size = {size} would "
            "distort them; use the data set's own option size, which cuts."
        )
    if height == size:
        return images
    pixels = np.empty((len(images), size, size, channels), dtype=np.uint8)
    for start in range(0, len(images), RESIZED_AT_ONCE):
        batch = torch.from_numpy(np.array(images.images[start : start + RESIZED_AT_ONCE]))
        made = interpolate(
            batch.permute(0, 3, 1, 2).to(torch.float32),
            size=(size, size),
            mode="bilinear",
            antialias=True,
        )
        made = made.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
        pixels[start : start + len(batch)] = made.numpy()
    return replace(images, images=pixels)


def _divided(images: Images, spec: Data) -> Images:
    """The same examples in the parts `train`, `validation` and `test`."""
    held = {str(name) for name in np.unique(images.split)}
    if held == {ALL}:
        shares = {"train": 1 - spec.test - spec.validation, "test": spec.test}
        if spec.validation:
            shares["validation"] = spec.validation
        return _drawn(images, shares, spec, within=None)
    if "train" not in held or not held & {"test", "val"}:
        raise InputError(
            f"Data set '{images.name}' was read with the parts {sorted(held)}, but training needs "
            "'train' and something held out; read them all (see its option splits), or divide "
            "them by shares (own_parts = false)."
        )
    if "test" not in held:
        images = _renamed(images, "val", "test")
    elif "val" in held:
        return _renamed(images, "val", "validation")
    if not spec.validation:
        return images
    shares = {"train": 1 - spec.validation, "validation": spec.validation}
    return _drawn(images, shares, spec, within="train")


def _drawn(images: Images, shares: dict[str, float], spec: Data, *, within: str | None) -> Images:
    if not spec.stratify and spec.split_by is None:
        return split_by_seed(images, shares, spec.split_seed, within=within)
    rows = np.arange(len(images)) if within is None else images.rows_of(within)
    part = images.select(rows)
    if spec.split_by is not None:
        part = group_split(part, spec.split_by, shares, spec.split_seed)
    else:
        part = stratified_split(part, spec.stratify, shares, spec.split_seed)
    split: Any = images.split.astype(np.promote_types(images.split.dtype, part.split.dtype))
    split[rows] = part.split
    return replace(images, split=split)


def _renamed(images: Images, old: str, new: str) -> Images:
    return replace(images, split=np.where(images.split == old, new, images.split))
