"""The statistics of an audit as one typed value."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions, Correction, Members


def test_a_stored_request_is_the_same_again() -> None:
    options = AuditOptions(
        alpha=0.1, members="repeated", n_boot=50, correction="bh", filters=False,
        fixed_side="sex=F", confirmatory=[("fnr", "group")],
    )  # fmt: skip
    text = json.dumps(options.to_json())
    assert AuditOptions.from_json(json.loads(text)) == options
    assert AuditOptions.from_json({**options.to_json(), "of a later version": 1}) == options
    assert (options.correction, options.members) == (Correction.BH, Members.REPEATED)
    assert options.confirmatory == (("fnr", "group"),)


def test_numbers_of_numpy_are_numbers() -> None:
    assert AuditOptions(n_boot=np.int64(30)).n_boot == 30
    assert type(AuditOptions(n_boot=np.int64(30)).n_boot) is int


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": 0}, "--alpha (alpha=) cannot be 0; give a level between 0 and 1"),
        ({"n_boot": 19}, "--n-boot (n_boot=) cannot be 19; give a whole number of at least 20"),
        ({"n_boot": True}, "--n-boot (n_boot=) cannot be True"),
        ({"members": "seeds"}, "--members (members=) cannot be 'seeds'; use retrained or repeated"),
        ({"margin": 2}, "did you mean 0.02?"),
        ({"group_error": 0.5}, "--group-error (group_error=) cannot be 0.5"),
    ],
)
def test_a_wrong_value_names_option_and_argument(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        AuditOptions(**given).for_rates()
    assert said in str(caught.value)
