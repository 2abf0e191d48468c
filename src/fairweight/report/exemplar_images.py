"""Exemplars to look at: two folders of images, and a list of what each shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.exemplars.rows import identities, vote_columns
from fairweight.auditing.streams import stream
from fairweight.report.image_sources import ending

if TYPE_CHECKING:
    import pandas as pd

EXEMPLAR, OTHER = "exemplar", "non-exemplar"
LONGEST = 100  # characters of an identity in a file's name


@dataclass(frozen=True)
class Shown:
    """The examples of one variant whose images are written."""

    answers: Answers
    variant: str
    exemplars: NDArray[np.intp]  # the furthest apart first
    others: NDArray[np.intp]
    missing: int  # non-exemplars of these labels that do not exist

    @property
    def wanted(self) -> list[str]:
        """Identities of all of them."""
        ids = identities(self.answers)
        return [str(ids[place]) for place in (*self.exemplars, *self.others)]


def choose(
    answers: Answers,
    variant: str,
    exemplar: NDArray[np.bool_],
    order: Sequence[int] | NDArray[np.intp],
    most: int,
    random_state: int,
) -> Shown:
    """At most so many exemplars, and as many other examples with the same labels.

    Parameters
    ----------
    exemplar
        (n,) all exemplars: none of them is taken for another.
    order
        Places of the exemplars, the most telling first.
    """
    chosen = np.asarray(order[:most], dtype=np.intp)
    rng = stream(random_state, variant, answers.task or "", "exemplars non-exemplars")
    others = []
    missing = 0
    for label, number in zip(*np.unique(answers.label[chosen], return_counts=True), strict=True):
        there = np.flatnonzero(~exemplar & (answers.label == label))
        taken = min(int(number), len(there))
        missing += int(number) - taken
        others.append(rng.choice(there, taken, replace=False))
    return Shown(
        answers, variant, chosen, np.concatenate([np.zeros(0, dtype=np.intp), *others]), missing
    )


def write_images(folder: Path, shown: Shown, images: Mapping[str, bytes]) -> None:
    """Write `exemplar/`, `non-exemplar/` and `manifest.csv` into a folder that exists."""
    names: list[str] = []
    for part, places in ((EXEMPLAR, shown.exemplars), (OTHER, shown.others)):
        (folder / part).mkdir()
        ids = identities(shown.answers)
        for number, place in enumerate(places, start=1):
            encoded = images[str(ids[place])]
            name = f"{part}/{number:05d}-{safe_name(str(ids[place]))}{ending(encoded) or ''}"
            (folder / name).write_bytes(encoded)
            names.append(name)
    _manifest(shown, names).to_csv(folder / "manifest.csv", index=False)


def safe_name(text: str) -> str:
    """An identity as a part of a file's name: nothing in it leads out of the folder.

    >>> safe_name("people/ann.png"), safe_name("../../etc/passwd")
    ('people%2Fann.png', '%2E.%2F..%2Fetc%2Fpasswd')
    >>> len(safe_name("x" * 500))
    113
    """
    escaped = quote(text, safe="")
    if escaped.startswith("."):  # neither hidden nor the folder above
        escaped = f"%2E{escaped[1:]}"
    if len(escaped) <= LONGEST:
        return escaped
    return f"{escaped[:LONGEST]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _manifest(shown: Shown, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    from fairweight.report.tables import cell_text

    places = np.concatenate([shown.exemplars, shown.others])
    columns: dict[str, list[str]] = {
        "file": list(names),
        "part": [name.partition("/")[0] for name in names],
        "example_id": [str(name) for name in identities(shown.answers)[places]],
        "task": [shown.answers.task or ""] * len(places),
        "variant": [shown.variant] * len(places),
    }
    columns |= vote_columns(shown.answers, shown.variant, places)
    return pd.DataFrame(
        {column: [cell_text(value) for value in values] for column, values in columns.items()}
    )
