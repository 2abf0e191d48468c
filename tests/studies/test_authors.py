"""The authors' own numbers: intervals by hand, and the figures that were found in their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from tests.studies.published import claim

from fairweight.specs.claims import Claim
from fairweight.studies import library
from fairweight.studies.authors import (
    COMPUTATIONS,
    Models,
    authors_numbers,
    fisher,
    hk_normalised,
    hk_rates,
    simon_says,
    welch,
    welch_of,
)
from fairweight.studies.claims import DOES_NOT, REPRODUCES, judged

ROOT = Path(__file__).parents[2].parent / "shared"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable, name in (("FAIRWEIGHT_GOLDEN", "golden"), ("FAIRWEIGHT_REAL", "real")):
        folder = Path(os.environ.get(variable) or ROOT / name)
        if not folder.is_dir():
            pytest.skip(f"{variable} names no folder, and there is no {folder}")
        monkeypatch.setenv(variable, str(folder))
    simon_says.cache_clear()
    yield
    simon_says.cache_clear()


def of(study: str, id: str) -> Claim:
    (found,) = [one for one in library.claims(study).claim if one.id == id]
    return found


def numbers(study: str, id: str) -> dict[str, tuple[float, ...]]:
    found = authors_numbers(of(study, id))
    return {name: (one.value, one.low, one.high) for name, one in found}


def test_intervals_by_hand() -> None:
    # Variances 1 and 1 of three each: se² = 2/3, degrees of freedom 4, t 2.7764.
    assert welch([1, 2, 3], [0, 1, 2]) == pytest.approx(
        (1, 1 - 2.7764451 * sqrt(2 / 3), 1 + 2.7764451 * sqrt(2 / 3))
    )
    assert welch_of(2, 1, 3, 1, 1, 3) == pytest.approx(welch([1, 2, 3], [0, 1, 2]))
    # r = .5: x = −1, 0, 1 with y = 0, −1, 1 has Σxy 1, Σx² 2, Σy² 2; n = 4 from a fourth at 0.
    r, low, high = fisher([-1, 0, 1, 0], [0, -1, 1, 0])
    assert r == pytest.approx(0.5)
    assert np.arctanh([low, high]) == pytest.approx(np.arctanh(0.5) + np.array([-1, 1]) * 1.959964)


def test_metrics_of_counts_by_hand() -> None:
    models = Models(
        np.array(["a"]), np.array([45]), fp=np.array([[2.0, 3.0]]), fn=np.array([[1.0, 4.0]]),
        teacher_fp=np.array([1.0, 2.0]), teacher_fn=np.array([1.0, 2.0]), per_class=10,
    )  # fmt: skip
    # FP changes by 100 and 50 %, FN by 0 and 100 %: variances 625 and 2,500.
    assert models.metric("cev") == pytest.approx([(625 + 2500) / 2])
    assert models.metric("sde") == pytest.approx([(100 + 50) / 2 / sqrt(2)])
    assert models.metric("accuracy") == pytest.approx([1 - 2.5 / 10])


@pytest.mark.usefixtures("shared")
def test_all_nine_distillations_lower_cev() -> None:
    found = numbers("simon-says", "other-methods-cev") | numbers(
        "simon-says", "at-kd-imbalanced-cev"
    )
    assert len(found) == 9
    assert {name: round(value, 3) for name, (value, _, _) in found.items()} == {
        "AT + KD": 0.215, "PKT + KD": 0.237, "SP + KD": 0.365, "FSP + KD": 0.378, "KD": 0.380,
        "AT": 0.454, "PKT": 0.524, "SP": 0.615, "FSP": 0.685,
    }  # fmt: skip
    assert found["AT + KD"] == pytest.approx((0.215, 0.183, 0.253), abs=5e-4)
    assert all(high < 1 for _, _, high in found.values())


@pytest.mark.usefixtures("shared")
def test_accuracy_is_neither_identical_nor_unrelated() -> None:
    (_, low, high), _ = numbers("simon-says", "same-accuracy").values()
    assert (low, high) == pytest.approx((0.027, 0.038), abs=5e-4)
    models = simon_says("biased")
    accuracy, cev = models.metric("accuracy"), models.metric("cev")
    assert np.corrcoef(accuracy, np.log(cev))[0, 1] == pytest.approx(-0.92, abs=5e-3)
    assert np.corrcoef(accuracy, cev)[0, 1] == pytest.approx(-0.945, abs=5e-4)
    told = {one.claim.id: one.authors_verdict for one in judged(library.claims("simon-says"), None)}
    assert told["same-accuracy"] == told["accuracy-no-indicator"] == DOES_NOT
    assert told["at-kd-imbalanced-cev"] == told["at-kd-imbalanced-sde"] == REPRODUCES


def test_similarity_within_one_sparsity_from_the_printed_table() -> None:
    found = numbers("simon-says", "similarity-imbalanced")
    assert [value for value, _, _ in found.values()] == pytest.approx(
        [0.430, 0.509, 0.655, 0.921], abs=1e-3
    )
    assert found["Block 1"][1] < 0 < found["FC"][1]


@pytest.mark.parametrize(
    ("metric", "young", "old"),
    [
        ("Error", (6.51, 7.97), (10.67, 13.98)),
        ("FPR", (3.58, 3.68), (7.41, 8.57)),
        ("FNR", (19.00, 26.32), (19.40, 28.54)),
    ],
)
def test_the_columns_that_were_copied_are_recovered(
    metric: str, young: tuple[float, float], old: tuple[float, float]
) -> None:
    before, after = hk_rates("baseline", metric), hk_rates("compressed", metric)
    assert (before["FY"], after["FY"]) == pytest.approx(young, abs=5e-3)
    assert (before["FO"], after["FO"]) == pytest.approx(old, abs=5e-3)


def test_recovered_columns_give_the_printed_ones_back() -> None:
    counts = library.printed("characterising-bias").counts
    for side in ("baseline", "compressed"):
        for metric, of_whom in (("Error", "all"), ("FNR", "blond"), ("FPR", "not blond")):
            rates = hk_rates(side, metric)
            n = {
                group: counts["all"][group] - counts["blond"][group]
                if of_whom == "not blond"
                else counts[of_whom][group]
                for group in counts["all"]
            }
            for sex in "MF":
                young, old = f"{sex}Y", f"{sex}O"
                mean = (rates[young] * n[young] + rates[old] * n[old]) / (n[young] + n[old])
                assert mean == pytest.approx(rates[sex], abs=0.0151), (side, metric, sex)
    assert hk_normalised("FPR", "M") == 49.54  # as printed
    assert hk_normalised("FPR", "FO") == pytest.approx(100 * (8.57 / 7.41 - 1), abs=0.2)


def test_printed_tables_by_hand() -> None:
    assert numbers("characterising-bias", "accuracy-99")["0.99"][0] == pytest.approx(-0.0375)
    ((value, _, _),) = numbers("characterising-bias", "male-fpr-more").values()
    assert value == pytest.approx(49.54 - 6.32)
    assert numbers("prune-responsibly", "imbalance")[""] == (1.2429, 1.197, 1.288)
    assert numbers("prune-responsibly", "tilt")["full"][0] == pytest.approx(-0.138 - 0.006)
    # 90 %: 81.3 ± .3 against 80.5 ± .2, five seeds each: se² = .13 / 5, 6.968 degrees of freedom
    value, low, _ = numbers("pruned-vision-bias", "auc-kept")["90 %"]
    assert (value, low) == pytest.approx((0.008, 0.008 - 0.0236659 * sqrt(0.13 / 5)), rel=1e-3)
    value, low, _ = numbers("resource-efficient", "accuracy-falls")["50 %"]
    se = sqrt((0.862 * 0.138 + 0.845 * 0.155) / 10_000)
    assert (value, low) == pytest.approx((-0.017, -0.017 - 1.959964 * se))


def test_every_computation_is_used_and_known() -> None:
    asked = {
        str(one.authors["compute"])
        for study in library.with_claims()
        for one in library.claims(study).claim
        if one.authors is not None
    }
    assert asked == set(COMPUTATIONS)


def test_without_the_files_the_reason_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWEIGHT_GOLDEN", "nowhere")
    simon_says.cache_clear()
    ((_, found),) = authors_numbers(of("simon-says", "same-accuracy"))
    assert found.reason == (
        "the authors' file simon_says_table3.json is not there (FAIRWEIGHT_GOLDEN)"
    )
    assert authors_numbers(claim()) == []
