"""The wild cluster bootstrap without passes over rows, against one that refits every draw."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from fairweight.auditing.explain import class_regression
from fairweight.auditing.explain.class_regression import wild_cluster_p


def refitted(x, y, cluster, weights, j):
    """Three p-values by the textbook: restricted fit, new answers, refit, clustered t."""
    without = np.delete(x, j, axis=1)
    null = sm.OLS(y, without).fit()

    def t(answers):
        fit = sm.OLS(answers, x).fit(cov_type="cluster", cov_kwds={"groups": cluster})
        return fit.tvalues[j]

    observed = t(y)
    drawn = np.array([t(null.fittedvalues + null.resid * w[cluster]) for w in weights])
    slack = 1e-9 * max(1, abs(observed))
    return [
        (1 + far.sum()) / (1 + len(drawn))
        for far in (
            np.abs(drawn) >= abs(observed) - slack,
            drawn >= observed - slack,
            drawn <= observed + slack,
        )
    ]


@pytest.mark.parametrize("groups", [5, 14])
def test_it_equals_refitting_every_draw(groups: int) -> None:
    rng = np.random.default_rng(groups)
    cluster = rng.permutation(np.repeat(np.arange(groups), 8))
    x = np.column_stack((np.ones(len(cluster)), rng.normal(size=(len(cluster), 2))))
    x[:, 2] += rng.normal(size=groups)[cluster]
    y = 0.2 * x[:, 1] + rng.normal(size=groups)[cluster] + rng.normal(size=len(cluster))
    fit = sm.OLS(y, x).fit()
    found = wild_cluster_p(
        x,
        fit.params,
        fit.resid,
        fit.normalized_cov_params,
        cluster,
        n_boot=39,
        rng=np.random.default_rng(1),
    )
    weights = class_regression.wild_weights(groups, 39, np.random.default_rng(1))
    for j in range(3):
        wanted = refitted(x, y, cluster, weights, j)
        own = [found.two_sided[j], found.greater[j], found.less[j]]
        assert own == pytest.approx(wanted, abs=1e-12)


def test_few_clusters_are_drawn_with_webbs_six_values() -> None:
    few = class_regression.wild_weights(6, 4000, np.random.default_rng(0))
    assert sorted(set(np.round(few.reshape(-1) ** 2, 9))) == [0.5, 1.0, 1.5]
    assert few.mean() == pytest.approx(0, abs=0.02)
    assert (few**2).mean() == pytest.approx(1, abs=0.02)
    many = class_regression.wild_weights(12, 10, np.random.default_rng(0))
    assert set(many.reshape(-1)) == {-1.0, 1.0}


def test_clusters_without_any_residual_have_no_p() -> None:
    x = np.column_stack((np.ones(6), np.arange(6.0)))
    fit = sm.OLS(2 * x[:, 1], x).fit()
    found = wild_cluster_p(
        x,
        fit.params,
        np.zeros(6),
        fit.normalized_cov_params,
        np.repeat([0, 1, 2], 2),
        n_boot=9,
        rng=np.random.default_rng(0),
    )
    assert np.isnan(found.two_sided[1])
