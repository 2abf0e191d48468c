"""Images of your own in Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairweight.data.cache import Progress
from fairweight.data.dataset import Images
from fairweight.data.decode import Fit
from fairweight.data.needs import Needs
from fairweight.data.parquet import parquet_files, read_parquet_images
from fairweight.data.photographs import Size
from fairweight.data.registry import register
from fairweight.errors import InputError


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
        groups=(groups,) if isinstance(groups, str) else groups,
        id=id,
        image=image,
        size=size,
        fit=fit,
        cache=cache,
        progress=progress,
    )
