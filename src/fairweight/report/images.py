"""Exemplars to look at: two folders of images, and a list of what each shows."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encoded

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.table import identities, vote_columns
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.table_files import cell_text
from fairweight.base.files import atomic_directory
from fairweight.base.streams import stream
from fairweight.data.codecs import png
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.connection import quote

if TYPE_CHECKING:
    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.data.dataset import Images, Pixels
    from fairweight.tables.align import Aligned
    from fairweight.tables.sources import Source


# Encoded images of single examples: from the tables that were audited, or from a data set.

BYTES, PATH = "image", "image_path"
# How files of these kinds begin: a table may name any file, but only images are copied.
BEGINNINGS = (
    (b"\xff\xd8\xff", ".jpg"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"GIF8", ".gif"),
    (b"BM", ".bmp"),
    (b"II*\x00", ".tif"),
    (b"MM\x00*", ".tif"),
)


def ending(encoded: bytes) -> str | None:
    """What a file with these bytes is called, by its beginning; None if it is no image.

    >>> ending(b"GIF89a"), ending(b"RIFF\\x00\\x00\\x00\\x00WEBP"), ending(b"root:x:0:0")
    ('.gif', '.webp', None)
    """
    if encoded[:4] == b"RIFF" and encoded[8:12] == b"WEBP":
        return ".webp"
    return next((name for start, name in BEGINNINGS if encoded.startswith(start)), None)


class DatasetImages:
    """The images of a data set, by the identities that its predictions have too.

    Parameters
    ----------
    mark, marked
        What is drawn onto the images of these examples.
    """

    def __init__(
        self,
        images: Images,
        mark: Callable[[Pixels], Pixels] | None = None,
        marked: Iterable[str] = (),
    ) -> None:
        self._images, self._mark, self._marked = images, mark, frozenset(marked)
        self._rows = {canonical(name): row for row, name in enumerate(images.example_id.tolist())}

    def file(self, example_id: str) -> bytes | None:
        """A PNG; None where the data set has no such example."""
        row = self._rows.get(example_id)
        if row is None:
            return None
        pixels: Pixels = np.asarray(self._images.images[row])
        if self._mark is not None and example_id in self._marked:
            pixels = self._mark(pixels[None])[0]
        return png(pixels)


def images_in_tables(aligned: Aligned, id: str, wanted: Sequence[str]) -> dict[str, bytes]:
    """Identity to encoded image, from a column `image` (bytes) or `image_path`.

    Paths that are not absolute start at the folder of the table that names them.
    """
    for table in aligned.inputs:
        column = next((name for name in (BYTES, PATH) if name in table.columns), None)
        if id in table.columns and column is not None:
            break
    else:
        raise InputError(
            f"--images finds no images: no table has the columns '{id}' and '{BYTES}' (bytes) or "
            f"'{PATH}'; add one to the examples table (--examples), or name a data set (--dataset)."
        )
    ids = canonical_sql(quote(id), table.columns[id])
    rows = aligned.connection.execute(
        f"SELECT {ids}, {quote(column)} FROM {quote(table.view)} WHERE list_contains(?, {ids})",
        [list(wanted)],
    )
    found: dict[str, bytes] = {}
    while row := rows.fetchone():
        if row[0] not in found:  # long tables have an example once per model
            found[row[0]] = _encoded(row[1], column, table, row[0])
    for name in wanted:
        if name not in found:
            raise InputError(
                f"{table.shown} has no image of example {name!r}; complete its column '{column}'."
            )
    return found


def _encoded(value: Any, column: str, table: Source, name: str) -> bytes:
    """The image file in a cell of a table, or that the cell names; an error where it is none."""
    if isinstance(value, Mapping):  # Hugging Face's images: {bytes, path}
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str):
        beside = table.files[0].parent if table.files else Path()
        try:
            path = next((p for p in (beside / value, Path(value)) if p.is_file()), None)
            file = None if path is None else path.read_bytes()
        except OSError as error:
            raise InputError(
                f"The image '{value}' of example {name!r} cannot be read ({error.strerror}); "
                "check its permissions."
            ) from error
        if file is None:
            raise InputError(
                f"The image '{value}' of example {name!r} does not exist; paths start at the "
                f"folder of {table.shown}."
            )
        value = file
    if not isinstance(value, bytes | bytearray):
        raise InputError(
            f"{table.shown} has no image of example {name!r} in the column '{column}'; give the "
            "bytes of a JPEG or PNG file, or a path in a column 'image_path'."
        )
    if ending(bytes(value)) is None:
        raise InputError(
            f"The column '{column}' of {table.shown} holds no image for example {name!r}; give a "
            "JPEG, PNG, WebP, GIF, BMP or TIFF file."
        )
    return bytes(value)


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


def shown_of(found: Exemplars, answers: Answers, most: int, random_state: int) -> list[Shown]:
    """Of every variant at most so many modal exemplars, and as many others of the same labels.

    Exemplars stand in the order of their rank; others are drawn from those that are none.
    """
    ids = {str(name): i for i, name in enumerate(identities(answers))}
    every = []
    for variant in answers.variants:
        rows = found.rows[(found.rows["variant"] == variant) & found.rows["modal"]]
        furthest = [ids[str(name)] for name in rows["example_id"]]
        chosen = np.asarray(furthest[:most], dtype=np.intp)
        exemplar = found.masks[variant, "modal", None]
        rng = stream(random_state, variant, answers.task or "", "exemplars non-exemplars")
        others = [np.zeros(0, dtype=np.intp)]
        missing = 0
        labels = np.unique(answers.label[chosen], return_counts=True)
        for label, number in zip(*labels, strict=True):
            there = np.flatnonzero(~exemplar & (answers.label == label))
            taken = min(int(number), len(there))
            missing += int(number) - taken
            others.append(rng.choice(there, taken, replace=False))
        every.append(Shown(answers, variant, chosen, np.concatenate(others), missing))
    return every


def images_of(
    shown: Sequence[Shown], aligned: Aligned, id: str, dataset: Images | None
) -> dict[str, bytes]:
    """Encoded images of all that are shown, from a data set or from the tables."""
    wanted = list(dict.fromkeys(name for one in shown for name in one.wanted))
    if dataset is None:
        return images_in_tables(aligned, id, wanted)
    source, found = DatasetImages(dataset), {}
    for name in wanted:
        file = source.file(name)
        if file is None:
            raise InputError(
                f"The data set '{dataset.name}' has no example {name!r}; name the data set that "
                "the predictions are about (--dataset), with the same options."
            )
        found[name] = file
    return found


def write_all_images(
    out: str | Path, shown: Sequence[Shown], encoded: Mapping[str, bytes], *, overwrite: bool
) -> None:
    """Write `exemplar/`, `non-exemplar/` and `manifest.csv`.

    They stand in a folder per variant (and task) where there are several.
    """
    with atomic_directory(out, completion=("manifest.csv",), overwrite=overwrite) as folder:
        for one in shown:
            here = folder
            if len(shown) > 1:
                here = folder / safe_name(one.variant)
                if one.answers.task is not None:
                    here /= safe_name(one.answers.task)
                here.mkdir(parents=True)
            names: list[str] = []
            ids = identities(one.answers)
            for part, places in ((EXEMPLAR, one.exemplars), (OTHER, one.others)):
                (here / part).mkdir()
                for number, place in enumerate(places, start=1):
                    image = encoded[str(ids[place])]
                    name = f"{part}/{number:05d}-{safe_name(str(ids[place]))}{ending(image) or ''}"
                    (here / name).write_bytes(image)
                    names.append(name)
            places = np.concatenate([one.exemplars, one.others])
            columns: dict[str, list[str]] = {
                "file": names,
                "part": [name.partition("/")[0] for name in names],
                "example_id": [str(name) for name in ids[places]],
                "task": [one.answers.task or ""] * len(places),
                "variant": [one.variant] * len(places),
            }
            columns |= vote_columns(one.answers, one.variant, places)
            with (here / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                for row in zip(*columns.values(), strict=True):
                    writer.writerow(map(cell_text, row))


def safe_name(text: str) -> str:
    """An identity as a part of a file's name: nothing in it leads out of the folder.

    >>> safe_name("people/ann.png"), safe_name("../../etc/passwd")
    ('people%2Fann.png', '%2E.%2F..%2Fetc%2Fpasswd')
    >>> len(safe_name("x" * 500))
    113
    """
    escaped = percent_encoded(text, safe="")
    if escaped.startswith("."):  # neither hidden nor the folder above
        escaped = f"%2E{escaped[1:]}"
    if len(escaped) <= LONGEST:
        return escaped
    return f"{escaped[:LONGEST]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
