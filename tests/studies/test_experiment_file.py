"""What a published experiment says of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.specs.study import Experiment
from fairweight.specs.training import Model, Training
from fairweight.studies.publication import EXPERIMENT_FILE, read_experiment, write_experiment

DIGITS = Experiment(
    name="digits",
    data=Data(name="digits", shares={"3": 0.5}, stratify=("ink",)),
    model=Model(architecture="lenet"),
    training=Training(epochs=1),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_experiment(tmp_path) is None
    write_experiment("numbers", DIGITS, tmp_path)
    found = read_experiment(tmp_path)
    assert found is not None
    assert (found.study, found.experiment, found.data) == ("numbers", "digits", DIGITS.data)
    assert (found.groups, found.cluster, found.positive) == (None, None, None)
    assert found.began is None
    began = datetime(2026, 11, 17, 19, 30, tzinfo=UTC)
    write_experiment("numbers", DIGITS, tmp_path, began)
    known = read_experiment(tmp_path)
    assert known is not None
    assert known.began == began


@pytest.mark.parametrize("began", ["yesterday", "2026-11-17T19:30:00"])
def test_a_moment_without_its_zone_is_refused(began: str, tmp_path: Path) -> None:
    write_experiment("numbers", DIGITS, tmp_path)
    path = tmp_path / EXPERIMENT_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"began": began}))
    with pytest.raises(InputError, match="publish the study again"):
        read_experiment(tmp_path)


def test_a_file_of_marked_examples_goes_along(tmp_path: Path) -> None:
    marked = tmp_path / "somewhere.json"
    marked.write_text("{}")
    folder = tmp_path / "published"
    folder.mkdir()
    data = replace(DIGITS.data, backdoor=str(marked))
    write_experiment("numbers", replace(DIGITS, data=data), folder)
    assert str(tmp_path) not in (folder / EXPERIMENT_FILE).read_text()
    found = read_experiment(folder)
    assert found is not None
    assert found.data == replace(data, backdoor=str(folder / "backdoor.json"))
    assert (folder / "backdoor.json").read_text() == "{}"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"study": 1, "experiment": 2, "groups": 3}'])
def test_a_damaged_file_says_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / EXPERIMENT_FILE).write_text(text)
    with pytest.raises(InputError, match="publish the study again"):
        read_experiment(tmp_path)
