"""What the fields of a spec are: type and default from its schema, meaning from its docstring."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

REQUIRED = "required"
_PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class SpecField:
    name: str
    type: str  # in words: `number from 0 to 1`
    default: Any  # None may also be a default: `required` tells
    required: bool
    meaning: str

    @property
    def default_text(self) -> str:
        """The default as it is written in JSON and TOML; `required` without one."""
        return REQUIRED if self.required else json.dumps(self.default, ensure_ascii=False)


def described(spec: type[Any]) -> tuple[SpecField, ...]:
    """The fields of a spec, those without a default first.

    >>> from fairweight.specs.compression import GlobalMagnitude
    >>> field = described(GlobalMagnitude)[0]
    >>> field.name, field.type, field.default_text
    ('sparsity', 'number from 0 to 1', 'required')
    """
    schema = TypeAdapter(spec).json_schema()
    meanings, required = _meanings(spec), schema.get("required", ())
    fields = [
        SpecField(
            name=name,
            type=_words(facts),
            default=facts.get("default"),
            required=name in required,
            meaning=meanings.get(name, ""),
        )
        for name, facts in schema["properties"].items()
        if "const" not in facts  # the name of a schedule, which says which of them it is
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def summary_of(spec: type[Any]) -> str:
    """The paragraphs of a docstring before its parameters, on one line."""
    text = inspect.cleandoc(spec.__doc__ or "")
    return " ".join(_PARAMETERS.sub("", text).split())


def _meanings(spec: type[Any]) -> dict[str, str]:
    """Entries of the section `Parameters` of the class and of those that it builds on."""
    found: dict[str, str] = {}
    for base in reversed(spec.__mro__):
        section = _PARAMETERS.search(inspect.cleandoc(vars(base).get("__doc__") or ""))
        names: list[str] = []
        for line in section[1].splitlines() if section else ():
            if line and not line[0].isspace():
                names = [name.strip() for name in line.split(",")]
                found |= dict.fromkeys(names, "")
            else:
                for name in names:
                    found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _words(facts: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "anyOf" in facts:
        return " or ".join(_words(choice) for choice in facts["anyOf"])
    if "discriminator" in facts:
        return "one of: " + ", ".join(facts["discriminator"]["mapping"])
    if "enum" in facts:
        return " or ".join(json.dumps(value) for value in facts["enum"])
    kind: str = facts.get("type", "anything")
    if kind == "array":
        return f"list of {_words(facts.get('items', {}))}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return words.get(kind, kind) + _range(facts)


def _range(facts: dict[str, Any]) -> str:
    low, high = facts.get("minimum"), facts.get("maximum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    ends = (
        ("of at least", low),
        ("above", facts.get("exclusiveMinimum")),
        ("of at most", high),
        ("below", facts.get("exclusiveMaximum")),
    )
    told = [f"{word} {end:g}" for word, end in ends if end is not None]
    return " " + " and ".join(told) if told else ""
