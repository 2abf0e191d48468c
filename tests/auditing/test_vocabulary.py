"""Labels that are no classes, and predictions that are none of the labels'."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.vocabulary import Vocabulary, joined
from fairweight.errors import InputError

TEN = tuple(str(i) for i in range(10))


def refused(labels: tuple[str, ...], *predicted: str | None, variant: str = "dense") -> str:
    words = Vocabulary(labels, ((variant, dict.fromkeys(predicted, 1)),))
    with pytest.raises(InputError) as caught:
        words.check("dense")
    return str(caught.value)


def accepted(labels: tuple[str, ...], *predicted: str | None, variant: str = "dense") -> list[str]:
    words = Vocabulary(labels, ((variant, dict.fromkeys(predicted, 1)),))
    return words.check("dense")


# --- measurements --------------------------------------------------------------------------------


def ages(n: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 20.0 + np.arange(n) % 428 / 10


def test_ages_as_labels_are_refused() -> None:
    """428 different ages, of which 43 are whole: 385 are no classes."""
    age = ages(856)
    with pytest.raises(InputError, match="385 labels are numbers with fractions") as caught:
        fw.audit(age, {"dense": age, "int8": age + 0.1}, n_boot=20)
    for part in ("'20.1'", "bins", "--label", "--force"):
        assert part in str(caught.value)


def test_twenty_fractions_are_classes_and_more_are_a_measurement() -> None:
    half = tuple(f"{i}.5" for i in range(21))
    assert accepted(half[:20], *half[:20]) == []
    assert "21 labels are numbers with fractions" in refused(half, *half)
    # Whole numbers do not count, however many; neither do words.
    whole = tuple(str(i) for i in range(100))
    assert accepted((*whole, *half[:20]), "3", "7", "9") == []
    assert accepted(tuple(f"v{i}.5" for i in range(50)), "v3.5") == []


def test_codes_with_points_can_be_forced() -> None:
    codes = [f"{250 + i / 100:.2f}" for i in range(1, 41)] * 3  # 250.01 ... are diagnoses
    made = fw.audit(codes, {"dense": codes, "int8": codes}, n_boot=20, force=True)
    assert len(made.result.classes) == 40
    assert any("each was taken as a class" in note for note in made.notes)


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("predicted", [("0", "1"), ("0",), ("1",), ("0", "1", None)], ids=str)
def test_right_and_wrong_are_no_predictions(predicted: tuple[str | None, ...]) -> None:
    sentence = refused(TEN, *predicted)
    assert "does not look like predictions: it looks like right and wrong" in sentence
    assert "labels are '0', '1', '2', '3', '4' and 5 more, predictions are '" in sentence
    assert "--force" in sentence


def test_booleans_are_no_predictions_of_three_labels() -> None:
    assert "right and wrong" in refused(("false", "true", "unknown"), "false", "true")


def test_two_labels_may_be_0_and_1() -> None:
    assert accepted(("0", "1"), "0", "1") == []
    assert accepted(("false", "true"), "true") == []
    assert accepted(TEN, "0", "1", "2") == []


def test_a_tenth_of_the_predictions_must_be_labels() -> None:
    """Of 21 different predictions 2 are labels, 9.5 %; of 20 they are a tenth."""
    odd = [f"0.{i:02d}" for i in range(11, 30)]
    sentence = refused(TEN, "3", "7", *odd)
    assert "19 of its 21 different values are no labels" in sentence
    assert "--prediction NAME=COLUMN" in sentence
    notes = accepted(TEN, "3", "7", *odd[:18])
    assert len(notes) == 1
    assert "18 predictions of 'dense' are classes that no example has" in notes[0]


def test_a_compressed_model_is_not_judged_by_its_looks() -> None:
    """That it collapsed to one class, or abstains everywhere, is a finding."""
    assert accepted(TEN, "0", variant="int8") == []
    assert accepted(TEN, "0", "1", variant="int8") == []
    assert accepted(TEN, None, variant="int8") == [
        "'int8': 1 missing prediction, counted as wrong."
    ]
    odd = [f"0.{i}" for i in range(1, 30)]
    assert "29 predictions of 'int8'" in accepted(TEN, "3", *odd, variant="int8")[0]
    # But where nothing is equal, the two columns speak different languages, whoever made them.
    assert "No prediction of 'int8' is equal to any label" in refused(TEN, "cat", variant="int8")


def test_a_baseline_without_any_prediction() -> None:
    assert "it is empty" in refused(TEN, None)


def test_force_takes_them_as_they_are_and_says_so() -> None:
    words = Vocabulary(TEN, (("dense", {"0": 3, "1": 4}),))
    (note,) = words.check("dense", force=True)
    assert "do not look like these labels" in note
    assert "--force" in note
    empty = Vocabulary(TEN, (("dense", {None: 7}),))
    assert "7 missing predictions" in empty.check("dense", force=True)[1]


def test_a_column_of_correctness_in_place_of_predictions() -> None:
    """lm-eval logs have the target's index and whether each model was right."""
    i = np.arange(400)
    log = pd.DataFrame(
        {
            "example_id": i,
            "target": i % 4,
            "acc_dense": (i % 5 > 0) * 1,
            "acc_int8": (i % 4 > 0) * 1,
        }
    )
    columns = {"dense": "acc_dense", "int8": "acc_int8"}
    with pytest.raises(InputError, match="right and wrong"):
        fw.audit_table(log, label="target", predictions=columns)
    with pytest.raises(InputError, match="right and wrong"):
        fw.audit_table(log.astype({"acc_dense": bool}), label="target", predictions=columns)
    made = fw.audit_table(log, label="target", predictions=columns, n_boot=20, force=True)
    assert any("do not look like these labels" in note for note in made.notes)


def test_one_in_ten_exactly_is_enough() -> None:
    """Of 30 different predictions 3 are labels: a tenth, whatever 0.1 × 30 is in floats."""
    odd = [f"0.{i}" for i in range(101, 128)]
    assert len(accepted(TEN, "1", "2", "3", *odd)) == 1
    assert "28 of its 31" in refused(TEN, "1", "2", "3", *odd, "0.999")


def test_tasks_are_judged_together() -> None:
    """A task that is answered 0 and 1 alone says nothing while another has more classes."""
    first = Vocabulary(("0", "1"), (("dense", {"0": 2, "1": 3}),))
    second = Vocabulary(("0", "1", "2"), (("dense", {"2": 1, None: 4}),))
    both = joined([first, second])
    assert both.labels == ("0", "1", "2")
    assert both.members == (("dense", {"0": 2, "1": 3, "2": 1, None: 4}),)
    assert both.check("dense") == ["'dense': 4 missing predictions, counted as wrong."]
