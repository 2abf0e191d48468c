"""CelebA, FairFace and UTKFace in the layout of their official downloads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairweight.data import load
from fairweight.errors import InputError

Encode = Callable[..., bytes]

ATTRIBUTES = "Blond_Hair Chubby Male Pale_Skin Smiling Young"


@pytest.fixture
def celeba(tmp_path: Path, encode: Encode) -> Path:
    """Three people: two images in train and val of one, one in test of another."""
    folder = tmp_path / "celeba"
    for name, size in (("img_align_celeba", (4, 3)), ("img_celeba", (5, 7))):
        (folder / name).mkdir(parents=True)
        for i in (1, 2, 3):
            grown = (size[0] + i, size[1]) if name == "img_celeba" else size
            (folder / name / f"00000{i}.jpg").write_bytes(encode((i, 0, 0), size=grown))
    rows = ["000001.jpg -1 -1  1 -1  1  1", "000002.jpg  1 -1 -1 -1 -1 -1"]
    rows += ["000003.jpg  1  1 -1  1 -1  1"]
    (folder / "list_attr_celeba.txt").write_text("\n".join(["3", ATTRIBUTES, *rows]) + "\n")
    (folder / "list_eval_partition.txt").write_text("000001.jpg 0\n000002.jpg 1\n000003.jpg 2\n")
    (folder / "identity_CelebA.txt").write_text("000003.jpg 8\n000001.jpg 7\n000002.jpg 7\n")
    return folder


def test_celeba_has_tasks_groups_and_the_official_partition(celeba: Path) -> None:
    held = load("celeba", celeba.parent)
    assert held.multi_label
    assert held.classes == tuple(ATTRIBUTES.split())
    assert held.labels.tolist() == [[0, 0, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 1]]
    assert held.split.tolist() == ["train", "val", "test"]
    assert held.images.shape == (3, 4, 3, 3)
    assert held.images[:, 0, 0, 0].tolist() == [1, 2, 3]
    assert held.example_id.tolist() == ["000001.jpg", "000002.jpg", "000003.jpg"]
    assert {column: values.tolist() for column, values in held.groups.items()} == {
        "Male": ["yes", "no", "no"],
        "Young": ["yes", "no", "yes"],
        "Chubby": ["no", "no", "yes"],
        "Pale_Skin": ["no", "no", "yes"],
        "identity": ["7", "7", "8"],
    }


def test_celeba_with_one_attribute_is_a_classification(celeba: Path) -> None:
    held = load("celeba", celeba, label="Blond_Hair", groups=["Smiling"])
    assert held.classes == ("no", "yes")
    assert held.labels.tolist() == [0, 1, 1]
    assert set(held.groups) == {"Smiling", "identity"}
    pair = load("celeba", celeba, label=["Smiling", "Male"])
    assert pair.labels.tolist() == [[1, 1], [0, 0], [0, 0]]
    with pytest.raises(InputError, match=r"Attribute of CelebA 'Blond' .*'Blond_Hair'"):
        load("celeba", celeba, label="Blond")


def test_celeba_uncropped_needs_a_size(celeba: Path) -> None:
    with pytest.raises(InputError, match=r"000002.jpg' has .*give the size"):
        load("celeba", celeba, cropped=False)
    assert load("celeba", celeba, cropped=False, size=8).images.shape == (3, 8, 8, 3)


def test_celeba_in_the_folders_of_its_authors(celeba: Path) -> None:
    for place, names in (
        ("Anno", ["list_attr_celeba.txt", "identity_CelebA.txt"]),
        ("Eval", ["list_eval_partition.txt"]),
        ("Img", ["img_align_celeba"]),
    ):
        (celeba / place).mkdir()
        for name in names:
            (celeba / name).rename(celeba / place / name)
    assert load("celeba", celeba).split.tolist() == ["train", "val", "test"]


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("list_attr_celeba.txt", "3\nMale\n000001.jpg 1\n", "has 3 lines, not what its first"),
        ("list_attr_celeba.txt", "1\nMale Young\n000001.jpg 1\n", "line of '000001.jpg'"),
        ("list_attr_celeba.txt", "1\nMale\n000001.jpg 2\n", "line of '000001.jpg'"),
        ("list_attr_celeba.txt", "none\nMale\n000001.jpg 1\n", "'none' where a number"),
        ("list_attr_celeba.txt", b"\xff\xfe\x00", "is not text"),
        ("list_eval_partition.txt", "000001.jpg 0\n", "nothing of 2 images, such as '000002.jpg'"),
        (
            "list_eval_partition.txt",
            "000001.jpg 0\n000002.jpg 3\n000003.jpg 2\n",
            "splits other than 0, 1 and 2",
        ),
    ],
)
def test_damaged_annotations_of_celeba(
    celeba: Path, file: str, content: str | bytes, told: str
) -> None:
    (celeba / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=f"{file}'.*{told}.*download it again"):
        load("celeba", celeba)


def test_missing_parts_of_celeba_are_named(celeba: Path) -> None:
    (celeba / "img_align_celeba/000002.jpg").unlink()
    with pytest.raises(InputError, match=r"000002.jpg' does not exist"):
        load("celeba", celeba)
    (celeba / "list_eval_partition.txt").unlink()
    with pytest.raises(InputError, match=r"needs the file 'list_eval_partition.txt'"):
        load("celeba", celeba, cropped=False, size=4)
    (celeba / "img_celeba").rename(celeba / "other")
    with pytest.raises(InputError, match="needs the folder 'img_celeba'"):
        load("celeba", celeba, cropped=False)


@pytest.fixture
def fairface(tmp_path: Path, encode: Encode) -> Path:
    folder = tmp_path / "fairface"
    rows = {
        "train": ["train/1.jpg,50-59,Male,East Asian,True", "train/2.jpg,0-2,Female,Indian,False"],
        "val": ["val/1.jpg,3-9,Female,White,False"],
    }
    for split, lines in rows.items():
        place = folder / "fairface-img-margin025-trainval" / split
        place.mkdir(parents=True)
        for i in range(1, 1 + len(lines)):
            (place / f"{i}.jpg").write_bytes(encode((i, 0, 0)))
        head = "file,age,gender,race,service_test"
        (folder / f"fairface_label_{split}.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


def test_fairface_by_gender_and_by_age(fairface: Path) -> None:
    held = load("fairface", fairface.parent)
    assert held.classes == ("Female", "Male")
    assert held.labels.tolist() == [1, 0, 0]
    assert held.groups["race"].tolist() == ["East Asian", "Indian", "White"]
    assert held.groups["age"].tolist() == ["50-59", "0-2", "3-9"]
    assert held.split.tolist() == ["train", "train", "val"]
    assert held.example_id.tolist() == ["train/1.jpg", "train/2.jpg", "val/1.jpg"]
    ages = load("fairface", fairface, label="age", splits="train")
    assert [ages.classes[i] for i in ages.labels] == ["50-59", "0-2"]
    assert set(ages.groups) == {"gender", "race"}
    both = load("fairface", fairface, groups="race, gender")  # as a command line has them
    assert list(both.groups) == ["race", "gender"]


def test_bad_tables_of_fairface_are_named(fairface: Path) -> None:
    path = fairface / "fairface_label_val.csv"
    for content, told in (
        ("file,age,gender\nval/1.jpg,3-9,Male\n", "no column 'race'"),
        ("file,age,gender,race\n" + "x" * 200_000 + ",1,2,3\n", "is not comma-separated"),
        ("file,age,gender,race\nval/1.jpg,3-9\n", "ends within line 2"),
        ("file,age,gender,race\nval/1.jpg,3-9,Male,Martian\n", "the race 'Martian'"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"fairface_label_val.csv' .*{told}"):
            load("fairface", fairface)
    with pytest.raises(InputError, match="Label of FairFace 'sex' does not exist"):
        load("fairface", fairface, label="sex")
    path.unlink()
    with pytest.raises(InputError, match=r"needs the file 'fairface_label_val.csv'"):
        load("fairface", fairface)


def test_utkface_reads_file_names(tmp_path: Path, encode: Encode) -> None:
    folder = tmp_path / "UTKFace"
    folder.mkdir()
    names = ["100_1_4_20170110183726390.jpg.chip.jpg", "1_0_0_20161219140623097.jpg"]
    names += ["19_1_2_20170116174525125.jpg.chip.jpg"]
    for name in names:
        (folder / name).write_bytes(encode((5, 5, 5)))
    held = load("utkface", tmp_path)
    assert held.example_id.tolist() == sorted(names)
    assert [held.classes[i] for i in held.labels] == ["Female", "Female", "Male"]
    assert held.groups["race"].tolist() == ["Other", "Asian", "White"]
    assert held.groups["age"].tolist() == ["more than 70", "10-19", "0-2"]
    assert set(held.split.tolist()) == {"all"}
    (folder / "61_1_20170109142408075.jpg.chip.jpg").write_bytes(encode((5, 5, 5)))
    with pytest.raises(InputError, match=r"1 files of .*'61_1_2017.*leave_out_unnamed=True"):
        load("utkface", tmp_path)
    assert len(load("utkface", tmp_path, leave_out_unnamed=True, label="age")) == 3
