"""One person's verdict on one example."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fairweight.errors import InputError, UnknownNameError

VERDICTS = {
    "label_wrong": "the recorded label is wrong",
    "ambiguous": "the example is ambiguous",
    "model_harmful": "the recorded label is right, and the compressed model's answer does harm",
    "fine": "the recorded label is right",
    "skip": "no verdict",
}
KEYS = {"w": "label_wrong", "a": "ambiguous", "h": "model_harmful", "f": "fine", "s": "skip"}
WITHOUT_LABEL = ("ambiguous", "skip")
LONGEST = 100_000  # characters of one field, below what CSV readers take


@dataclass(frozen=True)
class Annotation:
    """A row of `annotations.csv`.

    Parameters
    ----------
    task
        Empty where there is only one.
    label
        The label that the person stands for: the recorded one for `fine` and `model_harmful`, the
        right one (empty if not given) for `label_wrong`, none for `ambiguous` and `skip`.
    annotator
        Empty for somebody without a name, who is then one person.
    time
        ISO 8601 in UTC, or empty where it is not known.

    >>> Annotation("7", "ambiguous", label="cat")
    Traceback (most recent call last):
    fairweight.errors.InputError: The verdict 'ambiguous' stands for no label; given was 'cat'...
    """

    example_id: str
    verdict: str
    task: str = ""
    label: str = ""
    note: str = ""
    annotator: str = ""
    time: str = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_text(value, name)
        if not self.example_id:
            raise InputError("An annotation has no 'example_id'; say which example it is about.")
        if self.verdict not in VERDICTS:
            given = self.verdict[:50]
            shown = given if given.isprintable() else ascii(given)[1:-1]
            raise UnknownNameError("The verdict", shown, VERDICTS)
        if self.label and self.verdict in WITHOUT_LABEL:
            raise InputError(
                f"The verdict '{self.verdict}' stands for no label; given was "
                f"{self.label[:50]!r}: leave the label empty, or choose 'label_wrong'."
            )
        moment(self.time)


def label_for(verdict: str, recorded: str, given: str = "") -> str:
    """The label that a verdict stands for.

    >>> label_for("fine", "cat"), label_for("label_wrong", "cat", "dog"), label_for("skip", "cat")
    ('cat', 'dog', '')
    """
    if verdict in WITHOUT_LABEL:
        return ""
    return given if verdict == "label_wrong" else recorded


def now() -> str:
    """The time of a verdict that is given now, as browsers write it too."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(time: str) -> datetime:
    """The time as a moment; the earliest of all where it is not known."""
    if not time:
        return datetime.min.replace(tzinfo=UTC)
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        found = None
    if found is None or found.utcoffset() != timedelta(0):
        raise InputError(
            f"The time {time[:50]!r} is not ISO 8601 in UTC; write it like "
            "2026-03-01T09:30:00Z, or leave it empty."
        )
    return found


def check_text(value: object, name: str) -> None:
    """Refuse what no file in UTF-8 could hold, and what no reader would take."""
    if not isinstance(value, str):
        raise InputError(f"'{name}' of an annotation must be text; given was {value!r:.50}.")
    if len(value) > LONGEST:
        raise InputError(
            f"'{name}' of an annotation has {len(value):,} characters; give at most {LONGEST:,}."
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"'{name}' of an annotation holds half a character (a lone surrogate, "
            f"{value[error.start]!a}, at place {error.start}), which UTF-8 cannot hold; write the "
            "text again."
        ) from error
