"""How alike two networks represent the same examples: SVCCA and linear CKA."""

from __future__ import annotations

from fairweight.lab.similarity.cka import cka
from fairweight.lab.similarity.compare import compare_features, compare_models, similarity_row
from fairweight.lab.similarity.compared import Compared
from fairweight.lab.similarity.rule import RAGHU, SIMON_SAYS, Rule
from fairweight.lab.similarity.saved import compare_saved
from fairweight.lab.similarity.svcca import svcca

__all__ = [
    "RAGHU",
    "SIMON_SAYS",
    "Compared",
    "Rule",
    "cka",
    "compare_features",
    "compare_models",
    "compare_saved",
    "similarity_row",
    "svcca",
]
