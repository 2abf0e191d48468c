"""Which files a data set needs, so that a folder can be searched for it without reading any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fairweight.data.official_files import find_folder

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
    answers = [_found(one, root) for one in needs]
    order: tuple[Found, ...] = ("yes", "in part", "unknown", "no")
    return min(answers, key=lambda answer: order.index(answer[0]))


def _found(needs: Needs, root: Path) -> tuple[Found, tuple[str, ...]]:
    folder = find_folder(root, *needs.folders)
    missing = tuple(file.split("|")[0] for file in needs.files if not _is_in(folder, file))
    if len(missing) == len(needs.files):
        return "no", missing
    if folder == root and not needs.telling:
        return ("no" if missing else "unknown"), missing
    return ("in part" if missing else "yes"), missing


def _is_in(folder: Path, file: str) -> bool:
    for pattern in file.split("|"):
        if pattern.endswith("/"):
            if any(path.is_dir() for path in folder.glob(pattern.removesuffix("/"))):
                return True
        elif any(
            path.is_file() for name in (pattern, f"{pattern}.gz") for path in folder.glob(name)
        ):
            return True
    return False
