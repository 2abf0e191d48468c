"""What is said of one example, by hand; pairs; texts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.web.cards import SideAnswers, examples
from fairweight.web.votes.filters import Filters, pairs, select
from fairweight.web.votes.index import VoteIndex
from fairweight.web.votes.writer import Texts, write_texts

from .vote_cases import as_index, random_answers

# Four examples; three dense members, three small ones (columns are members), one tiny one.
LABELS = ["cat", "cat", "dog", "emu"]
DENSE = [["cat", "cat", "dog"], ["cat"] * 3, ["dog"] * 3, ["emu"] * 3]
SMALL = [["dog", "dog", "dog"], ["cat"] * 3, ["dog"] * 3, ["emu"] * 3]
TINY = [["cat"], ["dog"], ["dog"], ["emu"]]
SCORES = {
    "dense": [[0.5, 0.7, np.nan], [1.0] * 3, [0.9] * 3, [0.95] * 3],
    "small": [[0.25] * 3, [1.0] * 3, [0.9] * 3, [np.nan] * 3],
    "tiny": [[0.5], [0.5], [0.5], [0.5]],
}


@pytest.fixture
def animals(tmp_path: Path) -> VoteIndex:
    made = from_arrays(
        LABELS,
        {"dense": DENSE, "small": SMALL, "tiny": TINY},
        groups={"coat": ["long", "short", None, "short"]},
        numbers={"weight": [4.5, np.nan, 20, np.inf]},
        score=SCORES,
        ids=[10, 20, 30, 40],
    )
    return as_index(made, tmp_path)


def votes_of(side: SideAnswers) -> dict[str, int]:
    return {bar.answer: bar.votes for bar in side.bars}


def test_all_that_is_known_of_an_example(animals: VoteIndex) -> None:
    (card,) = examples(animals, [0])
    json.dumps(asdict(card), allow_nan=False)
    assert (card.id, card.label, card.task) == ("10", "cat", None)
    assert card.groups == {"coat": "long"}
    assert card.properties == {"weight": 4.5}
    dense, small, tiny = card.baseline, *card.variants
    assert list(votes_of(dense).items()) == [("cat", 2), ("dog", 1)]
    assert [(bar.begin, bar.width) for bar in dense.bars] == [(0, 2 / 3), (2 / 3, 1 / 3)]
    assert (dense.modal, dense.n_right, dense.n_members) == (["cat"], 2, 3)
    assert dense.score == pytest.approx(0.6)  # (.5 + .7) / 2: one member has none
    assert [m.score for m in dense.members] == [0.5, pytest.approx(0.7), None]
    assert [m.right for m in dense.members] == [True, True, False]
    assert (dense.confidence, dense.distance, dense.kinds) == ("low", None, [])
    assert (small.variant, votes_of(small), small.n_right) == ("small", {"dog": 3}, 0)
    # |2 − 0| + |1 − 3| = 4 votes of at most 6; the three others have 0.
    assert small.distance == pytest.approx(4 / 6)
    assert small.percentile == 75.0
    assert "modal" in small.kinds
    # cat 2/3 and dog 1/3 against cat: (1/3 + 1/3) / 2.
    assert tiny.distance == pytest.approx(1 / 3)
    assert tiny.kinds == []


def test_what_is_missing_is_null(animals: VoteIndex) -> None:
    one, two, three = examples(animals, [1, 2, 3])
    assert one.properties == {"weight": None}
    assert two.groups == {"coat": None}
    assert three.properties == {"weight": None}  # no infinity in JSON
    silent = three.variants[0]
    assert (silent.score, silent.confidence) == (None, None)
    assert two.baseline.confidence == "high"  # exactly .9 is not below it


def test_several_at_once_are_the_same(tmp_path: Path) -> None:
    index = as_index(random_answers(2), tmp_path)
    whole = range(index.task().n_examples)
    together = examples(index, list(whole), variants=["tiny"])
    for place in whole:
        (alone,) = examples(index, [place])
        tiny = [side for side in alone.variants if side.variant == "tiny"]
        assert together[place] == replace(alone, variants=tiny)
        assert sum(votes_of(alone.baseline).values()) == alone.baseline.n_members


def test_an_example_is_found_by_its_identity(animals: VoteIndex, tmp_path: Path) -> None:
    votes = animals.task()
    assert [votes.place(name) for name in ("10", "40", "41", "9", "015", "ten", "", "१०")] == [
        0, 3, None, None, None, None, None, None,
    ]  # fmt: skip
    assert votes.place("9" * 10_000) is None
    texts = as_index(random_answers(0), tmp_path / "texts").task()
    for place in range(texts.n_examples):
        assert texts.place(texts.example_id(place)) == place
    for name in ("", "e", "zz", "e\x00", "\ud800", "<script>", "e" * 10_000):
        assert texts.place(name) is None


def test_strange_identities_and_levels_are_kept(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "<b>", "a\x00b", "é", "x" * 10_000, "\U0001f600", "日本"]
    made = from_arrays(
        ["a", "b"] * 3 + ["a"],
        {"dense": ["a"] * 7, "small": ["b"] * 7},
        groups={"<i>": names},
        ids=names,
    )
    votes = as_index(made, tmp_path).task()
    assert [votes.example_id(place) for place in range(7)] == names
    assert [votes.place(name) for name in names] == list(range(7))
    level = votes.groups["<i>"]
    assert [level.levels[level.code("<i>", name)] for name in names] == names


@pytest.mark.parametrize("tried", [256, 1])
def test_pairs_are_of_one_class_and_stay_the_same(
    tried: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are drawn before a class is listed."""
    monkeypatch.setattr("fairweight.web.votes.filters.TRIED", tried)
    index = as_index(random_answers(6), tmp_path)
    votes, asked = index.task(), Filters(variant="tiny")
    found = pairs(index, asked, limit=100)
    exemplars = select(index, Filters(variant="tiny", kind="modal"), limit=100)
    assert [place for place, _ in found.pairs] == exemplars.places.tolist()
    assert found.total == exemplars.total > 2
    for place, other in found.pairs:
        if other is not None:
            assert votes.label[place] == votes.label[other]
            assert other not in set(exemplars.places.tolist())
    assert any(other is not None for _, other in found.pairs)
    later = pairs(index, asked, offset=1, limit=1)
    assert later.pairs == found.pairs[1:2]
    redrawn = pairs(index, asked, random_state=1, limit=100)
    assert [a for a, _ in redrawn.pairs] == [a for a, _ in found.pairs]
    assert redrawn.pairs != found.pairs


def test_a_class_of_exemplars_alone_has_no_other(tmp_path: Path) -> None:
    made = from_arrays(["a", "b"], {"dense": ["a", "b"], "small": ["b", "b"]})
    assert pairs(as_index(made, tmp_path), Filters()).pairs == ((0, None),)


def test_texts_are_found_by_halves(tmp_path: Path) -> None:
    write_texts(tmp_path / "t.arrow", ["b", "a", None, "d\udcff"])
    texts = Texts(tmp_path / "t.arrow")
    assert texts[:] == ["b", "a", None, "d?"]  # what cannot be written is replaced
    assert (texts.place("a"), texts.place(None), texts.place("c")) == (1, 2, None)
    order = np.array([1, 0], dtype=np.uint32)
    assert [texts.searched(text, order) for text in ("a", "b", "aa", "c")] == [1, 0, None, None]
