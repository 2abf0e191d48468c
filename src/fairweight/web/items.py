"""What a path holds: audits, published studies, demos, prediction tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairweight.auditing.archive import head
from fairweight.auditing.document import tables_of
from fairweight.base.files import settle
from fairweight.base.trust import inside
from fairweight.data import dataset as registered
from fairweight.data import datasets
from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.studies.publication import read_experiment
from fairweight.tables.sources import FORMATS, is_cube
from fairweight.tables.spec import SourceRef, TableSpec

# One thing to look at: an audit, its prediction tables, and the images that belong to them.


@dataclass(frozen=True)
class Item:
    """Where everything is.

    key            a short name for addresses, unique among those found together
    title          for people
    folder         where it is; image files are looked for in it and nowhere else
    audit_json     the audit's numbers, None where there are none
    report         the stored report
    tables         what `tables.align` reads, None where single examples are not known
    dataset        the data set that the examples are of
    data           the folder with data sets
    """

    key: str
    title: str
    folder: Path
    audit_json: Path | None = None
    report: Path | None = None
    tables: TableSpec | None = None
    dataset: Data | None = None
    data: Path | None = None


# What an audit was made of: the tables and columns that were asked for.


def requested(audit_json: Path) -> TableSpec | None:
    """What an audit was asked for, without reading its tables; None where it does not say."""
    document = head(audit_json)
    origin = document.get("provenance")
    command = origin.get("command") if isinstance(origin, dict) else None
    return tables_of(document.get("request"), command)


# Tables of a folder: predictions, what stands beside them, and the data set they are of.


def described(
    item: Item, folder: Path, sources: Path | Sequence[SourceRef], asked: TableSpec | None
) -> Item:
    """The item with its predictions, the tables beside them, and what is known of the data."""
    if isinstance(sources, Path):
        if is_cube(sources):
            return item  # counts name no examples
        nested = sources.is_dir() and next(sources.glob("*/*.parquet"), None) is not None
        sources = [SourceRef(str(sources / "*" / "*.parquet" if nested else sources))]
    tables = replace(
        TableSpec(()) if asked is None else asked,
        sources=tuple(sources),
        examples=_other_table(folder, "examples", asked),
        variants=_other_table(folder, "variants", asked),
        train=None,
    )
    published = read_experiment(folder)
    if published is None:
        named = []  # data sets in the models' own table
        variants = None if tables.variants is None else tables.variants.path
        if variants is not None and variants.endswith((".parquet", ".pq")):
            with suppress(OSError, pa.ArrowException):
                if "dataset" in pq.read_schema(variants).names:
                    column = pq.read_table(variants, columns=["dataset"]).column(0)
                    named = column.unique().to_pylist()
        known = len(named) == 1 and named[0] in {entry.name for entry in datasets()}
        return replace(item, tables=tables, dataset=named_dataset(named[0]) if known else None)
    tables = TableSpec(
        tables.sources,
        baseline="dense",
        examples=tables.examples,
        variants=tables.variants,
        groups=published.groups,
        cluster=published.cluster,
        positive=published.positive,
    )
    title = f"{published.experiment} ({published.study})"
    return replace(item, title=title, tables=tables, dataset=published.data)


def predictions_in(folder: Path) -> Path | None:
    """The folder or the table of predictions, where there is one under that name."""
    nested = folder / "predictions"
    if nested.is_dir() and next(nested.rglob("*.parquet"), None) is not None:
        return nested
    return _table(folder, "predictions")


def _table(folder: Path, stem: str) -> Path | None:
    tables = (known for known in FORMATS.values() if not known.database)
    places = (folder / f"{stem}{suffix}" for known in tables for suffix in known.suffixes[:2])
    return next((place for place in places if place.is_file()), None)


def _other_table(folder: Path, name: str, asked: TableSpec | None) -> SourceRef | None:
    """The table that was named beside files; where none were named, the one that is called so."""
    if asked is not None and any(ref.path is not None for ref in asked.sources):
        given: SourceRef | None = getattr(asked, name)
        return None if given is None else beside(folder, given)
    found = _table(folder, name)
    return None if found is None else SourceRef(str(found))


def beside(folder: Path, named: SourceRef) -> SourceRef | None:
    """A file as a request named it, looked for in this folder and where we are.

    Whoever sends an audit decides about the names in it, so only files below these are taken.
    """
    if not named.path:
        return None
    for base in (folder, Path.cwd()):
        for text in (named.path, Path(named.path).name):
            found = (base / text).resolve()
            if found.is_file() and found.is_relative_to(base.resolve()):
                return SourceRef(str(found), named.variant)
    return None


def named_dataset(name: str, options: Mapping[str, Any] | None = None) -> Data:
    """The data set of a name; an error where there is none."""
    return Data(name=registered(name).name, options=dict(options or {}))


AUDIT, REPORT = "audit.json", "report.html"
DEEPEST = 4  # folders below the given one
# Folders of models, figures and single predictions hold nothing to open by itself.
INNER = frozenset({"figures", "models", "predictions", "stages", "tables", "validation"})
LONGEST_KEY = 60


def find_items(
    path: str | Path,
    *,
    dataset: str | None = None,
    options: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
) -> list[Item]:
    """All that there is to look at.

    Parameters
    ----------
    path
        A folder with an audit, a published study or experiment, a demo, a folder with several of
        these, an `audit.json`, a `report.html`, or a prediction table.
    dataset, options
        The data set that the examples are of, where the folder does not say.
    data
        The folder with data sets.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"'{path}' does not exist; give a folder or a file that does.")
    place = place.resolve()  # a link that the user names is meant
    settle(place)
    root = place.parent if place.is_file() else place
    if not place.is_file():
        found = list(_in_folder(place, DEEPEST))
        if not found and any(file.suffix in (".parquet", ".pq") for file in place.iterdir()):
            found = list(_tables(place, place))
    elif place.name in (AUDIT, REPORT):
        found = [_audit(root)]
    elif place.suffix == ".json":
        found = [replace(_audit(root), audit_json=place)]
    elif place.suffix == ".html":
        found = [replace(_audit(root), report=place)]
    else:
        found = list(_tables(root, place))
    if not found:
        raise InputError(
            f"'{path}' holds no audit, no published study and no prediction table; make one with "
            "fairweight audit or fairweight demo."
        )
    given = None if dataset is None else named_dataset(dataset, options)
    folder = None if data is None else Path(data).expanduser()
    made: dict[str, Item] = {}
    for item in found:
        # A key is where an item is below the path that was given, in letters and dashes.
        at = item.audit_json.parent if item.audit_json else item.folder.resolve()
        if at.name in ("audit", "fairweight-audit"):
            at = at.parent
        below = at.relative_to(root).as_posix() if at.is_relative_to(root) else "."
        text = item.title if below == "." else below
        short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_KEY] or "item"
        key, number = short, 1
        while key in made:
            number += 1
            key = f"{short}-{number}"
        made[key] = replace(item, key=key, dataset=given or item.dataset, data=folder)
    return list(made.values())


def require_own(file: Path) -> None:
    """Raise where a file is a link that leads out of its folder: it would be shown to others."""
    try:
        inside(file.parent, file.name, links=True)
    except InputError:
        raise InputError(
            f"'{file}' is a link that leads out of its folder; replace it by the file itself, or "
            "give that one."
        ) from None


def _in_folder(folder: Path, deep: int) -> Iterator[Item]:
    """What a folder holds, or, so many folders deep, those in it."""
    if (folder / AUDIT).is_file() or (folder / REPORT).is_file():
        yield _audit(folder)
    elif predictions_in(folder) is not None:
        yield from _tables(folder)
    elif deep > 0:
        for child in sorted(folder.iterdir()):
            # What a link leads to is looked at where it is, if it is here.
            if not child.is_dir() or child.is_symlink():
                continue
            if not child.name.startswith(".") and child.name not in INNER:
                settle(child)
                yield from _in_folder(child, deep - 1)


def _tables(folder: Path, given: Path | None = None) -> Iterator[Item]:
    """Predictions of a folder, once for every audit beside them."""
    source = given or predictions_in(folder)
    assert source is not None
    audits = [] if given else [c for c in sorted(folder.iterdir()) if (c / AUDIT).is_file()]
    for audit in audits:
        yield _audit(audit)
    if not audits:
        name = folder.name if given is None or given == folder else source.name
        yield described(Item("", name, folder.resolve()), folder, source, None)


def _audit(folder: Path) -> Item:
    """An audit, with the tables it was made of where they are found."""
    folder = folder.resolve()
    audit, report = folder / AUDIT, folder / REPORT
    for place in (audit, report):
        if place.is_file():
            require_own(place)
    # `audit` says nothing: the folder it stands in does.
    own = folder.name not in ("audit", "fairweight-audit")
    item = Item(
        key="",
        title=folder.name if own else folder.parent.name,
        folder=folder,
        audit_json=audit if audit.is_file() else None,
        report=report if report.is_file() else None,
    )
    asked = requested(audit) if audit.is_file() else None
    for place in (folder, folder.parent):
        source = predictions_in(place)
        if source is not None:
            return described(replace(item, folder=place), place, source, asked)
    named = [] if asked is None else [beside(folder.parent, ref) for ref in asked.sources]
    files = [ref for ref in named if ref is not None]
    if not files or len(files) < len(named):
        return item
    return described(replace(item, folder=folder.parent), folder.parent, files, asked)
