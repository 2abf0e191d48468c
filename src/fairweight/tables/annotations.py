"""Annotations: what people say about examples, in a file and taken together."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical

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
    fairweight.errors.InputError: The verdict 'ambiguous' takes no label, and 'cat' was given...
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
                f"The verdict '{self.verdict}' takes no label, and "
                f"{self.label[:50]!r} was given: leave the label empty, or choose 'label_wrong'."
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


# `annotations.csv`: the one format of the report's page, the viewer and `mitigate overrides`.
#
# A spreadsheet runs cells that begin with =, +, - or @. They are written behind an apostrophe,
# which is taken away again on reading; a cell that has apostrophes before such a sign gets one
# more, so that every text comes back as it was.

COLUMNS = ("example_id", "task", "verdict", "label", "note", "annotator", "time")
NEEDED = ("example_id", "verdict")
# Some spreadsheets skip tabs and ends of lines before they look for a formula, and some take the
# wide signs of Asian keyboards for one.
_FORMULA = r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile("'*" + _FORMULA)
_GUARDED = re.compile("'+" + _FORMULA)


def to_csv(rows: Iterable[Annotation]) -> str:
    r"""The text of a file with these annotations.

    >>> to_csv([Annotation("-7", "fine", label="cat", note="=1+1")]).splitlines()[1]
    "'-7,,fine,cat,'=1+1,,"
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for row in rows:
        cells = [getattr(row, name) for name in COLUMNS]
        writer.writerow([f"'{cell}" if _RUNS.match(cell) else cell for cell in cells])
    return stream.getvalue()


def read_csv(source: Path | str, shown: str | None = None) -> list[Annotation]:
    """The annotations of a file, or of a text that was a file.

    Parameters
    ----------
    source
        A `Path` is read; a `str` is the text itself.
    shown
        How errors name it.
    """
    if isinstance(source, Path):
        try:
            text = source.read_bytes().decode("utf-8")
        except OSError as error:
            raise InputError(
                f"The annotations '{source}' cannot be read ({error.strerror}); check the path."
            ) from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"The annotations '{source}' are not UTF-8 (byte {error.start}); save them as "
                "UTF-8."
            ) from error
        return read_csv(text, shown or source.name)
    shown = shown or "annotations.csv"
    text = source.removeprefix("\ufeff")
    # Spreadsheets of some countries write semicolons.
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(f"{shown} is no CSV file ({error}); export it once more.") from error
    if not lines:
        raise InputError(f"{shown} is empty; its first line names the columns.")
    header = [cell.strip() for cell in lines[0]]
    for name in NEEDED:
        if name not in header:
            raise InputError(
                f"{shown} has no column '{name}'; it needs {', '.join(COLUMNS)} (only "
                f"{' and '.join(NEEDED)} must be there)."
            )
    if len(set(header)) < len(header):
        raise InputError(f"{shown} has two columns of one name; leave one of them out.")
    rows = []
    for number, cells in enumerate(lines[1:], 1):
        if not cells:
            continue
        place = f"{shown}, row {number}"
        if len(cells) > len(header) and any(cells[len(header) :]):
            raise InputError(
                f"{place} has {len(cells)} cells, more than the {len(header)} columns; put texts "
                "with commas between quotes."
            )
        plain = [cell[1:] if _GUARDED.match(cell) else cell for cell in cells]
        known = dict(zip(header, plain, strict=False))
        try:
            rows.append(Annotation(**{name: known.get(name, "") for name in COLUMNS}))
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
    return rows


# Of everything that somebody said about an example, what was said last.


def latest(rows: Iterable[Annotation]) -> list[Annotation]:
    """One annotation per person, task and example: the newest, of equally new ones the last.

    >>> [row.verdict for row in latest([Annotation("1", "fine"), Annotation("1", "ambiguous")])]
    ['ambiguous']
    """
    found: dict[tuple[str, str, str], Annotation] = {}
    for row in rows:
        key = (row.annotator, row.task, row.example_id)
        if key not in found or moment(row.time) >= moment(found[key].time):
            found[key] = row
    return list(found.values())


# The label that people give to an example: that of most of them.


@dataclass(frozen=True)
class HumanLabels:
    """Labels from annotations, and what they leave out.

    Parameters
    ----------
    labels
        Task (empty where there is one) → example → label.
    n_tied
        Examples on which two labels have the most votes: they get none.
    n_without
        Examples that people looked at without standing for a label.
    """

    labels: dict[str, dict[str, str]]
    n_tied: int
    n_without: int


def human_labels(rows: Iterable[Annotation]) -> HumanLabels:
    """Per task and example, the label with more votes than any other.

    Everybody has one vote, which is the latest verdict; a verdict without a label is none.

    >>> people = [("ann", "cat"), ("bo", "cat"), ("cy", "dog")]
    >>> human_labels([Annotation("7", "fine", label=x, annotator=who) for who, x in people]).labels
    {'': {'7': 'cat'}}
    """
    votes: dict[tuple[str, str], Counter[str]] = {}
    for row in latest(rows):
        own = votes.setdefault((row.task, row.example_id), Counter())
        if row.label:
            own[canonical(row.label) or row.label] += 1
    labels: dict[str, dict[str, str]] = {}
    n_tied = n_without = 0
    for (task, example), own in votes.items():
        first, *second = own.most_common(2) or [("", 0)]
        if not own:
            n_without += 1
        elif second and second[0][1] == first[1]:
            n_tied += 1
        else:
            labels.setdefault(task, {})[example] = first[0]
    return HumanLabels(labels, n_tied, n_without)


# How far annotators agree, and how far beyond chance.

Of = Literal["verdict", "label"]


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of two annotators (Cohen) or of more (Fleiss).

    Parameters
    ----------
    n_annotators, n_examples
        People with a part in it, and examples that at least two of them judged.
    raw
        Mean over these examples of the share of pairs of people who agree.
    kappa
        (raw − chance) / (1 − chance).
    reason
        Why `raw` or `kappa` is NaN; empty where neither is.
    """

    of: Of
    method: Literal["Cohen", "Fleiss"]
    n_annotators: int
    n_examples: int
    raw: float
    kappa: float
    reason: str


def agreement(rows: Iterable[Annotation], of: Of = "verdict") -> AnnotatorAgreement:
    """Agreement on verdicts or on labels, over examples that at least two people judged.

    `skip` is no verdict, and an empty label no answer. With two people chance is Cohen's, from
    each one's own shares; with more it is Fleiss', from everybody's together, in which examples
    may have different numbers of people.

    >>> said = {"ann": ("fine", "fine", "ambiguous", "fine"),
    ...         "bo": ("fine", "ambiguous", "ambiguous", "fine")}
    >>> rows = [Annotation(str(i), v, annotator=who) for who, vs in said.items()
    ...         for i, v in enumerate(vs)]
    >>> found = agreement(rows)  # raw 3/4; chance 3/4 · 2/4 + 1/4 · 2/4 = 1/2
    >>> found.raw, found.kappa
    (0.75, 0.5)
    """
    given: dict[tuple[str, str], dict[str, str]] = {}  # (task, example) → annotator → answer
    for row in latest(rows):
        said = "" if row.verdict == "skip" else row.verdict
        answer = canonical(row.label) if of == "label" else said
        if answer:
            given.setdefault((row.task, row.example_id), {})[row.annotator] = answer
    shared = {key: own for key, own in given.items() if len(own) > 1}
    people = sorted({who for own in shared.values() for who in own})
    method: Literal["Cohen", "Fleiss"] = "Fleiss" if len(people) > 2 else "Cohen"
    if not shared:
        reason = f"no example has a {of} from two annotators"
        return AnnotatorAgreement(of, method, 0, 0, math.nan, math.nan, reason)
    pairs = [
        sum(k * (k - 1) for k in Counter(own.values()).values()) / (len(own) * (len(own) - 1))
        for own in shared.values()
    ]
    raw = sum(pairs) / len(shared)
    if method == "Cohen":
        first, second = (Counter(own[who] for own in shared.values()) for who in people)
        chance = sum(first[answer] * second[answer] for answer in first) / len(shared) ** 2
    else:
        pooled = Counter(answer for own in shared.values() for answer in own.values())
        chance = sum((k / pooled.total()) ** 2 for k in pooled.values())
    if chance > 1 - 1e-12:
        reason = f"everybody gave the same {of} everywhere, so chance would agree as well"
        return AnnotatorAgreement(of, method, len(people), len(shared), raw, math.nan, reason)
    kappa = (raw - chance) / (1 - chance)
    return AnnotatorAgreement(of, method, len(people), len(shared), raw, kappa, "")
