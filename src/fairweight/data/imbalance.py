"""Training sets in which some classes are rare (Simon Says, section on data-induced bias)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairweight.base.streams import generator
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

# The 15 classes of CIFAR-100 that were thinned out, under their real names: the paper's are
# shifted, because it lists names by superclass and uses them with alphabetical numbers.
SIMON_SAYS: Mapping[str, float] = {
    "chair": 0.1, "train": 0.1, "skunk": 0.1, "tank": 0.1, "sweet_pepper": 0.1,
    "house": 0.2, "castle": 0.2, "telephone": 0.2, "television": 0.2, "wardrobe": 0.2,
    "skyscraper": 0.5, "pickup_truck": 0.5, "bee": 0.5, "clock": 0.5, "porcupine": 0.5,
}  # fmt: skip
STEPS = tuple(sorted(SIMON_SAYS.values()))


def imbalanced(
    images: Images, shares: Mapping[str, float], random_state: int, *, split: str | None = "train"
) -> Images:
    """A part of the examples: of each named class only its share.

    Parameters
    ----------
    shares
        What share of a class stays, such as `{"cat": 0.1}`; other classes stay whole.
    split
        The split that is thinned out; the others stay as they are. None: all of them.
    """
    if images.multi_label:
        raise InputError(f"Data set '{images.name}' has tasks; shares go by class, not by task.")
    eligible = np.ones(len(images), dtype=bool)
    if split is not None:
        eligible[:] = False
        eligible[images.rows_of(split)] = True
    keep = np.ones(len(images), dtype=bool)
    for name, share in shares.items():
        if name not in images.classes:
            raise UnknownNameError("Class", name, images.classes)
        if not 0 <= share <= 1:
            raise InputError(f"The share of '{name}' is {share}; give a number from 0 to 1.")
        rows = np.flatnonzero(eligible & (images.labels == images.classes.index(name)))
        rows = rows[np.argsort(images.example_id[rows], kind="stable")]
        drawn = generator(random_state, "imbalanced", name).permutation(rows)
        keep[drawn[math.floor(share * len(rows) + 0.5) :]] = False
    return images.select(keep)


def least_changed(by_class: pd.DataFrame, shares: Sequence[float] = STEPS) -> dict[str, float]:
    """Shares for the classes that earlier compression changed least.

    The rule of Simon Says: classes "have either the smallest change in FPR/FNR or have an increase
    in accuracy". Classes whose recall rose come first, then the others; within both by the mean
    over variants of |change of FPR| + |change of FNR|, each relative to the baseline.

    Parameters
    ----------
    by_class
        `audit.by_class` of an earlier audit, with the metrics recall, fpr and fnr.
    shares
        One per class to thin out, for the least changed first; by default five times 10, 20 and
        50 %.
    """
    needed = ("by", "metric", "class", "scope", "baseline", "compressed")
    for column in needed:
        if column not in by_class.columns:
            raise UnknownNameError("Column of by_class", column, by_class.columns)
    rows = by_class[(by_class["scope"] == "model") & (by_class["by"] == "class")]
    change: dict[str, list[float]] = {}
    rise: dict[str, list[float]] = {}
    for metric, name, before, after in zip(
        rows["metric"], rows["class"], rows["baseline"], rows["compressed"], strict=True
    ):
        if metric == "recall":
            rise.setdefault(str(name), []).append(after - before)
        elif metric in ("fpr", "fnr"):
            relative = 0.0 if before == after else math.inf
            if before != after and before > 0:
                relative = abs(after - before) / before
            change.setdefault(str(name), []).append(relative)
    if len(rise) < len(shares) or set(rise) != set(change):
        raise InputError(
            f"by_class has recall, fpr and fnr of {len(set(rise) & set(change))} classes, for "
            f"{len(shares)} shares; give an audit of all classes, or fewer shares."
        )
    ranked = sorted(rise, key=lambda c: (np.mean(rise[c]) <= 0, np.mean(change[c]), c))
    return dict(zip(ranked, shares, strict=False))
