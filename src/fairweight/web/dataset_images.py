"""Images from a data set, by the identities that the predictions have too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fairweight.data import load
from fairweight.data.backdoor import MARKS, Backdoor
from fairweight.data.dataset import Images, Pixels
from fairweight.data.png import png
from fairweight.specs.data import Data, DrawnBackdoor

Mark = Callable[[Pixels], Pixels]


class DatasetImages:
    """The images of a data set with the marks that the study gave them."""

    def __init__(self, spec: Data, root: Path | None) -> None:
        self._images = _read(spec, root)
        self._row = {name: i for i, name in enumerate(self._images.example_id.tolist())}
        self._marked: frozenset[str] = frozenset()
        self._mark: Mark | None = None
        if isinstance(spec.backdoor, str):
            drawn = Backdoor.read(Path(spec.backdoor))
            self._marked, self._mark = frozenset(drawn.ids), MARKS[drawn.kind]

    def file(self, example_id: str) -> bytes | None:
        """A PNG; None where the data set has no such example."""
        row = self._row.get(example_id)
        if row is None:
            return None
        pixels: Pixels = np.asarray(self._images.images[row])
        if self._mark is not None and example_id in self._marked:
            pixels = self._mark(pixels[None])[0]
        return png(pixels)


def _read(spec: Data, root: Path | None) -> Images:
    if isinstance(spec.backdoor, DrawnBackdoor):
        # Who is marked depends on the parts, which only the lab divides.
        from fairweight.lab.prepared_data import prepare

        return prepare(spec, root).test
    return load(spec.name, root, **dict(spec.options))
