"""Linear CKA beside its definition and pytorch-cka."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.representations import cka
from fairweight.lab.representations.cka import RunningHsic, batch_slices, cka_of
from fairweight.lab.representations.moments import RunningMoments

from .conftest import plain_cka, plain_hsic, related


@pytest.mark.parametrize(
    ("n", "p", "q", "mean"), [(60, 5, 5, 0.0), (40, 12, 3, 5.0), (9, 20, 30, 1)]
)
def test_cka_is_its_definition(n: int, p: int, q: int, mean: float) -> None:
    x, y = related(n, p, q, seed=n, mean=mean)
    found = cka(x, y)
    assert found.distance == pytest.approx(plain_cka(x, y), abs=1e-9)
    assert 0 < found.distance < 1
    assert (found.samples, found.features, found.status) == (n, (p, q), "ok")


def test_what_cka_ignores_and_what_not() -> None:
    x, _ = related(50, 4, 4, seed=1)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert cka(x, 3 * x @ rotation - 7).distance == pytest.approx(0, abs=1e-9)
    assert cka(x, x * [1, 1, 1, 30]).distance > 0.01


def test_four_samples_by_hand() -> None:
    """Centred columns a, b across each other: CKA(a, [a, b]) = 1 / √2, CKA(a, b) = 0."""
    a, b = np.array([1.0, 1, -1, -1]), np.array([1.0, -1, 1, -1])
    assert cka(a[:, None], np.stack([a, b], 1)).distance == pytest.approx(1 - 0.5**0.5)
    assert cka(a[:, None], b[:, None]).distance == pytest.approx(1)


@pytest.mark.parametrize("size", [4, 10, 60])
def test_the_minibatch_estimate_is_its_definition(size: int) -> None:
    x, noise = related(60, 7, 5, seed=2, mean=3.0)
    y = 2 * x[:, :5] + noise
    parts = [slice(s, s + size) for s in range(0, 60, size)]
    between, first, second = (
        np.mean([plain_hsic(left[part], right[part]) for part in parts])
        for left, right in ((x, y), (x, x), (y, y))
    )
    expected = 1 - between / np.sqrt(first * second)
    assert 0 < expected < 1
    assert cka(x, y, minibatch=size).distance == pytest.approx(expected, abs=1e-9)


def peer() -> Any:
    """hsic.py of pytorch-cka; the rest of that package wants matplotlib and tqdm."""
    found = importlib.util.find_spec("cka")
    if found is None or not found.submodule_search_locations:
        pytest.skip("pytorch-cka is not installed")
    place = Path(next(iter(found.submodule_search_locations))) / "hsic.py"
    spec = importlib.util.spec_from_file_location("peer_hsic", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_minibatch_estimate_is_that_of_pytorch_cka() -> None:
    x, noise = related(80, 7, 5, seed=3)
    y = 2 * x[:, :5] + noise
    sums = torch.zeros(3, dtype=torch.float64)
    for start in range(0, 80, 16):
        left, right = (torch.from_numpy(side[start : start + 16]) for side in (x, y))
        found = peer().hsic((left @ left.T)[None], (right @ right.T)[None])
        sums += torch.stack([value.reshape(()) for value in found])
    expected = 1 - float(sums[0] / (sums[1] * sums[2]).sqrt())
    assert cka(x, y, minibatch=16).distance == pytest.approx(expected, abs=1e-9)


def test_the_estimate_does_not_grow_with_the_number_of_features() -> None:
    """Of unrelated noise CKA nears 1 with many features; the estimate stays near 0."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 500)), rng.normal(size=(64, 500))
    assert cka(x, y).distance < 0.2
    assert cka(x, y, minibatch=32).distance > 0.9


def test_streaming_is_one_batch_and_locations_are_averaged() -> None:
    pairs = [related(48, 6, 4, seed=s, mean=s) for s in range(3)]
    x, y = (torch.from_numpy(np.stack([pair[i] for pair in pairs])) for i in (0, 1))
    running, batches = RunningMoments(), RunningHsic()
    for part in (slice(0, 16), slice(16, 32), slice(32, 48)):
        running.add(x[:, part], y[:, part])
        batches.add(x[:, part], y[:, part])
    whole = np.mean([plain_cka(*pair) for pair in pairs])
    assert cka_of(running.moments()).distance == pytest.approx(whole, abs=1e-9)
    single = np.mean([cka(*pair, minibatch=16).distance for pair in pairs])
    assert batches.compared().distance == pytest.approx(single, abs=1e-9)
    assert batches.compared().locations == 3


@pytest.mark.parametrize("minibatch", [None, 10])
@pytest.mark.parametrize(
    ("value", "reason"),
    [(0.0, "do not vary"), (0.1, "do not vary"), (np.nan, "NaN or infinite")],
)
def test_activations_that_say_nothing(minibatch: int | None, value: float, reason: str) -> None:
    y, _ = related(20, 3, 3, seed=4)
    found = cka(np.full((20, 3), value), y, minibatch=minibatch)
    assert np.isnan(found.distance)
    assert reason in found.status
    if reason == "do not vary":
        assert found.status == "the activations of the first side do not vary"
        assert "second" in cka(y, np.full((20, 3), value), minibatch=minibatch).status


def test_batches_that_are_too_small_get_a_sentence() -> None:
    x, y = related(20, 2, 2, seed=5)
    with pytest.raises(InputError, match="minibatch = 3 cannot be used; give at least 4"):
        cka(x, y, minibatch=3)
    with pytest.raises(InputError, match="A batch of 3 samples is too small"):
        cka(x[:3], y[:3], minibatch=10)
    with pytest.raises(InputError, match="20 and 19 samples"):
        cka(x, y[1:], minibatch=10)
    with pytest.raises(InputError, match="the batches are empty"):
        RunningHsic().compared()


def test_a_short_rest_joins_the_last_batch() -> None:
    assert batch_slices(10, 4) == [slice(0, 4), slice(4, 10)]
    assert batch_slices(12, 4) == [slice(0, 4), slice(4, 8), slice(8, 12)]
    assert batch_slices(2, 4) == [slice(0, 2)]
    assert batch_slices(0, 4) == []
