"""What is said of members: models that were trained again, or the same model run again.

Every text of ours that speaks of retraining goes through `worded`, before names of users are put
into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

RETRAINED, REPEATED = "retrained", "repeated"

# In this order: a phrase stands before those that are parts of it.
_RUN_AGAIN = (
    (
        "Retraining alone moves classes and groups too.",
        "The same model run again may predict otherwise, and one run of each does not show how "
        "far.",
    ),
    (
        "“The method” are all models that could be made in the same way.",
        "“Run again” are all runs that these models could give.",
    ),
    ("What the method does takes at least 4 members a side, from different dense models.",
     "What other runs do takes at least 4 runs a side."),
    (
        "Two dense models that were trained alike differ by class and group too. So one dense and "
        "one compressed model show what happened to these two. What the compression method does "
        "takes several of each, from different dense models.",
        "A model that is run again may predict otherwise. So one run of each shows what happened "
        "in these two. What other runs do takes several of each.",
    ),
    ("retraining the dense model", "running the dense model again"),
    ("beyond retraining", "when the same models are run again"),
    (
        "Does this compression do so beyond retraining? The models are a sample too.",
        "Does it hold when the same models are run again? The runs are a sample too.",
    ),
    ("The models are fixed, examples a sample.", "The runs are fixed, examples a sample."),
    ("at least 3 members per side, from 3 different dense models", "at least 3 runs per side"),
    ("at least 4 members a side, from different dense models", "at least 4 runs a side"),
    ("about the method", "about running the same models again"),
    ("Retraining the dense model", "Running the dense model again"),
    ("compressed members are paired with the dense models that they were made from",
     "runs of compressed models are paired with runs of the models that they were made from"),
    ("the method that made them", "the models that they are runs of"),
    ("the compression beyond retraining", "the same models run again"),
    ("the method beyond retraining", "the same models run again"),
    ("Beyond retraining (the method)", "When the same models are run again"),
    ("Beyond retraining?", "When run again?"),
    ("… beyond retraining", "… when run again"),
    ("retraining with compression", "running it again with compression"),
    ("what training again alone moves", "what running it again alone moves"),
    ("pairs of retrained dense models", "pairs of runs of the dense model"),
    ("retrained pairs", "pairs of runs"),
    ("Retraining alone", "The same model run again"),
    ("retraining alone", "the same model run again"),
    ("p retraining", "p against the same model run again"),
    ("retraining odds ratio", "odds ratio of the same model run again"),
    ("Retraining, up to", "The same model run again, up to"),
    ("“the method”", "“run again”"),
    ("for the method", "when the same models are run again"),
    ("of the method", "of the same models run again"),
    ("The method", "Run again"),
    ("the method", "run again"),
    ("These models", "These runs"),
    ("these models", "these runs"),
    ("Retraining", "Run again"),
    ("retraining", "the same model run again"),
)  # fmt: skip


def members_of(result: AuditResult) -> str:
    """What the members of an audit are: retrained or repeated."""
    return str(result.provenance.options.get("members", RETRAINED))


def worded(text: str, members: str) -> str:
    """A text about retraining as it is said of these members; names do not belong in it.

    >>> worded("Retraining alone moves accuracy by", "repeated")
    'The same model run again moves accuracy by'
    >>> worded("Retraining alone moves accuracy by", "retrained")
    'Retraining alone moves accuracy by'
    """
    if members != REPEATED:
        return text
    for retrained, repeated in _RUN_AGAIN:
        text = text.replace(retrained, repeated)
    return text


_OURS = frozenset(("title", "description", "subtitle"))
_WHOLE_TEXTS = frozenset((
    "These models", "The method", "these models", "the method", "worse, these models",
    "worse, the method", "better, these models", "better, the method", "retraining, up to",
    "retraining alone, %", "retraining alone",
))  # fmt: skip


def worded_spec(spec: dict[str, Any], result: AuditResult) -> dict[str, Any]:
    """A figure whose titles, description and legends speak of the members of this audit.

    Of its data only whole texts of ours are changed; names of variants and classes never.
    """
    members = members_of(result)
    if members != REPEATED:
        return spec
    names = (result.baseline, *result.variants, *result.classes)
    marks = {name: f"\0{i}\0" for i, name in enumerate(names) if worded(name, members) != name}
    return {key: _worded_part(part, key, marks) for key, part in spec.items()}


def _worded_part(part: Any, key: str, marks: dict[str, str]) -> Any:
    """A part of a figure, under its key; names are marked while the words around them change."""
    if isinstance(part, dict):
        return {name: _worded_part(held, name, marks) for name, held in part.items()}
    if isinstance(part, list):
        return [_worded_part(held, key, marks) for held in part]
    if not isinstance(part, str) or not (key in _OURS or part in _WHOLE_TEXTS):
        return part
    for name, mark in marks.items():
        part = part.replace(name, mark)
    part = worded(part, REPEATED)
    for name, mark in marks.items():
        part = part.replace(mark, name)
    return part
