"""fairweight shows who pays for the compression of a neural network.

Names are loaded when they are first used, so `import fairweight` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight import lab as lab
    from fairweight import metrics as metrics
    from fairweight.api import Audit, audit, audit_table, load, worst_group_shift

__version__ = "0.1.0"

__all__ = [
    "Audit", "__version__", "audit", "audit_table", "lab", "load", "metrics", "worst_group_shift",
]  # fmt: skip

_FROM_API = frozenset({"Audit", "audit", "audit_table", "load", "worst_group_shift"})


def __getattr__(name: str) -> object:
    import importlib

    if name in _FROM_API:
        value: object = getattr(importlib.import_module("fairweight.api"), name)
    elif name in ("lab", "metrics"):
        value = importlib.import_module(f"fairweight.{name}")
    else:
        raise AttributeError(f"module 'fairweight' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
