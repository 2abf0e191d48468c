"""Fields that came later: they leave the keys of earlier runs alone, and none is ignored."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.lab.compression.registry import fields_of, spec_of
from fairweight.runs.plan import plan
from fairweight.specs.compression import Int8Dynamic, Int8Static
from fairweight.specs.fields import recorded
from fairweight.specs.toml import read_spec, read_study
from fairweight.specs.training import Model, Training
from fairweight.studies import stages as _stages  # noqa: F401  plans with audits need them


def test_what_a_key_holds() -> None:
    assert recorded(Model(architecture="lenet")) == {
        "architecture": "lenet",
        "width": 1.0,
        "options": {},
    }
    assert fields_of(Int8Static()) == {
        "method": "int8-static",
        "examples": 100,
        "reduce_range": None,
    }
    assert fields_of(Int8Dynamic()) == {"method": "int8-dynamic"}
    assert recorded(Training(epochs=1, weighting="worst-class"))["weighting"] == "worst-class"


def test_a_list_of_the_default_is_the_default() -> None:
    assert fields_of(spec_of("int8-dynamic", layers=["*"])) == {"method": "int8-dynamic"}


NOT_BUILT: dict[str, list[dict[str, Any]]] = {
    "int8-static": [
        {"layers": ["*", "!stem.*"]},
        {"bias_correction": True},
        {"calibration": "random"},
        {"calibration": "class-balanced"},
        {"calibration": "group-balanced", "group": "race"},
        {"group": "race"},
        {"calibration_seed": 1},
        {"ranges": "percentile"},
        {"ranges": "entropy"},
    ],
    "int8-dynamic": [{"layers": ["fc*"]}, {"bias_correction": True}],
}


@pytest.mark.parametrize(
    ("where", "given"), [(name, given) for name, all_ in NOT_BUILT.items() for given in all_]
)
def test_what_is_not_built_is_refused_with_a_sentence(where: str, given: dict[str, Any]) -> None:
    refused = rf"({'|'.join(given)}) = .* cannot be used in this version"
    with pytest.raises(InputError, match=refused):
        spec_of(where, **given)


def test_every_field_that_is_not_built_is_tried_above() -> None:
    tried = {name for given in NOT_BUILT.values() for one in given for name in one}
    unbuilt = {
        one.name
        for spec in (Model, Training, Int8Static, Int8Dynamic)
        for one in fields(spec)
        if not one.metadata.get("built", True)
    }
    assert unbuilt == tried


def test_fields_that_do_not_fit_together() -> None:
    with pytest.raises(InputError, match='need init = "imagenet"'):
        read_spec(Model, {"architecture": "lenet", "scaling": "weights"}, "The network")
    given = {"architecture": "lenet", "init": "imagenet", "weights": "a"}
    with pytest.raises(InputError, match="weights = 'a' cannot be used"):
        read_spec(Model, given, "The network")


def experiment(**copy: Any) -> dict[str, Any]:
    return {
        "name": "s",
        "experiment": [
            {
                "name": "a",
                "data": {"name": "digits"},
                "model": {"architecture": "lenet"},
                "training": {"epochs": 1},
                "copies": [copy],
            }
        ],
    }


def test_a_control_needs_epochs_and_takes_no_schedule() -> None:
    with pytest.raises(InputError, match=r"control trains models further; say how \(finetune\)"):
        plan(read_study(experiment(method="control")))
    with pytest.raises(InputError, match="removes nothing, so it has no schedule"):
        spec_of("control", schedule="agp")
    planned = plan(read_study(experiment(method="control", finetune={"epochs": 2})))
    assert [one.variant for one in planned.models[-5:]] == ["control"] * 5
    stage = next(stage for stage in planned.stages.values() if stage.kind == "compress")
    assert stage.spec["method"]["method"] == "control"
    assert stage.spec["finetune"]["epochs"] == 2
