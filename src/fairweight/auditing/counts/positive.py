"""Which of two classes is the positive one."""

from __future__ import annotations

from collections.abc import Sequence

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical

POSITIVE_NAMES = frozenset({"1", "true", "yes"})


def resolve_positive(classes: Sequence[str], positive: object = None) -> int | None:
    """Index of the positive class among canonical class names; None where there is none.

    Asked for by name it must exist. Otherwise it is the one of two classes that is called 1, true
    or yes; other binary labels have no positive class until one is named.

    >>> resolve_positive(("0", "1")), resolve_positive(("No", "Yes")), resolve_positive(("a", "b"))
    (1, 1, None)
    >>> resolve_positive(("cat", "dog"), "dog")
    1
    >>> resolve_positive(("cat", "dog", "emu")) is None
    True
    """
    if positive is not None:
        return _named(classes, positive)
    if len(classes) != 2:
        return None
    matches = [i for i, name in enumerate(classes) if name.casefold() in POSITIVE_NAMES]
    return matches[0] if len(matches) == 1 else None


def _named(classes: Sequence[str], positive: object) -> int | None:
    # A boolean is asked for as `true`, or as `1` where the labels are 0 and 1.
    texts = (canonical(positive), canonical(positive, truth_as_number=True))
    found = [text for text in texts if text in classes]
    if not found:
        raise UnknownNameError(
            "Positive class", str(positive), classes, remedy="Name one of the labels."
        )
    if len(classes) > 2:
        raise InputError(
            f"positive={positive!r} needs binary labels, but there are {len(classes)} classes; "
            "leave it out, or make the labels binary."
        )
    return list(classes).index(str(found[0])) if len(classes) == 2 else None
