"""Goldens of Characterising bias: what its printed tables say of each other and of CelebA.

That Table 3 follows from Table 5 (G8) is in tests/auditing/metrics/test_change_golden.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics.rates import error_rate

LAST_VALIDATION_FILE = 182_637  # the official test part begins behind it

# Table 1: level, top-1; Table 2: the same level, its column "All".
TABLE_1 = (94.75, 94.81, 94.44, 94.07, 93.39, 90.98, 94.65, 94.65)
TABLE_2_ALL = (94.75, 94.81, 94.44, 94.07, 93.39, 90.98, 94.65, 94.65)


@pytest.fixture(scope="module")
def blond_of_celeba(shared_data: Path) -> dict[str, tuple[int, int]]:
    """Blond and other test examples, of women, men and all."""
    file = shared_data / "celeba" / "attributes-all.parquet"
    if not file.is_file():
        pytest.skip(f"no file {file}: the attributes of CelebA are not here")
    import pyarrow.parquet as pq

    table = pq.read_table(file, columns=["example_id", "Blond_Hair", "Male"])
    number = np.array([int(name.split(".")[0]) for name in table["example_id"].to_pylist()])
    test = number > LAST_VALIDATION_FILE
    blond, male = (table[name].to_numpy().astype(bool)[test] for name in ("Blond_Hair", "Male"))
    found = {"F": ~male, "M": male, "all": np.ones(len(male), dtype=bool)}
    return {
        name: (int((blond & rows).sum()), int((~blond & rows).sum()))
        for name, rows in found.items()
    }


def test_g9_counts_of_celebas_test_part(blond_of_celeba: dict[str, tuple[int, int]]) -> None:
    assert blond_of_celeba["F"] == (2480, 9767)
    assert blond_of_celeba["M"] == (180, 7535)
    blond, others = blond_of_celeba["all"]
    assert blond / (blond + others) == pytest.approx(0.13325, abs=5e-6)


def error_from_rates(blond: int, others: int, fpr: float, fnr: float) -> float:
    correct = np.array([others * (1 - fpr / 100), blond * (1 - fnr / 100)])
    label = np.array([float(others), float(blond)])
    predicted = correct + (label - correct)[::-1]
    counts = Counts(label, predicted, correct, np.array(0.0), ("no", "blond"), 1)
    return 100 * float(error_rate(counts))


@pytest.mark.parametrize(
    ("model", "group", "expected"),
    [
        ("dense", "all", 5.302), ("95 %", "all", 6.610),
        ("dense", "M", 2.370), ("95 %", "M", 2.942),
        ("dense", "F", 7.151), ("95 %", "F", 8.924),
    ],
)  # fmt: skip
def test_g9_errors_follow_from_the_rates(
    model: str,
    group: str,
    expected: float,
    blond_of_celeba: dict[str, tuple[int, int]],
    printed: dict[str, Any],
) -> None:
    rates = printed["rates"]
    made = error_from_rates(
        *blond_of_celeba[group], rates[model, "FPR"][group], rates[model, "FNR"][group]
    )
    assert made == pytest.approx(expected, abs=6e-4)
    assert made == pytest.approx(rates[model, "error"][group], abs=0.01)


def test_g9_the_share_of_blonds_that_is_implied(printed: dict[str, Any]) -> None:
    fpr, fnr, error = (printed["rates"]["dense", kind]["all"] for kind in ("FPR", "FNR", "error"))
    assert (error - fpr) / (fnr - fpr) == pytest.approx(0.1332, abs=5e-5)


def test_g10_two_columns_are_copies(printed: dict[str, Any]) -> None:
    rates = printed["rates"]
    assert len(rates) == 6
    for row in rates.values():
        assert (row["FY"], row["FO"]) == (row["Y"], row["O"])
    # Women are FY and FO together, so their error cannot lie outside both.
    error = rates["dense", "error"]
    assert error["F"] > max(error["FY"], error["FO"])


def test_g11_tables_1_and_2_agree() -> None:
    assert len(TABLE_1) == 8
    assert TABLE_1 == TABLE_2_ALL


def test_g12_sentences_that_the_tables_do_not_have(printed: dict[str, Any]) -> None:
    modal, everywhere, at_99 = (printed[name] for name in ("on_modal", "on_all", "at_99"))
    assert tuple(everywhere.values()) == TABLE_1[:6]
    assert (modal[0.3], at_99[0.3]) == (49.82, 55.35)  # said to be of t = .9
    assert (modal[0.9], at_99[0.9]) == (50.41, 50.10)
    assert round(everywhere[0.99] - modal[0.99], 2) == 51.14  # said to be 52.51
    assert round(100 - 94.73, 2) == 5.27 != printed["rates"]["dense", "error"]["all"]
