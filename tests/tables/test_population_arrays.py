"""Populations as arrays (n, seeds): any number of seeds, and lengths that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.frames import wide_table
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import aligned_rows, long_frame, wide_frame

LABELS = [0, 1, 0, 1, 0, 1]


def seeds_of(y_pred: dict[str, Any]) -> dict[str, int]:
    table, columns = wide_table(LABELS, y_pred)
    assert all(len(table[c]) == 6 for held in columns.predictions.values() for c in held)
    return {name: len(held) for name, held in columns.predictions.items()}


def test_any_number_of_seeds() -> None:
    by_seed = np.array([LABELS, [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]]).T  # (examples, seeds)
    given = {
        "array": by_seed,
        "nested lists": by_seed.tolist(),
        "frame": pd.DataFrame(by_seed, columns=["a", "b", "c"]),
        "one column": by_seed[:, :1],
        "one": LABELS,
        "with abstentions": [[0, None]] * 6,
    }
    assert seeds_of(given) == {
        "array": 3, "nested lists": 3, "frame": 3, "one column": 1, "one": 1, "with abstentions": 2
    }  # fmt: skip
    table, _ = wide_table(LABELS, given)
    for name in ("array", "nested lists", "frame"):
        assert list(table[f"prediction:{name}:1"]) == [1] * 6
        assert list(table[f"prediction:{name}:2"]) == [0] * 6


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            np.zeros((5, 3)),
            r"y_pred\['int8'\] has the shape \(5, 3\); give \(6,\) or \(6, seeds\)\.$",
        ),
        (np.zeros((3, 6)), r"shape \(3, 6\).*one column per seed: transpose it"),
        ([LABELS, LABELS], r"shape \(2, 6\).*transpose it"),
        (np.zeros((6, 0)), r"shape \(6, 0\); give"),
        (np.zeros((6, 2, 2)), r"shape \(6, 2, 2\); give"),
        (np.zeros(5), r"y_pred\['int8'\] has 5 values, but y_true has 6"),
        ([[0, 1], [0], [1, 1], [0, 1], [0, 1], [0, 1]], "rows of 1 to 2 values; every example"),
        ([[0, 1], 0, 1, 0, 1, 0], "rows of 1 to 2 values"),
    ],
)
def test_lengths_that_do_not_fit(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fw.audit(LABELS, {"dense": LABELS, "int8": given})


def test_scores_must_have_as_many_members() -> None:
    two = np.zeros((6, 2))
    with pytest.raises(InputError, match=r"y_score\['int8'\] .*with 2 members \(6, 2\)"):
        fw.audit(LABELS, {"dense": LABELS, "int8": two}, y_score={"int8": np.zeros((6, 3))})


def test_lists_of_frames_and_of_files_are_members(tmp_path: Any) -> None:
    long = long_frame()
    dense = long[long["variant"] == "dense"].drop(columns="variant")
    int8 = long[long["variant"] == "int8"].drop(columns="variant")
    files = [str(tmp_path / f"{name}.csv") for name in ("a", "b")]
    dense.to_csv(files[0], index=False)
    int8.to_csv(files[1], index=False)
    expected = [("dense", 0), ("dense", 1), ("int8", 0)]
    with (
        align(TableSpec(sources_of({"dense": [dense, int8], "int8": int8}))) as frames,
        align(TableSpec(sources_of({"dense": files, "int8": [files[1]]}))) as paths,
        align(
            TableSpec(sources_of([f"dense={files[0]}", f"dense={files[1]}", f"int8={files[1]}"]))
        ) as named,
    ):
        for found in (frames, paths, named):
            assert [(m.variant, m.seed) for m in found.members] == expected
            assert aligned_rows(found) == aligned_rows(frames)


def test_lists_of_text_are_still_columns() -> None:
    wide = wide_frame()[["label", "pred_dense", "pred_int8"]]
    with align(TableSpec(sources_of({name: wide[name].tolist() for name in wide}))) as found:
        assert [m.variant for m in found.members] == ["dense", "int8"]
        assert found.n_examples == 6
