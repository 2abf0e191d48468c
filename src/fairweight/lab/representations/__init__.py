"""How alike two networks represent the same examples: SVCCA and linear CKA."""

from __future__ import annotations

from fairweight.lab.representations.blocks import (
    compare_features,
    similarity,
    similarity_row,
)
from fairweight.lab.representations.cka import cka
from fairweight.lab.representations.moments import BlockDistance
from fairweight.lab.representations.svcca import RAGHU, SIMON_SAYS, SvccaRule, svcca

__all__ = [
    "RAGHU",
    "SIMON_SAYS",
    "BlockDistance",
    "SvccaRule",
    "cka",
    "compare_features",
    "similarity",
    "similarity_row",
    "svcca",
]
