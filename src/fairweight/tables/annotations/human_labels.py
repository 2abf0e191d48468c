"""The label that people give to an example: that of most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fairweight.tables.annotations.latest import latest
from fairweight.tables.annotations.verdict import Annotation
from fairweight.tables.canonical import canonical


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
