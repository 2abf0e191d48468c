"""Compare models on disk on a part of their data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairweight.data.dataset import Images
from fairweight.data.seeding import generator
from fairweight.errors import InputError
from fairweight.lab.artifacts import load
from fairweight.lab.similarity.cka import batch_slices
from fairweight.lab.similarity.compare import BATCH, Progress, compare_features
from fairweight.lab.similarity.compared import Compared
from fairweight.specs.similarity import Similarity

SEED = 0  # of the examples drawn: every pair of models is compared on the same


def compare_saved(
    a: str | Path,
    b: str | Path,
    part: Images,
    *,
    spec: Similarity | None = None,
    batch_size: int = BATCH,
    progress: Progress | None = None,
    refuse: bool = True,
) -> dict[str, Compared]:
    """Compare two folders that `train` or `compress` wrote, on (at most `spec.examples`) images.

    Parameters
    ----------
    part
        The images that they are asked about, such as `prepare(data).test`.
    progress
        Called with the number of examples done.
    refuse
        Whether too few samples for a feature are an error, or NaN with that reason.
    """
    spec = spec or Similarity()
    (first, first_card), (second, second_card) = load(a), load(b)
    for path, card in ((a, first_card), (b, second_card)):
        if card.preprocessing is None:
            raise InputError(
                f"The card of '{path}' does not say how pixels are scaled; give a model that "
                "`train` or `compress` wrote."
            )
    rows = drawn(len(part), spec.examples)
    images = (part.images[rows[held]] for held in batch_slices(len(rows), batch_size))
    return compare_features(
        first,
        second,
        images,
        spec=spec,
        scalings=(first_card.preprocessing, second_card.preprocessing),
        progress=progress,
        refuse=refuse,
    )


def drawn(n: int, most: int | None) -> NDArray[np.int64]:
    """Positions of at most so many of n examples, in their order, the same every time.

    Data sets are often sorted by class, so the first ones would not do.
    """
    if most is None or n <= most:
        return np.arange(n)
    return np.sort(generator(SEED, "similarity").choice(n, most, replace=False))
