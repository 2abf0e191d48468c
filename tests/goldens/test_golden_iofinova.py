"""Goldens of Bias in pruned vision models: categories, backdoors and what its AUC may be.

The FLOPs of the dense ResNet-18 (G22) are in tests/lab/test_flops.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight import metrics
from fairweight.data.backdoor import EVEN, TRAIN_SHARES
from fairweight.data.celeba import IDENTITIES


def test_places_of_the_categories_in_celeba(shared_data: Path) -> None:
    """The authors' code names categories by place: 20, 39, 13 and 26 of the 40 attributes."""
    file = shared_data / "celeba" / "attributes-all.parquet"
    if not file.is_file():
        pytest.skip(f"no file {file}: the attributes of CelebA are not here")
    import pyarrow.parquet as pq

    attributes = [name for name in pq.read_schema(file).names if name != "example_id"]
    assert len(attributes) == 40
    assert [attributes.index(name) for name in IDENTITIES] == [20, 39, 13, 26]


def test_shares_of_the_backdoors() -> None:
    assert dict(TRAIN_SHARES) == {
        "Blond_Hair": (0.05, 0.95),
        "Smiling": (0.05, 0.95),
        "Oval_Face": (0.35, 0.65),
        "Big_Nose": (0.35, 0.65),
    }
    assert EVEN == (0.5, 0.5)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_the_auc_of_answers_is_the_balanced_accuracy(rows: list[tuple[bool, bool]]) -> None:
    """What the ROC curve of predictions gives that were cut at a threshold."""
    label = np.array([0, 1, *(int(row[0]) for row in rows)])  # both outcomes occur
    answer = np.array([0, 1, *(int(row[1]) for row in rows)])
    assert metrics.auc(label, answer) == pytest.approx(metrics.balanced_accuracy(label, answer))
