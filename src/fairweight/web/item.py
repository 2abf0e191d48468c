"""One thing to look at: an audit, its prediction tables, and the images that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairweight.specs.data import Data


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
