"""Bias against the distance of representations: the line itself, its frames, and Table 3."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fairweight as fw
from fairweight.auditing.explain.explanations import ExplainRequest, explained
from fairweight.auditing.explain.similarity import band, regress, similarity, similarity_points
from fairweight.auditing.pipeline import silent
from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError

# --- the line ------------------------------------------------------------------------------------


def test_a_line_by_hand() -> None:
    # x − 2.5 = −1.5, −.5, .5, 1.5 and y − 5 = −3, −1, 0, 4: Sxx 5, Sxy 11, Syy 26.
    line = regress([1, 2, 3, 4], [2, 4, 5, 9])
    assert line.n == 4
    assert line.slope == pytest.approx(11 / 5)
    assert line.intercept == pytest.approx(5 - 2.2 * 2.5)
    assert line.correlation == pytest.approx(11 / np.sqrt(5 * 26))
    # Residual variance (26 − 11² / 5) / 2 = .9, error √(.9 / 5), t(2) at .975 = 4.302653.
    reach = 4.302653 * np.sqrt(0.9 / 5)
    assert (line.slope_low, line.slope_high) == pytest.approx((2.2 - reach, 2.2 + reach), rel=1e-6)
    # Fisher: atanh r ± 1.959964 / √(4 − 3).
    z = np.arctanh(11 / np.sqrt(130))
    ends = np.tanh([z - 1.959964, z + 1.959964])
    assert (line.correlation_low, line.correlation_high) == pytest.approx(ends, rel=1e-6)
    assert line.status == "ok"


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=4, max_size=30
    ),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_the_line_is_that_of_scipy(pairs: list[tuple[int, int]], alpha: float) -> None:
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    line = regress(x, y, alpha=alpha)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert line.status.endswith("are all equal")
        assert np.isnan([line.slope, line.correlation, line.p_value]).all()
        return
    peer = stats.linregress(x, y)
    if abs(peer.rvalue) > 1 - 1e-9:
        assert abs(line.correlation) == pytest.approx(1)
        return
    reach = stats.t.ppf(1 - alpha / 2, len(x) - 2) * peer.stderr
    found = (line.slope, line.intercept, line.slope_low, line.slope_high, line.p_value)
    wanted = (peer.slope, peer.intercept, peer.slope - reach, peer.slope + reach, peer.pvalue)
    assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9)
    pearson = stats.pearsonr(x, y)
    ends = pearson.confidence_interval(1 - alpha)
    assert line.correlation == pytest.approx(pearson.statistic)
    assert (line.correlation_low, line.correlation_high) == pytest.approx((ends.low, ends.high))


def test_the_band_is_that_of_the_mean() -> None:
    x, y = np.array([0.1, 0.2, 0.4, 0.5, 0.9]), np.array([3.0, 5.0, 4.0, 8.0, 9.0])
    line = regress(x, y)
    middle, low, high = band(line, [0.3])
    # Shifting x so that the place is 0 makes the band the interval of the intercept.
    peer = stats.linregress(x - 0.3, y)
    reach = stats.t.ppf(0.975, 3) * peer.intercept_stderr
    wanted = (peer.intercept, peer.intercept - reach, peer.intercept + reach)
    assert (middle[0], low[0], high[0]) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("distance", "bias", "status"),
    [
        ([1, 2, 3], [1, 2, 4], "not_estimable: 3 variants, 4 are needed"),
        ([1], [1], "not_estimable: 1 variant, 4 are needed"),
        ([], [], "not_estimable: 0 variants, 4 are needed"),
        ([1, 2, 3, 4], [1, 2, 4, np.nan], "not_estimable: 3 variants, 4 are needed"),
        ([1, 2, 3, np.nan, 5], [1, 2, np.inf, 4, 5], "not_estimable: 3 variants, 4 are needed"),
        ([2, 2, 2, 2], [1, 2, 4, 5], "not_estimable: the distances are all equal"),
        # As means over members give it: equal but for rounding.
        ([0.3, 0.1 + 0.2, 0.3, 0.3], [1, 2, 4, 5], "not_estimable: the distances are all equal"),
        ([1, 2, 3, 4], [7, 7, 7, 7], "not_estimable: the values are all equal"),
    ],
)
def test_what_cannot_be_told_is_nan_with_a_reason(
    distance: list[float], bias: list[float], status: str
) -> None:
    line = regress(distance, bias)
    assert line.status == status
    numbers = (line.slope, line.slope_low, line.correlation, line.correlation_high, line.p_value)
    assert np.isnan(numbers).all()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([1, 2], [1]), {}, "distance has 2 values and bias 1; give both for the same variants"),
        (([[1], [2]], [1, 2]), {}, r"distance has the shape \(2, 1\); give one number per variant"),
        ((["a"], [1]), {}, "distance must hold numbers, one per variant"),
        (([1], [1]), {"alpha": 1.0}, "alpha cannot be 1.0; give a level between 0 and 1"),
    ],
)
def test_bad_input_gets_a_sentence(
    arguments: tuple[Any, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        regress(*arguments, **options)


# --- Table 3 of Simon Says -----------------------------------------------------------------------

BLOCKS = ("Block 1", "Block 2", "Block 3", "FC")
PRINTED = {  # SVCCA distances as printed
    "AT + KD": (0.051, 0.121, 0.480, 0.122),
    "PKT + KD": (0.071, 0.164, 0.495, 0.128),
    "SP + KD": (0.107, 0.231, 0.538, 0.161),
    "FSP + KD": (0.063, 0.187, 0.514, 0.156),
    "KD": (0.106, 0.230, 0.540, 0.160),
    "AT": (0.044, 0.104, 0.475, 0.142),
    "PKT": (0.075, 0.167, 0.506, 0.154),
    "SP": (0.113, 0.240, 0.535, 0.187),
    "FSP": (0.045, 0.162, 0.508, 0.171),
    "Struct Pruning": (0.127, 0.268, 0.581, 0.261),
}


@pytest.fixture(scope="module")
def table3(golden: Path) -> pd.DataFrame:
    """CEV and accuracy of every method, computed from the published counts, with distances."""
    file = golden / "simon_says_table3.json"
    if not file.is_file():
        pytest.skip(f"no file {file}")
    published = json.loads(file.read_text())
    n, total = published["n_per_class"], published["n_test"]
    base = _rates(published["teacher"], n, total)
    rows = []
    for method, distances in PRINTED.items():
        own = [model for model in published["models"] if model["method"] == method]
        assert len(own) == 4
        change = 100 * (np.mean([_rates(m, n, total) for m in own], axis=0) - base) / base
        accuracy = np.mean([1 - sum(m["FN"]) / total for m in own])
        rows.append((method, change.var(axis=1).mean(), 100 * accuracy, *distances))
    return pd.DataFrame(rows, columns=["method", "cev", "accuracy", *BLOCKS]).set_index("method")


def _rates(model: dict[str, list[int]], n: int, total: int) -> np.ndarray:
    """False positive and false negative rates, (2, classes)."""
    return np.array([model["FP"], model["FN"]]) / np.array([[total - n], [n]])


def test_the_counts_give_the_printed_cev(table3: pd.DataFrame) -> None:
    assert table3["cev"]["Struct Pruning"] == pytest.approx(4237.391, abs=5e-4)
    assert table3["cev"]["AT + KD"] == pytest.approx(851.694, abs=5e-4)


def test_only_the_last_layer_clearly_goes_with_cev(table3: pd.DataFrame) -> None:
    lines = {block: regress(table3[block], table3["cev"]) for block in BLOCKS}
    found = [round(lines[block].correlation, 2) for block in BLOCKS]
    assert found == [0.43, 0.51, 0.65, 0.92]
    first, fc = lines["Block 1"], lines["FC"]
    assert [round(first.correlation_low, 2), round(first.correlation_high, 2)] == [-0.27, 0.83]
    assert first.p_value > 0.05
    assert fc.correlation_low > 0.6
    assert fc.slope_low > 0


def test_accuracy_is_a_great_indicator_of_cev(table3: pd.DataFrame) -> None:
    """The paper says it is not; its column of accuracies is permuted (erratum 1)."""
    assert table3["accuracy"]["Struct Pruning"] == pytest.approx(75.285)
    assert round(regress(table3["accuracy"], table3["cev"]).correlation, 3) == -0.966


# --- frames --------------------------------------------------------------------------------------

LEVELS = (0.3, 0.45, 0.6, 0.75)
LEAK = "The teacher saw 2,900 training examples that this model's training set leaves out."


def members(levels: tuple[float, ...] = LEVELS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions and a variants table: two members each, distances that grow with sparsity."""
    rng = np.random.default_rng(4)
    n = 300
    label = rng.integers(0, 4, n)
    rows, table = [], []
    for sparsity in (0.0, *levels):
        name = "dense" if sparsity == 0 else f"pruned-{round(100 * sparsity)}"
        for seed in range(2):
            wrong = rng.random(n) < 0.1 + 0.2 * sparsity * (1 + (label == 0))
            prediction = np.where(wrong, (label + 1) % 4, label)
            rows.append(
                pd.DataFrame(
                    {
                        "example_id": range(n),
                        "variant": name,
                        "seed": seed,
                        "label": label,
                        "prediction": prediction,
                    }
                )
            )
            table.append(
                {
                    "variant": name,
                    "seed": seed,
                    "sparsity": sparsity,
                    "svcca.block1": 0.1 + 0.5 * sparsity + 0.02 * seed,
                    "svcca.logits": None if (sparsity, seed) == (0.3, 1) else 0.2 + sparsity**2,
                    "cka.block1": 0.4,
                    "svcca_status": None,
                    "leak": LEAK if name == "pruned-45" else None,
                }
            )
    return pd.concat(rows), pd.DataFrame(table)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    rows, table = members()
    return fw.audit_table(rows, variants=table, n_boot=20, explain=["similarity"]).result


def test_points_are_means_over_members_beside_the_floor(result: AuditResult) -> None:
    points = result.explanations["similarity_points"]
    assert tuple(points.columns) == column_names("similarity_points")
    blocks = [(m, b) for m, b in zip(points["measure"], points["block"], strict=True)]
    wanted = [("svcca", "block1"), ("svcca", "logits"), ("cka", "block1")]
    assert blocks == [pair for pair in wanted for _ in LEVELS]
    first = points[(points["measure"] == "svcca") & (points["block"] == "block1")]
    # Two members at 0 and .02 above the line: the mean lies .01 above it; dense has sparsity 0.
    assert first["distance"].tolist() == pytest.approx([0.11 + 0.5 * level for level in LEVELS])
    assert first["floor"].tolist() == pytest.approx([0.11] * 4)
    assert first["sparsity"].tolist() == pytest.approx(LEVELS)
    overall = result.results.query("by == 'overall' and scope == 'model'")
    for metric in ("cev", "sde", "accuracy"):
        own = overall[overall["metric"] == metric].set_index("variant")["compressed"]
        assert first[metric].tolist() == own[first["variant"]].tolist()
    last = points[points["block"] == "logits"].iloc[0]
    assert last["distance"] == pytest.approx(0.2 + 0.09)  # of the one member that has it


def test_lines_over_variants_agree_with_scipy(result: AuditResult) -> None:
    lines, points = (result.explanations[name] for name in ("similarity", "similarity_points"))
    assert tuple(lines.columns) == column_names("similarity")
    assert len(lines) == 3 * 3
    own = points[(points["measure"] == "svcca") & (points["block"] == "logits")]
    for metric in ("cev", "sde", "accuracy"):
        (row,) = lines.query(
            "measure == 'svcca' and block == 'logits' and metric == @metric"
        ).to_dict("records")
        peer = stats.linregress(own["distance"], own[metric])
        assert (row["slope"], row["correlation"], row["p_value"]) == pytest.approx(
            (peer.slope, peer.rvalue, peer.pvalue)
        )
        assert (row["n_variants"], row["status"]) == (4, "ok")
    equal = lines[lines["measure"] == "cka"]
    assert set(equal["status"]) == {"not_estimable: the distances are all equal"}
    assert equal[["slope", "correlation", "p_value"]].isna().all(axis=None)


def test_a_variant_without_cev_is_left_out_and_named(result: AuditResult) -> None:
    rows = result.results.copy()
    lost = (rows["metric"] == "cev") & (rows["variant"] == "pruned-60")
    rows.loc[lost, "status"] = "not_estimable: zero baseline in class 3"
    points = similarity_points(replace(result, results=rows))
    assert points.loc[points["variant"] == "pruned-60", "cev"].isna().all()
    lines = similarity(points)
    cev = lines[(lines["metric"] == "cev") & (lines["measure"] == "svcca")]
    assert set(cev["status"]) == {
        "not_estimable: 3 variants, 4 are needed (left out for want of a distance or CEV: "
        "pruned-60)"
    }
    assert cev["slope"].isna().all()
    others = lines[(lines["metric"] == "sde") & (lines["measure"] == "svcca")]
    assert (others["n_variants"] == 4).all()


def test_with_enough_left_the_others_are_fitted(result: AuditResult) -> None:
    points = result.explanations["similarity_points"]
    more = pd.concat([points, points.assign(variant="x" + points["variant"], sde=np.nan)])
    more.loc[more["variant"] == "xpruned-75", "sde"] = 3.0
    (row,) = similarity(more).query("block == 'logits' and metric == 'sde'").to_dict("records")
    assert (row["n_variants"], np.isfinite(row["slope"])) == (5, True)
    assert row["status"] == (
        "left out for want of a distance or SDE: xpruned-30, xpruned-45, xpruned-60"
    )


def looked_at(result: AuditResult) -> AuditResult:
    return explained(result, [], ExplainRequest(parts=("similarity",)), silent)


def test_without_distances_there_is_a_note_and_no_table(result: AuditResult) -> None:
    plain = replace(result, variants_table=members()[1][["variant", "seed"]], explanations={})
    made = looked_at(plain)
    assert made.explanations == {}
    assert any("the variants table has no distances (columns svcca" in note for note in made.notes)
    assert looked_at(replace(plain, variants_table=None)).explanations == {}


def test_two_variants_are_too_few(result: AuditResult) -> None:
    lines = looked_at(replace(result, variants=result.variants[:2])).explanations["similarity"]
    svcca = lines[lines["measure"] == "svcca"]
    assert set(svcca["status"]) == {"not_estimable: 2 variants, 4 are needed"}
    assert (svcca["n_variants"] == 2).all()
    assert svcca["correlation_low"].isna().all()


def test_a_leak_is_the_first_note(result: AuditResult) -> None:
    assert result.notes[0] == f"Leak in pruned-45: {LEAK}"
    assert sum("Leak" in note for note in result.notes) == 1
