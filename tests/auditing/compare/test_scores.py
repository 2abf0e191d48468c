"""Score metrics in the audit: order, abstentions, classes, bins, ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import sklearn.metrics as sklearn

import fairweight as fw
from fairweight.auditing.counts import group_by as counting
from fairweight.base.wording import missing
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

from ..strategies import row

pytestmark = pytest.mark.usefixtures("few_metrics")
MORE_METRICS = (
    "auc",
    "brier",
    "calibration_error_sq",
    "calibration_gap",
    "ece_top_label",
    "uncertainty",
    "top5_accuracy",
)

CALIBRATION = ("calibration_error_sq", "calibration_gap")


SCORES = ("auc", "ece", "ece_top_label", "brier", "uncertainty", *CALIBRATION)


def binary(seed: int = 0, n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    score = {
        name: np.clip(0.5 + noise * rng.normal(size=n) + 0.25 * (2 * label - 1), 0, 1)
        for name, noise in (("dense", 0.2), ("small", 0.35))
    }
    return {
        "label": label,
        "scores": score,
        "models": {name: (s > 0.5).astype(int) for name, s in score.items()},
        "group": rng.choice(["x", "y"], n),
    }


def audit(t: dict[str, Any], **options: Any) -> fw.Audit:
    return fw.audit(
        t["label"], t["models"], sensitive_features={"g": t["group"]},
        **{"y_score": t["scores"], "n_boot": 40, **options},
    )  # fmt: skip


def test_small_scores_by_hand() -> None:
    # p = P(1): .95 .7 .35 .05 for labels 1 1 0 0, five times; uncertain: |p − .5| < .4
    label = [1, 1, 0, 0] * 5
    scores = {"dense": [0.95, 0.7, 0.35, 0.05] * 5, "small": [0.65, 0.35, 0.65, 0.05] * 5}
    models = {name: [int(p > 0.5) for p in values] for name, values in scores.items()}
    results = fw.audit(label, models, y_score=scores, n_boot=40).results
    # dense: every 1 above every 0
    # small: pairs (.65, .65) ½, (.65, .05) 1, (.35, .65) 0, (.35, .05) 1
    found = row(results, "auc")
    assert (found["baseline"], found["compressed"]) == pytest.approx((1.0, 2.5 / 4), abs=1e-12)
    found = row(results, "brier")
    dense = (0.05**2 + 0.3**2 + 0.35**2 + 0.05**2) / 4
    small = (0.35**2 + 0.65**2 + 0.65**2 + 0.05**2) / 4
    assert (found["baseline"], found["compressed"]) == pytest.approx((dense, small), abs=1e-12)
    found = row(results, "uncertainty")
    assert (found["baseline"], found["compressed"]) == (0.5, 0.75)
    # ECE in tenths: each score its own bin; small has .65 twice, one right, one wrong
    found = row(results, "ece")
    dense = (0.05 + 0.3 + 0.35 + 0.05) / 4
    small = (2 * abs(0.65 - 0.5) + 0.35 * 0 + abs(0.35 - 1) + 0.05) / 4
    assert (found["baseline"], found["compressed"]) == pytest.approx((dense, small), abs=1e-12)


def test_the_order_of_rows_does_not_reach_the_scores() -> None:
    t = binary()
    order = np.random.default_rng(1).permutation(300)
    turned = {
        "label": t["label"][order], "group": t["group"][order],
        "scores": {k: v[order] for k, v in t["scores"].items()},
        "models": {k: v[order] for k, v in t["models"].items()},
    }  # fmt: skip
    first, second = audit(t), audit(turned)
    pd.testing.assert_frame_equal(first.results, second.results)
    pd.testing.assert_frame_equal(first.reliability, second.reliability)


def test_reliability_adds_up_to_the_calibration_error() -> None:
    made = audit(binary(2))
    for definition in ("ece", "ece_top_label"):
        table = made.reliability[made.reliability["definition"] == definition]
        sums = table.groupby(["variant", table["group"].fillna("")])["contribution"].sum()
        overall = row(made.results, definition)
        assert sums["dense", ""] == pytest.approx(overall["baseline"], abs=1e-12)
        assert sums["small", ""] == pytest.approx(overall["compressed"], abs=1e-12)
        by_group = row(made.results, definition, "group", group="g=x")
        assert sums["small", "g=x"] == pytest.approx(by_group["compressed"], abs=1e-12)
    assert set(table["group"].dropna()) == {"g=x", "g=y"}


def test_abstained_examples_are_left_out_of_score_metrics_and_said() -> None:
    t = binary(3)
    silent = np.arange(300) < 30
    answers = t["models"]["small"].astype(object)
    answers[silent] = None
    made = audit({**t, "models": {"dense": t["models"]["dense"], "small": answers}})
    assert any("leave out 30 examples" in note for note in made.notes)
    found = row(made.results, "auc")
    for column, name in (("baseline", "dense"), ("compressed", "small")):
        expected = sklearn.roc_auc_score(t["label"][~silent], t["scores"][name][~silent])
        assert found[column] == pytest.approx(expected, abs=1e-12)
    assert found["n"] == 270
    assert row(made.results, "accuracy")["n"] == 300


def test_missing_scores_are_refused_unless_the_model_abstains() -> None:
    t = binary(4)
    gaps = t["scores"]["small"].copy()
    gaps[:20] = np.nan
    scores = {"dense": t["scores"]["dense"], "small": gaps}
    with pytest.raises(InputError, match="missing for 20 predictions"):
        audit({**t, "scores": scores})
    answers = t["models"]["small"].astype(object)
    answers[:20] = None
    made = audit({**t, "scores": scores, "models": {**t["models"], "small": answers}})
    assert any("leave out 20 examples" in note for note in made.notes)
    expected = sklearn.brier_score_loss(t["label"][20:], gaps[20:])
    assert row(made.results, "brier")["compressed"] == pytest.approx(expected, abs=1e-12)


def test_scores_of_one_model_only_leave_no_pair() -> None:
    t = binary(5)
    made = audit({**t, "scores": {"dense": t["scores"]["dense"]}})
    for metric in SCORES:
        found = row(made.results, metric)
        assert math.isnan(found["compressed"])
        assert found["status"].startswith("not_estimable")


def test_without_scores_every_score_metric_says_so() -> None:
    t = binary(6)
    results = audit(t, y_score=None).results
    for metric in SCORES:
        assert row(results, metric)["status"] == "not_estimable: no scores"


def test_identical_scores_are_no_change() -> None:
    t = binary(7)
    same = {**t, "models": dict.fromkeys(("dense", "small"), t["models"]["dense"]),
            "scores": dict.fromkeys(("dense", "small"), t["scores"]["dense"])}  # fmt: skip
    results = audit(same).results
    for metric in SCORES:
        found = row(results, metric)
        assert found["shift"] == 0
        if metric.startswith("ece"):  # biased: neither limits nor a test
            assert found["status"] == "ok"
            assert math.isnan(found["p_value"])
        else:
            assert found["p_value"] == 1
        if metric not in ("ece", "ece_top_label", "uncertainty"):
            assert found["status"] == "not_estimable: too few changed predictions (0)"


def test_binned_scores_stay_within_the_stated_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    t = binary(8)
    exact = audit(t)
    monkeypatch.setattr(counting, "EXACT_SCORES", 50)
    monkeypatch.setattr(counting, "SCORE_BINS", 64)
    binned = audit(t)
    # a score moves by at most half a bin, the Brier score by (1 + ½ bin) · 1 bin at most
    half = 1 / 128
    for metric, bound in (("brier", 2 * half + half**2), ("auc", 0.02)):
        a, b = row(exact.results, metric), row(binned.results, metric)
        assert a["compressed"] != b["compressed"]
        assert abs(a["compressed"] - b["compressed"]) <= bound
    assert any("bins" in note and "64" in note for note in binned.notes)
    assert not any("bins" in note for note in exact.notes)
    # what needs no scores is untouched
    assert row(exact.results, "accuracy").equals(row(binned.results, "accuracy"))


def test_binned_scores_are_bin_centres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "EXACT_SCORES", 2)
    monkeypatch.setattr(counting, "SCORE_BINS", 4)
    table = {"label": [0, 1, 1, 1], "a": [0, 1, 1, 1], "b": [0, 1, 1, 1],
             "sa": [0.0, 0.3, 0.99, 1.0], "sb": [0.0, 0.3, 0.99, 1.0]}  # fmt: skip
    columns = {"predictions": {"a": "a", "b": "b"}, "scores": {"a": "sa", "b": "sb"}}
    with align(TableSpec(sources_of(table), baseline="a", **columns)) as view:
        cube = counting.count(view, scores=True)
    assert cube.scores is not None
    assert cube.scores.bins == 4
    assert cube.scores.score is not None
    assert sorted(set(cube.scores.score[:, 0])) == [0.125, 0.375, 0.875]  # 1.0 is in the last bin


def multiclass(seed: int = 9, n: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.choice(["ant", "bee", "cat"], n)
    vectors = {
        name: rng.dirichlet(np.ones(3), n) * 0.5 + 0.5 * np.eye(3)[[ord(c[0]) - 97 for c in label]]
        for name in ("dense", "small")
    }
    names = np.array(["ant", "bee", "cat"])
    return {
        "label": label, "group": rng.choice(["x", "y"], n), "scores": vectors,
        "models": {name: names[v.argmax(axis=1)] for name, v in vectors.items()},
    }  # fmt: skip


def test_single_scores_of_several_classes_are_of_the_predicted_class() -> None:
    t = multiclass()
    top = {name: v.max(axis=1) for name, v in t["scores"].items()}
    results = audit({**t, "scores": top}).results
    whole = audit(t, score_classes=["ant", "bee", "cat"]).results
    for metric in ("ece_top_label", "uncertainty"):
        a, b = row(results, metric), row(whole, metric)
        assert a["compressed"] == pytest.approx(b["compressed"], abs=1e-12)
    assert row(results, "auc")["status"].startswith("not_estimable")


def test_classes_of_score_vectors_may_come_in_any_order() -> None:
    t = multiclass()
    turned = {name: v[:, [2, 0, 1]] for name, v in t["scores"].items()}
    first = audit(t, score_classes=["ant", "bee", "cat"]).results
    second = audit({**t, "scores": turned}, score_classes=["cat", "ant", "bee"]).results
    for metric in ("auc", "brier", "ece_top_label", "top5_accuracy"):
        a, b = row(first, metric), row(second, metric)
        assert a["compressed"] == pytest.approx(b["compressed"], abs=1e-12)
        assert a["baseline"] == pytest.approx(b["baseline"], abs=1e-12)


def test_a_predicted_class_without_examples_has_its_own_probability() -> None:
    """The model knows a fourth class that no label has; its confidence there is no gap."""
    t = multiclass()
    vectors = {name: np.concatenate([0.9 * v, np.full((200, 1), 0.1)], axis=1)
               for name, v in t["scores"].items()}  # fmt: skip
    vectors["small"][:5] = [0.05, 0.05, 0.1, 0.8]
    names = np.array(["ant", "bee", "cat", "dog"])
    models = {name: names[v.argmax(axis=1)] for name, v in vectors.items()}
    results = audit({**t, "scores": vectors, "models": models}, score_classes=list(names)).results
    found = row(results, "ece_top_label")
    assert found["status"] == "ok"
    assert math.isfinite(found["compressed"])
    confident = vectors["small"].max(axis=1)
    assert row(results, "uncertainty")["compressed"] == pytest.approx(np.mean(confident < 0.9))


def test_a_class_without_probabilities_is_an_error_in_words() -> None:
    t = multiclass()
    short = {name: v[:, :2] for name, v in t["scores"].items()}
    with pytest.raises(InputError, match="cat"):
        audit({**t, "scores": short}, score_classes=["ant", "bee"])


@pytest.mark.parametrize("bad", [-0.1, 1.5])
def test_scores_outside_the_unit_interval_are_refused(bad: float) -> None:
    t = binary(10)
    wrong = t["scores"]["small"].copy()
    wrong[3] = bad
    with pytest.raises(InputError, match="score"):
        audit({**t, "scores": {**t["scores"], "small": wrong}})


def test_clusters_and_weights_reach_the_score_metrics() -> None:
    t = binary(11)
    rng = np.random.default_rng(0)
    weight, person = rng.choice([1.0, 3.0], 300), rng.integers(0, 30, 300)
    results = audit(t, sample_weight=weight, cluster=person).results
    found = row(results, "auc")
    expected = sklearn.roc_auc_score(t["label"], t["scores"]["small"], sample_weight=weight)
    assert found["compressed"] == pytest.approx(expected, abs=1e-12)
    assert found["n_clusters"] == 30
    assert found["ci_low"] < found["shift"] < found["ci_high"]


def test_members_scores_are_averaged_after_the_metric() -> None:
    t = binary(12)
    dense = np.stack([t["scores"]["dense"], 1 - 0.5 * t["scores"]["dense"]], axis=1)
    models = {"dense": (dense > 0.5).astype(int), "small": t["models"]["small"]}
    results = audit(
        {**t, "models": models, "scores": {"dense": dense, "small": t["scores"]["small"]}}
    )
    each = [sklearn.roc_auc_score(t["label"], dense[:, m]) for m in (0, 1)]
    assert row(results.results, "auc")["baseline"] == pytest.approx(np.mean(each), abs=1e-12)


# -- calibration: t limits from what every example adds ----------------------------------------


def products(score: Any, outcome: Any, weight: Any = None) -> Any:
    """h of every example: its residual times the mean residual of the others in its bin."""
    weight = np.ones(len(score)) if weight is None else weight
    bins = np.searchsorted(np.arange(1, 15) / 15, score, side="left")
    residual = score - outcome
    found = np.zeros(len(score))
    for i in range(len(score)):
        others = (bins == bins[i]) & (np.arange(len(score)) != i)
        if others.any():
            found[i] = residual[i] * np.average(residual[others], weights=weight[others])
    return found


def test_calibration_of_a_pair_by_the_textbook() -> None:
    """The shift of mean h has the error 2 sd(h_c − h_d) / √n, the gap that of a mean difference."""
    t = binary(13)
    results = audit(t).results
    for group, here in ((None, np.ones(300, dtype=bool)), ("g=x", t["group"] == "x")):
        y, n = t["label"][here], int(here.sum())
        by = {} if group is None else {"by": "group", "group": group}
        q = scipy.stats.t.ppf(0.975, n - 1)
        r = {name: t["scores"][name][here] - y for name in ("dense", "small")}
        h = {name: products(t["scores"][name][here], y) for name in ("dense", "small")}
        for metric, values, factor in (("calibration_gap", r, 1), ("calibration_error_sq", h, 2)):
            found = row(results, metric, **by)
            d = values["small"] - values["dense"]
            error = factor * d.std(ddof=1) / np.sqrt(n)
            assert found["status"] == "ok"
            assert found["interval"] == "t over examples"
            assert found["n"] == n
            for side, name in (("baseline", "dense"), ("compressed", "small")):
                mean, own = values[name].mean(), factor * values[name].std(ddof=1) / np.sqrt(n)
                assert found[side] == pytest.approx(mean, abs=1e-12)
                assert found[f"{side}_low"] == pytest.approx(mean - q * own, abs=1e-12)
            assert found["shift"] == pytest.approx(d.mean(), abs=1e-12)
            assert found["ci_low"] == pytest.approx(d.mean() - q * error, abs=1e-12)
            assert found["ci_high"] == pytest.approx(d.mean() + q * error, abs=1e-12)
            p = 2 * scipy.stats.t.sf(abs(d.mean()) / error, n - 1)
            assert found["p_value"] == pytest.approx(p, abs=1e-12)


def test_calibration_of_more_classes_is_of_the_prediction() -> None:
    t = multiclass()
    results = audit(t, score_classes=["ant", "bee", "cat"]).results
    right = {name: (t["models"][name] == t["label"]).astype(float) for name in t["models"]}
    top = {name: v.max(axis=1) for name, v in t["scores"].items()}
    gap, error = row(results, "calibration_gap"), row(results, "calibration_error_sq")
    for side, name in (("baseline", "dense"), ("compressed", "small")):
        assert gap[side] == pytest.approx((top[name] - right[name]).mean(), abs=1e-12)
        assert error[side] == pytest.approx(products(top[name], right[name]).mean(), abs=1e-12)


def test_calibration_of_binary_labels_without_a_positive_class_says_so() -> None:
    t = binary(14)
    named = {"label": np.array(["no-cat", "cat"])[t["label"]]}
    models = {name: np.array(["no-cat", "cat"])[m] for name, m in t["models"].items()}
    results = audit({**t, **named, "models": models}).results
    for metric in CALIBRATION:
        assert "no positive class" in row(results, metric)["status"]


def test_calibration_with_clusters_and_weights_is_linearised() -> None:
    t = binary(15)
    rng = np.random.default_rng(1)
    weight, person = rng.choice([1.0, 3.0], 300), rng.integers(0, 40, 300)
    results = audit(t, sample_weight=weight, cluster=person).results
    y, q = t["label"], scipy.stats.t.ppf(0.975, 39)
    r = t["scores"]["small"] - t["scores"]["dense"]  # the outcome is the same for both
    h = products(t["scores"]["small"], y, weight) - products(t["scores"]["dense"], y, weight)
    for metric, values, factor in (("calibration_gap", r, 1), ("calibration_error_sq", h, 2)):
        found = row(results, metric)
        mean = np.average(values, weights=weight)
        parts = np.bincount(person, factor * weight * (values - mean), 40) / weight.sum()
        error = np.sqrt(40 / 39 * (parts**2).sum())
        assert found["shift"] == pytest.approx(mean, abs=1e-12)
        assert found["ci_low"] == pytest.approx(mean - q * error, abs=1e-12)
        assert found["n_clusters"] == 40
        assert found["interval"] == "t over clusters"


def population_of_scores(seed: int, members: int = 4, n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    easy = rng.normal(size=n)[:, None]

    def side(slope: float) -> Any:
        own = rng.normal(0, 0.5, (n, members)) + rng.normal(0, 0.3, members)
        return 1 / (1 + np.exp(-slope * (1.2 * (2 * label - 1)[:, None] + easy + own)))

    scores = {"dense": side(1.5), "small": side(2.5)}
    models = {name: (s > 0.5).astype(int) for name, s in scores.items()}
    return {"label": label, "scores": scores, "models": models, "group": rng.choice(["x", "y"], n)}


def test_calibration_of_members_is_averaged_and_of_the_method_two_way() -> None:
    t = population_of_scores(16)
    results = audit(t).results
    y = t["label"]
    for metric, of, factor in (
        ("calibration_gap", lambda s: s - y, 1),
        ("calibration_error_sq", lambda s: products(s, y), 2),
    ):
        each = np.stack(
            [of(t["scores"]["small"][:, k]) - of(t["scores"]["dense"][:, k]) for k in range(4)]
        )
        model, method = (row(results, metric, scope=scope) for scope in ("model", "method"))
        mean = each.mean()
        assert model["shift"] == method["shift"] == pytest.approx(mean, abs=1e-12)
        error = factor * each.mean(axis=0).std(ddof=1) / np.sqrt(300)
        q = scipy.stats.t.ppf(0.975, 299)
        assert model["ci_high"] == pytest.approx(mean + q * error, abs=1e-12)
        # V = s²(members)/K + s²(examples)/n − MS_int/(K n), not below either of the first two
        own = factor * (each - each.mean(axis=0) - (each - each.mean(axis=0)).mean(axis=1)[:, None])
        interaction = (own**2).sum() / (299 * 3) / (4 * 300)
        by_member = each.mean(axis=1).var(ddof=1) / 4
        total = max(by_member + error**2 - interaction, by_member, error**2)
        spread = by_member**2 / 3 + error**4 / 299 + interaction**2 / (3 * 299)
        degrees = max(total**2 / spread, 3)
        reach = scipy.stats.t.ppf(0.975, degrees) * np.sqrt(total)
        assert method["interval"] == "two-way t over members and examples"
        assert method["ci_high"] == pytest.approx(mean + reach, abs=1e-9)
        assert method["baseline_low"] < method["baseline"] < method["baseline_high"]


def test_calibration_over_tasks_is_a_mean_with_limits() -> None:
    parts = []
    for k, name in enumerate(("one", "two")):
        t = binary(17 + k, n=200)
        for variant in ("dense", "small"):
            columns = {"label": t["label"], "prediction": t["models"][variant]}
            columns |= {"score": t["scores"][variant], "example_id": np.arange(200)}
            parts.append(pd.DataFrame({**columns, "task": name, "variant": variant}))
    table = pd.concat(parts)
    results = fw.audit_table(table, baseline="dense", task="task", n_boot=400).results
    assert not results.empty
    for metric in CALIBRATION:
        rows = results[(results["metric"] == metric) & (results["by"] == "overall")]
        each = rows[rows["task"].notna()]
        (mean,) = rows[rows["task"].isna()].to_dict("records")
        assert mean["shift"] == pytest.approx(each["shift"].mean(), abs=1e-12)
        assert mean["status"] == "ok"
        assert mean["interval"] == "t over examples"
        # two tasks with examples of their own: errors add up, 400 draws know them to a few percent
        errors = (each["ci_high"] - each["ci_low"]) / 2
        reach = np.sqrt((errors**2).sum()) / 2
        assert (mean["ci_high"] - mean["ci_low"]) / 2 == pytest.approx(reach, rel=0.15)
    (ece,) = results[(results["metric"] == "ece") & results["task"].isna()].to_dict("records")
    assert math.isnan(ece["ci_low"])
    assert ece["interval"].startswith("none: biased upwards")


def test_calibration_errors_have_no_limits_and_stand_beside_a_calibrated_model() -> None:
    made = audit(binary(19), alpha=0.1)
    for metric in ("ece", "ece_top_label"):
        rows = made.results[made.results["metric"] == metric]
        assert len(rows) == 3
        limits = [c for c in map(str, rows) if c.endswith(("_low", "_high")) or c.startswith("p_")]
        assert rows[limits].isna().all(axis=None)
        assert (rows["status"] == "ok").all()
        assert rows[["baseline", "compressed", "shift"]].notna().all(axis=None)
        assert metric not in set(made.result.bounds["metric"])  # a policy cannot name it
        table = made.reliability[made.reliability["definition"] == metric]
        for _, found in rows.iterrows():
            group = "" if missing(found["group"]) else found["group"]
            here = table[table["group"].fillna("") == group]
            first, second = (
                here.loc[here["variant"] == name, "expected_if_calibrated"].iloc[0]
                for name in ("dense", "small")
            )
            assert found["interval"] == (
                "none: biased upwards; see calibration_error_sq; calibrated models of this size "
                f"have {first:.3g} and {second:.3g}"
            )


def test_calibration_rows_are_families_with_simultaneous_limits() -> None:
    found = row(audit(binary(20)).results, "calibration_gap", "group", group="g=x")
    assert found["n_family"] == 2
    assert found["family"] == "exploratory: calibration_gap by group (bh)"
    assert found["sim_low"] < found["ci_low"] < found["ci_high"] < found["sim_high"]


def test_a_few_scores_that_decide_everything_leave_no_limits() -> None:
    """Two hundred scores move by a hair, one from right to wrong."""
    rng = np.random.default_rng(2)
    label = np.repeat([0, 1], 100)
    dense = np.where(label == 1, 0.9, 0.1) + 0.01 * rng.random(200)
    small = dense + 0.001 * rng.random(200)
    small[0] = 0.99
    scores = {"dense": dense, "small": small}
    models = {name: (s > 0.5).astype(int) for name, s in scores.items()}
    results = fw.audit(label, models, y_score=scores, n_boot=60).results
    for metric in ("brier", "auc", "calibration_gap"):
        found = row(results, metric)
        assert found["status"] == "not_estimable: 200 changed predictions count as 1", metric
        assert math.isnan(found["ci_low"])
        assert found["shift"] != 0
    assert row(results, "accuracy")["status"] == "ok"


def test_scores_of_the_other_class_are_noticed() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    score = np.clip(np.where(y == 1, 0.8, 0.2) + rng.normal(0, 0.2, 300), 0, 1)
    answers = (score > 0.5).astype(int)
    audit = fw.audit(
        y, {"dense": answers, "small": answers}, n_boot=50,
        y_score={"dense": 1 - score, "small": 1 - score},
    )  # fmt: skip
    assert any("rank worse than chance" in note for note in audit.notes)
