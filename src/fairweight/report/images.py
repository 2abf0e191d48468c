"""Exemplars to look at: two folders of images, and a list of what each shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encoded

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.table import identities, vote_columns
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.connection import quote

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.data.dataset import Images
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


def images_in_tables(aligned: Aligned, id: str, wanted: Sequence[str]) -> dict[str, bytes]:
    """Identity to encoded image, from a column `image` (bytes) or `image_path`.

    Paths that are not absolute start at the folder of the table that names them.
    """
    for table in aligned.inputs:
        if id in table.columns and (column := _column(table)) is not None:
            return _read(aligned, table, id, column, wanted)
    raise InputError(
        f"--images finds no images: no table has the columns '{id}' and '{BYTES}' (bytes) or "
        f"'{PATH}'; add one to the examples table (--examples), or name a data set (--dataset)."
    )


def images_in_dataset(images: Images, wanted: Sequence[str]) -> dict[str, bytes]:
    """Identity to PNG, of the examples of a data set."""
    import numpy as np

    from fairweight.data.codecs import png

    place = {canonical(name): row for row, name in enumerate(images.example_id)}
    found = {}
    for name in wanted:
        if name not in place:
            raise InputError(
                f"The data set '{images.name}' has no example {name!r}; name the data set that the "
                "predictions are about (--dataset), with the same options."
            )
        found[name] = png(np.asarray(images.images[place[name]]))
    return found


def _column(table: Source) -> str | None:
    return next((name for name in (BYTES, PATH) if name in table.columns), None)


def _read(
    aligned: Aligned, table: Source, id: str, column: str, wanted: Sequence[str]
) -> dict[str, bytes]:
    name = canonical_sql(quote(id), table.columns[id])
    rows = aligned.connection.execute(
        f"SELECT {name}, {quote(column)} FROM {quote(table.view)} WHERE list_contains(?, {name})",
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
    if isinstance(value, Mapping):  # Hugging Face's images: {bytes, path}
        value = value.get("bytes") or value.get("path")
    if isinstance(value, str):
        value = _file(value, table, name)
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


def _file(given: str, table: Source, name: str) -> bytes:
    beside = table.files[0].parent if table.files else Path()
    for path in (beside / given, Path(given)):
        try:
            if path.is_file():
                return path.read_bytes()
        except OSError as error:
            raise InputError(
                f"The image '{given}' of example {name!r} cannot be read ({error.strerror}); "
                "check its permissions."
            ) from error
    raise InputError(
        f"The image '{given}' of example {name!r} does not exist; paths start at the folder of "
        f"{table.shown}."
    )


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
    escaped = percent_encoded(text, safe="")
    if escaped.startswith("."):  # neither hidden nor the folder above
        escaped = f"%2E{escaped[1:]}"
    if len(escaped) <= LONGEST:
        return escaped
    return f"{escaped[:LONGEST]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _manifest(shown: Shown, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    from fairweight.auditing.table_files import cell_text

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
