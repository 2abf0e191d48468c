"""What an audit was made of: the tables and columns that its command names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairweight.tables.names import split_list, split_names, split_pair

HEAD = 1_000_000  # characters in which provenance is found: it stands before the results
MARK = '"provenance":'

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


def provenance(audit_json: Path) -> Mapping[str, Any]:
    """The provenance of an audit without reading its tables; {} where there is none."""
    try:
        with audit_json.open(encoding="utf-8") as file:
            text = file.read(HEAD)
        start = text.find(MARK)
        if start < 0:
            return {}
        rest = text[start + len(MARK) :].lstrip()
        held, _ = json.JSONDecoder().raw_decode(rest)
    except (OSError, ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


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
