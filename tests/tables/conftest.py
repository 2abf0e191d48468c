"""A small prediction table in every layout, and a way to compare what was aligned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from fairweight.tables.align import Aligned
from fairweight.tables.canonical import canonical
from fairweight.tables.connection import Workspace


def wide_frame() -> pd.DataFrame:
    """Six examples, two models, two groups."""
    return pd.DataFrame(
        {
            "example_id": [10, 11, 12, 13, 14, 15],
            "label": ["cat", "dog", "cat", "dog", "cat", "dog"],
            "pred_dense": ["cat", "dog", "cat", "dog", "dog", "dog"],
            "pred_int8": ["cat", "cat", "cat", "dog", "dog", "cat"],
            "score_dense": [0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
            "score_int8": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            "sex": ["F", "M", "F", "M", "F", "M"],
            "age": [1, 1, 2, 2, 3, 3],
        }
    )


def long_frame(wide: pd.DataFrame | None = None) -> pd.DataFrame:
    """The same, one row per example and model."""
    wide = wide_frame() if wide is None else wide
    rest = [c for c in wide.columns if not c.startswith(("pred_", "score_"))]
    return pd.concat(
        [
            wide[rest].assign(
                variant=name, prediction=wide[f"pred_{name}"], score=wide[f"score_{name}"]
            )
            for name in ("dense", "int8")
        ],
        ignore_index=True,
    )


def model_frames(wide: pd.DataFrame | None = None) -> dict[str, pd.DataFrame]:
    """The same, one table per model; groups only in the dense one, labels in both."""
    long = long_frame(wide)
    dense = long[long.variant == "dense"].drop(columns="variant")
    int8 = long[long.variant == "int8"][["example_id", "label", "prediction", "score"]]
    return {"dense": dense.reset_index(drop=True), "int8": int8.reset_index(drop=True)}


def aligned_rows(aligned: Aligned) -> set[tuple[Any, ...]]:
    """The view's rows by role, with values as canonical text, and in no order."""
    roles = ["example_id", "label", *(f"g{i}" for i in range(len(aligned.group_columns)))]
    for member in aligned.members:
        roles += [role for role in (member.prediction, member.score) if role]
    order = sorted(range(len(aligned.group_columns)), key=lambda i: aligned.group_columns[i])
    roles[2 : 2 + len(order)] = [f"g{i}" for i in order]
    rows = aligned.connection.execute(f"SELECT {', '.join(roles)} FROM {aligned.view}").fetchall()
    assert len(rows) == aligned.n_rows
    return {tuple(canonical(value) for value in row) for row in rows}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    made = Workspace()
    yield made
    made.close()
