"""CEV, SDE and normalised changes against published numbers, and their edge cases by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight import metrics
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import changes
from fairweight.errors import InputError

# Blakeney et al. 2021, Table 3 (biased CIFAR-100, 45 % sparsity): CEV, SDE.
TABLE_3 = {
    "AT + KD": (851.694, 25.246),
    "PKT + KD": (903.329, 25.103),
    "SP + KD": (1506.103, 30.974),
    "FSP + KD": (1518.462, 30.668),
    "KD": (1536.566, 30.789),
    "AT": (1955.926, 37.000),
    "PKT": (2190.690, 38.121),
    "SP": (2654.847, 41.378),
    "FSP": (2901.940, 43.169),
    "Struct Pruning": (4237.391, 51.146),
}


def from_errors(fp: np.ndarray, fn: np.ndarray, per_class: int) -> Counts:
    """Counts from false positives and false negatives, `per_class` examples of each class."""
    label = np.full(fp.shape, float(per_class))
    correct = label - fn
    classes = tuple(str(i) for i in range(fp.shape[-1]))
    return Counts(label, correct + fp, correct, np.zeros(fp.shape[:-1]), classes)


@pytest.fixture(scope="module")
def simon_says(golden: Path) -> dict[str, tuple[Counts, Counts]]:
    """Teacher and mean student of each method, from the authors' error counts per class."""
    file = golden / "simon_says_table3.json"
    if not file.is_file():
        pytest.skip(f"no file {file}")
    data = json.loads(file.read_text())
    n = data["n_per_class"]
    teacher = from_errors(np.array(data["teacher"]["FP"]), np.array(data["teacher"]["FN"]), n)
    pairs = {}
    for method in {model["method"] for model in data["models"]}:
        models = [m for m in data["models"] if m["method"] == method]
        students = from_errors(
            np.array([[m["FP"]] for m in models]), np.array([[m["FN"]] for m in models]), n
        )  # (members, one slice, classes)
        pairs[method] = (teacher, students.averaged())
    return pairs


@pytest.mark.parametrize("method", TABLE_3)
def test_simon_says_table_3(method: str, simon_says: dict[str, tuple[Counts, Counts]]) -> None:
    assert set(simon_says) == set(TABLE_3)
    teacher, students = simon_says[method]
    cev, sde = TABLE_3[method]
    assert round(float(changes.cev(teacher, students)[0, 0]), 3) == cev
    assert round(float(changes.sde(teacher, students)[0, 0]), 3) == sde


def test_mean_of_cevs_is_not_what_was_published(golden: Path) -> None:
    """The order of averaging matters: rates first. Per model first gives 4641.5, not 4237.391."""
    data = json.loads((golden / "simon_says_table3.json").read_text())
    models = [m for m in data["models"] if m["method"] == "Struct Pruning"]
    teacher = from_errors(np.array(data["teacher"]["FP"]), np.array(data["teacher"]["FN"]), 100)
    students = from_errors(
        np.array([m["FP"] for m in models]), np.array([m["FN"] for m in models]), 100
    )
    assert changes.cev(teacher, students).mean() == pytest.approx(4641.5, abs=0.05)


# Hooker et al. 2020. Table 5: rates in percent, dense and 95 % pruned; Table 3: the normalised
# differences that follow. Columns FY and FO are copies of Y and O in the paper (they cannot be
# right: F's error lies outside [Y, O]); the arithmetic holds for them all the same.
COLUMNS = ("all", "M", "F", "Y", "O", "MY", "MO", "FY", "FO")
HOOKER = {
    "error": (
        (5.30, 2.37, 7.15, 5.17, 5.73, 2.28, 2.50, 5.17, 5.73),
        (6.61, 2.95, 8.92, 6.23, 7.78, 2.47, 3.73, 6.23, 7.78),
        (24.63, 24.49, 24.67, 20.64, 35.84, 7.96, 49.12, 20.64, 35.84),
    ),
    "fpr": (
        (2.73, 0.93, 4.12, 2.59, 3.18, 0.81, 1.12, 2.59, 3.18),
        (3.08, 1.39, 4.39, 2.67, 4.32, 0.86, 2.25, 2.67, 4.32),
        (12.72, 49.54, 6.32, 3.35, 36.02, 5.37, 101.88, 3.35, 36.02),
    ),
    "fnr": (
        (22.03, 62.65, 19.09, 21.35, 24.47, 60.45, 66.87, 21.35, 24.47),
        (29.57, 67.92, 26.78, 28.57, 33.13, 66.02, 71.53, 28.57, 33.13),
        (34.22, 8.41, 40.30, 33.83, 35.39, 9.21, 6.98, 33.83, 35.39),
    ),
}


@pytest.mark.parametrize("rate", HOOKER)
@pytest.mark.parametrize("i", range(9), ids=COLUMNS)
def test_hooker_table_3_follows_from_its_table_5(rate: str, i: int) -> None:
    """Each rate was rounded to .01, so its difference lies between those of the rounding's ends."""
    before, after, published = (np.array(row)[i] for row in HOOKER[rate])
    half = 0.005
    low = changes.normalized_change(before + half, after - half)
    high = changes.normalized_change(before - half, after + half)
    assert low - half <= published <= high + half
    assert low < changes.normalized_change(before, after) < high


def test_normalised_changes_use_these_formulas() -> None:
    """Males of Hooker et al. as counts: blond is positive; FPR .01 to .02, FNR .5 to .75."""

    def counts(false_positive: float, false_negative: float) -> Counts:
        right = np.array([1000.0 - false_positive, 100.0 - false_negative])
        predicted = right + np.array([false_negative, false_positive])
        return Counts(
            np.array([1000.0, 100.0]), predicted, right, np.array(0.0), ("no", "blond"), 1
        )

    base, after = counts(10, 50), counts(20, 75)
    assert changes.normalized_fpr_change(base, after)[1] == pytest.approx(100)  # .01 to .02
    assert changes.normalized_fnr_change(base, after)[1] == pytest.approx(50)  # .50 to .75
    # error 60 / 1100 to 95 / 1100
    assert changes.normalized_error_change(base, after) == pytest.approx(100 * 35 / 60)


# -- zero baselines ----------------------------------------------------------------------------


def three_classes(fp: list[float], fn: list[float]) -> Counts:
    return from_errors(np.array(fp), np.array(fn), 10)


BASE = three_classes(fp=[2, 2, 0], fn=[2, 2, 0])  # FPR .1, .1, 0; FNR .2, .2, 0
AFTER = three_classes(fp=[4, 2, 1], fn=[3, 2, 2])  # FPR .2, .1, .05; FNR .3, .2, .2


def test_zero_baseline_drop() -> None:
    # dFPR = 100, 0 and dFNR = 50, 0: variances 2500 and 625
    assert changes.cev(BASE, AFTER) == pytest.approx((2500 + 625) / 2)
    assert changes.sde(BASE, AFTER) == pytest.approx((50 + 0) / 2 / np.sqrt(2))
    np.testing.assert_array_equal(changes.kept_classes(BASE), [True, True, False])


def test_zero_baseline_absolute() -> None:
    # the third class enters with its points: dFPR = 100, 0, 5 and dFNR = 50, 0, 20
    expected = (np.var([100, 0, 5]) + np.var([50, 0, 20])) / 2
    assert changes.cev(BASE, AFTER, zero_baseline="absolute") == pytest.approx(expected)
    assert changes.sde(BASE, AFTER, zero_baseline="absolute") == pytest.approx(
        (50 + 0 + 15) / 3 / np.sqrt(2)
    )


def test_zero_baseline_epsilon() -> None:
    # ... or with 100 * .05 / .001 = 5000 and 100 * .2 / .001 = 20000
    expected = (np.var([100, 0, 5000]) + np.var([50, 0, 20000])) / 2
    assert changes.cev(BASE, AFTER, zero_baseline="epsilon") == pytest.approx(expected)


def test_zero_baseline_raise_names_the_class() -> None:
    with pytest.raises(InputError, match="class '2'"):
        changes.cev(BASE, AFTER, zero_baseline="raise")
    with pytest.raises(InputError, match="'drop', 'raise', 'epsilon', 'absolute'"):
        changes.sde(BASE, AFTER, zero_baseline="ignore")


def test_points_never_lose_a_class() -> None:
    """A class that goes from no errors to many must not vanish."""
    # dFPR = 10, 0, 5 points and dFNR = 10, 0, 20 points
    expected = (np.var([10, 0, 5]) + np.var([10, 0, 20])) / 2
    assert changes.cev_pp(BASE, AFTER) == pytest.approx(expected)
    assert changes.sde_pp(BASE, AFTER) == pytest.approx((0 + 0 + 15) / 3 / np.sqrt(2))


def test_kept_classes_are_fixed_in_replicates() -> None:
    """A replicate in which a kept class has no baseline errors is undefined."""
    kept = changes.kept_classes(BASE)
    replicate = three_classes(fp=[2, 0, 1], fn=[2, 2, 1])
    assert np.isnan(changes.cev(replicate, AFTER, kept=kept))
    assert np.isnan(changes.sde(replicate, AFTER, kept=kept))
    assert np.isfinite(changes.cev(replicate, AFTER))  # without `kept`: classes 0 and 2


def test_one_usable_class_has_no_variance() -> None:
    base = three_classes(fp=[2, 0, 0], fn=[2, 0, 0])
    assert np.isnan(changes.cev(base, AFTER))
    assert changes.sde(base, AFTER) == pytest.approx(50 / np.sqrt(2))


def test_identical_models_have_not_changed() -> None:
    for function in (changes.cev, changes.sde, changes.cev_pp, changes.sde_pp):
        assert function(BASE, BASE) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from("abc")),
        min_size=1,
    )
)
def test_accuracy_shift_is_helpful_minus_harmful(rows: list[tuple[str, str, str]]) -> None:
    rows += [("a", "a", "a"), ("b", "b", "b")]
    label, before, after = map(list, zip(*rows, strict=True))
    shift = metrics.accuracy(label, after) - metrics.accuracy(label, before)
    helpful = metrics.helpful_flips(label, before, after)
    harmful = metrics.harmful_flips(label, before, after)
    assert shift == pytest.approx(helpful - harmful, abs=1e-12)
    assert metrics.flips(label, before, after) >= helpful + harmful - 1e-12
    # swapping the models swaps help and harm
    assert metrics.helpful_flips(label, after, before) == harmful


def test_flips_by_hand() -> None:
    label = ["a", "a", "b", "b", "c"]
    before = ["a", "b", "b", "a", None]
    after = ["b", "a", "b", "c", None]  # lost, gained, same, wrong to wrong, silent both times
    assert metrics.flips(label, before, after) == 3 / 5
    assert metrics.harmful_flips(label, before, after) == 1 / 5
    assert metrics.helpful_flips(label, before, after) == 1 / 5
