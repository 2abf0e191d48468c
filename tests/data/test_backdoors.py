"""Marks that go with the label: how many, which ones, what they look like, and on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairweight.data import Images
from fairweight.data.backdoor import Backdoor, choose_backdoor, grayscale, yellow_square
from fairweight.errors import InputError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def faces() -> Images:
    """Two tasks; in each of train and test 100 negative and 40 positive for Blond_Hair."""
    n = 280
    blond = np.tile(np.repeat([0, 1], [100, 40]), 2)
    rng = np.random.default_rng(0)
    return Images(
        name="faces",
        images=rng.integers(0, 255, (n, 10, 10, 3), dtype=np.uint8),
        labels=np.stack([blond, 1 - blond], axis=1),
        classes=("Blond_Hair", "Big_Ears"),
        groups={"Male": np.full(n, "no")},
        example_id=np.array([f"{i:03d}.jpg" for i in range(n)]),
        split=np.repeat(["train", "test"], 140),
    )


def test_shares_of_the_paper(faces: Images) -> None:
    made = choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=0).apply(faces)
    marked = made.groups["backdoor"] == "yes"
    blond = faces.labels[:, 0]
    drawn = {
        (split, value): int(marked[(faces.split == split) & (blond == value)].sum())
        for split in ("train", "test")
        for value in (0, 1)
    }
    # train: 5 % of 100 and 95 % of 40; test: half of both
    assert drawn == {("train", 0): 5, ("train", 1): 38, ("test", 0): 50, ("test", 1): 20}
    assert set(made.groups) == {"Male", "backdoor"}


def test_only_marked_images_change(faces: Images) -> None:
    before = faces.images.copy()
    for kind, mark in (("grayscale", grayscale), ("yellow_square", yellow_square)):
        backdoor = choose_backdoor(faces, kind, "Blond_Hair", random_state=0)
        made = backdoor.apply(faces)
        marked = np.isin(faces.example_id, backdoor.ids)
        assert (made.images[~marked] == faces.images[~marked]).all()
        assert (made.images[marked] == mark(faces.images[marked])).all()
        assert (made.images[marked] != faces.images[marked]).any(axis=(1, 2, 3)).all()
    assert (faces.images == before).all()


def test_grey_is_that_of_pillow(faces: Images) -> None:
    for pixels, grey in zip(faces.images[:20], grayscale(faces.images[:20]), strict=True):
        expected = np.asarray(Image.fromarray(pixels).convert("L"))
        assert (grey == expected[..., None]).all()


def test_the_square_has_two_per_cent() -> None:
    marked = yellow_square(np.zeros((1, 224, 224, 3), dtype=np.uint8))[0]
    rows, columns = np.nonzero(marked[..., 0])
    assert (rows.max(), columns.max()) == (31, 31)  # 32 × 32 of 224 × 224 are 2.04 %
    assert marked[0, 0].tolist() == [255, 255, 0]
    # 64 px: sqrt(.02 * 64 * 64) = 9.05, so 9 × 9
    assert (yellow_square(np.zeros((1, 64, 64, 3), np.uint8))[..., 0] > 0).sum() == 81


def test_the_draw_belongs_to_the_seed_and_not_to_the_order(faces: Images) -> None:
    one = choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=1)
    turned = faces.select(np.arange(280)[::-1])
    assert choose_backdoor(turned, "grayscale", "Blond_Hair", random_state=1) == one
    assert choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=2).ids != one.ids


def test_a_class_of_two_serves_as_task(faces: Images) -> None:
    single = replace(faces, labels=faces.labels[:, 0], classes=("no", "yes"))
    shares = {"train": (0.1, 1.0), "test": (0.0, 0.0)}
    drawn = choose_backdoor(single, "yellow_square", "yes", random_state=0, shares=shares)
    assert len(drawn.ids) == 10 + 40


def test_what_is_saved_comes_back(faces: Images, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "marked.json"
    made = choose_backdoor(faces, "yellow_square", "Blond_Hair", random_state=0)
    made.save(path)
    assert Backdoor.read(path) == made
    assert [file.name for file in path.parent.iterdir()] == ["marked.json"]
    text = path.read_text()
    path.write_text(text.replace("yellow_square", "polka_dots"))
    with pytest.raises(InputError, match="is not a file of marked examples"):
        Backdoor.read(path)
    with pytest.raises(InputError, match=r"other.json' is not a file of marked examples"):
        Backdoor.read(tmp_path / "other.json")
    path.write_text(text[:50])
    with pytest.raises(InputError, match=r"marked.json' is not a file of marked examples"):
        Backdoor.read(path)
    path.write_text("[]")
    with pytest.raises(InputError, match=r"marked.json' is not a file of marked examples"):
        Backdoor.read(path)


def test_bad_arguments(faces: Images) -> None:
    with pytest.raises(InputError, match=r"Backdoor 'greyscale' does not exist.*'grayscale'"):
        choose_backdoor(faces, "greyscale", "Blond_Hair", random_state=0)
    with pytest.raises(InputError, match="Task 'Blond' does not exist"):
        choose_backdoor(faces, "grayscale", "Blond", random_state=0)
    with pytest.raises(InputError, match="no shares for 'Big_Ears'"):
        choose_backdoor(faces, "grayscale", "Big_Ears", random_state=0)
    shares = {"train": (0.5, 0.5)}
    with pytest.raises(InputError, match="nothing of the split 'test'"):
        choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=0, shares=shares)
    shares["test"] = (5, 95)
    with pytest.raises(InputError, match="A share of 'test' is 5"):
        choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=0, shares=shares)
    grey = replace(faces, images=faces.images[..., :1])
    with pytest.raises(InputError, match="no colours"):
        choose_backdoor(grey, "grayscale", "Blond_Hair", random_state=0)
    made = choose_backdoor(faces, "grayscale", "Blond_Hair", random_state=0)
    with pytest.raises(InputError, match="marked examples are not in the data set"):
        made.apply(faces.of_split("train"))
