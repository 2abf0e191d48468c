"""What a path holds: audits, published studies, demos, prediction tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.trust import inside
from fairweight.web.item import Item
from fairweight.web.item_tables import beside, described, named_dataset, predictions_in
from fairweight.web.recorded import Recorded, provenance, recorded

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
    found = list(_in_file(place) if place.is_file() else _in_folder(place))
    if not found:
        raise InputError(
            f"'{path}' holds no audit, no published study and no prediction table; make one with "
            "fairweight audit or fairweight demo."
        )
    root = place.parent if place.is_file() else place
    given = None if dataset is None else named_dataset(dataset, options)
    known = _with_keys(found, root.resolve())
    return [
        replace(
            item,
            dataset=given or item.dataset,
            data=None if data is None else Path(data).expanduser(),
        )
        for item in known
    ]


def _in_file(path: Path) -> Iterator[Item]:
    if path.name == AUDIT or path.name == REPORT:
        yield _audit(path.parent)
    elif path.suffix == ".json":
        yield replace(_audit(path.parent), audit_json=path)
    elif path.suffix == ".html":
        yield replace(_audit(path.parent), report=path)
    else:
        yield from _tables(path.parent, path)


def _in_folder(folder: Path) -> Iterator[Item]:
    if (folder / AUDIT).is_file() or (folder / REPORT).is_file():
        yield _audit(folder)
        return
    if predictions_in(folder) is not None:
        yield from _tables(folder)
        return
    found = list(_below(folder, DEEPEST))
    if not found and any(file.suffix in (".parquet", ".pq") for file in folder.iterdir()):
        found = list(_tables(folder, folder))
    yield from found


def require_own(file: Path) -> None:
    """Raise where a file is a link that leads out of its folder: it would be shown to others."""
    try:
        inside(file.parent, file.name, links=True)
    except InputError:
        raise InputError(
            f"'{file}' is a link that leads out of its folder; replace it by the file itself, or "
            "give that one."
        ) from None


def _below(folder: Path, deep: int) -> Iterator[Item]:
    for child in sorted(folder.iterdir()):
        if not child.is_dir() or child.name.startswith(".") or child.name in INNER:
            continue
        if child.is_symlink():
            continue  # what it leads to is looked at where it is, if it is here
        if (child / AUDIT).is_file() or (child / REPORT).is_file():
            yield _audit(child)
        elif predictions_in(child) is not None:
            yield from _tables(child)
        elif deep > 1:
            yield from _below(child, deep - 1)


def _tables(folder: Path, given: Path | None = None) -> Iterator[Item]:
    """Predictions of a folder, once for every audit beside them."""
    source = given or predictions_in(folder)
    assert source is not None
    audits = [] if given else [c for c in sorted(folder.iterdir()) if (c / AUDIT).is_file()]
    for audit in audits:
        yield _audit(audit)
    if not audits:
        name = folder.name if given is None or given == folder else source.name
        yield described(Item("", name, folder.resolve()), folder, source, Recorded())


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
    asked = recorded(provenance(audit).get("command")) if audit.is_file() else Recorded()
    for place in (folder, folder.parent):
        source = predictions_in(place)
        if source is not None:
            return described(replace(item, folder=place), place, source, asked)
    named = [beside(folder.parent, name) for name in asked.predictions]
    if not named or None in named:
        return item
    texts = [str(name) for name in named]
    return described(replace(item, folder=folder.parent), folder.parent, texts, asked)


def _with_keys(items: list[Item], root: Path) -> list[Item]:
    """The same with keys: where they are below the path that was given, in letters and dashes."""
    made: dict[str, Item] = {}
    for item in items:
        place = item.audit_json.parent if item.audit_json else item.folder.resolve()
        if place.name in ("audit", "fairweight-audit"):
            place = place.parent
        below = place.relative_to(root).as_posix() if place.is_relative_to(root) else "."
        text = item.title if below == "." else below
        short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:LONGEST_KEY] or "item"
        key, number = short, 1
        while key in made:
            number += 1
            key = f"{short}-{number}"
        made[key] = replace(item, key=key)
    return list(made.values())
