"""Agreement between annotators, by hand and against statsmodels."""

import math

import pytest

from fairweight.tables.annotations import Annotation, agreement

F, A, W = "fine", "ambiguous", "label_wrong"


def rated(table: list[str], people: str = "abcdefgh") -> list[Annotation]:
    """A row of letters per example, one per person; a dot where somebody did not look."""
    words = {"f": F, "a": A, "w": W, "s": "skip"}
    return [
        Annotation(str(i), words[letter], annotator=who)
        for i, letters in enumerate(table)
        for who, letter in zip(people, letters, strict=False)
        if letter != "."
    ]


def test_cohen_by_hand() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: raw 35/50 = .7;
    # chance .5 · .6 + .5 · .4 = .5; kappa .2/.5 = .4.
    found = agreement(rated(["ff"] * 20 + ["fa"] * 5 + ["af"] * 10 + ["aa"] * 15))
    assert (found.method, found.n_annotators, found.n_examples) == ("Cohen", 2, 50)
    assert found.raw == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.reason == ""


def test_fleiss_by_hand() -> None:
    # Examples fff, ffa, aaw: pairs that agree 1, 1/3, 1/3, so raw 5/9.
    # Shares 5/9, 3/9, 1/9: chance 35/81; kappa (45 − 35) / (81 − 35) = 10/46.
    found = agreement(rated(["fff", "ffa", "aaw"]))
    assert (found.method, found.n_annotators, found.n_examples) == ("Fleiss", 3, 3)
    assert found.raw == pytest.approx(5 / 9)
    assert found.kappa == pytest.approx(10 / 46)


def test_fleiss_where_people_looked_at_different_examples() -> None:
    # 'f..' is left out. The others agree 1, 1, 0: raw 2/3; shares 3/6, 3/6: chance 1/2; so 1/3.
    found = agreement(rated(["ff.", ".aa", "fa.", "f.."]))
    assert (found.n_annotators, found.n_examples) == (3, 3)
    assert found.kappa == pytest.approx(1 / 3)


def test_a_skip_is_no_verdict() -> None:
    assert agreement(rated(["ff", "fa", "fs", "s."])).n_examples == 2


@pytest.mark.parametrize(
    ("table", "raw", "reason"),
    [
        ([], math.nan, "no example has a verdict from two annotators"),
        (["f", "a"], math.nan, "no example has a verdict from two annotators"),
        (["ff", "ff"], 1.0, "everybody gave the same verdict everywhere"),
        (["fff", "fff"], 1.0, "everybody gave the same verdict everywhere"),
    ],
)
def test_undefined_is_nan_with_its_reason(table: list[str], raw: float, reason: str) -> None:
    found = agreement(rated(table))
    assert math.isnan(found.kappa)
    assert found.raw == raw or (math.isnan(found.raw) and math.isnan(raw))
    assert reason in found.reason


def test_labels_are_compared_by_class() -> None:
    labels = {"ann": ["1", "0", "1", "skip", ""], "bo": ["1.0", "0", "0", "skip", "1"]}
    rows = [
        Annotation(str(i), W, label=label, annotator=who)
        for who, own in labels.items()
        for i, label in enumerate(own)
    ]
    found = agreement(rows, "label")
    assert (found.n_examples, found.raw) == (4, 0.75)
    # ann 1: 2, 0: 1, skip: 1; bo 1: 1, 0: 2, skip: 1: chance (2 + 2 + 1)/16.
    assert found.kappa == pytest.approx((12 - 5) / (16 - 5))


def test_cohen_is_that_of_statsmodels() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa, to_table

    table = ["ff", "fa", "aw", "ww", "fa", "wf", "aa", "ff", "wa"]
    counts, _ = to_table([["faw".index(letter) for letter in letters] for letters in table])
    assert agreement(rated(table)).kappa == pytest.approx(cohens_kappa(counts).kappa)


def test_fleiss_is_that_of_statsmodels() -> None:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    table = ["ffaw", "aaaf", "wwww", "fffa", "fawa", "aaww"]
    counts, _ = aggregate_raters([list(letters) for letters in table])
    assert agreement(rated(table)).kappa == pytest.approx(fleiss_kappa(counts, method="fleiss"))
