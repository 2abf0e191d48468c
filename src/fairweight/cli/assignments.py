"""`--set name=value` options: fields of a spec that have no option of their own."""

from __future__ import annotations

import json
from typing import Any

from fairweight.errors import InputError


def assignments(given: list[str] | None, option: str) -> dict[str, Any]:
    """Names and values; a dotted name goes into a table, and what is no JSON is text.

    >>> assignments(["momentum=0.8", "augment.flip=true", "schedule=step"], "--set")
    {'momentum': 0.8, 'augment': {'flip': True}, 'schedule': 'step'}
    """
    found: dict[str, Any] = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not (name and equals):
            raise InputError(f"{option} {item!r} is not of the form NAME=VALUE.")
        *tables, last = name.split(".")
        place = found
        for table in tables:
            inner = place.setdefault(table, {})
            if not isinstance(inner, dict):
                raise InputError(f"{option} sets '{table}' both as a value and as a table.")
            place = inner
        place[last] = _value(text)
    return found


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two sets of fields; the second decides, and tables are joined.

    >>> merged({"augment": {"flip": True}}, {"augment": {"crop": 4}})
    {'augment': {'flip': True, 'crop': 4}}
    """
    both = dict(first)
    for name, value in second.items():
        held = both.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            value = merged(held, value)
        both[name] = value
    return both


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
