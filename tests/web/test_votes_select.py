"""Filters and pages, against pandas on tables that a person could check."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.prediction_matrix import Answers
from fairweight.errors import InputError, UnknownNameError
from fairweight.web.votes.filters import ORDERS, Filters, mask_of, select
from fairweight.web.votes.index import VoteIndex
from fairweight.web.votes.writer import KINDS

from .vote_cases import as_frame, as_index, found_in, random_answers

TABLES, PER_TABLE = 10, 30
VERDICTS = ("fine", "skip", "label_wrong")


def random_filters(answers: Answers, rng: np.random.Generator) -> Filters:
    """A few of all filters, each about something that there is."""

    def maybe(share: float) -> bool:
        return bool(rng.random() < share)

    variant = str(rng.choice(answers.variants))
    side = "baseline" if maybe(0.3) else "compressed"
    members = len(answers.of(answers.baseline if side == "baseline" else variant))
    classes = answers.classes[: answers.n_label_classes]
    groups = [("sex", "f")] if maybe(0.2) else []
    levels = {str(level) for column in answers.columns for level in column.values}
    groups += [("age", "(missing)")] if maybe(0.2) and "None" in levels else []
    groups = [pair for pair in groups if pair[1] in levels or pair[1] == "(missing)"]
    return Filters(
        variant=variant,
        side=side,
        seed=str(rng.integers(members)) if maybe(0.3) else None,
        cell=str(rng.choice(["TP", "FN", "FP", "TN"])) if maybe(0.3) else None,
        positive=str(rng.choice(classes)) if maybe(0.5) or answers.positive is None else None,
        confidence=str(rng.choice(["high", "low"]))
        if maybe(0.2) and answers.score is not None
        else None,
        groups=tuple(sorted(groups)),
        label=str(rng.choice(classes)) if maybe(0.2) else None,
        prediction=str(rng.choice(classes)) if maybe(0.2) else None,
        changed=str(rng.choice(["yes", "no", "lost", "gained"])) if maybe(0.3) else None,
        percentile_min=float(rng.choice([0, 30, 50, 90])) if maybe(0.2) else None,
        kind=str(rng.choice(list(KINDS))) if maybe(0.2) else None,
        not_of=str(rng.choice(answers.variants)) if maybe(0.2) else None,
        annotated=str(rng.choice(["yes", "no", "fine", "skip"])) if maybe(0.2) else None,
    )


def brute_force(
    answers: Answers, frame: pd.DataFrame, wanted: Filters, said: dict[str, list[str]]
) -> list[str]:
    """Identities of the examples that are asked for, filter by filter."""
    variant, baseline = str(wanted.variant), answers.baseline
    own = baseline if wanted.side == "baseline" else variant
    given = frame[f"modal {own}" if wanted.seed is None else f"answer {own} {wanted.seed}"]
    masks = [pd.Series(True, index=frame.index)]
    for column, level in wanted.groups:
        masks.append(frame[column].isna() if level == "(missing)" else frame[column] == level)
    if wanted.label:
        masks.append(frame["label"] == wanted.label)
    if wanted.prediction:
        masks.append(given == wanted.prediction)
    if wanted.cell:
        truth, says = ((c == (wanted.positive or "yes")) for c in (frame["label"], given))
        masks.append(truth if wanted.cell in ("TP", "FN") else ~truth)
        masks.append(says if wanted.cell in ("TP", "FP") else ~says)
    if wanted.confidence:
        score = f"mean {own}" if wanted.seed is None else f"score {own} {wanted.seed}"
        value = frame[score].astype(np.float32)
        low = value < np.float32(0.9)
        if answers.n_label_classes == 2:
            low &= value > np.float32(0.1)
        masks.append(value.notna() & (low if wanted.confidence == "low" else ~low))
    if wanted.changed:
        before, after, differs = _sides(answers, frame, wanted)
        masks.append(~differs if wanted.changed == "no" else differs)
        if wanted.changed in ("lost", "gained"):
            masks.append((before if wanted.changed == "lost" else after) == frame["label"])
    if wanted.percentile_min is not None:
        distance = _ranked(answers, variant)
        share = [100 * (distance < value).sum() / len(distance) for value in distance]
        masks.append(pd.Series(share).astype(np.float32) >= wanted.percentile_min)
    if wanted.kind or wanted.not_of:
        name = wanted.kind or "modal"
        masks.append(_exemplars(frame, variant, name))
        if wanted.not_of:
            masks.append(~_exemplars(frame, wanted.not_of, name))
    if wanted.annotated:
        known = frame["id"].map(lambda name: said.get(name, []))
        if wanted.annotated in ("yes", "no"):
            masks.append(known.map(bool) == (wanted.annotated == "yes"))
        else:
            masks.append(known.map(lambda verdicts: wanted.annotated in verdicts))
    return frame.loc[np.logical_and.reduce(masks), "id"].tolist()


def _exemplars(frame: pd.DataFrame, variant: str, kind: str) -> pd.Series:
    """Populations have no surrogates, and single pairs no cuts of the distance."""
    return frame.get(f"kind {variant} {kind}", pd.Series(False, index=frame.index))


def _sides(
    answers: Answers, frame: pd.DataFrame, wanted: Filters
) -> tuple[pd.Series, pd.Series, pd.Series]:
    """Answers before and after. Members of equally large sides belong together by their seeds."""
    variant, baseline = str(wanted.variant), answers.baseline
    before, after = frame[f"modal {baseline}"], frame[f"modal {variant}"]
    if wanted.seed is None:
        return before, after, frame[f"kind {variant} modal"]
    paired = len(answers.of(variant)) == len(answers.of(baseline))
    if paired or wanted.side == "baseline":
        before = frame[f"answer {baseline} {wanted.seed}"]
    if paired or wanted.side == "compressed":
        after = frame[f"answer {variant} {wanted.seed}"]
    return before, after, before.fillna("none") != after.fillna("none")


def _ranked(answers: Answers, variant: str) -> np.ndarray:
    """Distances by counting votes; of single pairs changed answers, then scores where they tell."""
    first, second = answers.of(answers.baseline), answers.of(variant)
    codes = range(len(answers.classes) + 1)
    if len(first) > 1 or len(second) > 1:
        shares = [[(side == code).mean(axis=0) for code in codes] for side in (first, second)]
        apart = np.abs(np.array(shares[0]) - np.array(shares[1])).sum(axis=0)
        return np.round(apart, 9)
    value = (first[0] != second[0]).astype(float)
    if answers.score is not None and answers.n_label_classes == 2:
        rows = [answers.rows(v).start for v in (answers.baseline, variant)]
        one, other = (answers.score[row].astype(np.float64) for row in rows)
        value += np.nan_to_num(np.abs(one - other)) * (1 - 1e-6)
    return value


def pages(index: VoteIndex, wanted: Filters, order: str, size: int, **more: object) -> list[int]:
    found: list[int] = []
    total = select(index, wanted, order, limit=0, **more).total
    for offset in range(0, total + size, size):
        part = select(index, wanted, order, offset=offset, limit=size, **more)
        assert part.total == total
        found += part.places.tolist()
    return found


@pytest.mark.parametrize("seed", range(TABLES))
def test_filters_are_those_of_a_plain_table(seed: int, tmp_path: Path) -> None:
    answers = random_answers(seed)
    index, frame = as_index(answers, tmp_path), as_frame(answers)
    rng = np.random.default_rng([seed, 1])
    said = {
        name: [str(rng.choice(VERDICTS))] for name in frame["id"].tolist() if rng.random() < 0.4
    }
    for _ in range(PER_TABLE):
        wanted = random_filters(answers, rng)
        order = str(rng.choice(ORDERS))
        places = pages(index, wanted, order, 7, annotated_ids={**said, "e-nobody": ["fine"]})
        assert len(set(places)) == len(places)
        names = [index.task().example_id(place) for place in places]
        expected = brute_force(answers, frame, wanted, said)
        assert sorted(names) == expected, wanted
        if order == "id":
            assert names == expected


@pytest.mark.parametrize("seed", range(TABLES))
def test_exemplars_are_those_that_are_found(seed: int, tmp_path: Path) -> None:
    answers = random_answers(seed)
    votes, found = as_index(answers, tmp_path).task(), found_in(answers)
    for variant in answers.variants:
        bits = np.asarray(votes.side(variant).bits)
        for name, bit in KINDS.items():
            kind, _, percentile = name.partition("-")
            key = (variant, kind, float(percentile) if percentile else None)
            expected = found.masks.get(key, np.zeros(len(bits), dtype=bool))
            assert ((bits & bit) != 0).tolist() == expected.tolist(), (variant, name)


@pytest.mark.parametrize("seed", range(5))
def test_the_furthest_apart_come_first(seed: int, tmp_path: Path) -> None:
    """The ranks are those of the table of exemplars."""
    answers = random_answers(seed)
    index, rows = as_index(answers, tmp_path), found_in(answers).rows
    for variant in answers.variants:
        ranked = rows[rows["variant"] == variant]["example_id"].tolist()
        places = pages(index, Filters(variant=variant), "distance", 1000)
        names = [index.task().example_id(place) for place in places]
        assert [name for name in names if name in set(ranked)] == ranked


def test_a_random_order_depends_on_its_seed_alone(tmp_path: Path) -> None:
    index = as_index(random_answers(3), tmp_path)
    everything = pages(index, Filters(), "random", 5, random_state=4)
    assert everything == pages(index, Filters(), "random", 9, random_state=4)
    assert everything != pages(index, Filters(), "random", 5, random_state=5)
    assert sorted(everything) == list(range(index.task().n_examples))
    some = pages(index, Filters(changed="yes"), "random", 5, random_state=4)
    assert 0 < len(some) < len(everything)
    assert some == [place for place in everything if place in set(some)]


def test_the_least_sure_come_first(tmp_path: Path) -> None:
    answers = next(a for a in map(random_answers, range(99)) if a.score is not None)
    index, frame = as_index(answers, tmp_path), as_frame(answers)
    for side, variant in (("baseline", answers.baseline), ("compressed", "small")):
        wanted = Filters(variant="small", side=side)
        mean = frame[f"mean {variant}"].to_numpy()
        sure = np.abs(mean - 0.5) if answers.n_label_classes == 2 else mean
        found = sure[pages(index, wanted, "uncertain", 6)]
        known = found[~np.isnan(found)]
        assert np.isnan(found[len(known) :]).all()  # who has no score comes last
        assert (np.diff(known.astype(np.float32)) >= 0).all()


def test_masks_are_kept_and_cannot_be_changed(tmp_path: Path) -> None:
    votes = as_index(random_answers(1), tmp_path).task()
    mask = mask_of(votes, Filters(changed="no"))
    assert mask_of(votes, Filters(changed="no", annotated="yes")) is mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"filters": Filters(variant="smal")}, "Did you mean 'small'"),
        ({"filters": Filters(variant="dense")}, "is the baseline"),
        ({"filters": Filters(not_of="dense")}, "is the baseline"),
        ({"filters": Filters(task="smile")}, "The task 'smile'"),
        ({"filters": Filters(seed="77")}, "seed of 'small' '77'"),
        ({"filters": Filters(label="emu")}, "The class 'emu'"),
        ({"filters": Filters(groups=(("race", "x"),))}, "there are: 'sex', 'age'"),
        ({"filters": Filters(groups=(("sex", "x"),))}, "The level of 'sex' 'x'"),
        ({"filters": Filters(cell="FN")}, "add positive=CLASS"),
        ({"filters": Filters(), "order": "size"}, "The order 'size'"),
        ({"filters": Filters(), "offset": -1}, "offset = -1"),
        ({"filters": Filters(), "limit": 5000}, "limit = 5000"),
        ({"filters": Filters(), "order": "random", "random_state": -3}, "random_state = -3"),
    ],
)
def test_what_is_not_there_is_named(asked: dict[str, object], told: str, tmp_path: Path) -> None:
    several = next(a for a in map(random_answers, range(99)) if a.n_label_classes > 2)
    index = as_index(several, tmp_path)
    with pytest.raises((InputError, UnknownNameError), match=told):
        select(index, **asked)


def test_confidence_needs_scores(tmp_path: Path) -> None:
    without = next(a for a in map(random_answers, range(99)) if a.score is None)
    with pytest.raises(InputError, match="needs scores"):
        select(as_index(without, tmp_path), Filters(confidence="low"))
