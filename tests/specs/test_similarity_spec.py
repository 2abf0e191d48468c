"""The spec of a comparison from plain values."""

from __future__ import annotations

from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.specs.similarity import Similarity
from fairweight.specs.toml import read_spec


def test_the_defaults_are_those_of_simon_says() -> None:
    spec = Similarity()
    assert (spec.measure, spec.variant, spec.threshold) == ("svcca", "simon-says", 0.99)
    assert (spec.maps, spec.size, spec.examples, spec.features) == (
        "per-location", 16, 6400, None,
    )  # fmt: skip


def test_whether_it_centres_is_written_down() -> None:
    assert Similarity().centred is False
    assert Similarity(variant="raghu").centred is True
    assert Similarity(variant="raghu", centred=False).centred is False


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"measure": "cca"}, "measure = 'cca' cannot be used; it should be 'svcca' or 'cka'"),
        ({"variant": "google"}, "variant = 'google'"),
        ({"maps": "mean"}, "maps = 'mean'"),
        ({"threshold": 0}, "threshold = 0"),
        ({"size": 0}, "size = 0"),
        ({"examples": 1}, "examples = 1"),
        ({"ridge": -1}, "ridge = -1"),
        ({"directions": 0}, "directions = 0"),
        ({"features": []}, "features names none"),
        ({"minibatch": True}, "minibatch is an estimate of CKA"),
        ({"tresold": 0.5}, "'tresold' does not exist"),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(given: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refused:
        read_spec(Similarity, given, "The comparison")
    assert part in str(refused.value)
