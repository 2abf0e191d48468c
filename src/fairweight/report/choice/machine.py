"""A choice as JSON, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairweight.report.choice.words import sentences
from fairweight.report.machine import records

if TYPE_CHECKING:
    from fairweight.auditing.choose.chosen import Choice

SCHEMA = 1


def to_json(choice: Choice, command: str | None = None) -> str:
    """What was asked, what was chosen, and every table."""
    from fairweight import __version__

    asked = choice.asked
    weights = [None] * len(asked.objectives) if asked.weights is None else asked.weights.tolist()
    best = [
        {"variant": row["variant"], "p_within_margin": row["p_within_margin"]}
        for row in records(choice.tables["choice"])
        if row["in_best_set"] is True
    ]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "command": command,
        "sentences": sentences(choice),
        "best_is_among": best,
        "margin": asked.margin,
        "chosen": choice.chosen,
        "qualifying": list(choice.qualifying),
        "baseline": choice.baseline,
        "n_examples": choice.n_examples,
        "n_confirmed": choice.n_confirmed,
        "selected_on_these_data": choice.n_confirmed == 0,
        "objectives": [
            {"name": o.name, "metric": o.term.metric, "place": o.term.place or None, "aim": o.aim,
             "weight": weight}
            for o, weight in zip(asked.objectives, weights, strict=True)
        ],
        "requirements": [requirement.shown for requirement in asked.requirements],
        "nearest_miss": None
        if choice.nearest is None
        else {"variant": choice.nearest[0], "misses": choice.nearest[1]},
        "notes": list(choice.notes),
        "tables": {name: records(frame) for name, frame in choice.tables.items()},
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
