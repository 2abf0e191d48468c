"""What a variant's teacher saw beyond its own training set, as the variants table says.

A model distilled from a teacher that was trained on more data than itself has seen those data
through the teacher: it is no evidence about training without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "leak"


def leaks(variants_table: pd.DataFrame | None, variants: Sequence[str]) -> dict[str, str]:
    """The sentences about leaks of each variant that has any; equal ones of members once.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["dense", "kd", "kd"], "seed": [0, 0, 1],
    ...                       "leak": [None, "The teacher saw 5 more.", "The teacher saw 5 more."]})
    >>> leaks(table, ["kd"])
    {'kd': 'The teacher saw 5 more.'}
    """
    if variants_table is None or COLUMN not in variants_table.columns:
        return {}
    said: dict[str, dict[str, None]] = {name: {} for name in variants}
    for name, given in zip(variants_table["variant"], variants_table[COLUMN], strict=True):
        text = (canonical(given) or "").strip()
        variant = canonical(name)
        if text and variant in said:
            said[variant][text] = None
    return {variant: " ".join(texts) for variant, texts in said.items() if texts}


def leak_notes(found: dict[str, str]) -> list[str]:
    """One note for each distinct leak, with the variants that have it.

    >>> leak_notes({"kd": "The teacher saw 5 more.", "at": "The teacher saw 5 more."})
    ['Leak in kd, at: The teacher saw 5 more.']
    """
    by_text: dict[str, list[str]] = {}
    for variant, text in found.items():
        by_text.setdefault(text, []).append(variant)
    return [f"Leak in {', '.join(names)}: {text}" for text, names in by_text.items()]
