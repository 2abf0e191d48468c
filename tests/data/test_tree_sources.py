"""Trees of one folder per class, AwA2 and iWildCam in their official layouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairweight.data import load
from fairweight.errors import InputError

Encode = Callable[..., bytes]
Tree = Callable[..., Path]


@pytest.fixture
def tree(encode: Encode) -> Tree:
    """Writes files below a folder; the n-th has the red n."""

    def write(folder: Path, *files: str) -> Path:
        for i, file in enumerate(files):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(encode((i, 0, 0)))
        return folder

    return write


@pytest.mark.parametrize("folder", ["imagenette2-160", "imagenette2", "imagenette/imagenette2-320"])
def test_imagenette_has_names_for_its_folders(tmp_path: Path, tree: Tree, folder: str) -> None:
    files = [
        f"{split}/{wnid}/{wnid}_1.JPEG"
        for split in ("train", "val")
        for wnid in ("n01440764", "n03888257")
    ]
    tree(tmp_path / folder, *files)
    held = load("imagenette", tmp_path, size=4)
    assert held.classes == ("tench", "parachute")
    assert held.labels.tolist() == [0, 1, 0, 1]
    assert held.split.tolist() == ["train", "train", "val", "val"]
    assert held.example_id.tolist() == files
    assert held.images[:, 0, 0, 0].tolist() == [0, 1, 2, 3]


def test_imagewoof(tmp_path: Path, tree: Tree) -> None:
    tree(tmp_path / "imagewoof2", "train/n02115641/a.JPEG", "val/n02115641/b.JPEG")
    assert load("imagewoof", tmp_path, size=4).classes == ("dingo",)


def test_other_folders_are_not_taken_for_classes(tmp_path: Path, tree: Tree) -> None:
    tree(tmp_path, "celeba/img/1.jpg")
    with pytest.raises(InputError, match="folder 'celeba', which is no class of 'imagenette'"):
        load("imagenette", tmp_path, size=4)


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("folders", "utkface"):
        with pytest.raises(InputError, match=r"file' cannot be listed .*give the folder"):
            load(name, tmp_path / "file")


def test_a_tree_without_splits(tmp_path: Path, tree: Tree) -> None:
    tree(tmp_path, "dog/2.png", "cat/1.png", "dog/deep/3.png", ".hidden/4.png")
    (tmp_path / "dog/notes.txt").write_text("not an image")
    (tmp_path / "empty").mkdir()
    held = load("folders", tmp_path, size=4)
    assert held.classes == ("cat", "dog")
    assert held.example_id.tolist() == ["cat/1.png", "dog/2.png", "dog/deep/3.png"]
    assert set(held.split.tolist()) == {"all"}


def test_splits_have_the_same_classes(tmp_path: Path, tree: Tree) -> None:
    tree(tmp_path, "train/cat/1.png", "train/dog/1.png", "test/cat/2.png")
    with pytest.raises(InputError, match=r"class 'dog' is not in every split .*lay images out as"):
        load("folders", tmp_path, size=4)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'folders': no class of"):
        load("folders", tmp_path, size=4)


@pytest.fixture
def awa2(tmp_path: Path, tree: Tree) -> Path:
    folder = tmp_path / "Animals_with_Attributes2"
    tree(folder / "JPEGImages", "seal/seal_10001.jpg", "ox/ox_10001.jpg", "ox/ox_10002.jpg")
    (folder / "classes.txt").write_text("      1\tox\n      2\tseal\n")
    (folder / "predicates.txt").write_text("1 furry\n2 bipedal\n3 water\n4 domestic\n5 gray\n")
    (folder / "predicate-matrix-binary.txt").write_text("1 0 0 1 0\n1 0 1 0 1\n")
    return folder


def test_awa2_attributes_are_those_of_the_animal(awa2: Path) -> None:
    held = load("awa2", awa2.parent, size=4)
    assert held.classes == ("furry", "bipedal", "water", "domestic", "gray")
    assert held.labels.tolist() == [[1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1]]
    assert held.groups["animal"].tolist() == ["ox", "ox", "seal"]
    assert held.groups["water"].tolist() == ["no", "no", "yes"]
    animals = load("awa2", awa2, label="animal", size=4)
    assert [animals.classes[i] for i in animals.labels] == ["ox", "ox", "seal"]
    assert "animal" not in animals.groups
    with pytest.raises(InputError, match="label is 'class'"):
        load("awa2", awa2, label="class")


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("predicate-matrix-binary.txt", "1 0 0 1 0\n", "not of 2 animals by 5 attributes"),
        ("predicate-matrix-binary.txt", "1 0 0 1\n1 0 1 0\n", "not of 2 animals by 5 attributes"),
        ("predicate-matrix-binary.txt", "1 0 x 1 0\n1 0 1 0 1\n", "'x' where a number"),
        ("predicates.txt", "1 furry\n2 bipedal\n3 water\n4 tame\n5 gray\n", "no 'domestic'"),
        ("classes.txt", "ox\nseal\n", "a number and a name"),
    ],
)
def test_damaged_tables_of_awa2(awa2: Path, file: str, content: str, told: str) -> None:
    (awa2 / file).write_text(content)
    with pytest.raises(InputError, match=f"{file}' .*{told}.*download it again"):
        load("awa2", awa2, size=4)


def test_an_animal_that_awa2_does_not_have(awa2: Path, tree: Tree) -> None:
    tree(awa2 / "JPEGImages", "dragon/1.jpg")
    with pytest.raises(InputError, match="folder 'dragon', which is no animal"):
        load("awa2", awa2, size=4)


@pytest.fixture
def iwildcam(tmp_path: Path, tree: Tree) -> Path:
    folder = tmp_path / "iwildcam_v2.0"
    tree(folder / "train", "a.jpg", "b.jpg", "c.jpg")
    (folder / "metadata.csv").write_text(
        ",split,location_remapped,sequence_remapped,y,datetime,filename\n"
        "0,train,12,5,0,2013-06-05 05:44:19.000,a.jpg\n"
        "1,id_test,12,6,2,2013-06-05 05:44:19.000,c.jpg\n"
        "2,test,40,7,0,2013-06-05 05:44:19.000,b.jpg\n"
    )
    (folder / "categories.csv").write_text("category_id,name,y\n0,empty,0\n7,lynx,2\n9,x,99999\n")
    return folder


def test_iwildcam_by_place_and_sequence(iwildcam: Path) -> None:
    held = load("iwildcam", iwildcam.parent, size=4)
    assert held.split.tolist() == ["train", "id_test", "test"]
    assert held.classes == ("empty", "1", "lynx")  # no file names class 1
    assert held.labels.tolist() == [0, 2, 0]
    assert held.groups["location"].tolist() == ["12", "12", "40"]
    assert held.groups["sequence"].tolist() == ["5", "6", "7"]
    assert held.images[:, 0, 0, 0].tolist() == [0, 2, 1]
    (iwildcam / "categories.csv").unlink()
    assert load("iwildcam", iwildcam, size=4).classes == ("0", "1", "2")


def test_damaged_tables_of_iwildcam(iwildcam: Path) -> None:
    path = iwildcam / "metadata.csv"
    text = path.read_text()
    for content, told in (
        (text.replace("id_test", "trial"), "the split 'trial'"),
        (text.replace(",y,", ",label,"), "no column 'y'"),
        (text.replace(",6,2,", ",6,lynx,"), "'lynx' where a number"),
        (text.splitlines()[0] + "\n", "no rows"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"metadata.csv' has .*{told}"):
            load("iwildcam", iwildcam, size=4)


def test_own_images_can_be_read_in_grey(tmp_path: Path, encode: Encode) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(encode((200, 100, 50)))
    colours = load("folders", tmp_path, size=4)
    grey = load("folders", tmp_path, size=4, greyscale=True)
    assert colours.images.shape == (2, 4, 4, 3)
    assert grey.images.shape == (2, 4, 4, 1)
    # The weights of ITU-R 601: 0.299 R + 0.587 G + 0.114 B = 124.2.
    assert set(grey.images.reshape(-1).tolist()) == {124}
    with pytest.raises(InputError, match="use true or false"):
        load("folders", tmp_path, size=4, greyscale="no")
