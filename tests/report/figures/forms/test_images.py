"""Images inside a figure."""

from __future__ import annotations

import pytest

from fairweight.errors import InputError
from fairweight.report.figures.forms.images import GAP, LINE, SIZE, Tile, picture, tiles

PNG = "data:image/png;base64,AAAA"


def test_only_a_png_inside_the_page_is_an_image() -> None:
    assert picture(PNG) == PNG
    with pytest.raises(InputError, match="must be a data URI"):
        picture("https://example.org/a.png")


def test_tiles_lie_in_a_grid_with_text_below_and_headings_above() -> None:
    placed = [Tile(PNG, 0, 0, ("label 3",)), Tile(PNG, 1, 1, ("label 5", "3 → 5"))]
    images, words = tiles(placed)["layer"]
    step = SIZE + GAP + 2 * LINE
    assert [v["y"] for v in images["data"]["values"]] == [0, step]
    assert [v["t"] for v in words["data"]["values"]] == ["label 3", "label 5", "3 → 5"]
    images, _, heads = tiles(placed, {0: "all", 1: "one"})["layer"]
    assert images["data"]["values"][0]["y"] == LINE + 6
    assert [v["t"] for v in heads["data"]["values"]] == ["all", "one"]
