"""The simulations speak of the audit that users call, and their yardstick can fail."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairweight as fw

from ..few_metrics import only
from . import churn
from .audits import chosen, covers, rate, replicated
from .composites import WANTED, truths, uneven
from .latent import compared, world
from .measured import Figures, Share, share
from .write_docs import TABLES, with_figures


def test_a_simulated_comparison_is_the_audit_of_its_rows() -> None:
    sampled = uneven()
    codes = sampled.draw(3000, np.random.default_rng(5))
    group, label, dense, compressed = np.unravel_index(codes, sampled.shape)
    rows = fw.audit(
        label,
        {"dense": dense, "compressed": compressed},
        sensitive_features={"group": group},
        n_boot=50,
        random_state=3,
    ).results
    c = compared(sampled.cube(codes), 3, n_boot=50)

    mine = rate(c, "accuracy", "group").block
    theirs = rows[(rows["metric"] == "accuracy") & (rows["by"] == "group")]
    for column in ("shift", "p_adjusted", "sim_low", "excess_low", "excess_p"):
        np.testing.assert_array_equal(mine[column], theirs[column])
    wanted = chosen(c, [("kappa", "overall")])
    (found,) = replicated(c, wanted)
    kappa = rows[(rows["metric"] == "kappa") & (rows["by"] == "overall")].iloc[0]
    assert found.observed.compressed[0, 0] == kappa["compressed"]
    assert np.quantile(found.bootstrap.compressed, 0.025) == pytest.approx(kappa["compressed_low"])


def test_rows_of_few_metrics_are_those_of_the_whole_audit() -> None:
    """Which random numbers a row gets does not depend on the other rows."""
    hard = churn.WORLDS["8 × the churn, n = 150"]()
    whole = hard.audit(np.random.default_rng(5))
    with only({"accuracy", "recall"}):
        few = hard.audit(np.random.default_rng(5))
    rows = whole.results[whole.results["metric"].isin(["accuracy", "recall"])]
    assert set(few.results["metric"]) < set(whole.results["metric"])
    left = few.results[few.results["metric"].isin(["accuracy", "recall"])]
    pd.testing.assert_frame_equal(left.reset_index(drop=True), rows.reset_index(drop=True))
    pd.testing.assert_frame_equal(few.result.lead, whole.result.lead)


def test_true_values_by_hand() -> None:
    # Two groups of half the examples; a fifth of each is hard, there the compressed model is right
    # with .5 and .3: shifts of .2 · 0 and .2 · −.2 = −.04; the excess is their difference.
    w = world(2, 2, compressed=[[0.5], [0.3]])
    np.testing.assert_allclose(w.shift, [0, -0.04], atol=1e-12)
    np.testing.assert_allclose(w.excess, [0.04, -0.04], atol=1e-12)
    assert w.chance.sum() == pytest.approx(1)
    # One group, labels 48 and 52 %: kappa of a binary model with accuracy .9 and .86.
    # Chance agreement of the dense model: it says 0 with .48 · .9 + .52 · .1 = .484.
    # p_e = .48 · .484 + .52 · .516 = .50064, kappa = (.9 − .50064) / (1 − .50064).
    c = compared(
        world(1, 2, compressed=0.3, share=[[0.48, 0.52]]).whole(), 0, n_boot=20, positive=1
    )
    (found,) = replicated(c, chosen(c, [("kappa", "overall")]))
    assert found.observed.baseline is not None
    assert found.observed.baseline[0, 0] == pytest.approx((0.9 - 0.50064) / (1 - 0.50064))


def test_true_values_are_what_large_samples_approach() -> None:
    w = uneven()
    c = compared(w.cube(w.draw(1_000_000, np.random.default_rng(6))), 0, n_boot=20)
    wanted = chosen(c, WANTED)
    truth = truths(w)
    for q, r in zip(wanted, replicated(c, wanted), strict=True):
        base = r.observed.baseline
        value = r.observed.compressed - (0 if base is None else base)
        # 100,000 examples per class: the noise of a rate is about .001, of a value of CEV a tenth.
        np.testing.assert_allclose(value[0], truth[q.metric.name], rtol=0.1, atol=0.004)


def test_a_bound_allows_two_standard_errors_and_no_more() -> None:
    # At 5 % in 475 audits the standard error is sqrt(.05 · .95 / 475) = .01.
    assert Share(0.0699, 475).at_most(0.05)
    assert not Share(0.0701, 475).at_most(0.05)
    assert Share(0.0301, 475).at_least(0.05)
    assert not Share(0.0299, 475).within(0.05, 0.06)


def test_covering_is_counted_per_audit_and_without_undefined_limits() -> None:
    low, high = np.array([0.0, 0.2, np.nan]), np.array([0.1, 0.3, 1.0])
    inside = covers(low, np.array(0.05), high)
    np.testing.assert_array_equal(inside, [1.0, 0.0, np.nan])
    assert share([inside, [1.0], [np.nan]]) == Share(0.75, 2)


def test_a_table_takes_the_place_of_the_old_one() -> None:
    page = "before\n<!-- simulated: a -->\nold | table\n<!-- end -->\nafter\n<!-- end -->\n"
    made = with_figures(page, Figures("a", ("x", "y"), [(1, Share(0.951, 100))]))
    assert made == (
        "before\n<!-- simulated: a -->\n| x | y |\n| --- | --- |\n| 1 | 95.1 % |\n<!-- end -->\n"
        "after\n<!-- end -->\n"
    )
    with pytest.raises(ValueError, match="no place for 'b'"):
        with_figures(page, Figures("b", ("x",), []))


def test_the_documentation_has_every_table_and_no_other() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "statistics.md").read_text("utf-8")
    assert re.findall(r"<!-- simulated: (.+) -->\n\| ", page) == list(TABLES)
