"""The page of the deployed network says what its packed predictions give, counted by hand."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PACKED = (
    RESULTS / "predictions" / "deployed-face-gender" / "deployed-face-gender-fairface-0.parquet"
)


@pytest.fixture(scope="module")
def right(shared_data: Path) -> pd.DataFrame:
    """Which variant is right on which face, beside the faces' groups."""
    faces = pd.read_parquet(
        shared_data / "fairface" / "val-64px.parquet",
        columns=["example_id", "race", "gender", "age"],
    )
    table = pq.read_table(PACKED)
    about = json.loads(
        zlib.decompress(base64.b64decode(table.schema.metadata[b"fairweight_models"]))
    )
    classes, rows = about["classes"], table.to_pandas()
    first = rows["0.prediction"].to_numpy()
    said = pd.DataFrame({"example_id": rows["example_id"]})
    for number, model in enumerate(about["models"]):
        own = first if number == 0 else rows[f"{number}.prediction"].to_numpy() ^ first
        said[model["variant"]] = [classes[place] for place in own]
    faces["example_id"] = "val/" + faces["example_id"].astype(str).str.removeprefix("val/")
    both = said.merge(faces, on="example_id", validate="one_to_one")
    assert len(both) == 5000
    for model in about["models"]:
        both[model["variant"]] = both[model["variant"]] == both["gender"]
    return both


def points(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


def tables(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page."""
    page = (RESULTS / "deployed-face-gender.md").read_text(encoding="utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_accuracies_and_changes_of_every_variant(right: pd.DataFrame) -> None:
    shipped, *rows = tables("How small, and at which price")
    assert shipped[2] == f"{100 * right['dense'].mean():.1f} %"
    assert len(rows) == 17
    for variant, _, accuracy, overall, *_ in rows:
        assert accuracy == f"{100 * right[variant].mean():.1f} %"
        assert overall.split(" ")[0] == points(right[variant].mean() - right["dense"].mean())


def test_changes_of_groups_and_what_they_lose_beyond_the_rest(right: pd.DataFrame) -> None:
    rows = tables("Who loses more than the rest")
    assert len(rows) > 10
    for variant, group, n, change, excess in rows:
        inside = pd.Series(True, index=right.index)
        for part in group.split(" & "):
            column, value = part.split("=")
            inside &= right[column] == value
        lost = right[variant].astype(int) - right["dense"].astype(int)
        assert n == f"{inside.sum():,}"
        assert change.split(" ")[0] == points(lost[inside].mean())
        assert excess.split(" ")[0] == points(lost[inside].mean() - lost[~inside].mean())


def test_women_and_men_at_the_old_threshold(right: pd.DataFrame) -> None:
    rows = [row for row in tables("Does another threshold help?") if row[1] == "one half"]
    assert [row[0] for row in rows] == [
        "int8-static", "int8-dynamic", "bits-6", "bits-5", "bits-4", "bits-3",
    ]  # fmt: skip
    for variant, _, _, *changes in rows:
        lost = right[variant].astype(int) - right["dense"].astype(int)
        by_gender = [lost[right["gender"] == gender].mean() for gender in ("Female", "Male")]
        assert [change.split(" ")[0] for change in changes] == [points(one) for one in by_gender]


def test_the_readme_says_what_the_page_says() -> None:
    page = (RESULTS / "deployed-face-gender.md").read_text(encoding="utf-8")
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"`bits-6`: gender=Female loses (\S+ points \[\S+, \S+\])", page)
    assert f"women lose {found}" in readme
