"""The regression of compressed on dense bias amplification against statsmodels, and its limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from fairweight.auditing.explain.attributes import bias_regression
from fairweight.auditing.schema import column_names

DENSE = [0.01, 0.04, -0.02, 0.08, 0.03]
SMALL = [0.03, 0.05, -0.03, 0.16, 0.02]


def results(dense: list[float], small: list[float], *, levels: int = 1) -> pd.DataFrame:
    """One attribute per value; `levels` rows of one column for each."""
    rows = [
        {
            "variant": "small", "metric": "bias_amplification", "task": f"attribute {i}",
            "group": f"sex={level}", "scope": "model", "baseline": x, "compressed": y,
        }
        for i, (x, y) in enumerate(zip(dense, small, strict=True))
        for level in range(levels)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def only(frame: pd.DataFrame) -> dict[str, object]:
    assert tuple(frame.columns) == column_names("bias_regression")
    (row,) = frame.to_dict("records")
    return dict(row)


def test_slope_intercept_and_r2_are_those_of_statsmodels() -> None:
    found = only(bias_regression(results(DENSE, SMALL)))
    fit = sm.OLS(SMALL, sm.add_constant(np.array(DENSE))).fit()
    assert found["intercept"] == pytest.approx(fit.params[0])
    assert found["slope"] == pytest.approx(fit.params[1])
    assert found["r2"] == pytest.approx(fit.rsquared)
    # With one pair per attribute the jackknife is HC3 times (n − 1) / n, here with t(4).
    error = fit.get_robustcov_results("HC3").bse[1] * np.sqrt(4 / 5)
    assert found["slope_high"] == pytest.approx(fit.params[1] + 2.7764451051977987 * error)
    assert (found["n_attributes"], found["n_pairs"], found["status"]) == (5, 5, "ok")


def test_r2_limits_by_hand() -> None:
    """z = arctanh r ± 1.96 / √(5 − 3); both ends above 0 here."""
    found = only(bias_regression(results(DENSE, SMALL)))
    r = np.corrcoef(DENSE, SMALL)[0, 1]
    z = np.arctanh(r) + np.array([-1, 1]) * 1.959963984540054 / np.sqrt(2)
    low, high = np.tanh(z)
    assert low > 0
    assert found["r2_low"] == pytest.approx(low**2)
    assert found["r2_high"] == pytest.approx(high**2)


def test_the_two_levels_of_a_binary_column_count_once() -> None:
    once, twice = (only(bias_regression(results(DENSE, SMALL, levels=k))) for k in (1, 2))
    assert once == twice


def test_rows_of_the_method_and_without_values_are_left_out() -> None:
    frame = results(DENSE, SMALL)
    other = frame.assign(scope="method", compressed=9.0)
    undefined = frame.assign(group="age=old", baseline=np.nan)
    found = only(bias_regression(pd.concat([frame, other, undefined], ignore_index=True)))
    assert found == only(bias_regression(frame))


@pytest.mark.parametrize(
    ("dense", "told"),
    [
        ([0.1, 0.2], "2 attributes, 3 are needed"),
        ([0.1], "1 attribute, 3 are needed"),
        ([0.1, 0.1, 0.1], "the dense values are all equal"),
    ],
)
def test_undefined_says_why(dense: list[float], told: str) -> None:
    found = only(bias_regression(results(dense, dense)))
    assert told in str(found["status"])
    assert np.isnan([found["slope"], found["r2"], found["slope_low"]]).all()


def test_a_variant_without_tasks_has_a_row() -> None:
    frame = results(DENSE, SMALL).assign(task=None)
    assert "0 attributes" in str(only(bias_regression(frame))["status"])


def test_a_slope_that_rests_on_one_attribute_has_no_interval() -> None:
    found = only(bias_regression(results([0.0, 0.0, 0.0, 1.0], [0.1, 0.0, 0.2, 1.0])))
    assert found["slope"] == pytest.approx(0.9)
    assert np.isnan(found["slope_low"])
    assert "rests on one attribute" in str(found["status"])
