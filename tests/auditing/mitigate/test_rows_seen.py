"""Rows on which a rule was fitted are found again, by identity and under other identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairweight.auditing.mitigate.mitigation import (
    RowsSeen,
    alike,
    equal_by_accident,
    refuse_overlap,
    rows_seen,
    some_rows,
)
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.errors import InputError

from .made_pairs import pair

pytestmark = pytest.mark.usefixtures("few_metrics")

CLAIM = "The thresholds would be judged on rows on which they were fitted"


def compared(fitted: Answers, judged: Answers) -> list[str]:
    seen = rows_seen([fitted])
    return refuse_overlap(seen, rows_seen([judged], seen), CLAIM)


def renamed(answers: Answers, first: int = 5000) -> Answers:
    """The same rows under other identities, in another order."""
    order = np.random.default_rng(first).permutation(answers.n_examples)
    made = replace(
        answers,
        label=answers.label[order],
        prediction=answers.prediction[:, order],
        score=None if answers.score is None else answers.score[:, order],
        columns=tuple(replace(c, code=c.code[order]) for c in answers.columns),
        example_id=first + np.arange(answers.n_examples),
    )
    return made


def joined(one: Answers, other: Answers) -> Answers:
    """The rows of both (of the same classes and groups)."""
    assert one.score is not None
    assert other.score is not None
    return replace(
        one,
        label=np.concatenate([one.label, other.label]),
        prediction=np.concatenate([one.prediction, other.prediction], axis=1),
        score=np.concatenate([one.score, other.score], axis=1),
        columns=tuple(
            replace(c, code=np.concatenate([c.code, d.code]))
            for c, d in zip(one.columns, other.columns, strict=True)
        ),
        example_id=np.arange(one.n_examples + other.n_examples) + 9000,
    )


def some(answers: Answers, n: int) -> Answers:
    return some_rows(answers, np.arange(answers.n_examples) < n)


# --- by identity ---------------------------------------------------------------------------------


def test_the_same_rows_are_refused_by_example_and_by_cluster() -> None:
    fitted = pair(40, clusters=True)
    assert compared(fitted, pair(40, 1, first=1000, clusters=True)) == []
    with pytest.raises(InputError, match="they were fitted: 10 examples are in both"):
        compared(fitted, pair(40, 1, first=30))
    with pytest.raises(InputError, match="10 clusters are in both"):
        compared(fitted, replace(pair(40, 1, clusters=True), example_id=np.arange(500, 540)))


def test_one_and_its_text_are_one_example() -> None:
    numbers = rows_seen([replace(pair(2), example_id=np.array([0, 1]))])
    texts = rows_seen([replace(pair(2), example_id=np.array(["0", "7"]))])
    assert len(numbers.examples & texts.examples) == 1


def test_the_number_of_a_row_is_no_identity() -> None:
    """Two tables without ids have the rows 0 to 39 each, and other examples in them."""
    fitted, judged = (replace(pair(40, seed), has_id=False) for seed in (0, 1))
    assert compared(fitted, judged) == []
    with pytest.raises(InputError, match=r"40 of 40 rows of one table are in the other \(the same"):
        compared(fitted, fitted)
    alike = replace(judged, score=None)
    (note,) = compared(fitted, alike)
    assert note.startswith("Whether a row is in both tables could not be checked: rows have no id")


def test_clusters_that_cannot_be_compared_are_told() -> None:
    with_clusters, without = pair(40, clusters=True), pair(40, 1, first=100)
    for one, other in ((with_clusters, without), (without, with_clusters)):
        (note,) = compared(one, other)
        assert note.startswith("One of the two tables has clusters and the other has none")


# --- under other identities ----------------------------------------------------------------------


def test_a_renamed_table_is_refused() -> None:
    with pytest.raises(InputError, match="200 of 200 rows of one table are in the other"):
        compared(pair(200), renamed(pair(200)))


@pytest.mark.parametrize("seed", range(5))
def test_a_third_of_the_rows_used_again_is_found(seed: int) -> None:
    """30 % of the judged rows are validation rows under new identities."""
    fitted = pair(300, seed)
    judged = joined(renamed(some(fitted, 90)), pair(210, 100 + seed))
    with pytest.raises(InputError, match="90 of 300 rows"):
        compared(fitted, judged)


def test_few_validation_rows_within_a_large_table_are_found() -> None:
    fitted = pair(60)
    with pytest.raises(InputError, match="60 of 60 rows"):
        compared(fitted, joined(renamed(fitted), pair(5000, 7)))


def test_a_table_whose_rows_repeat_says_that_likeness_shows_nothing() -> None:
    """Every fitted row is there three times: being alike is usual, and the note says so."""
    once = pair(150)
    (note,) = compared(joined(joined(once, once), once), renamed(once))
    assert note.startswith("That no row is in both tables was checked by identity alone: too many")


def test_a_few_rows_alike_are_told_and_not_refused() -> None:
    fitted = pair(2000)
    (note,) = compared(fitted, joined(renamed(some(fitted, 3)), pair(2000, 5)))
    assert note == (
        "3 rows have the same label, predictions and scores in both tables under another identity."
    )


def people(n: int, seed: int, *, digits: int | None, saturated: float = 0.0) -> Answers:
    """A population of people with scores, of which some are exactly 0 or 1."""
    rng = np.random.default_rng(seed)
    man = rng.random(n) < 0.4
    label = (rng.random(n) < 0.3 + 0.2 * man).astype(int)
    logit = 3.0 * label - 1.5 + rng.normal(size=n)
    scores = {}
    for name, noise in (("dense", 0.0), ("small", 0.4)):
        score = 1 / (1 + np.exp(-2 * (logit + noise * rng.normal(size=n))))
        sure = rng.random(n) < saturated
        score = np.where(sure, np.round(score), score)
        scores[name] = score if digits is None else np.round(score, digits)
    return from_arrays(
        label,
        {name: (score > 0.5).astype(int) for name, score in scores.items()},
        groups={"sex": np.where(man, "m", "f")},
        score=scores,
        ids=list(range(n)),
    )


@pytest.mark.parametrize("digits", [None, 1, 2, 3, 4])
def test_independent_splits_are_not_refused(digits: int | None) -> None:
    """60 random splits, of all sizes, with scores that repeat by rounding and by saturation."""
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        n = int(rng.choice([60, 300, 1000, 3000]))
        table = people(n, seed, digits=digits, saturated=float(rng.choice([0.0, 0.5, 0.9])))
        first = rng.random(n) < rng.choice([0.1, 0.3, 0.5, 0.8])
        compared(some_rows(table, first), some_rows(table, ~first))


def test_saturated_scores_hide_nothing_of_the_rest() -> None:
    """Half of the scores are exactly 0 or 1 and all alike; the others still tell."""
    fitted = people(1000, 1, digits=None, saturated=0.5)
    judged = joined(renamed(some(fitted, 300)), people(700, 2, digits=None, saturated=0.5))
    with pytest.raises(InputError, match="of 1,000 rows of one table are in the other"):
        compared(fitted, judged)


# --- without scores ------------------------------------------------------------------------------


def bare(n: int, seed: int = 0) -> Answers:
    return replace(pair(n, seed), score=None)


def test_without_scores_the_same_table_is_refused_and_other_rows_are_told() -> None:
    with pytest.raises(InputError, match="400 of 400 rows"):
        compared(bare(400), renamed(bare(400)))
    other = replace(bare(400, 1), example_id=np.arange(400) + 5000)
    (note,) = compared(bare(400), other)
    assert note.startswith("That no row is in both tables was checked by identity alone: too many")


def test_two_small_tables_may_be_equal_by_accident() -> None:
    """Two cells of 3 rows: √(4π6) / (4π3) = 0.23; nothing is refused."""
    cells = np.array([1, 1, 1, 2, 2, 2], dtype=np.uint64)
    assert equal_by_accident(cells) == pytest.approx(np.sqrt(24 * np.pi) / (12 * np.pi))
    made = from_arrays(
        [0, 0, 0, 1, 1, 1],
        {"dense": [0, 0, 0, 1, 1, 1], "small": [0, 0, 0, 1, 1, 1]},
        ids=range(6),
    )
    (note,) = compared(made, replace(made, example_id=np.arange(6) + 50))
    assert "by identity alone" in note


def test_tables_of_different_people_are_not_refused() -> None:
    """Fitted on men, judged on women: what is rare among the one is common among the other."""
    for seed in range(50):
        for table in (bare(300, seed), people(1000, seed, digits=2)):
            men = table.columns[0].code == 1
            compared(some_rows(table, men), some_rows(table, ~men))


def test_random_tables_without_scores_are_not_refused() -> None:
    for seed in range(200):
        table = bare(300, seed)
        first = np.random.default_rng([3, seed]).random(300) < 0.5
        compared(some_rows(table, first), some_rows(table, ~first))


# --- what is compared ----------------------------------------------------------------------------


def test_how_many_are_alike_by_hand() -> None:
    """1, 2, 3 are unique in the first; 2 is in the second, and 4, of which the first has two."""
    first = np.array([1, 2, 3, 4, 4, 5, 5, 5], dtype=np.uint64)
    found = alike(first, np.array([2, 4, 5, 9], dtype=np.uint64))
    assert (found.rows, found.of, found.unique) == (1, 8, 3 / 8)
    assert found.expected == 2 * 1 * 4 / 8  # one pair of twins, half as many rows
    unseen = 3 * 2 * 8 * 4 / (8 * 8 + 4 * 4)
    assert found.limit == pytest.approx(0.01 + 3 * (1 + 2 * 1 + unseen) / 8)


def test_a_small_table_beside_a_large_one_is_judged_by_the_large_one() -> None:
    """1,000 kinds, two rows of each, and 100 new rows: 0.05 × 1,000 × 2 × (0.95 + 0.05) = 100."""
    large = np.repeat(np.arange(1000, dtype=np.uint64), 2)
    found = alike(np.arange(100, dtype=np.uint64), large)
    assert found.rows == 100
    assert found.expected == pytest.approx(100)
    assert not found.refused


@pytest.mark.parametrize(("n", "m"), [(100, 2000), (900, 1000), (1000, 900), (2000, 100)])
def test_as_many_are_alike_by_accident_as_expected(n: int, m: int) -> None:
    """Kinds of very different probability: what is expected is met, and seldom by far exceeded."""
    rng = np.random.default_rng(5)
    chance = rng.lognormal(0, 1.5, 3000)
    found = [
        alike(
            rng.choice(3000, n, p=chance / chance.sum()).astype(np.uint64),
            rng.choice(3000, m, p=chance / chance.sum()).astype(np.uint64),
        )
        for _ in range(50)
    ]
    rows, expected = (np.mean([getattr(f, name) for f in found]) for name in ("rows", "expected"))
    assert 0.9 * rows <= expected <= 2.5 * rows
    assert not any(f.refused for f in found)


def test_codes_and_orders_of_tables_do_not_matter() -> None:
    """Another class first, another group first, further variants and groups: the same rows."""
    names = {"dense": ["a", "b", "c", "a"], "small": ["a", "b", "b", "a"]}
    scores = {"dense": [0.1, 0.2, 0.3, 0.4], "small": [0.5, 0.6, 0.7, 0.8]}
    first = from_arrays(["a", "b", "c", "a"], names, score=scores, ids=[1, 2, 3, 4])
    more = names | {"tiny": ["b", "b", "b", "a"]}
    second = from_arrays(
        ["b", "c", "a", "a", "zebra"][:4],
        {name: [held[1], held[2], held[3], held[0]] for name, held in more.items()},
        score={
            name: [held[1], held[2], held[3], held[0]]
            for name, held in (scores | {"tiny": [0.0] * 4}).items()
        },
        groups={"sex": ["m", "f", "f", "m"]},
        ids=[11, 12, 13, 14],
    )
    seen = rows_seen([first])
    assert np.array_equal(seen.prints, rows_seen([second], seen).prints)
    fewer = rows_seen([second])
    assert len(rows_seen([first], fewer).prints) == 0
    (note,) = refuse_overlap(fewer, rows_seen([first], fewer), CLAIM)
    assert "the tables do not have the same variants" in note


def test_tasks_are_apart() -> None:
    """The same answers in another task are another row."""
    hat, smile = (rows_seen([pair(50, task=task)]) for task in ("hat", "smile"))
    assert not set(hat.prints.tolist()) & set(smile.prints.tolist())


def test_rules_keep_what_they_saw() -> None:
    seen = rows_seen([pair(50, clusters=True)])
    again = RowsSeen.from_json(seen.as_json())
    assert again == seen
    assert len(again.prints) == 50


def test_a_rule_of_an_earlier_version_has_identities_alone() -> None:
    held = {key: rows_seen([pair(50)]).as_json()[key] for key in ("examples", "clusters")}
    seen = RowsSeen.from_json(held)
    (note,) = refuse_overlap(seen, rows_seen([pair(50, first=100)], seen), CLAIM)
    assert "by identity alone" in note
