"""fairweight shows who pays for the compression of a neural network.

Names are loaded when they are first used, so `import fairweight` costs next to nothing.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # checkers read it as true; to import typing takes ten times our time
if TYPE_CHECKING:
    from fairweight import api as api
    from fairweight import lab as lab
    from fairweight import metrics as metrics
    from fairweight import mitigate as mitigate
    from fairweight.api import (
        audit,
        audit_table,
        choose,
        count,
        count_sql,
        exemplars,
        explain,
        gate,
        plan,
        preflight,
        worst_group_shift,
    )
    from fairweight.audits import Audit, load
    from fairweight.precision import sensitivity
    from fairweight.specs.audit import AuditOptions
    from fairweight.tables.spec import TableSpec

__version__ = "0.1.0"

__all__ = [
    "Audit", "AuditOptions", "TableSpec", "__version__", "audit", "audit_table", "choose", "count",
    "count_sql", "exemplars", "explain", "gate", "lab", "load", "metrics", "mitigate", "plan",
    "preflight", "sensitivity", "worst_group_shift",
]  # fmt: skip

_HOMES = {"Audit": "audits", "load": "audits", "sensitivity": "precision"}
_MODULES = ("api", "lab", "metrics", "mitigate")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = importlib.import_module(f"fairweight.{name}")
    elif name in __all__:
        home = _HOMES.get(name, "api")
        value = getattr(importlib.import_module(f"fairweight.{home}"), name)
    else:
        raise AttributeError(f"module 'fairweight' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
