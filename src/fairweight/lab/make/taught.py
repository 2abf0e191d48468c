"""Who teaches a student, and whether the teacher saw examples that the student may not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fairweight.errors import InputError
from fairweight.lab.artifacts import load
from fairweight.lab.card import Card
from fairweight.lab.distill.teacher import Teacher
from fairweight.lab.prepared_data import Prepared, prepare_once
from fairweight.specs.data import Data
from fairweight.specs.distillation import Distillation
from fairweight.specs.read_spec import read_spec


def load_teacher(path: str | Path, classes: tuple[str, ...]) -> tuple[Teacher, Card]:
    """The model of a folder as a teacher of these classes."""
    network, card = load(path)
    if card.preprocessing is None:
        raise InputError(
            f"The card of the teacher '{path}' does not say how pixels are scaled; give a model "
            "that `fairweight train` wrote."
        )
    if card.classes != classes:
        raise InputError(
            f"The teacher '{path}' knows {len(card.classes)} classes ({_few(card.classes)}), and "
            f"the student {len(classes)} ({_few(classes)}); both must have the same in one order."
        )
    return Teacher(network, card.preprocessing), card


def taught(distillation: Distillation, teacher: Card) -> dict[str, Any]:
    """What a card says of a distillation."""
    return {**asdict(distillation), "teacher": f"{teacher.variant}:{teacher.seed}"}


def leak(
    before: Card, own: Data, prepared: Prepared, root: str | Path | None, *, role: str
) -> str | None:
    """A sentence where a model was trained on examples that its successor's training set lacks.

    Parameters
    ----------
    before
        Of the teacher, or of the model that a copy starts from.
    own, prepared
        The successor's data.
    role
        How the sentence calls it: `teacher`, `model that it starts from`.
    """
    inherited = before.compression.get("leak")
    if not before.data:
        return inherited
    other = read_spec(Data, before.data, f"The data in the card of '{before.variant}'")
    if other == own:
        return inherited
    if other.name != own.name:
        return f"The {role} was trained on another data set, '{other.name}'."
    seen = prepare_once(other, root).train.example_id
    more = int((~np.isin(seen, prepared.train.example_id)).sum())
    if not more:
        return inherited
    return f"The {role} saw {more:,} training examples that this model's training set leaves out."


def _few(classes: tuple[str, ...]) -> str:
    return ", ".join(classes[:3]) + (", …" if len(classes) > 3 else "")
