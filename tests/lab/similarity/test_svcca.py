"""SVCCA from sums of products beside its definition, and what is undefined or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.representations import RAGHU, SIMON_SAYS, svcca
from fairweight.lab.representations.moments import RunningMoments
from fairweight.lab.representations.svcca import rule_of, svcca_of
from fairweight.specs.similarity import Similarity

from .conftest import plain_svcca, related

RULES: list[dict[str, Any]] = [
    {},
    {"centred": True},
    {"keep": "reach"},
    {"threshold": 0.8},
    {"reduce": "variances"},
    {"reduce": "variances", "centred": True, "keep": "reach", "summary": "share"},
    {"reduce": 5, "centred": True, "summary": "share"},
    {"reduce": 5},
    {"summary": "share", "share": 0.5},
    {"threshold": 1.0, "keep": "reach"},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    ("p", "q", "mean", "decay"), [(12, 12, 1.0, 1.0), (20, 8, 0.0, 0.5), (8, 15, 3.0, 1.0)]
)
def test_every_rule_is_its_definition(
    rule: dict[str, Any], p: int, q: int, mean: float, decay: float
) -> None:
    x, y = related(200, p, q, seed=p, mean=mean, decay=decay)
    found = svcca(x, y, **rule)
    rule = rule | ({"reduce": max(p, q)} if rule.get("threshold") == 1 else {})
    assert found.distance == pytest.approx(plain_svcca(x, y, **rule), abs=1e-6)
    assert 0 < found.distance < 1
    assert found.similarity == 1 - found.distance
    assert found.status == "ok"
    assert (found.samples, found.features, found.dropped) == (200, (p, q), 0)


def test_the_published_rules() -> None:
    assert rule_of(Similarity()) == SIMON_SAYS
    assert rule_of(Similarity(variant="raghu")) == RAGHU
    fixed = rule_of(Similarity(variant="raghu", directions=20, ridge=0.1))
    assert (fixed.reduce, fixed.ridge, fixed.centred) == (20, 0.1, True)
    assert (RAGHU.summary, RAGHU.share, SIMON_SAYS.summary) == ("share", 0.98, "mean")


def test_the_same_activations_are_at_distance_0() -> None:
    x, _ = related(100, 7, 7, seed=1)
    assert svcca(x, x).distance == pytest.approx(0, abs=1e-9)


def test_an_invertible_linear_map_changes_nothing_if_all_directions_are_kept() -> None:
    x, _ = related(100, 6, 6, seed=2)
    mixed = x @ np.random.default_rng(0).normal(size=(6, 6)) + 3
    found = svcca(x, mixed, reduce=6)
    assert found.directions == (6, 6)
    assert found.distance == pytest.approx(0, abs=1e-9)
    assert svcca(x, mixed).distance > 1e-4  # fewer directions are other directions


def test_four_samples_by_hand() -> None:
    """Centred unit columns; the first of y lies 60° from x, the second across everything."""
    a, b, c = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], dtype=float) / 2
    x = a[:, None]
    y = (0.5 * a + 0.75**0.5 * b)[:, None]
    assert svcca(x, y, reduce=1).distance == pytest.approx(1 - 0.5)
    assert svcca(x, c[:, None], reduce=1).distance == pytest.approx(1)
    # Correlations .5 and 1 of two directions; .5 where one of them has no partner.
    both = np.stack([y[:, 0], c], 1)
    assert svcca(np.stack([a, c], 1), both, reduce=2).distance == pytest.approx(1 - 1.5 / 2)
    assert svcca(np.stack([a, c], 1), y, reduce=2).distance == pytest.approx(1 - 0.5)


def test_the_threshold_by_hand() -> None:
    """Singular values 6, 3, 1: running shares .6, .9, 1."""
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 3)))[0]
    x = directions * [6, 3, 1]
    for threshold, below, reach in ((0.5, 0, 1), (0.7, 1, 2), (0.95, 2, 3), (0.99, 2, 3)):
        assert svcca(x, x, threshold=threshold, keep="reach").directions == (reach, reach)
        found = svcca(x, x, threshold=threshold)
        assert found.directions == (below, below)
        assert np.isnan(found.distance) == (below == 0)
    # Their squares, 36, 9, 1: .783, .978, 1.
    assert svcca(x, x, reduce="variances", threshold=0.8).directions == (1, 1)
    assert svcca(x, x, reduce="variances", threshold=0.99).directions == (2, 2)


def test_no_direction_kept_is_nan_with_the_reason() -> None:
    x = np.outer(np.arange(20.0) - 3, [1, 2])
    y, _ = related(20, 2, 2, seed=3)
    found = svcca(y, x)
    assert np.isnan(found.distance)
    assert found.status == (
        "no direction of the second side is kept, because the largest alone reaches 99% "
        "(keep = 'reach' keeps it)"
    )
    assert svcca(y, x, keep="reach").status == "ok"


@pytest.mark.parametrize(
    ("x", "rule", "reason"),
    [
        (np.zeros((20, 2)), {}, "all activations of the first side are 0"),
        (np.full((20, 2), 0.1), {"centred": True}, "all activations of the first side are const"),
        (np.full((20, 2), 0.1), {"keep": "reach"}, "no kept direction of the first side varies"),
        (np.full((20, 2), np.nan), {}, "NaN or infinite"),
        (np.full((20, 2), np.inf), {}, "NaN or infinite"),
    ],
)
def test_activations_that_say_nothing_are_nan_with_the_reason(
    x: Any, rule: dict[str, Any], reason: str
) -> None:
    y, _ = related(20, 2, 2, seed=3)
    found = svcca(x, y, **rule)
    assert np.isnan(found.distance)
    assert reason in found.status
    assert np.isnan(svcca(y, x, **rule).distance)


@pytest.mark.parametrize("rule", RULES[:9], ids=str)
def test_dead_and_constant_channels_change_little_or_nothing(rule: dict[str, Any]) -> None:
    x, y = related(300, 9, 9, seed=4)
    dead = np.zeros((300, 4))
    assert svcca(np.hstack([dead, x]), y, **rule).distance == pytest.approx(
        svcca(x, y, **rule).distance, abs=1e-9
    )
    constant = np.hstack([x, np.full((300, 1), 0.3)])
    assert np.isfinite(svcca(constant, y, **rule).distance)
    if rule.get("centred"):
        assert svcca(constant, y, **rule).distance == pytest.approx(
            svcca(x, y, **rule).distance, abs=1e-9
        )


def test_a_constant_channel_does_not_part_equal_networks() -> None:
    """Its direction is among those kept, but has nothing to correlate."""
    x, _ = related(100, 4, 4, seed=5)
    x = np.hstack([x, np.full((100, 1), 50.0)])
    found = svcca(x, x, reduce=5)
    assert found.distance == pytest.approx(0, abs=1e-9)
    assert found.directions == (4, 4)
    assert found.dropped == 2  # one on each side


@pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-4])
def test_nearly_collinear_features(apart: float) -> None:
    """Squares lose twice the digits; down to 10⁻⁴ nothing that matters is lost."""
    x, y = related(400, 5, 5, seed=6, mean=0.3)
    rng = np.random.default_rng(0)
    x = np.hstack([x, x + apart * rng.normal(size=x.shape)])
    for rule in ({}, {"reduce": 10}, {"reduce": 10, "centred": True}):
        found = svcca(x, y if rule == {} else np.hstack([y, y**2]), **rule)
        plain = plain_svcca(x, y if rule == {} else np.hstack([y, y**2]), **rule)
        assert found.distance == pytest.approx(plain, abs=1e-6)
        assert found.dropped == 0


def test_directions_that_are_rounding_are_dropped_and_counted() -> None:
    x, y = related(400, 5, 10, seed=6)
    double = np.hstack([x, x + 1e-9 * np.random.default_rng(0).normal(size=x.shape)])
    found = svcca(double, y, reduce=10, centred=True)
    assert found.dropped == 5
    assert found.directions == (5, 10)
    assert found.distance == pytest.approx(plain_svcca(x, y, reduce=10, centred=True), abs=1e-6)


def test_a_large_mean_costs_no_digits() -> None:
    x, y = related(300, 6, 6, seed=7, mean=0.0)
    near = svcca(x, y, centred=True).distance
    assert svcca(x + 1e6, y - 1e6, centred=True).distance == pytest.approx(near, abs=1e-8)
    far = svcca(x + 1e3, y, reduce=6).distance
    assert far == pytest.approx(plain_svcca(x + 1e3, y, reduce=6), abs=1e-6)


def test_streaming_is_one_batch() -> None:
    x, y = related(300, 9, 7, seed=8, mean=5.0)
    running = RunningMoments()
    for part in (slice(0, 10), slice(10, 250), slice(250, 300)):
        running.add(torch.from_numpy(x[part])[None], torch.from_numpy(y[part])[None])
    for rule in (SIMON_SAYS, RAGHU):
        whole = svcca(
            x, y, reduce=rule.reduce, centred=rule.centred, keep=rule.keep, summary=rule.summary
        )
        assert svcca_of(running.moments(), rule).distance == pytest.approx(
            whole.distance, abs=1e-12
        )


def test_locations_in_a_batch_are_locations_one_by_one() -> None:
    """With different numbers of directions at each, and one where it is undefined."""
    sides = [related(200, 8, 6, seed=s, decay=s, mean=s) for s in range(4)]
    sides.append((np.zeros((200, 8)), sides[0][1]))
    running = RunningMoments()
    running.add(*(torch.from_numpy(np.stack([pair[i] for pair in sides])) for i in (0, 1)))
    for rule in (SIMON_SAYS, RAGHU):
        found = svcca_of(running.moments(), rule)
        single = [
            svcca(x, y, reduce=rule.reduce, centred=rule.centred, keep=rule.keep,
                  summary=rule.summary)
            for x, y in sides[:4]
        ]  # fmt: skip
        assert found.distance == pytest.approx(np.mean([one.distance for one in single]))
        assert len({one.directions for one in single}) > 1
        assert found.locations == 5
        assert found.status.startswith("1 of 5 locations are left out: all activations of the fir")


def test_more_features_than_samples() -> None:
    """Noise against noise would be at distance 0; the sentence names what to do."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 40)), rng.normal(size=(30, 5))
    for pair in ((x, y), (y, x), (x[:, :30], y)):
        with pytest.raises(InputError, match=r"need more than .* more examples.*pool.*ridge"):
            svcca(*pair)
    ridged = svcca(x, y, ridge=1.0, reduce=40, centred=True)
    assert 0.2 < ridged.distance < 1
    with pytest.raises(InputError, match="ridge = -1 cannot be used"):
        svcca(x, y, ridge=-1)


def test_ridge_by_hand() -> None:
    """One feature each, variance 1, correlation ρ: (1 + r) in both roots, so ρ / (1 + r)."""
    x, y = related(50, 1, 1, seed=9)
    rho = abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1])
    assert svcca(x, y, reduce=1, ridge=0.25).distance == pytest.approx(1 - rho / 1.25)
    assert svcca(x, y, reduce=1, ridge=0.25, centred=True).distance == pytest.approx(1 - rho / 1.25)


def test_ridge_beside_its_definition() -> None:
    x, y = related(60, 6, 5, seed=10, mean=2.0)
    x, y = x - x.mean(0), y - y.mean(0)

    def inverse_root(c: Any) -> Any:
        values, vectors = np.linalg.eigh(c + 0.1 * np.trace(c) / len(c) * np.eye(len(c)))
        return vectors / np.sqrt(values) @ vectors.T

    rho = np.linalg.svd(inverse_root(x.T @ x) @ x.T @ y @ inverse_root(y.T @ y))[1]
    found = svcca(x + 3, y - 1, reduce=6, ridge=0.1)
    assert found.distance == pytest.approx(1 - rho.sum() / 5, abs=1e-9)


def test_arrays_tensors_and_single_precision() -> None:
    x, y = related(100, 5, 5, seed=11)
    exact = svcca(x, y).distance
    assert svcca(torch.from_numpy(x), y.tolist()).distance == exact
    assert svcca(x.astype(np.float32), y.astype(np.float32)).distance == pytest.approx(
        exact, abs=1e-5
    )
    assert svcca(torch.from_numpy(x).requires_grad_(), y).distance == exact


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reduce": "variance"}, "reduce 'variance' does not exist.*'variances'"),
        ({"reduce": 0}, "reduce = 0 keeps no direction"),
        ({"keep": "above"}, "keep 'above' does not exist"),
        ({"summary": "median"}, "summary 'median' does not exist"),
        ({"threshold": 0.0}, "threshold = 0.0 cannot be used"),
        ({"share": 1.1}, "share = 1.1 cannot be used"),
    ],
)
def test_options_that_cannot_be_used_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    x, y = related(20, 2, 2, seed=0)
    with pytest.raises(InputError, match=sentence):
        svcca(x, y, **options)


def test_shapes_that_do_not_fit_get_a_sentence() -> None:
    x, y = related(20, 2, 2, seed=0)
    with pytest.raises(InputError, match="20 and 19 samples"):
        svcca(x, y[1:])
    with pytest.raises(InputError, match=r"x must be numbers of shape.*\(20,\)"):
        svcca(x[:, 0], y)
    with pytest.raises(InputError, match="no samples"):
        svcca(x[:0], y[:0])
