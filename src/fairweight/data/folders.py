"""Imagenette, Imagewoof, and images of your own in folders or Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairweight.data.codecs import Fit
from fairweight.data.dataset import ALL, Images
from fairweight.data.parquet import parquet_files, read_parquet_images
from fairweight.data.photographs import SUFFIXES, Progress, Size, photographs
from fairweight.data.registry import Needs, column_names, entries, find_folder, register
from fairweight.errors import InputError

IMAGENETTE = {
    "n01440764": "tench", "n02102040": "English springer", "n02979186": "cassette player",
    "n03000684": "chain saw", "n03028079": "church", "n03394916": "French horn",
    "n03417042": "garbage truck", "n03425413": "gas pump", "n03445777": "golf ball",
    "n03888257": "parachute",
}  # fmt: skip
IMAGEWOOF = {
    "n02086240": "Shih-Tzu", "n02087394": "Rhodesian ridgeback", "n02088364": "beagle",
    "n02089973": "English foxhound", "n02093754": "Border terrier",
    "n02096294": "Australian terrier", "n02099601": "golden retriever",
    "n02105641": "Old English sheepdog", "n02111889": "Samoyed", "n02115641": "dingo",
}  # fmt: skip

_SPLITS = ("train", "val", "test")
_LAYOUT = "train/CLASS/…, val/CLASS/…, test/CLASS/…"


def _versions(name: str) -> tuple[str, ...]:
    sets = [f"{name}2{size}" for size in ("", "-320", "-160")]
    return (*sets, *(f"{name}/{version}" for version in sets), name)


def _needs(name: str) -> tuple[Needs]:
    return (Needs(_versions(name), ("train/", "val/"), telling=False),)


@register(
    "imagenette",
    summary="10 easy classes of ImageNet, 9,469 + 3,925 photographs",
    source="Howard 2019, fastai; Apache-2.0, images of ImageNet",
    layout=("imagenette2/, imagenette2-320/ or imagenette2-160/: train/, val/",),
    needs=_needs("imagenette"),
)
def imagenette(
    root: Path,
    *,
    size: Size = 128,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    folder = find_folder(root, *_versions("imagenette"))
    return read_tree(
        "imagenette", folder, IMAGENETTE, size=size, fit=fit, cache=cache, progress=progress
    )


@register(
    "imagewoof",
    summary="10 breeds of dogs of ImageNet, 9,025 + 3,929 photographs",
    source="Howard 2019, fastai; Apache-2.0, images of ImageNet",
    layout=("imagewoof2/, imagewoof2-320/ or imagewoof2-160/: train/, val/",),
    needs=_needs("imagewoof"),
)
def imagewoof(
    root: Path,
    *,
    size: Size = 128,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    folder = find_folder(root, *_versions("imagewoof"))
    return read_tree(
        "imagewoof", folder, IMAGEWOOF, size=size, fit=fit, cache=cache, progress=progress
    )


@register(
    "folders",
    summary="your own images, one folder per class",
    source="yours",
    layout=(_LAYOUT, "or CLASS/… without splits"),
)
def folders(
    root: Path,
    *,
    size: Size = 128,
    fit: Fit = "crop",
    greyscale: bool = False,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    if not isinstance(greyscale, bool):
        raise InputError(f"greyscale is {greyscale!r}; use true or false.")
    return read_tree(
        "folders", root, {},
        size=size, fit=fit, greyscale=greyscale, cache=cache, progress=progress,
    )  # fmt: skip


def read_tree(
    name: str,
    folder: Path,
    titles: Mapping[str, str],
    *,
    size: Size,
    fit: Fit,
    cache: Path | None,
    progress: Progress | None,
    greyscale: bool = False,
) -> Images:
    """Images of a tree; classes are the names of its folders, or what `titles` calls them.

    Ids are paths below `folder`. Every split must have all classes that another has.
    """
    splits = [split for split in _SPLITS if (folder / split).is_dir()] or [ALL]
    found: dict[str, dict[str, list[Path]]] = {}
    for split in splits:
        per_class = {
            place.name: sorted(f for f in place.rglob("*") if f.suffix.lower() in SUFFIXES)
            for place in entries(folder if split == ALL else folder / split)
            if place.is_dir()
        }
        found[split] = {title: files for title, files in per_class.items() if files}
    classes = sorted(found[splits[0]])
    for held in found.values():
        lacking = set(classes) ^ set(held)
        if lacking or not classes:
            said = f"the class '{min(lacking)}' is not in every split" if lacking else "no class"
            raise InputError(
                f"Data set '{name}': {said} of '{folder}'; lay images out as {_LAYOUT}."
            )
    strange = sorted(set(classes) - set(titles or classes))
    if strange:
        raise InputError(
            f"'{folder}' has a folder '{strange[0]}', which is no class of '{name}'; give the "
            "folder that holds the official download."
        )
    rows = [
        (file.relative_to(folder).as_posix(), place, split)
        for split in splits
        for place, title in enumerate(classes)
        for file in found[split][title]
    ]
    names = [row[0] for row in rows]
    return Images(
        name=name,
        images=photographs(
            folder,
            names,
            size=size,
            fit=fit,
            greyscale=greyscale,
            cache=cache,
            progress=progress,
        ),
        labels=np.array([row[1] for row in rows], dtype=np.int64),
        classes=tuple(titles.get(title, title) for title in classes),
        groups={},
        example_id=np.array(names),
        split=np.array([row[2] for row in rows]),
    )


# Images of your own in Parquet files.


@register(
    "parquet",
    summary="your own images in Parquet files: encoded bytes, a label, groups",
    source="yours",
    layout=("*.parquet, or one file; train…, val…, test… are the splits of these names",),
    needs=(Needs((), ("*.parquet",)),),
)
def parquet(
    root: Path,
    *,
    label: str = "label",
    groups: str | Sequence[str] = (),
    id: str = "example_id",
    image: str = "image",
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    files = parquet_files(root)
    if not files:
        raise InputError(f"'{root}' has no Parquet file; give a folder with *.parquet, or a file.")
    return read_parquet_images(
        "parquet",
        files,
        label=label,
        groups=column_names(groups),
        id=id,
        image=image,
        size=size,
        fit=fit,
        cache=cache,
        progress=progress,
    )
