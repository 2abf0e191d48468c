"""Overrides at inference, with nothing but the standard library.

This file may be copied beside a model as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def read_overrides(path: str) -> dict[str, dict[str, str]]:
    """The overrides of a file `overrides.json`: task ("" where there is one) → example → label."""
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file)["overrides"])


def apply_overrides(
    example_id: Any, prediction: Any, overrides: Mapping[str, Mapping[str, str]], task: str = ""
) -> Any:
    """The override of an example where there is one, else the model's own prediction.

    >>> overrides = {"": {"17": "cat"}}
    >>> apply_overrides(17, "dog", overrides), apply_overrides(18, "dog", overrides)
    ('cat', 'dog')
    """
    return overrides.get(task, {}).get(str(example_id), prediction)
