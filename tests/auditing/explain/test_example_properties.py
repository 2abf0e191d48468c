"""Properties that go with losses: beside statsmodels, planted and not, words for what fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from fairweight.auditing.explain.properties import example_properties
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError, UnknownNameError

CLASSES = 4


def made(
    n: int = 3000, slope: float = 0.8, members: int = 1, seed: int = 0, **given: Any
) -> tuple[Answers, np.ndarray]:
    """Right answers are lost more often where x is large; class 3 loses none."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, n)
    x = rng.normal(size=n) + 0.3 * label
    difficulty = slope * x + 0.5 * rng.normal(size=n) if members > 1 else slope * x
    chance = 1 / (1 + np.exp(3 - 0.4 * label - difficulty))
    wrong = (label + 1) % CLASSES
    dense = np.where(rng.random((members, n)) < 0.9, label, wrong)
    lost = (rng.random((members, n)) < chance) & (label < 3)
    pruned = np.where((dense == label) & lost, wrong, dense)
    numbers = {"x": 10 + 2 * x} | given.pop("numbers", {})
    a = from_arrays(label, {"dense": dense.T, "pruned": pruned.T}, numbers=numbers, **given)
    return a, x


def long_table(a: Answers, x: np.ndarray) -> pd.DataFrame:
    """One row per pair and example that the dense member has right."""
    dense, pruned = a.correct("dense"), a.correct("pruned")
    pair, example = np.nonzero(dense)
    return pd.DataFrame(
        {
            "lost": ~pruned[pair, example],
            "x": x[example],
            "label": a.label[example],
            "example": example,
            "cluster": example if a.cluster is None else a.cluster[example],
        }
    )


def design(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["label"] < 3]  # nothing is lost in class 3
    dummies = pd.get_dummies(rows["label"], prefix="class", dtype=float)
    return dummies.assign(x=rows["x"])


def test_one_pair_equals_statsmodels_logit() -> None:
    a, x = made()
    rows = long_table(a, x)
    rows["x"] = (rows["x"] - rows["x"].mean()) / rows["x"].std(ddof=0)
    x_of = design(rows)
    expected = sm.Logit(rows["lost"][x_of.index].astype(float), x_of).fit(disp=0)
    frame = example_properties(a, "pruned")
    assert tuple(frame.columns) == column_names("example_properties")
    (row,) = frame.to_dict("records")
    low, high = expected.conf_int().loc["x"]
    found = [row[name] for name in ("effect", "low", "high", "p_value")]
    assert found == pytest.approx(
        [expected.params["x"], low, high, expected.pvalues["x"]], rel=1e-6
    )
    assert (row["property"], row["kind"], row["n"]) == ("x", "per standard deviation", len(rows))
    raw = long_table(a, 10 + 2 * x).groupby("lost")["x"].mean()
    assert [row["mean_lost"], row["mean_kept"]] == pytest.approx([raw[True], raw[False]])


@pytest.mark.parametrize("clustered", [False, True])
def test_several_pairs_equal_a_glm_with_the_jackknifed_sandwich(clustered: bool) -> None:
    cluster = np.arange(3000) // 20 if clustered else None
    a, x = made(members=3, cluster=cluster)
    rows = long_table(a, x)
    rows["x"] = (rows["x"] - rows["x"].mean()) / rows["x"].std(ddof=0)
    x_of = design(rows)
    used = rows.loc[x_of.index]
    fitted = sm.GLM(used["lost"].astype(float), x_of, family=sm.families.Binomial()).fit()
    # Row of the slope in (X'VX)⁻¹X': how much each answer's residual moves the slope.
    variance = fitted.mu * (1 - fitted.mu)
    inverse = np.linalg.inv(x_of.T @ x_of.mul(variance, axis=0))
    pull = x_of.to_numpy() @ inverse[-1]
    residual = (used["lost"] - fitted.mu).to_numpy()
    unit = used["cluster"].to_numpy()
    moved = pd.Series(pull * residual).groupby(unit).sum()
    leverage = pd.Series(variance * pull**2).groupby(unit).sum() / inverse[-1, -1]
    groups = len(moved)
    error = np.sqrt((groups - 1) / groups * ((moved / (1 - leverage)) ** 2).sum())
    effect, reach = fitted.params["x"], stats.t.ppf(0.975, groups - 1) * error
    (row,) = example_properties(a, "pruned").to_dict("records")
    assert [row[name] for name in ("effect", "low", "high")] == pytest.approx(
        [effect, effect - reach, effect + reach], rel=1e-6
    )
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(effect / error, groups - 1), rel=1e-5)
    assert row["n"] == rows["example"].nunique()


def test_levels_are_set_against_the_others_of_their_column() -> None:
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b", "c"], 3000).astype(object)
    group[:100] = None
    a, _ = made(groups={"g": group})
    frame = example_properties(a, "pruned").set_index("property")
    assert frame.index.tolist() == ["x", "g=a", "g=b", "g=c"]
    rows = long_table(a, (group == "b").astype(float))
    rows = rows[rows["example"] >= 100]
    x_of = design(rows)
    expected = sm.Logit(rows["lost"][x_of.index].astype(float), x_of).fit(disp=0)
    row = frame.loc["g=b"]
    assert [row["effect"], row["p_value"]] == pytest.approx(
        [expected.params["x"], expected.pvalues["x"]], rel=1e-6
    )
    assert (row["kind"], row["n"]) == ("level", len(rows))
    assert frame["p_adjusted"].tolist() == pytest.approx(
        sm.stats.multipletests(frame["p_value"], method="fdr_bh")[1].tolist()
    )
    assert example_properties(a, "pruned", columns=[])["property"].tolist() == ["x"]


def test_the_planted_property_is_found_and_its_companions_are_not() -> None:
    rng = np.random.default_rng(11)
    others = {f"noise {i}": rng.normal(size=3000) for i in range(10)}
    a, _ = made(slope=0.5, seed=3)
    frame = example_properties(a, "pruned", others).set_index("property")
    assert frame.index[frame["p_adjusted"] <= 0.05].tolist() == ["x"]
    assert frame.loc["x", "low"] > 0


def test_what_classes_differ_in_is_no_finding() -> None:
    # Class 2 is large in x and loses more; within classes x has nothing to do with losses.
    a, x = made(slope=0.0, n=20_000)
    shifted = x + 2.0 * a.label
    assert np.corrcoef(shifted[a.label < 3], ~a.correct("pruned")[0][a.label < 3])[0, 1] > 0.03
    (row,) = example_properties(a, "pruned", {"shifted": shifted})[1:].to_dict("records")
    assert row["low"] < 0 < row["high"]


def status(a: Answers, values: np.ndarray) -> str:
    row = example_properties(a, "pruned", {"p": values}).set_index("property").loc["p"]
    assert np.isnan(row[["effect", "low", "high", "p_value", "p_adjusted"]].astype(float)).all()
    return str(row["status"])


def test_what_cannot_be_estimated_says_why() -> None:
    a, x = made()
    dense, pruned = a.correct("dense")[0], a.correct("pruned")[0]
    lost = dense & ~pruned
    n = a.n_examples
    assert status(a, np.full(n, 0.1)) == "not_estimable: the property is constant"
    assert status(a, np.full(n, np.nan)) == "not_estimable: no right answer with a value"
    assert (
        status(a, a.label.astype(float)) == "not_estimable: the property is constant within classes"
    )
    assert status(a, lost + 0.01 * x) == "not_estimable: the property separates losses"
    rare = np.zeros(n)
    rare[np.flatnonzero(dense & (a.label < 3))[:20]] = 1
    assert status(a, rare) == "not_estimable: too few losses for so uneven a property"
    known = np.where(lost & (np.cumsum(lost) > 9), np.nan, x)
    assert status(a, known) == "not_estimable: 9 right answers lost"


def test_equal_predictions_few_clusters_and_many_levels_are_sentences() -> None:
    label = np.array([0, 1] * 50)
    same = from_arrays(label, {"dense": label, "copy": label}, numbers={"x": np.arange(100.0)})
    (row,) = example_properties(same, "copy").to_dict("records")
    assert row["status"] == "not_estimable: 0 right answers lost"
    few, _ = made(cluster=np.arange(3000) % 19)
    assert example_properties(few, "pruned")["status"].tolist() == ["not_estimable: 19 clusters"]
    many, _ = made(groups={"writer": np.arange(3000) % 60})
    row = example_properties(many, "pruned").set_index("property").loc["writer"]
    assert row["status"] == "not_estimable: 60 levels"
    nothing = from_arrays(label, {"dense": label, "pruned": 1 - label})
    assert example_properties(nothing, "pruned").empty


def test_a_level_without_a_loss_is_named_as_such() -> None:
    a, _ = made(slope=0.0)
    lost = a.correct("dense")[0] & ~a.correct("pruned")[0]
    spared = np.random.default_rng(1).random(a.n_examples) < 0.2
    spared &= ~lost
    assert status(a, spared.astype(float)) == "not_estimable: the property separates losses"


def test_wrong_names_are_told() -> None:
    a, _ = made(groups={"sex": ["f", "m"] * 1500})
    with pytest.raises(UnknownNameError, match="Did you mean 'sex'"):
        example_properties(a, "pruned", columns=["sexx"])
    with pytest.raises(InputError, match="alpha is 0"):
        example_properties(a, "pruned", alpha=0)
