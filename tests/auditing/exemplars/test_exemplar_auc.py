"""AUC with an interval over examples, against scipy and a formula written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from fairweight.auditing.intervals.auc import auc_limits, placements


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    positive = rng.random(400) < 0.2
    return np.round(rng.normal(size=400) + positive, 1), positive  # rounded: there are ties


def test_the_auc_is_that_of_mann_and_whitney(data):
    value, positive = data
    found = placements(value, positive)
    u = mannwhitneyu(value[positive], value[~positive]).statistic
    assert found.auc == pytest.approx(u / (positive.sum() * (~positive).sum()))
    assert found.influence.sum() == pytest.approx(0, abs=1e-12)


def test_the_interval_is_delongs_on_the_logit(data):
    value, positive = data
    auc, low, high = auc_limits([placements(value, positive)], None, 0.05)
    up, down = value[positive], value[~positive]
    wins = (up[:, None] > down) + 0.5 * (up[:, None] == down)
    m, n = wins.shape
    variance = wins.mean(1).var() / m + wins.mean(0).var() / n
    error = np.sqrt(variance * (m + n) / (m + n - 1)) / (auc * (1 - auc))
    logit = np.log(auc / (1 - auc)) + np.array([-1, 1]) * 1.959964 * error
    assert (low, high) == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-6)


def test_copies_in_clusters_widen_the_interval(data):
    value, positive = np.repeat(data[0], 4), np.repeat(data[1], 4)
    single = auc_limits([placements(*data)], None, 0.05)
    copied = auc_limits([placements(value, positive)], np.repeat(np.arange(400), 4), 0.05)
    assert copied == pytest.approx(single)
    assert auc_limits([placements(value, positive)], None, 0.05)[1] > single[1]


def test_no_limits_where_nothing_can_be_said(data):
    perfect = placements(data[1].astype(float), data[1])
    assert auc_limits([perfect], None, 0.05)[0] == 1
    assert np.isnan(auc_limits([perfect], None, 0.05)[1:]).all()
    few = auc_limits([placements(*data)], np.arange(400) % 19, 0.05)
    assert np.isnan(few[1:]).all()
