"""Paganini's regression against statsmodels' own formula, and what is said where it cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.genmod.families import Binomial

from fairweight.auditing.explain.class_models import design
from fairweight.auditing.explain.class_regression import ClassExplanation, explain_classes
from fairweight.auditing.explain.class_rows import ROW_ORDER
from fairweight.errors import InputError

from .made_class_rows import DATASETS, MODELS, TECHNIQUES, made_class_rows

FORMULA = (
    "accuracy ~ dataset + model + weight_treatment*pruning_technique + np.exp(sparsity) "
    "+ np.exp(sparsity):dataset + np.exp(sparsity):pruning_technique + sparsity + accuracy0 "
    "+ accuracy0:weight_treatment + accuracy0:pruning_technique + accuracy0_quartile + imbalance "
    "+ class_entropy + np.exp(sparsity):accuracy0 + accuracy0:accuracy0_quartile"
)
LINEAR = (
    "accuracy ~ dataset + model + weight_treatment + pruning_technique + np.exp(sparsity) "
    "+ sparsity + accuracy0 + accuracy0_quartile + imbalance + class_entropy"
)
HAC = {"maxlags": 3, "use_correction": True}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """In another order than that of the fit, with numbers for an index."""
    made = made_class_rows(imbalance=0.5, entropy=-0.01, seeds=2, root_noise=0.02)
    return made.sample(frac=1, random_state=0)


@pytest.fixture(scope="module")
def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(list(ROW_ORDER))


@pytest.fixture(scope="module")
def found(rows: pd.DataFrame) -> ClassExplanation:
    return explain_classes(rows, n_boot=199)


def of_fit(found: ClassExplanation, fit: str) -> pd.DataFrame:
    return found.coefficients[found.coefficients["fit"] == fit].set_index("term")


def summary(found: ClassExplanation, fit: str) -> Any:
    return found.fits.set_index("fit").loc[fit]


def assert_same(frame: pd.DataFrame, results: Any) -> None:
    """Coefficients, errors, t, p and limits; terms by name, whatever their order."""
    wanted = pd.DataFrame(
        {
            "coefficient": results.params,
            "std_error": results.bse,
            "statistic": results.tvalues,
            "p_value": results.pvalues,
            "low": results.conf_int()[0],
            "high": results.conf_int()[1],
        }
    )
    # patsy puts the factors of a product in an order of its own.
    wanted.index = pd.Index(["|".join(sorted(name.split(":"))) for name in wanted.index])
    own = frame.copy()
    own.index = pd.Index(["|".join(sorted(name.split(":"))) for name in own.index])
    assert set(own.index) == set(wanted.index)
    for column in wanted:
        np.testing.assert_allclose(
            own[column], wanted.loc[own.index, column], rtol=1e-6, atol=1e-12, err_msg=column
        )


def test_ols_hac_is_the_statsmodels_call_of_the_paper(
    found: ClassExplanation, in_order: pd.DataFrame
) -> None:
    wanted = smf.ols(FORMULA, in_order).fit(cov_type="HAC", cov_kwds=HAC, use_t=True)
    assert_same(of_fit(found, "ols-hac"), wanted)
    own = summary(found, "ols-hac")
    assert own["n"] == wanted.nobs
    assert own["n_parameters"] == wanted.df_model + 1
    assert own["df_residual"] == wanted.df_resid
    assert own["r2"] == pytest.approx(wanted.rsquared)
    assert own["r2_adjusted"] == pytest.approx(wanted.rsquared_adj)
    assert own["condition_number"] == pytest.approx(wanted.condition_number)


def test_ols_hac_depends_on_the_order_of_rows_and_ours_is_fixed(
    found: ClassExplanation, rows: pd.DataFrame
) -> None:
    again = explain_classes(rows.sample(frac=1, random_state=5), n_boot=199)
    pd.testing.assert_frame_equal(again.coefficients, found.coefficients, rtol=1e-9)
    shuffled = smf.ols(FORMULA, rows).fit(cov_type="HAC", cov_kwds=HAC, use_t=True)
    own = of_fit(found, "ols-hac").loc["imbalance", "std_error"]
    assert abs(shuffled.bse["imbalance"] / own - 1) > 1e-3


def test_one_tailed_tests_are_those_of_the_paper(found: ClassExplanation) -> None:
    for fit in ("ols-hac", "ols-linear", "ols-cluster", "ols-two-way", "glm-cluster"):
        own = of_fit(found, fit)
        assert own.loc["imbalance", "tail"] == "greater"
        assert own.loc["class_entropy", "tail"] == "less"
        tested = own[own["tail"] != ""]
        assert set(tested.index) == {"imbalance", "class_entropy"}
        # Both point where the alternative does, so half of the two-sided p remains.
        np.testing.assert_allclose(tested["p_one_tailed"], tested["p_value"] / 2)
        assert own.loc[own["tail"] == "", "p_one_tailed"].isna().all()


def test_the_linear_model_and_the_f_test_between_them(
    found: ClassExplanation, in_order: pd.DataFrame
) -> None:
    linear = smf.ols(LINEAR, in_order).fit(cov_type="HAC", cov_kwds=HAC, use_t=True)
    assert_same(of_fit(found, "ols-linear"), linear)
    plain, full = smf.ols(LINEAR, in_order).fit(), smf.ols(FORMULA, in_order).fit()
    f, p, _ = full.compare_f_test(plain)
    assert summary(found, "ols-hac")["f_against_linear"] == pytest.approx(f, rel=1e-6)
    assert summary(found, "ols-hac")["f_p"] == pytest.approx(p, rel=1e-6)
    assert np.isnan(summary(found, "ols-linear")["f_against_linear"])


def test_clustered_errors_are_those_of_statsmodels(
    found: ClassExplanation, in_order: pd.DataFrame
) -> None:
    root = in_order["root"].astype("category").cat.codes
    wanted = smf.ols(FORMULA, in_order).fit(
        cov_type="cluster", cov_kwds={"groups": root}, use_t=True
    )
    assert_same(of_fit(found, "ols-cluster"), wanted)
    assert summary(found, "ols-cluster")["n_roots"] == 12
    counts = pd.DataFrame(
        {"right": in_order["accuracy"] * in_order["n"]},
    ).assign(wrong=lambda t: in_order["n"] - t["right"])
    logit = smf.glm(
        FORMULA.replace("accuracy ~", "right + wrong ~"), in_order.join(counts), family=Binomial()
    ).fit(cov_type="cluster", cov_kwds={"groups": root}, use_t=True)
    assert_same(of_fit(found, "glm-cluster"), logit)
    assert summary(found, "glm-cluster")["r2"] == pytest.approx(
        1 - logit.deviance / logit.null_deviance
    )


def test_two_way_errors_are_at_least_each_of_the_two(
    found: ClassExplanation, in_order: pd.DataFrame
) -> None:
    root = in_order["root"].astype("category").cat.codes.astype(int)
    of_class = (in_order["dataset"] + in_order["class"]).astype("category").cat.codes.astype(int)
    plain = smf.ols(FORMULA, in_order)
    variances = [
        plain.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True).bse["imbalance"] ** 2
        for groups in (root, of_class, root * 1000 + of_class)
    ]
    own = of_fit(found, "ols-two-way").loc["imbalance"]
    wanted = max(variances[0], variances[1], variances[0] + variances[1] - variances[2])
    assert own["std_error"] == pytest.approx(wanted**0.5, rel=1e-6)


def test_the_cross_terms_are_tested_with_clustered_errors_where_roots_allow() -> None:
    rows = made_class_rows(techniques=TECHNIQUES[:2]).sort_values(list(ROW_ORDER))
    results = smf.ols(FORMULA, rows).fit(
        cov_type="cluster",
        cov_kwds={"groups": rows["root"].astype("category").cat.codes},
        use_t=True,
    )
    cross = np.array([":" in name for name in results.params.index])
    wanted = results.wald_test(np.eye(len(cross))[cross], use_f=True, scalar=True)
    own = summary(explain_classes(rows, n_boot=9), "ols-cluster")
    assert cross.sum() == 8
    assert own["n_roots"] == 18
    hotelling = wanted.statistic * (18 - 8) / (18 - 1)
    assert own["f_against_linear"] == pytest.approx(hotelling, rel=1e-5)
    assert own["f_p"] == pytest.approx(stats.f.sf(hotelling, 8, 18 - 8), rel=1e-5)
    few = summary(explain_classes(rows[rows["seed"] == "0"], n_boot=9), "ols-cluster")
    assert np.isnan(few["f_against_linear"])
    assert "8 cross terms cannot be tested at once with 6 clusters" in few["status"]


def test_planted_effects_are_recovered(found: ClassExplanation) -> None:
    for fit in ("ols-hac", "ols-linear", "ols-cluster", "ols-two-way"):
        own = of_fit(found, fit)
        for term, truth in (("imbalance", 0.5), ("class_entropy", -0.01)):
            assert own.loc[term, "coefficient"] == pytest.approx(truth, rel=0.35)
            assert own.loc[term, "p_one_tailed"] < 0.01
    cluster = of_fit(found, "ols-cluster")
    assert cluster.loc["imbalance", "p_wild_one_tailed"] <= 0.02
    assert of_fit(found, "ols-hac")["p_wild"].isna().all()


def test_residuals_point_back_to_the_rows_given(
    found: ClassExplanation, rows: pd.DataFrame
) -> None:
    residuals = found.residuals.set_index("row")
    accuracy = rows.loc[residuals.index, "accuracy"]
    np.testing.assert_allclose(residuals["predicted"] + residuals["residual"], accuracy)
    assert residuals.index.sort_values().tolist() == sorted(rows.index)


def test_the_diagnostics_are_those_of_the_summary(
    found: ClassExplanation, in_order: pd.DataFrame
) -> None:
    table = smf.ols(FORMULA, in_order).fit().summary().tables[2].as_text()
    own = summary(found, "ols-hac")
    shown = {
        "Durbin-Watson:": f"{own['durbin_watson']:.3f}",
        "Omnibus:": f"{own['omnibus']:.3f}",
        "Jarque-Bera (JB):": f"{own['jarque_bera']:.3f}",
        "Skew:": f"{own['skew']:.3f}",
        "Kurtosis:": f"{own['kurtosis']:.3f}",
    }
    for name, value in shown.items():
        assert value in table.split(name)[1].split("\n")[0].split(), name


def test_the_levels_of_the_paper_give_its_50_parameters() -> None:
    full = made_class_rows(
        datasets=DATASETS, models=MODELS, techniques=TECHNIQUES, seeds=1, classes=3
    )
    made = design(full)
    assert len(made.names) == 50
    assert made.notes == ()
    assert int(made.cross.sum()) == 6 + 6 + 6 + 1 + 6 + 1 + 1
    assert np.linalg.matrix_rank(made.matrix) == 50
    # G20: 949,298 rows less 50 parameters; 1.2429 with error .023 (t 53.527 unrounded).
    assert 949_298 - len(made.names) == 949_248
    error = 1.2429 / 53.527
    assert round(error, 3) == 0.023
    assert round(1.2429 - 1.96 * error, 3) == pytest.approx(1.197, abs=1e-3)
    assert round(1.2429 + 1.96 * error, 3) == pytest.approx(1.288, abs=1e-3)


def test_the_references_are_the_papers_in_any_spelling() -> None:
    rows = made_class_rows(datasets=("svhn", "CIFAR10"), models=("vgg11", "lenet"), seeds=1)
    made = design(rows)
    assert "dataset[T.svhn]" in made.names
    assert "weight_treatment[T.rewind]" in made.names
    assert made.notes == ("the reference of model is lenet, as alexnet is absent",)


def test_terms_that_say_nothing_are_left_out_with_a_sentence() -> None:
    rows = made_class_rows(datasets=("mnist",), models=("lenet",), seeds=4, sparsities=(0.2, 0.9))
    rows = rows.assign(imbalance=0.0)
    found = explain_classes(rows, n_boot=9)
    status = summary(found, "ols-hac")["status"]
    assert status.startswith("ok; ")
    assert "dataset has one level (mnist), so its terms are left out" in status
    assert "imbalance never varies (0), so its terms are left out" in status
    assert "left out as it follows from the terms before it: sparsity" in status
    own = of_fit(found, "ols-hac")
    assert own.loc["imbalance", "status"] == "not_estimable: imbalance never varies (0)"
    assert np.isnan(own.loc["imbalance", "coefficient"])
    assert own.loc["class_entropy", "status"] == "ok"


def test_data_sets_and_models_that_coincide_lose_the_later_dummies() -> None:
    one = made_class_rows(datasets=("mnist",), models=("lenet",), seeds=3)
    other = made_class_rows(datasets=("svhn",), models=("vgg11",), seeds=3, random_state=1)
    found = explain_classes(pd.concat([one, other], ignore_index=True), n_boot=9)
    own = of_fit(found, "ols-hac")
    assert own.loc["dataset[T.svhn]", "status"] == "ok"
    assert own.loc["model[T.vgg11]", "status"] == (
        "not_estimable: it follows from the terms before it"
    )


def test_a_combination_that_nobody_has_is_named() -> None:
    rows = made_class_rows(seeds=2)
    gone = (rows["weight_treatment"] == "rewind") & (rows["pruning_technique"] == "l1_structured")
    own = of_fit(explain_classes(rows[~gone], n_boot=9), "ols-hac")
    term = "weight_treatment[T.rewind]:pruning_technique[T.l1_structured]"
    assert own.loc[term, "status"] == "not_estimable: no row has this combination"


def test_a_term_of_one_root_alone_has_no_clustered_error() -> None:
    rows = made_class_rows(datasets=("mnist",), models=("lenet",), seeds=3)
    other = made_class_rows(datasets=("svhn",), models=("lenet",), seeds=1, random_state=1)
    own = of_fit(explain_classes(pd.concat([rows, other]), n_boot=9), "ols-cluster")
    assert own.loc["dataset[T.svhn]", "status"].startswith("not_estimable: no error")
    assert own.loc["dataset[T.svhn]", ["std_error", "p_value", "p_wild"]].isna().all()
    assert own.loc["class_entropy", "status"] == "ok"


def test_cross_terms_of_one_root_alone_are_not_tested_at_once() -> None:
    made = {"techniques": TECHNIQUES[:2], "models": ("lenet",)}
    many = made_class_rows(datasets=("mnist",), seeds=11, **made)
    one = made_class_rows(datasets=("svhn",), seeds=1, random_state=1, **made)
    own = summary(explain_classes(pd.concat([many, one], ignore_index=True)), "ols-cluster")
    assert own["status"] == (
        "ok; the cross terms vary over too few clusters to be tested at once; the reference of "
        "dataset is mnist, as cifar-10 is absent; model has one level (lenet), so its terms are "
        "left out"
    )
    assert np.isnan(own["f_against_linear"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.head(5), "5 rows are too few for"),
        (lambda t: t.head(0), "no row is without missing values"),
        (lambda t: t.assign(class_entropy=np.nan), "no row is without missing values"),
        (lambda t: t.assign(accuracy=0.5), "the accuracy never varies (0.5)"),
        (lambda t: t.assign(accuracy=t["accuracy0"]), "every class is as accurate as before"),
    ],
)
def test_no_fit_is_a_sentence(change: Any, words: str) -> None:
    found = explain_classes(change(made_class_rows(seeds=1)))
    assert found.fits["status"].str.startswith("not_estimable: " + words).all()
    assert len(found.fits) == 5
    assert found.coefficients.empty
    assert found.residuals.empty


def test_one_root_has_the_papers_errors_only() -> None:
    rows = made_class_rows(datasets=("mnist",), models=("lenet",), seeds=1, classes=10)
    found = explain_classes(rows)
    states = found.fits.set_index("fit")["status"]
    assert states["ols-hac"].startswith("ok")
    for fit in ("ols-cluster", "ols-two-way", "glm-cluster"):
        assert states[fit].startswith("not_estimable: there is one lineage root")
    assert set(found.coefficients["fit"]) == {"ols-hac", "ols-linear"}


def test_rows_with_missing_values_take_no_part_and_are_counted(rows: pd.DataFrame) -> None:
    holed = rows.copy()
    holed.loc[holed.index[:7], "class_entropy"] = np.nan
    found = explain_classes(holed, n_boot=9)
    assert summary(found, "ols-hac")["n"] == len(rows) - 7
    assert "7 rows with a missing value take no part" in summary(found, "ols-hac")["status"]


def test_a_logit_that_is_unbounded_says_so() -> None:
    rows = made_class_rows(seeds=2)
    always = rows.assign(accuracy=(rows["sparsity"] < 0.6).astype(float))
    state = summary(explain_classes(always, n_boot=9), "glm-cluster")["status"]
    assert "perfectly" in state or "unbounded" in state


def test_rows_count_alike_where_n_is_not_known(rows: pd.DataFrame) -> None:
    alike = explain_classes(rows.drop(columns="n"), n_boot=9)
    assert "every row counts alike" in summary(alike, "glm-cluster")["status"]
    same = explain_classes(rows.assign(n=1), n_boot=9)
    np.testing.assert_allclose(
        of_fit(alike, "glm-cluster")["coefficient"], of_fit(same, "glm-cluster")["coefficient"]
    )


def test_what_cannot_be_used_is_said(rows: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="no column 'imbalance'"):
        explain_classes(rows.drop(columns="imbalance"))
    with pytest.raises(InputError, match="alpha is 2"):
        explain_classes(rows, alpha=2)
    with pytest.raises(InputError, match="n_boot is 0"):
        explain_classes(rows, n_boot=0)
