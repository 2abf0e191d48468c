"""A data set counted in parts is the data set counted at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .conftest import Run, long_frame, wide_frame


@pytest.fixture
def files(folder: Path) -> str:
    """One file per model, in folders of their own."""
    for name, rows in long_frame(scores=False).groupby("variant"):
        place = folder / "predictions" / str(name)
        place.mkdir(parents=True)
        rows.to_parquet(place / "0.parquet")
    return "predictions/*/*.parquet"


@pytest.mark.parametrize(
    "more",
    [("--cluster", "person"), ()],
    ids=["clusters", "examples"],
)
def test_parts_add_up_to_the_whole(
    run: Run, files: str, folder: Path, more: tuple[str, ...]
) -> None:
    words = ("count", files, "--groups", "sex,age", "--baseline", "dense", *more)
    told = run(*words, "--out", "whole.parquet").done().out
    parts = run(*words, "--parts", "5", "--workers", "0", "--out", "parts.parquet").done().out
    assert parts == told.replace("whole", "parts")
    whole, added = pq.read_table("whole.parquet"), pq.read_table("parts.parquet")
    key = [(name, "ascending") for name in whole.column_names]
    assert added.sort_by(key).equals(whole.sort_by(key))
    assert sorted(path.name for path in folder.iterdir()) == [
        "parts.parquet", "predictions", "whole.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--parts", "2"), "needs --groups"),
        (("--parts", "0", "--groups", "sex"), "--parts 0"),
        (("--parts", "2", "--groups", "sex", "--label", "lable"), "lable"),
        (("--parts", "2", "--groups", "sex", "--id", "case"), "no column 'case'"),
    ],
)
def test_what_is_refused(run: Run, files: str, words: tuple[str, ...], part: str) -> None:
    sentence = run("count", files, *words, "--workers", "0", "--out", "c.parquet").refused()
    assert part in sentence
    assert not Path("c.parquet").exists()


def test_only_parquet(run: Run, folder: Path) -> None:
    long_frame().to_csv(folder / "a.csv")
    refused = run("count", "a.csv", "--parts", "2", "--groups", "sex", "--out", "c.parquet")
    assert "no Parquet file" in refused.refused()
    refused = run("count", "b.parquet", "--parts", "2", "--groups", "sex", "--out", "c.parquet")
    assert "no file 'b.parquet'" in refused.refused()


def test_counts_in_parts(run: Run, folder: Path) -> None:
    """Texts that occur 1 to 3 times each: 240 rows of 480 examples."""
    wide = wide_frame().drop(columns=["score_dense", "score_int8"])
    wide.assign(times=wide["example_id"] % 3 + 1).to_parquet("wide.parquet")
    words = ("count", "wide.parquet", "--count", "times", "--groups", "sex")
    told = run(*words, "--out", "whole.parquet").done().out
    assert told.startswith("480 examples")
    parts = run(*words, "--parts", "3", "--workers", "0", "--out", "parts.parquet").done().out
    assert parts == told.replace("whole", "parts")
    assert pq.read_table("parts.parquet").equals(pq.read_table("whole.parquet"))


def test_more_parts_than_examples(run: Run, folder: Path) -> None:
    long = long_frame(scores=False)
    long[long["example_id"] < 1003].to_parquet("few.parquet")
    words = ("count", "few.parquet", "--groups", "sex", "--parts", "4", "--workers", "0")
    assert "has no example; count in fewer parts" in run(*words, "--out", "c.parquet").refused()
