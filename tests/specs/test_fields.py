"""Fields that came later: they leave the keys of earlier runs alone, and none is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.lab.compression.registry import fields_of, spec_of
from fairweight.runs.plan import plan
from fairweight.specs.compression import Int8Dynamic, Int8Static
from fairweight.specs.fields import recorded
from fairweight.specs.toml import read_spec, read_study
from fairweight.specs.training import Model, Training
from fairweight.studies import library as _library  # noqa: F401  plans with audits need them


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


def test_how_ranges_are_set_is_part_of_the_name() -> None:
    given = {"calibration": "group-balanced", "group": "race", "ranges": "entropy"}
    spec = spec_of("int8-static", bias_correction=True, **given)
    assert spec.variant("int8-static") == "int8-static-bias-group-balanced-entropy"
    assert spec_of("int8-static").variant("int8-static") == "int8-static"
    assert spec_of("weight-bits", bits=4, bias_correction=True).calibration_examples == 100


@pytest.mark.parametrize("given", [{"calibration": "group-balanced"}, {"group": "race"}])
def test_a_group_and_its_balance_go_together(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="give both"):
        spec_of("int8-static", **given)


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
