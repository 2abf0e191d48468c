"""Names of classes: three kinds of files, what is refused, and who is named by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.report.brief import brief
from fairweight.report.finding import findings
from fairweight.tables.class_names import names_of_classes, read_class_names

FORMS = {
    "names.json": '{"0": "tench", "1.0": "goldfish"}',
    "list.json": '["tench", "goldfish"]',
    "names.csv": "0,tench\n1,goldfish\n",
    "names.tsv": "0\ttench\n1\tgoldfish\n",
    "names.txt": "tench\ngoldfish\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_names(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    assert read_class_names(tmp_path / name) == {"0": "tench", "1": "goldfish"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.csv", "0,tench,fish\n", "must have two columns"),
        ("absent.txt", None, "cannot be read"),
    ],
)
def test_what_cannot_be_read(name: str, text: str | None, told: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_class_names(tmp_path / name)


def test_names_of_other_classes_are_refused() -> None:
    with pytest.raises(InputError, match="are of none of the classes here, such as 'cat'"):
        names_of_classes({"0": "tench"}, ["cat", "dog"])


def test_the_first_lines_name_classes_and_tables_keep_their_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 900)
    lost = (label == 1) & (rng.random(900) < 0.4)
    audit = fw.audit(
        label, {"dense": label, "int8": np.where(lost, 0, label)}, n_boot=20, random_state=0
    )
    named = audit.named({"1": "goldfish"})
    lines = {line.heading: line.text for line in brief(named.result, findings(named.result)).lines}
    assert lines["Loses most"].startswith("class goldfish, −")
    assert lines["More than the rest"].startswith("class goldfish, by ")
    assert set(named.by_class["class"]) == {"0", "1", "2"}
    again = fw.load(named.save(tmp_path / "audit"))
    found = findings(again.result)
    assert brief(again.result, found) == brief(named.result, findings(named.result))
