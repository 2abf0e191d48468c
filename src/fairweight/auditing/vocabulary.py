"""Whether labels are classes, and whether predictions are classes of the same kind.

Numbers can be computed of any two columns. Of a measurement as the label, of a column that says
whether the model was right, or of scores in place of predictions, they would mean nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairweight.base.wording import counted
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.counts.cube import Cube
    from fairweight.auditing.prediction_matrix import Answers

MOST_FRACTIONS = 20  # more labels with fractions than this are a measurement
MOST_UNKNOWN = 10  # of so many different predictions of the baseline, at least one is a label
RIGHT_OR_WRONG = (frozenset({"0", "1"}), frozenset({"false", "true"}))
FORCE = "--force (force=True)"


@dataclass(frozen=True)
class Vocabulary:
    """The classes that labels and members use, with how often each member predicts each."""

    labels: tuple[str, ...]
    members: tuple[tuple[str, Mapping[str | None, int]], ...]  # variant; None: it abstains

    def check(self, baseline: str, *, force: bool = False) -> list[str]:
        """Notes about the predictions; an error where they cannot be what the user meant.

        Only the baseline's are judged by what they look like: a compressed model that has
        collapsed to one class is a finding, not a mistake. `force`: the user has looked.
        """
        notes = [note for note in (self._measured(force),) if note]
        known = set(self.labels)
        for variant, predicted in self.members:
            classes = [name for name in predicted if name is not None]
            strange = [name for name in classes if name not in known]
            if classes and len(strange) == len(classes):
                raise InputError(
                    f"No prediction of '{variant}' is equal to any label, so their names or "
                    f"types differ: labels are {some(self.labels)}, predictions are "
                    f"{some(strange)}. Map one to the other before the audit."
                )
            if variant == baseline:
                notes += self._unlike(variant, classes, strange, force)
            if strange:
                notes.append(
                    f"{sum(predicted[name] for name in strange):,} predictions of '{variant}' are "
                    f"classes that no example has as its label ({some(strange)}); they count as "
                    "wrong."
                )
            if predicted.get(None):
                missing = counted(predicted[None], "missing prediction")
                notes.append(f"'{variant}': {missing}, counted as wrong.")
        return notes

    def _measured(self, force: bool) -> str | None:
        numbers = {name: as_number(name) for name in self.labels}
        fractions = [
            name
            for name, number in numbers.items()
            if number is not None and math.isfinite(number) and not number.is_integer()
        ]
        if len(fractions) <= MOST_FRACTIONS:
            return None
        what = f"{len(fractions):,} labels are numbers with fractions ({some(fractions)})"
        if force:
            return f"{what}; each was taken as a class ({FORCE})."
        raise InputError(
            f"{what}, which looks like a measurement, and an audit compares classes. Put labels "
            "and predictions into the same few bins first, or name the column of classes with "
            f"--label (label=); if these are codes of classes, add {FORCE}."
        )

    def _unlike(
        self, variant: str, classes: Sequence[str], strange: Sequence[str], force: bool
    ) -> list[str]:
        """Predictions of the baseline that look like scores, like right and wrong, or like none."""
        unknown = MOST_UNKNOWN * (len(classes) - len(strange)) < len(classes)
        two_valued = any(set(classes) <= pair for pair in RIGHT_OR_WRONG)
        if classes and not unknown and not (two_valued and len(self.labels) > 2):
            return []
        both = f"labels are {some(self.labels)}, predictions are {some(classes) or 'all missing'}"
        if force:
            return [
                f"The predictions of '{variant}' do not look like these labels ({both}); they were "
                f"taken as they are ({FORCE})."
            ]
        if unknown:
            why = f"{len(strange):,} of its {len(classes):,} different values are no labels"
        elif classes:
            why = "it looks like right and wrong, not like classes"
        else:
            why = "it is empty"
        raise InputError(
            f"The prediction column of '{variant}' does not look like predictions: {why} ({both}). "
            "Name the column of predicted classes (--prediction NAME=COLUMN, or "
            f"--prediction-column COLUMN); if these are the predictions, add {FORCE}."
        )


def of_cube(cube: Cube) -> Vocabulary:
    """The classes of counted answers."""
    names = (None, *cube.classes)
    members = []
    for m, member in enumerate(cube.members):
        totals = np.bincount(cube.prediction[:, m] + 1, cube.count, len(names)).tolist()
        predicted = {name: int(n) for name, n in zip(names, totals, strict=True) if n}
        members.append((member.variant, predicted))
    return Vocabulary(cube.label_classes, tuple(members))


def of_answers(answers: Answers) -> Vocabulary:
    """The classes of single answers of one task."""
    names = (*answers.classes, None)
    members = []
    for member, row in zip(answers.members, answers.prediction, strict=True):
        totals = np.bincount(row, minlength=len(names)).tolist()
        predicted = {name: n for name, n in zip(names, totals, strict=True) if n}
        members.append((member.variant, predicted))
    return Vocabulary(answers.classes[: answers.n_label_classes], tuple(members))


def joined(tasks: Iterable[Vocabulary]) -> Vocabulary:
    """The classes of all tasks together; their members are the same."""
    parts = list(tasks)
    labels = dict.fromkeys(name for part in parts for name in part.labels)
    members = []
    for column in zip(*(part.members for part in parts), strict=True):
        total: Counter[str | None] = Counter()
        for _, predicted in column:
            total.update(predicted)
        members.append((column[0][0], total))
    return Vocabulary(tuple(labels), tuple(members))


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are.

    >>> some(["a", "b"]), some("abcdefg")
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = ", ".join(f"'{name}'" for name in list(names)[:5])
    return shown + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")


def as_number(text: str) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        return float(text)
    except ValueError:
        return None
