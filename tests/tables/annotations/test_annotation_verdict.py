"""What an annotation may hold."""

import pytest

from fairweight.errors import InputError
from fairweight.tables.annotations import (
    KEYS,
    LONGEST,
    VERDICTS,
    Annotation,
    label_for,
    moment,
    now,
)


def test_every_verdict_has_one_key() -> None:
    assert sorted(KEYS.values()) == sorted(VERDICTS)
    assert all(len(key) == 1 for key in KEYS)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"verdict": "labelwrong"}, r"'labelwrong' does not exist.*'label_wrong'"),
        ({"example_id": ""}, "has no 'example_id'"),
        ({"verdict": "skip", "label": "cat"}, "'skip' takes no label, and 'cat' was given"),
        ({"note": "a\ud800b"}, r"'note' .* lone surrogate, '\\ud800', at place 1"),
        ({"note": "x" * (LONGEST + 1)}, "'note' .* 100,001 characters; give at most 100,000"),
        ({"time": "yesterday"}, "'yesterday' is not ISO 8601 in UTC"),
        ({"time": "2026-03-01T09:30:00"}, "is not ISO 8601 in UTC"),
        ({"time": "2026-03-01T09:30:00+02:00"}, "is not ISO 8601 in UTC"),
        ({"label": 3}, "'label' of an annotation must be text; given was 3"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(
    changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        Annotation(**{"example_id": "7", "verdict": "fine", **changed})


def test_a_verdict_stands_for_its_label() -> None:
    stands = {verdict: label_for(verdict, "cat", "dog") for verdict in VERDICTS}
    assert stands == {
        "label_wrong": "dog", "ambiguous": "", "model_harmful": "cat", "fine": "cat", "skip": "",
    }  # fmt: skip


def test_the_present_time_is_one_that_is_accepted() -> None:
    assert now().endswith("Z")
    assert moment("") < moment("2026-03-01T09:30:00Z") < moment(now())
