"""One file per loss; importing this package registers all of them."""

# Listings show losses as they were registered: plain ones first, not by the alphabet.
# isort: off
from fairweight.lab.distill.losses import (
    knowledge_distillation,
    attention,
    similarity_preserving,
    flow,
    probabilistic,
    contrastive,
    hint,
    max_pool_hint,
)
# isort: on

__all__ = [
    "attention",
    "contrastive",
    "flow",
    "hint",
    "knowledge_distillation",
    "max_pool_hint",
    "probabilistic",
    "similarity_preserving",
]
