"""`annotations.csv` gives back what was written, whatever that is."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight.errors import InputError
from fairweight.tables.annotations import (
    COLUMNS,
    VERDICTS,
    WITHOUT_LABEL,
    Annotation,
    read_csv,
    to_csv,
)

# Signs that mean something to CSV, to spreadsheets or to C, more often than by chance.
SIGNS = "=+-@'\"\n\r\t,;\x00\u2028\ufeff é\U0001f600"
TEXT = st.one_of(
    st.text(st.sampled_from(SIGNS), max_size=8),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)


@st.composite
def annotations(draw: st.DrawFn) -> Annotation:
    verdict = draw(st.sampled_from(sorted(VERDICTS)))
    return Annotation(
        draw(TEXT.filter(bool)),
        verdict,
        task=draw(TEXT),
        label="" if verdict in WITHOUT_LABEL else draw(TEXT),
        note=draw(TEXT),
        annotator=draw(TEXT),
        time=draw(st.sampled_from(["", "2026-03-01T09:30:00.125Z"])),
    )


@settings(max_examples=80, deadline=None)
@given(st.lists(annotations(), max_size=4))
def test_every_text_comes_back_as_it_was(rows: list[Annotation]) -> None:
    assert read_csv(to_csv(rows)) == rows


@settings(max_examples=30, deadline=None)
@given(annotations())
def test_no_cell_begins_like_a_formula(row: Annotation) -> None:
    cells = list(csv.reader(io.StringIO(to_csv([row]), newline="")))[1]
    assert len(cells) == len(COLUMNS)
    assert not any(cell[:1] in tuple("=+-@\t\r\n") for cell in cells if cell)


def test_the_file_itself(tmp_path: Path) -> None:
    row = Annotation(
        "7", "label_wrong", label="-1", note='say "cat",\nplease', annotator="=cmd|'/C calc'!A0"
    )
    assert to_csv([row]) == (
        "example_id,task,verdict,label,note,annotator,time\r\n"
        '7,,label_wrong,\'-1,"say ""cat"",\nplease",\'=cmd|\'/C calc\'!A0,\r\n'
    )
    path = tmp_path / "annotations.csv"
    path.write_text(to_csv([row]), encoding="utf-8", newline="")
    assert read_csv(path) == [row]


def test_files_that_people_or_spreadsheets_wrote() -> None:
    expected = [Annotation("7", "fine", label="cat", note="'tis")]
    assert read_csv("\ufeffexample_id;verdict;label;note\r\n7;fine;cat;'tis\r\n") == expected
    assert read_csv("rank,verdict,example_id,label,note\n1,fine,7,cat,'tis\n\n") == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "annotations.csv is empty"),
        ("example_id,label\n7,cat\n", "has no column 'verdict'; it needs example_id, task"),
        ("example_id,verdict,verdict\n", "two columns of one name"),
        ("example_id,verdict\n7,fine\n8,good\n", r"row 2: The verdict 'good' does not exist"),
        ("example_id,verdict\n7,fine,more\n", "row 1 has 3 cells, more than the 2 columns"),
        ('example_id,verdict\n7,"fine\n', "is no CSV file"),
        ('example_id,verdict\n7,"fine"x\n', "is no CSV file"),
        (f"example_id,verdict\n{'7' * 200_000},fine\n", "is no CSV file"),
        ("example_id,verdict,note\n7,fine,\udc80\n", "row 1: 'note' .* lone surrogate"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_csv(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(No such file"):
        read_csv(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"example_id,verdict\n\xe9,fine\n")
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 19\)"):
        read_csv(tmp_path / "latin.csv")
