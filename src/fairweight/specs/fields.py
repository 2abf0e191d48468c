"""Fields that specs gained later, and specs as plain values for the keys of stages."""

from __future__ import annotations

from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any

_LATER, _BUILT = "later", "built"


def later(default: Any, *, built: bool = True) -> Any:
    """A field that enters a stage's key only where it differs from its default.

    So what was made before the field existed stays good.

    Parameters
    ----------
    built
        Whether this version can do anything but the default; `require_built` refuses the rest.
    """
    return field(default=default, metadata={_LATER: True, _BUILT: built})


def recorded(spec: Any) -> Any:
    """A spec as plain values: all fields but those of `later` that have their default.

    >>> from fairweight.specs.training import Training
    >>> "lr" in recorded(Training(epochs=1)), "weighting" in recorded(Training(epochs=1))
    (True, False)
    """
    if is_dataclass(spec) and not isinstance(spec, type):
        return {
            one.name: recorded(value)
            for one in fields(spec)
            if not (
                (value := getattr(spec, one.name)) == one.default is not MISSING
                and one.metadata.get(_LATER)
            )
        }
    if isinstance(spec, dict):
        return {name: recorded(value) for name, value in spec.items()}
    if isinstance(spec, list | tuple):
        return type(spec)(recorded(value) for value in spec)
    return spec


def require_built(spec: Any) -> None:
    """Raise where a field asks for what this version cannot do: nothing is ignored in silence."""
    for one in fields(spec):
        value = getattr(spec, one.name)
        if not one.metadata.get(_BUILT, True) and value != one.default:
            raise ValueError(
                f"{one.name} = {value!r} cannot be used in this version of fairweight, which only "
                f"knows {one.default!r}; leave {one.name} out"
            )
