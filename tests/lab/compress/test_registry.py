"""The registry: names, sentences, recipes, and methods of other packages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression import registry
from fairweight.lab.compression.pruner import prune
from fairweight.lab.compression.registry import (
    METHODS,
    RECIPES,
    fields_of,
    method,
    method_of,
    methods,
    spec_from,
    spec_of,
    unregister,
)
from fairweight.lab.masks import masks
from fairweight.specs.compression import (
    AGP,
    GMP_PRETRAINED,
    GlobalMagnitude,
    Iterative,
    L1Structured,
    NOfM,
    ToSparsity,
)

PLUGIN = '''
"""A method of another package: the first weights of each layer."""
import torch
from pydantic.dataclasses import dataclass
from fairweight.lab.compression.methods import prune_weights
from fairweight.lab.compression.registry import method
from fairweight.lab.compression.schedules import Step
from fairweight.specs.compression import ToSparsity

@dataclass(frozen=True, kw_only=True)
class First(ToSparsity):
    backwards: bool = False

@method("first-weights", spec=First, summary="The first weights of each layer")
def first_weights(model, spec, step):
    def score(weight, name):
        places = torch.arange(weight.numel(), dtype=torch.float32)
        return places.flip(0) if spec.backwards else places
    return prune_weights(model, spec.layers, step or Step(spec.sparsity), score)
'''


def package(folder: Path, name: str, text: str) -> None:
    """What an installed package with one module and one entry point is on disk."""
    (folder / f"{name}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[fairweight.methods]\n{name} = {name}\n")


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    package(tmp_path, "fairweight_first_weights", PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.METHODS._loaded = False
    yield "first-weights"
    registry.METHODS._loaded = False
    unregister("first-weights")
    del sys.modules["fairweight_first_weights"]


def test_another_package_adds_a_method(plugin: str) -> None:
    spec = spec_of(plugin, sparsity=0.5, backwards=True)
    pruned = prune(nn.Linear(4, 1), spec)
    assert masks(pruned)["weight"].tolist() == [[True, True, False, False]]
    assert plugin in {found.name for found in methods()}
    assert spec_from(json.loads(json.dumps(fields_of(spec)))) == spec


def test_another_packages_spec_gets_the_same_sentences(plugin: str) -> None:
    with pytest.raises(InputError, match=r"'first-weights': sparsity = 2 cannot be used"):
        spec_of(plugin, sparsity=2)
    with pytest.raises(InputError, match=r"backwards = 'x' cannot be used; it should be a valid"):
        spec_of(plugin, sparsity=0.5, backwards="x")


def test_a_package_that_cannot_be_loaded_is_named_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "fairweight_broken", "raise RuntimeError('no luck')")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.METHODS._loaded = False
    with pytest.warns(UserWarning, match=r"package 'fairweight_broken' .*RuntimeError: no luck"):
        found = methods()
    assert "global-magnitude" in {entry.name for entry in found}
    assert spec_of("global-magnitude", sparsity=0.5).sparsity == 0.5


def test_one_dataclass_and_one_function_are_a_method() -> None:
    from pydantic.dataclasses import dataclass

    @dataclass(frozen=True, kw_only=True)
    class Nothing(ToSparsity):
        pass

    @method("nothing", spec=Nothing, summary="Nothing at all")
    def nothing(model: nn.Module, spec: Nothing, step: object) -> dict[str, torch.Tensor]:
        return {"weight": torch.ones(1, 4, dtype=torch.bool)}

    try:
        assert METHODS["nothing"].function is nothing
        assert method_of(Nothing(sparsity=0.5)).name == "nothing"
        assert masks(prune(nn.Linear(4, 1), Nothing(sparsity=0.5)))["weight"].all()
        with pytest.raises(InputError, match="named 'nothing' is registered already"):
            method("nothing", spec=Nothing, summary="")(nothing)
    finally:
        unregister("nothing")
    with pytest.raises(InputError, match="A Nothing is the spec of no method"):
        method_of(Nothing(sparsity=0.5))


@pytest.mark.parametrize(
    ("name", "fields", "sentence"),
    [
        ("global-magnitud", {}, r"Method 'global-magnitud' does not exist.*'global-magnitude'"),
        ("zhu-gupte", {}, r"Did you mean 'zhu-gupta'"),
        ("l1-structured", {"sparsity": 1.5}, r"sparsity = 1\.5 cannot be used; give the share"),
        ("l1-structured", {"sparsity": "half"}, r"sparsity = 'half' cannot be used; give the"),
        ("l1-structured", {}, r"Method 'l1-structured': sparsity is missing; give the share"),
        ("l1-structured", {"sparsty": 0.5}, r"field 'sparsty' does not exist.*'sparsity'"),
        ("l1-structured", {"sparsity": 0.5, "dim": 2}, r"dim = 2 cannot be used; use 0"),
        ("l1-structured", {"sparsity": 0.5, "layers": 3}, r"layers = 3 cannot be used; give a"),
        ("l1-structured", {"sparsity": 0.5, "schedule": "no"}, r"schedule = .* use \"one-shot\""),
        ("n-of-m", {"n": 5}, r"Method 'n-of-m': cannot keep n = 5 of m = 4"),
        ("n-of-m", {"sparsity": 0.5}, r"field 'sparsity' does not exist; there are: .*'n', 'm'"),
        (
            "l1-unstructured",
            {"sparsity": 0.5, "schedule": {"kind": "gmp", "end": 3}},
            r"'l1-unstructured', schedule.gmp: ends at 3, not after its start at 10",
        ),
        (
            "l1-unstructured",
            {"sparsity": 0.5, "schedule": {"kind": "gmp", "stop": 3}},
            r"Method 'l1-unstructured' has no field 'schedule.gmp.stop'; leave it out",
        ),
        (
            "l1-unstructured",
            {"sparsity": 0.5, "schedule": "polynomial"},
            r"schedule.polynomial.end is missing",
        ),
    ],
)
def test_bad_specs_get_a_sentence(name: str, fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        spec_of(name, **fields)
    assert str(caught.value).count("\n") == 0


def test_an_unknown_name_lists_recipes_too() -> None:
    with pytest.raises(UnknownNameError, match=r"'gmp-pretrained'"):
        spec_of("no such method")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_makes_a_spec(name: str) -> None:
    spec = spec_of(name, sparsity=0.5)
    assert spec.sparsity == 0.5
    assert method_of(spec).name == RECIPES[name].method
    assert RECIPES[name].summary
    assert RECIPES[name].source


def test_recipes_are_the_papers_and_can_be_changed() -> None:
    filters = spec_of("agp-filters", sparsity=0.45)
    assert filters == L1Structured(sparsity=0.45, layers=("@conv",), schedule=AGP())
    assert spec_of("gmp-pretrained", sparsity=0.99).schedule == GMP_PRETRAINED
    short = spec_of("iterative-magnitude", sparsity=0.5, schedule=Iterative(epochs=1))
    assert short == GlobalMagnitude(sparsity=0.5, schedule=Iterative(epochs=1))


def test_a_spec_survives_a_file() -> None:
    for spec in (
        NOfM(n=1, m=8),
        GlobalMagnitude(sparsity=0.9, schedule=GMP_PRETRAINED, layers=("conv*", "!@last")),
    ):
        assert spec_from(json.loads(json.dumps(fields_of(spec)))) == spec
    with pytest.raises(InputError, match="no key 'method'"):
        spec_from({"sparsity": 0.5})


def test_parts_of_a_schedule_change_the_recipes_own() -> None:
    changed = spec_of("iterative-magnitude", sparsity=0.5, schedule={"epochs": 2})
    assert changed.schedule == Iterative(epochs=2, rewind_to=0)
    other = spec_of("iterative-magnitude", sparsity=0.5, schedule={"kind": "agp"})
    assert other.schedule == AGP()
    kinds = [spec_of("int8-static", examples=7), spec_of("int8-dynamic")]
    assert [spec_from(fields_of(kind)) for kind in kinds] == kinds
