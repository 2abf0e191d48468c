"""Which examples are asked for: what an address says, checked, and back to an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from fairweight.errors import InputError, UnknownNameError
from fairweight.web.votes.kinds import KINDS

Side: TypeAlias = Literal["compressed", "baseline"]

SIDES = ("compressed", "baseline")
CELLS = ("TP", "FN", "FP", "TN")
CONFIDENCES = ("high", "low")
CHANGES = ("yes", "no", "lost", "gained")
ANNOTATED = ("yes", "no", "label_wrong", "ambiguous", "model_harmful", "fine", "skip")
GROUP = "group."  # group.sex=female
CHOICES = {
    "side": SIDES,
    "cell": CELLS,
    "confidence": CONFIDENCES,
    "changed": CHANGES,
    "kind": tuple(KINDS),
    "annotated": ANNOTATED,
}
NAMES = ("task", "variant", "seed", "positive", "label", "prediction", "not_of")


@dataclass(frozen=True)
class Filters:
    """What examples must be; None asks for nothing.

    Parameters
    ----------
    task
        By default the first.
    variant
        The compressed variant that is looked at; by default the first.
    side
        Whose answers `seed`, `cell`, `confidence` and `prediction` speak of.
    seed
        One member of that side, in place of the most frequent answer of all.
    cell
        TP, FN, FP or TN: the class `positive` against the rest; by default the positive one of two.
    confidence
        `low`: the side is unsure (two classes: the mean score lies between .1 and .9; more: the
        mean score of the surest class is below .9). `high`: it is not.
    groups
        Columns and levels, `(("sex", "female"),)`.
    label, prediction
        A class.
    changed
        Whether the two sides answer differently: `yes`, `no`, `lost` (and the baseline was right),
        `gained` (and the compressed model is). Of a member: its answer and that of the member it
        comes from.
    percentile_min
        At least so many of 100 examples have a smaller distance between the sides' votes.
    kind
        An exemplar of the variant, of this kind.
    not_of
        And not of this other variant; of the kind `modal` where none is named.
    annotated
        `yes`, `no` or a verdict.
    """

    task: str | None = None
    variant: str | None = None
    side: Side = "compressed"
    seed: str | None = None
    cell: str | None = None
    positive: str | None = None
    confidence: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
    label: str | None = None
    prediction: str | None = None
    changed: str | None = None
    percentile_min: float | None = None
    kind: str | None = None
    not_of: str | None = None
    annotated: str | None = None


def from_query(query: Mapping[str, str]) -> Filters:
    """Filters from the parameters of an address; others than filters are left alone.

    Empty values are those of fields that nobody filled in.

    >>> from_query({"cell": "FN", "group.sex": "female", "offset": "24", "label": ""})
    Filters(..., cell='FN', ..., groups=(('sex', 'female'),), ...)
    """
    held: dict[str, Any] = {}
    groups = []
    for name, value in query.items():
        if value == "":
            continue
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise UnknownNameError(f"The filter {name} =", value, CHOICES[name])
            held[name] = value
        elif name in NAMES:
            held[name] = value
        elif name == "percentile_min":
            held[name] = _percentile(value)
        elif name.startswith(GROUP) and name != GROUP:
            groups.append((name.removeprefix(GROUP), value))
    return Filters(**held, groups=tuple(sorted(groups)))


def to_query(filters: Filters) -> dict[str, str]:
    """The parameters of an address that says the same.

    >>> to_query(Filters(cell="FN", groups=(("sex", "female"),), percentile_min=95.0))
    {'cell': 'FN', 'percentile_min': '95', 'group.sex': 'female'}
    """
    texts = {name: getattr(filters, name) for name in (*NAMES, *CHOICES)}
    said = {name: cast(str, text) for name, text in texts.items() if text is not None}
    if filters.side == SIDES[0]:
        del said["side"]
    if filters.percentile_min is not None:
        said["percentile_min"] = f"{filters.percentile_min:.10g}"
    return said | {GROUP + column: level for column, level in filters.groups}


def _percentile(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise InputError(
            f"The filter percentile_min = '{text[:40]}' is no percentile; give a number from 0 to "
            "100, such as 95."
        )
    return value
