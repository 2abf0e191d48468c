"""Maps as samples: per location, pooled, folded and flattened."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d, interpolate

from fairweight.errors import InputError
from fairweight.lab.representations import moments
from fairweight.lab.representations.blocks import as_samples, resize
from fairweight.lab.representations.moments import RunningMoments
from fairweight.lab.representations.svcca import SIMON_SAYS, svcca_of

from .conftest import plain_svcca

MAPS = torch.arange(2 * 3 * 4 * 4, dtype=torch.float64).reshape(2, 3, 4, 4)


def test_vectors_are_one_location() -> None:
    x = torch.rand(5, 3)
    for maps in ("per-location", "pooled", "folded", "flattened"):
        assert torch.equal(as_samples(x, maps), x[None])


def test_every_kind_of_maps_by_hand() -> None:
    places = as_samples(MAPS, "per-location", 4)
    assert places.shape == (16, 2, 3)
    assert torch.equal(places[6, 1], MAPS[1, :, 1, 2])
    pooled = as_samples(MAPS, "pooled")
    assert torch.equal(pooled[0, 0], torch.tensor([7.5, 23.5, 39.5], dtype=torch.float64))
    folded = as_samples(MAPS, "folded")
    assert folded.shape == (1, 32, 3)
    assert torch.equal(folded[0, 16 + 6], MAPS[1, :, 1, 2])
    flat = as_samples(MAPS, "flattened")
    assert torch.equal(flat[0], MAPS.reshape(2, 48))


def test_channels_last_makes_no_difference() -> None:
    other = MAPS.contiguous(memory_format=torch.channels_last)
    for maps in ("per-location", "pooled", "folded", "flattened"):
        assert torch.equal(as_samples(other, maps, 4), as_samples(MAPS, maps, 4))


def test_sizes_larger_equal_and_smaller() -> None:
    large, equal, small = (torch.rand(2, 3, side, side) for side in (32, 16, 8))
    assert torch.allclose(resize(large, 16), avg_pool2d(large, 2))
    assert torch.equal(resize(equal, 16), equal)
    assert torch.equal(resize(small, 16), interpolate(small, size=(16, 16), mode="bicubic"))
    assert resize(torch.rand(1, 2, 20, 7), 16).shape == (1, 2, 16, 16)


def test_other_shapes_get_a_sentence() -> None:
    with pytest.raises(InputError, match=r"Feature 'tokens' has the shape \(2, 3, 4\)"):
        as_samples(torch.rand(2, 3, 4), "pooled", name="tokens")


def test_per_location_is_a_loop_over_locations() -> None:
    """The definition, map by map: one SVCCA at each of 16 places, and their mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5, 4, 4)) * np.arange(1.0, 6)[None, :, None, None] + 1
    y = x[:, :4] + rng.normal(size=(60, 4, 4, 4))
    running = RunningMoments()
    for part in (slice(0, 25), slice(25, 60)):
        running.add(
            *(as_samples(torch.from_numpy(side[part]), "per-location", 4) for side in (x, y))
        )
    loop = [plain_svcca(x[:, :, i, j], y[:, :, i, j]) for i in range(4) for j in range(4)]
    assert len({round(value, 6) for value in loop}) == 16
    found = svcca_of(running.moments(), SIMON_SAYS)
    assert found.distance == pytest.approx(np.mean(loop), abs=1e-9)
    assert (found.locations, found.samples) == (16, 60)


def test_batches_of_another_kind_and_sums_that_are_too_large_get_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = RunningMoments()
    running.add(torch.rand(1, 5, 3), torch.rand(1, 5, 2))
    with pytest.raises(InputError, match="do not fit those before them"):
        running.add(torch.rand(1, 5, 4), torch.rand(1, 5, 2))
    monkeypatch.setattr(moments, "MOST_BYTES", 100)
    with pytest.raises(InputError, match=r"3 and 2 features at 1 locations need .*maps = 'poole"):
        RunningMoments().add(torch.rand(1, 5, 3), torch.rand(1, 5, 2))
