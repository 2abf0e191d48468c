"""What a path holds: audits, published studies, demos, prediction tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing.archive import head
from fairweight.base.files import settle
from fairweight.base.trust import inside
from fairweight.errors import InputError
from fairweight.studies.publication import read_experiment
from fairweight.tables.names import split_list, split_names, split_pair
from fairweight.tables.sources import is_cube

if TYPE_CHECKING:
    from fairweight.specs.data import Data


# One thing to look at: an audit, its prediction tables, and the images that belong to them.


@dataclass(frozen=True)
class Item:
    """Where everything is.

    key            a short name for addresses, unique among those found together
    title          for people
    folder         where it is; image files are looked for in it and nowhere else
    audit_json     the audit's numbers, None where there are none
    report         the stored report
    predictions    what `tables.align` reads, None where single examples are not known
    examples, variants   tables beside the predictions
    columns        further arguments of `tables.align`: baseline, groups, cluster, task, id, …
    positive       the class that scores of two classes are of
    dataset        the data set that the examples are of
    data           the folder with data sets
    """

    key: str
    title: str
    folder: Path
    audit_json: Path | None = None
    report: Path | None = None
    predictions: Any = None
    examples: str | None = None
    variants: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    positive: str | None = None
    dataset: Data | None = None
    data: Path | None = None


# What an audit was made of: the tables and columns that its command names.

FILES = ("examples", "variants")
COLUMNS = {
    "--baseline": "baseline",
    "--id": "id",
    "--label": "label",
    "--task": "task",
    "--cluster": "cluster",
    "--weight": "weight",
    "--count": "count",
    "--missing": "missing",
    "--variant-column": "variant",
    "--seed-column": "seed",
    "--prediction-column": "prediction",
    "--score-column": "score",
}
PAIRS = {"--prediction": "predictions", "--score": "scores"}
LISTS = {"--groups": ("groups", split_list), "--score-classes": ("score_classes", split_names)}
FLAGS = frozenset({"--exact", "--no-filters", "--suppress-small", "--quiet", "-q", "--force"})


@dataclass(frozen=True)
class Recorded:
    """The arguments of an audit; files as they were written in the command."""

    predictions: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # examples, variants
    columns: Mapping[str, Any] = field(default_factory=dict)
    positive: str | None = None


def recorded(command: str | None) -> Recorded:
    """What `fairweight audit …` was asked; what cannot be understood is left out.

    >>> found = recorded("fairweight audit p.csv --examples e.csv --groups sex,age --positive yes")
    >>> found.predictions, found.files, found.columns, found.positive
    (('p.csv',), {'examples': 'e.csv'}, {'groups': ['sex', 'age']}, 'yes')
    """
    try:
        words = shlex.split(command or "")
    except ValueError:
        return Recorded()
    if words[:2] != ["fairweight", "audit"]:
        return Recorded()
    predictions: list[str] = []
    files: dict[str, str] = {}
    columns: dict[str, Any] = {}
    positive = None
    for option, value in _options(words[2:]):
        if option is None:
            predictions.append(value)
        elif option.removeprefix("--") in FILES:
            files[option.removeprefix("--")] = value
        elif option == "--positive":
            positive = value
        elif option in COLUMNS:
            columns[COLUMNS[option]] = value
        elif option in LISTS:
            name, split = LISTS[option]
            columns[name] = split(value)
        elif option in PAIRS and (pair := split_pair(value)):
            name, column = pair
            columns.setdefault(PAIRS[option], {}).setdefault(name, []).append(column)
    return Recorded(tuple(predictions), files, columns, positive)


def _options(words: list[str]) -> list[tuple[str | None, str]]:
    """(option, value); (None, word) for words that are no option's."""
    found: list[tuple[str | None, str]] = []
    left = iter(words)
    for word in left:
        if word in FLAGS:
            continue
        if not word.startswith("--"):
            found.append((None, word))
        elif "=" in word:
            option, _, value = word.partition("=")
            found.append((option, value))
        else:
            found.append((word, next(left, "")))
    return found


# Tables of a folder: predictions, what stands beside them, and the data set they are of.

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
        settle(child)
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
    made = head(audit).get("provenance") if audit.is_file() else None
    asked = recorded(made.get("command")) if isinstance(made, dict) else Recorded()
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
