"""Studies from TOML files and dictionaries; what cannot be used gets one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairweight.specs.read_spec import check_plain, read_spec, read_toml
from fairweight.specs.study import Study


def read_study(source: str | Path | Mapping[str, Any]) -> Study:
    """The study of a TOML file (a path) or of a dictionary with the same keys.

    >>> read_study({"name": "s", "experiment": [{"name": "a", "data": {"name": "digits"},
    ...     "model": {"architecture": "lenet"}, "training": {"epochs": 3}}]}).experiment[0].members
    5
    """
    if isinstance(source, Mapping):
        held, what = source, "The study"
    else:
        held, what = read_toml(source, "The study"), f"The study '{source}'"
    check_plain(held, what)
    return read_spec(Study, held, what)
