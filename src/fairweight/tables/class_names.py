"""Names of classes from a file, for labels that are codes: 207 is a golden retriever."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

LARGEST = 10_000_000  # bytes of a file of names


def read_class_names(path: str | Path) -> dict[str, str]:
    """The name of each class, by its label.

    Three forms are read: a JSON object (or list), a CSV of two columns (label, name), and plain
    text, in which the first line is the name of class 0.
    """
    place = Path(path)
    try:
        size = place.stat().st_size
        text = place.read_bytes()[:LARGEST].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--class-names '{shown(path)}' cannot be read ({shown(error, 100)}); give a text, CSV "
            "or JSON file in UTF-8."
        ) from error
    if size > LARGEST:
        raise InputError(f"--class-names '{shown(path)}' is too large for a list of names.")
    names: dict[str, str] = {}
    if place.suffix.lower() == ".json":
        try:
            held = json.loads(text)
        except ValueError as error:
            raise InputError(
                f"--class-names '{shown(path)}' is not JSON; give an object of labels and names."
            ) from error
        pairs = held.items() if isinstance(held, dict) else enumerate(held)
        names = {canonical(label) or "": name for label, name in pairs if isinstance(name, str)}
    elif place.suffix.lower() in (".csv", ".tsv"):
        rows = list(csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ","))
        rows = [row for row in rows if row]
        if any(len(row) != 2 for row in rows):
            raise InputError(
                f"--class-names '{shown(path)}' must have two columns, the label and the name."
            )
        names = {canonical(label) or "": name for label, name in rows}
    else:
        names = {str(i): line.strip() for i, line in enumerate(text.rstrip("\n").split("\n"))}
    return {label: name.strip() for label, name in names.items() if name.strip()}


def names_of_classes(names: Mapping[str, str], classes: Sequence[str]) -> dict[str, str]:
    """The names of these classes; a name that several have is followed by its label.

    >>> names_of_classes({"0": "crane", "1": "crane", "2": "owl"}, ["0", "1", "2"])
    {'0': 'crane (0)', '1': 'crane (1)', '2': 'owl'}
    """
    if not classes:
        raise InputError(
            "Names of classes were given (--class-names), and there are no classes here: an "
            "outcome, positions of answers, or no labels; leave them out."
        )
    known = {label: names[label] for label in classes if label in names}
    if not known:
        raise InputError(
            "The class names are of none of the classes here, such as "
            f"'{shown(next(iter(classes), ''), 40)}'; the file must use the same labels."
        )
    often = Counter(known.values())
    return {
        label: f"{name} ({label})" if often[name] > 1 else name for label, name in known.items()
    }
