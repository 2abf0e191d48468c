"""The registry of data sets: a name to the function that reads its files."""

from __future__ import annotations

import csv
import gzip
import inspect
import io
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from fairweight.base.registry import Registry
from fairweight.data.dataset import Images
from fairweight.errors import InputError, UnknownNameError

# Finding and reading the files of a download, with an error that names the file.

AGAIN = "download it again"
_GZIP = b"\x1f\x8b"


def find_folder(root: Path, *places: str) -> Path:
    """The first of these folders below `root` that exists; `root` itself where none does."""
    return next((root / place for place in places if (root / place).is_dir()), root)


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files, compressed with gzip or not."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def need_file(folder: Path, *names: str, dataset: str, remedy: str = "") -> Path:
    """The first of these files, or an error that says which one is missing."""
    found = find_file(folder, *names)
    if found is None:
        raise InputError(
            f"Data set '{dataset}' needs the file '{names[0]}', which is not in '{folder}'; put "
            f"the official download there{f', or {remedy}' if remedy else ''}."
        )
    return found


def need_folder(folder: Path, *names: str, dataset: str) -> Path:
    """The first of these folders, or an error that says which one is missing."""
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    raise InputError(
        f"Data set '{dataset}' needs the folder '{names[0]}', which is not in '{folder}'; unpack "
        "the official download there."
    )


def entries(folder: Path) -> list[Path]:
    """What is in a folder, by name; hidden files do not count."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"'{folder}' cannot be listed ({error.strerror}); give the folder of the data set."
        ) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where it is compressed with gzip."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"'{path}' is truncated or damaged ({error}); {AGAIN}.") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}); {AGAIN}.") from error


def read_lines(path: Path) -> list[str]:
    """Lines of text without their ends; empty ones are skipped."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not text ({error.reason}); {AGAIN}.") from error
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def read_csv(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Rows of a comma-separated file that must have these columns."""
    reader = csv.DictReader(io.StringIO("\n".join(read_lines(path))))
    try:
        for column in columns:
            if column not in (reader.fieldnames or ()):
                raise InputError(f"'{path}' has no column '{column}'; {AGAIN}.")
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"'{path}' is not comma-separated text ({error}); {AGAIN}.") from error
    for number, row in enumerate(rows, start=2):
        if any(row[column] is None for column in columns):
            raise InputError(f"'{path}' ends within line {number}; {AGAIN}.")
    return rows


def whole_number(text: str, path: Path) -> int:
    """A number of an annotation file."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"'{path}' has '{text}' where a number should be; {AGAIN}.") from None


def chosen(splits: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The splits that were asked for, one or several."""
    names = (splits,) if isinstance(splits, str) else tuple(splits)
    for name in names:
        if name not in known:
            raise UnknownNameError("Split", name, known)
    if not names or len(set(names)) != len(names):
        raise InputError(f"splits is {list(names)}; name each of {list(known)} at most once.")
    return names


def column_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Columns as a list, or as text with commas, which is what a command line has.

    >>> column_names("race, gender"), column_names(["race"])
    (('race', 'gender'), ('race',))
    """
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return tuple(given)


# Which files a data set needs, so that a folder can be searched for it without reading any.

Found: TypeAlias = Literal["yes", "in part", "no", "unknown"]


@dataclass(frozen=True)
class Needs:
    """Files that must be there together.

    Parameters
    ----------
    folders
        Where they may be, below the data folder; if none of these exists, directly in it.
    files
        Patterns; `a|b` is either of them, and one that ends in `/` is a folder. Files may be
        compressed with gzip.
    telling
        Whether names of files alone tell which data set they are of: those of MNIST do not, and
        neither does `*.parquet`.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    telling: bool = True


def found(needs: Sequence[Needs], root: Path) -> tuple[Found, tuple[str, ...]]:
    """Whether all files of one of several `needs` are there, and those that are missing.

    `unknown` are files that may be of another data set, and data sets that do not say what they
    need.
    """
    if not needs:
        return "unknown", ()
    answers: list[tuple[Found, tuple[str, ...]]] = []
    for one in needs:
        folder = find_folder(root, *one.folders)
        missing = tuple(file.split("|")[0] for file in one.files if not _is_in(folder, file))
        if len(missing) == len(one.files):
            answers.append(("no", missing))
        elif folder == root and not one.telling:
            answers.append(("no" if missing else "unknown", missing))
        else:
            answers.append(("in part" if missing else "yes", missing))
    order: tuple[Found, ...] = ("yes", "in part", "unknown", "no")
    return min(answers, key=lambda answer: order.index(answer[0]))


def _is_in(folder: Path, file: str) -> bool:
    """Whether one of the patterns of a needed file is there."""
    for pattern in file.split("|"):
        if pattern.endswith("/"):
            if any(path.is_dir() for path in folder.glob(pattern.removesuffix("/"))):
                return True
        elif any(
            path.is_file() for name in (pattern, f"{pattern}.gz") for path in folder.glob(name)
        ):
            return True
    return False


ENTRY_POINTS = "fairweight.datasets"
FOLDER_VARIABLE = "FAIRWEIGHT_DATA"

Reader: TypeAlias = Callable[..., Images]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set's entry: what is known before it is read."""

    name: str
    function: Reader  # (root, **options), or (**options) where `layout` is empty
    summary: str  # one line, shown by `fairweight datasets`
    source: str  # who made it, and the licence
    layout: tuple[str, ...]  # files and folders that are looked for; empty: nothing is needed
    groups: tuple[str, ...]
    needs: tuple[Needs, ...]  # alternatives; empty: names do not say whether it is there
    packaged: str | None  # a folder in which the system's own package has it

    @property
    def options(self) -> dict[str, Any]:
        """Options of `load` for this data set, with their defaults."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def found_in(self, folder: Path) -> tuple[Found, tuple[str, ...]]:
        """Whether its files are there, by their names alone, and which are missing."""
        return found(self.needs, folder) if self.layout else ("yes", ())

    def root(self, given: Path | None) -> Path | None:
        """The folder to read it from: the given one, or where it has none of the files the system's
        package.
        """
        if given is not None and (not given.exists() or self.found_in(given)[0] != "no"):
            return given
        packaged = None if self.packaged is None else Path(self.packaged)
        if packaged is not None and self.found_in(packaged)[0] == "yes":
            return packaged
        return given


DATASETS: Registry[Dataset] = Registry("data set", group=ENTRY_POINTS)
dataset = DATASETS.__getitem__
unregister = DATASETS.remove


def register(
    name: str,
    *,
    summary: str,
    source: str,
    layout: Sequence[str] = (),
    groups: Sequence[str] = (),
    needs: Sequence[Needs] = (),
    packaged: str | None = None,
) -> Callable[[Reader], Reader]:
    """Register a function that reads a data set; its options are keyword-only arguments.

    `layout` is for people; `needs` says the same by patterns, for `fairweight datasets --data`.
    `packaged` is the folder of a system's package, read where the given one has none of the files.
    Other packages name the module that does so in the entry points `fairweight.datasets`.
    """

    def add(function: Reader) -> Reader:
        entry = Dataset(
            name=name,
            function=function,
            summary=summary,
            source=source,
            layout=tuple(layout),
            groups=tuple(groups),
            needs=tuple(needs),
            packaged=packaged,
        )
        DATASETS.add(name, entry)
        return function

    return add


def datasets() -> tuple[Dataset, ...]:
    """Every data set, those of other packages last."""
    return tuple(DATASETS.values())


def load(name: str, root: str | Path | None = None, **options: Any) -> Images:
    """Read a data set.

    Parameters
    ----------
    root
        The folder that holds data sets, or this one; the variable FAIRWEIGHT_DATA if not given.
    options
        Of this data set: `dataset(name).options`.
    """
    entry = dataset(name)
    for option in options:
        if option not in entry.options:
            raise UnknownNameError(f"Option of the data set '{name}'", option, entry.options)
    if not entry.layout:
        return entry.function(**options)
    given = root if root is not None else os.environ.get(FOLDER_VARIABLE)
    folder = entry.root(None if given is None else Path(given))
    if folder is None:
        raise InputError(
            f"Data set '{name}' is read from files, but no folder was given; name the folder that "
            f"holds it (--data DIR, or the variable {FOLDER_VARIABLE})."
        )
    if not folder.exists():
        raise InputError(f"The data folder '{folder}' does not exist; give one that does.")
    return entry.function(folder, **options)


# What the official data sets hold, for costs of studies whose data are not at hand.


class OfficialCounts(NamedTuple):
    """Numbers of examples as their authors publish them, and the shape of an image."""

    train: int
    test: int
    size: int
    channels: int
    classes: int


OFFICIAL: dict[str, OfficialCounts] = {
    "mnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "fashion-mnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "kmnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "qmnist": OfficialCounts(60_000, 60_000, 28, 1, 10),
    "emnist-byclass": OfficialCounts(697_932, 116_323, 28, 1, 62),
    "cifar10": OfficialCounts(50_000, 10_000, 32, 3, 10),
    "cifar100": OfficialCounts(50_000, 10_000, 32, 3, 100),
    "svhn": OfficialCounts(73_257, 26_032, 32, 3, 10),
    # Photographs have no common size: this is what they are read in.
    "imagenette": OfficialCounts(9_469, 3_925, 128, 3, 10),
    "imagewoof": OfficialCounts(9_025, 3_929, 128, 3, 10),
}
