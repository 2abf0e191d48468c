"""Tables of a folder: predictions, what stands beside them, and the data set they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.studies.experiment_file import read_experiment
from fairweight.tables.sources import is_cube
from fairweight.web.item import Item
from fairweight.web.recorded import Recorded

if TYPE_CHECKING:
    from fairweight.specs.data import Data

TABLES = (".parquet", ".pq", ".csv", ".tsv", ".arrow", ".feather", ".jsonl")


def described(item: Item, folder: Path, source: Any, asked: Recorded) -> Item:
    """The item with its predictions, the tables beside them, and what is known of the data."""
    if isinstance(source, Path):
        if is_cube(source):
            return item  # counts name no examples
        source = str(source / "*" / "*.parquet") if _is_nested(source) else str(source)
    elif len(source) == 1:
        source = source[0]
    tables = {
        name: found
        for name in ("examples", "variants")
        if (found := _other_table(folder, name, asked))
    }
    item = replace(
        item,
        predictions=source,
        examples=tables.get("examples"),
        variants=tables.get("variants"),
        columns=asked.columns,
        positive=asked.positive,
    )
    published = read_experiment(folder)
    if published is None:
        return replace(item, dataset=_named_in(item.variants))
    columns = {"baseline": "dense", "groups": published.groups, "cluster": published.cluster}
    return replace(
        item,
        title=f"{published.experiment} ({published.study})",
        columns={name: value for name, value in columns.items() if value is not None},
        positive=published.positive,
        dataset=published.data,
    )


def predictions_in(folder: Path) -> Path | None:
    """The folder or the table of predictions, where there is one under that name."""
    nested = folder / "predictions"
    if nested.is_dir() and next(nested.rglob("*.parquet"), None) is not None:
        return nested
    return _table(folder, "predictions")


def _is_nested(folder: Path) -> bool:
    return folder.is_dir() and next(folder.glob("*/*.parquet"), None) is not None


def _table(folder: Path, stem: str) -> Path | None:
    places = (folder / f"{stem}{suffix}" for suffix in TABLES)
    return next((place for place in places if place.is_file()), None)


def _other_table(folder: Path, name: str, asked: Recorded) -> str | None:
    """The table that the command names; without a command the one that is called so."""
    if asked.predictions:
        return beside(folder, asked.files.get(name))
    found = _table(folder, name)
    return None if found is None else str(found)


def beside(folder: Path, named: str | None) -> str | None:
    """A file as a command named it, looked for in this folder and where we are.

    Whoever sends an audit decides about the names in it, so only files below these are taken.
    """
    if not named:
        return None
    name, equals, file = named.partition("=")
    prefix = f"{name}=" if equals else ""
    written = file if equals else named
    for base in (folder, Path.cwd()):
        for text in (written, Path(written).name):
            found = (base / text).resolve()
            if found.is_file() and found.is_relative_to(base.resolve()):
                return f"{prefix}{found}"
    return None


def named_dataset(name: str, options: Mapping[str, Any] | None = None) -> Data:
    from fairweight.data import dataset
    from fairweight.specs.data import Data

    return Data(name=dataset(name).name, options=dict(options or {}))


def _named_in(variants: str | None) -> Data | None:
    """The data set that the models' own table names, if it is one that is known."""
    if variants is None or not variants.endswith((".parquet", ".pq")):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if "dataset" not in pq.read_schema(variants).names:
            return None
        names = pq.read_table(variants, columns=["dataset"]).column(0).unique().to_pylist()
    except (OSError, pa.ArrowException):
        return None
    from fairweight.data import datasets

    known = {entry.name for entry in datasets()}
    return named_dataset(names[0]) if len(names) == 1 and names[0] in known else None
