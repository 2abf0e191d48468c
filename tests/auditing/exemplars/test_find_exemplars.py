"""The frames of exemplars: sets by hand, accuracy, overlap, surrogate, uncertain predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairweight.auditing.exemplars.exemplars import (
    find,
    join,
)
from fairweight.auditing.exemplars.selection import jensen_shannon, surrogate
from fairweight.auditing.intervals.proportion import wilson
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.schema import column_names
from fairweight.base.wording import missing
from fairweight.errors import InputError, UnknownNameError

# Ten examples, three members a side. Label cat everywhere.
#            all alike   one changes   two change    all change   a dense one errs
DENSE = ["ccc", "ccc", "ccc", "ccc", "ccc", "ccc", "ccc", "ccc", "ccd", "cdd"]
SMALL = ["ccc", "ccc", "ccc", "ccc", "ccd", "ccd", "cdd", "ddd", "ccc", "ddd"]
#          0      0      0      0      2      2      4      6      2      2     = d_T


def letters(rows):
    return np.array([list(row) for row in rows])


@pytest.fixture
def answers():
    return from_arrays(["c"] * 9 + ["d"], {"dense": letters(DENSE), "small": letters(SMALL)})


def test_the_sets_of_a_worked_example(answers):
    found = find(answers, percentiles=[80, 90])
    masks = {key[1:]: np.flatnonzero(mask).tolist() for key, mask in found.masks.items()}
    assert masks["modal", None] == [6, 7]
    assert masks["unanimous", None] == [7]
    assert masks["taxicab", 80] == [6, 7]
    assert masks["taxicab", 90] == [7]
    counts = found.counts.set_index(["kind", "percentile"])
    assert counts.loc[("taxicab", 80.0), "threshold"] == pytest.approx(4 / 3)
    assert counts.loc[("taxicab", 80.0), ["n_asked", "n_exemplars"]].tolist() == [2, 2]


def test_fewer_than_asked_for_where_nothing_differs(answers):
    row = find(answers, percentiles=[10], kinds=["taxicab"]).counts.iloc[0]
    assert (row["n_asked"], row["n_exemplars"], row["share"]) == (9, 6, 0.6)
    assert row["status"].startswith("fewer than asked for: only 6 examples differ at all")
    filled = find(answers, percentiles=[10], kinds=["taxicab"], fill="random").counts.iloc[0]
    assert filled["n_exemplars"] == 9


def test_jaccard_finds_the_same_examples(answers):
    found = find(answers, percentiles=[50, 80], kinds=["taxicab", "jaccard"])
    for percentile in (50.0, 80.0):
        one, other = (found.masks["small", kind, percentile] for kind in ("taxicab", "jaccard"))
        np.testing.assert_array_equal(one, other)
    row = found.counts.set_index(["kind", "percentile"]).loc[("jaccard", 80.0)]
    assert row["threshold"] == pytest.approx(2 * 4 / (2 * 3 + 4))


def test_accuracy_by_part(answers):
    rows = find(answers, kinds=["modal"]).accuracy.set_index("part")
    # Exemplars 6 and 7: dense 3 + 3 of 6 right, small 1 + 0.
    assert rows.loc["exemplars", ["n", "baseline", "compressed"]].tolist() == [2, 1, 1 / 6]
    assert rows.loc["exemplars", "shift"] == pytest.approx(-5 / 6)
    # Others: dense 7 × 3 + 2 + 2 of 24, small 4 × 3 + 2 + 2 + 3 + 3.
    assert rows.loc["others", "baseline"] == pytest.approx(22 / 24)
    assert rows.loc["others", "compressed"] == pytest.approx(22 / 24)
    assert rows.loc["all", "n"] == 10
    assert (rows["shift_low"] <= rows["shift"]).all()
    assert (rows["shift"] <= rows["shift_high"]).all()


def test_single_models_have_wilsons_interval():
    label = np.zeros(100, dtype=int)
    dense = np.where(np.arange(100) < 10, 1, 0)
    small = np.where(np.arange(100) < 25, 1, 0)
    rows = find(from_arrays(label, {"dense": dense, "small": small})).accuracy
    row = rows[(rows["kind"] == "modal") & (rows["part"] == "all")].iloc[0]
    low, high = (float(end) for end in wilson(90, 100))
    assert (row["baseline_low"], row["baseline_high"]) == pytest.approx((low, high))
    assert row["shift"] == -0.15
    assert row["shift_low"] < -0.15 < row["shift_high"] < 0


def test_clusters_are_the_units_of_intervals():
    rng = np.random.default_rng(0)
    label = np.zeros(60, dtype=int)
    members = {name: rng.integers(0, 2, (60, 3)) for name in ("dense", "small")}
    copied = {name: np.repeat(votes, 3, axis=0) for name, votes in members.items()}
    once = find(from_arrays(label, members)).accuracy
    clustered = from_arrays(np.repeat(label, 3), copied, cluster=np.repeat(np.arange(60), 3))
    again = find(clustered).accuracy
    for name in ("baseline_low", "compressed_high", "shift_low"):
        kept = (once["kind"] == "modal") & (once["part"] != "exemplars")
        assert again[name][kept].to_numpy() == pytest.approx(once[name][kept].to_numpy())
    few = find(from_arrays(label, members, cluster=np.arange(60) % 10)).accuracy
    assert np.isnan(few["shift_low"]).all()
    assert few.loc[few["part"] == "all", "status"].eq("not_estimable: 10 clusters").all()


def test_overlap_between_variants(answers):
    third = from_arrays(
        ["c"] * 9 + ["d"],
        {
            "dense": letters(DENSE),
            "small": letters(SMALL),
            "tiny": letters(["ddd", *SMALL[1:7], "ccc", *SMALL[8:]]),
        },
    )
    rows = find(third, kinds=["modal"]).overlap
    assert rows.to_dict("records") == [
        {
            "task": pytest.approx(np.nan, nan_ok=True),
            "kind": "modal",
            "percentile": pytest.approx(np.nan, nan_ok=True),
            "first": "small",
            "second": "tiny",
            "n_first": 2,  # 6, 7
            "n_second": 2,  # 0, 6
            "n_both": 1,
            "jaccard": 1 / 3,
            "expected_both": 0.4,
        }
    ]


def test_rows_for_people(answers):
    held = replace(
        answers,
        texts={"image_path": np.array([f"{i}.png" for i in range(10)], dtype=object)},
        example_id=np.arange(10) + 100,
    )
    rows = find(held, percentiles=[80, 90]).rows
    first = rows.iloc[0]
    assert first["example_id"] == 107
    assert first["rank"] == 1
    assert first["distance"] == 1.0
    assert first["distance_votes"] == 6
    assert (first["votes_baseline"], first["votes_compressed"]) == ("c 3", "d 3")
    assert (first["modal_baseline"], first["modal_compressed"]) == ("c", "d")
    assert first["image_path"] == "7.png"
    assert first["modal"]
    assert rows["top_20"].tolist() == [True, True]
    assert rows["top_10"].tolist() == [True, False]
    assert rows["votes_compressed"].tolist() == ["d 3", "d 2, c 1"]


def test_equal_predictions_give_no_exemplar_and_no_traceback(answers):
    same = from_arrays(["c"] * 10, {"dense": letters(DENSE), "copy": letters(DENSE)})
    found = find(same, kinds=["modal", "unanimous", "taxicab", "jaccard", "surrogate"])
    assert found.counts["n_exemplars"].eq(0).all()
    assert len(found.rows) == 0
    nobody = found.accuracy[found.accuracy["part"] == "exemplars"]
    assert nobody["status"].eq("not_estimable: no examples").all()
    assert nobody["baseline"].isna().all()


def test_uncertain_predictions_of_two_classes():
    label = [0, 1, 0, 1]
    dense = {"dense": [0, 1, 0, 1], "small": [1, 1, 0, 1]}
    score = {"dense": [0.3, 0.95, 0.1, np.nan], "small": [0.6, 0.9, 0.2, 0.9]}
    found = find(from_arrays(label, dense, score=score), kinds=["modal"])
    row = found.counts.iloc[0]
    # The exemplar is uncertain; of the others 0.95 and 0.1 are not, and one is unknown.
    assert (row["uncertain_share"], row["uncertain_share_others"]) == (1.0, 0.0)
    none = find(from_arrays(label, dense), kinds=["modal"])
    assert np.isnan(none.counts["uncertain_share"][0])
    assert any("no scores" in note for note in none.notes)


def test_uncertain_predictions_of_several_classes():
    answers = from_arrays([0, 1, 2], {"dense": [[0, 0], [1, 1], [2, 2]], "small": [0, 1, 1]})
    vectors = np.zeros((3, 3, 3), dtype=np.float32)
    vectors[0] = [[0.95, 0.05, 0], [0.05, 0.95, 0], [0, 0.3, 0.7]]
    vectors[1] = [[0.95, 0.05, 0], [0.95, 0.05, 0], [0, 0.3, 0.7]]  # the mean of 2 is .5, .5
    vectors[2] = vectors[0]
    row = find(replace(answers, scores=vectors), kinds=["modal"]).counts.iloc[0]
    assert (row["uncertain_share"], row["uncertain_share_others"]) == (1.0, 0.5)


def test_one_pair_is_ranked_by_changes_and_then_by_divergence():
    label = np.zeros(10, dtype=int)
    small = np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    dense_score = np.linspace(0.1, 0.4, 10)
    moved = np.array([0.3, 0.1, 0.45, 0.2, 0, 0, 0, 0, 0, 0])
    answers = from_arrays(
        label + np.array([0] * 9 + [1]),
        {"dense": label, "small": small},
        score={"dense": dense_score, "small": dense_score + moved},
    )
    assert np.argsort(-surrogate(answers, 0, 1), kind="stable")[:4].tolist() == [0, 1, 2, 3]
    found = find(answers, percentiles=[70])
    assert np.flatnonzero(found.masks["small", "surrogate", 70.0]).tolist() == [0, 1, 2]
    counts = found.counts.set_index("kind")
    assert "a pair's surrogate" in counts.loc["surrogate", "status"]
    assert missing(counts.loc["taxicab", "n_exemplars"])
    assert counts.loc["taxicab", "status"].startswith("not_estimable: votes of one pair")
    assert found.rows["rank"].tolist() == [1, 2, 3]
    assert found.rows["example_id"].tolist() == [0, 1, 2]


def test_jensen_shannon_is_scipys():
    from scipy.spatial.distance import jensenshannon

    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 20)
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, base=2, axis=1) ** 2)


def test_a_pair_is_judged_by_members_that_are_not_in_it():
    """Every compressed member errs on the same tenth: a pair finds just what the others find."""
    label = np.arange(100) % 3
    dense = np.repeat(label[:, None], 4, axis=1)
    small = dense.copy()
    small[:10] = (small[:10] + 1) % 3
    rows = find(from_arrays(label, {"dense": dense, "small": small}), percentiles=[90]).surrogate
    assert rows["agreement_auc"].tolist() == [1.0]
    assert rows["overlap"].tolist() == [1.0]
    # Where each errs on examples of its own, a pair finds none of the others' exemplars.
    lonely = dense.copy()
    for member in range(4):
        lonely[member * 10 : member * 10 + 10, member] += 1
    rows = find(
        from_arrays(label, {"dense": dense, "small": lonely % 3}), percentiles=[90]
    ).surrogate
    assert rows["status"].tolist() == ["not_estimable: the others have no modal exemplars"]
    assert rows["overlap"].tolist() == [0.0]


def test_one_teacher_and_its_students():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 200)
    students = np.where(rng.random((200, 4)) < 0.2, (label[:, None] + 1) % 3, label[:, None])
    found = find(from_arrays(label, {"teacher": label, "student": students}))
    counts = found.counts.set_index("kind")
    assert counts.loc["unanimous", "n_exemplars"] == (students != label[:, None]).all(axis=1).sum()
    assert "no single teacher" not in counts.loc["unanimous", "status"]
    assert 0.5 < found.surrogate["agreement_auc"][0] < 1


def test_the_same_seed_gives_the_same_and_variants_do_not_move_each_other(answers):
    both = from_arrays(
        ["c"] * 9 + ["d"],
        {"dense": letters(DENSE), "other": letters(SMALL[::-1]), "small": letters(SMALL)},
    )
    alone, beside = find(answers, percentiles=[60]), find(both, percentiles=[60])
    key = ("small", "taxicab", 60.0)
    np.testing.assert_array_equal(alone.masks[key], beside.masks[key])
    drawn = [find(answers, percentiles=[60], random_state=s).masks[key].tolist() for s in range(6)]
    assert len({tuple(mask) for mask in drawn}) > 1


def test_frames_have_their_columns_and_tasks_are_joined(answers):
    hat = find(replace(answers, task="hat"), kinds=["modal"])
    both = join([find(replace(answers, task="coat"), kinds=["modal"]), hat])
    assert tuple(both.counts.columns) == column_names("exemplar_counts")
    assert tuple(both.accuracy.columns) == column_names("exemplar_accuracy")
    assert tuple(both.overlap.columns) == column_names("exemplar_overlap")
    assert tuple(both.surrogate.columns) == column_names("exemplar_surrogate")
    assert both.counts["task"].tolist() == ["coat", "hat"]
    assert len(both.rows) == 2 * len(hat.rows)


def test_weights_are_not_used_and_it_is_said(answers):
    weighted = replace(answers, weight=np.arange(10.0) + 1)
    found, plain = find(weighted), find(answers)
    assert found.counts["share"].equals(plain.counts["share"])
    assert any("without weights" in note for note in found.notes)


def test_what_cannot_be_asked_for(answers):
    with pytest.raises(UnknownNameError, match="Kind of exemplars"):
        find(answers, kinds=["typical"])
    with pytest.raises(InputError, match="alpha"):
        find(answers, alpha=0)
    with pytest.raises(InputError, match="no compressed variant"):
        find(replace(answers, variants=()))
