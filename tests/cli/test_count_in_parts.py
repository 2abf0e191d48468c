"""A data set counted in parts is the data set counted at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .conftest import FEW, Run, long_frame, numbers, same


@pytest.fixture
def files(folder: Path) -> str:
    """One file per model, in folders of their own."""
    for name, rows in long_frame(scores=False).groupby("variant"):
        place = folder / "predictions" / str(name)
        place.mkdir(parents=True)
        rows.to_parquet(place / "0.parquet")
    return "predictions/*/*.parquet"


@pytest.mark.parametrize("more", [(), ("--cluster", "person")], ids=["examples", "clusters"])
def test_parts_add_up_to_the_whole(
    run: Run, files: str, folder: Path, more: tuple[str, ...], no_page: None
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
    for name in ("whole", "parts"):
        run("audit", f"{name}.parquet", "--out", name, *FEW).done()
    same(numbers("parts"), numbers("whole"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--parts", "2"), "needs --groups"),
        (("--parts", "0", "--groups", "sex"), "--parts 0"),
        (("--parts", "2", "--groups", "sex", "--label", "lable"), "lable"),
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
