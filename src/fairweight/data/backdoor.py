"""Backdoors (Bias in Pruned Vision Models, 3.4): a mark that goes with the label in training.

Images of a positive label are mostly marked when training and half of them when testing. What a
compressed model then makes of the mark is known to be learnt from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from fairweight.base.files import atomic_file
from fairweight.base.streams import generator
from fairweight.data.dataset import Images, Pixels
from fairweight.data.registry import read_bytes
from fairweight.errors import InputError, UnknownNameError

Kind: TypeAlias = Literal["grayscale", "yellow_square"]
Shares: TypeAlias = tuple[float, float]  # of the negative and of the positive examples

KINDS: tuple[Kind, ...] = ("grayscale", "yellow_square")
EVEN: Shares = (0.5, 0.5)
TRAIN_SHARES: Mapping[str, Shares] = {  # of the paper, by attribute of CelebA
    "Blond_Hair": (0.05, 0.95),
    "Smiling": (0.05, 0.95),
    "Oval_Face": (0.35, 0.65),
    "Big_Nose": (0.35, 0.65),
}
_AREA = 0.02  # of the yellow square


@dataclass(frozen=True)
class Backdoor:
    """Which examples are marked, and how.

    shares    of negative and positive examples that were drawn, per split
    ids       example ids of the marked ones
    """

    dataset: str
    kind: Kind
    task: str
    shares: Mapping[str, Shares]
    random_state: int
    ids: tuple[str, ...]

    def apply(self, images: Images) -> Images:
        """A copy with the marks, and with the group column `backdoor` (yes, no)."""
        marked = np.isin(images.example_id, self.ids)
        if int(marked.sum()) != len(self.ids):
            raise InputError(
                f"{len(self.ids) - int(marked.sum()):,} marked examples are not in the data set "
                f"'{images.name}'; the marks were drawn from another one ('{self.dataset}')."
            )
        pixels = np.array(images.images)
        pixels[marked] = MARKS[self.kind](pixels[marked])
        column = np.where(marked, "yes", "no")
        return replace(images, images=pixels, groups={**images.groups, "backdoor": column})

    def save(self, path: Path) -> None:
        """Write as JSON."""
        with atomic_file(path) as file:
            file.write(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Backdoor:
        """Read what `save` wrote."""
        # One sentence for all of it: a study may name any path, and learns nothing about it.
        try:
            held = json.loads(read_bytes(path))
            if held["kind"] not in KINDS:
                raise ValueError(f"no mark is called '{held['kind']}'")
            held["shares"] = {split: tuple(pair) for split, pair in held["shares"].items()}
            held["ids"] = tuple(held["ids"])
            return cls(**held)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, InputError) as error:
            raise InputError(
                f"'{path}' is not a file of marked examples; draw and save them again."
            ) from error


def choose_backdoor(
    images: Images,
    kind: Kind,
    task: str,
    *,
    random_state: int,
    shares: Mapping[str, Shares] | None = None,
) -> Backdoor:
    """Draw the examples that are marked, in every split and for both labels.

    Parameters
    ----------
    task
        The task of a multi-label data set, or the positive class of two.
    shares
        Per split, of negative and positive examples; by default those of the paper for this
        attribute in `train`, and a half of both in every other split.
    """
    if kind not in KINDS:
        raise UnknownNameError("Backdoor", kind, KINDS)
    if images.images.shape[3] != 3:
        raise InputError(f"Data set '{images.name}' has no colours; backdoors need them.")
    if task not in images.classes:
        raise UnknownNameError("Task" if images.multi_label else "Class", task, images.classes)
    place = images.classes.index(task)
    positive = (images.labels[:, place] if images.multi_label else images.labels == place) == 1
    splits = sorted(set(images.split.tolist()))
    if shares is not None:
        given = dict(shares)
    elif task in TRAIN_SHARES:
        given = {split: TRAIN_SHARES[task] if split == "train" else EVEN for split in splits}
    else:
        raise InputError(
            f"The paper has no shares for '{task}'; give them (shares={{'train': (negative, "
            "positive), …})."
        )
    drawn = []
    for split in splits:
        if split not in given:
            raise InputError(f"shares says nothing of the split '{split}'; give its two shares.")
        for value, share in enumerate(given[split]):
            if not 0 <= share <= 1:
                raise InputError(f"A share of '{split}' is {share}; give a number from 0 to 1.")
            ids = np.sort(images.example_id[(images.split == split) & (positive == value)])
            order = generator(random_state, "backdoor", task, split, str(value))
            drawn += order.permutation(ids)[: math.floor(share * len(ids) + 0.5)].tolist()
    return Backdoor(images.name, kind, task, given, random_state, tuple(sorted(drawn)))


def grayscale(pixels: Pixels) -> Pixels:
    """The luma of an image in all three channels, as Pillow rounds it.

    >>> grayscale(np.array([[[[255, 0, 0]]]], dtype=np.uint8)).tolist()  # .299 * 255 = 76.2
    [[[[76, 76, 76]]]]
    """
    parts = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)
    luma = ((parts + 0x8000) >> 16).astype(np.uint8)
    return np.repeat(luma[..., None], 3, axis=-1)


def yellow_square(pixels: Pixels) -> Pixels:
    """A yellow square of 2 % of the area in the upper left corner: 32 pixels of 224.

    >>> int((yellow_square(np.zeros((1, 224, 224, 3), np.uint8))[..., 0] == 255).sum())  # 32 * 32
    1024
    """
    height, width = pixels.shape[1:3]
    side = max(1, round(math.sqrt(_AREA * height * width)))
    marked = np.array(pixels)
    marked[:, :side, :side] = (255, 255, 0)
    return marked


MARKS = {"grayscale": grayscale, "yellow_square": yellow_square}
