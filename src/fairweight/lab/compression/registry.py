"""The registry of methods: a method is one frozen dataclass and one function.

Other packages add methods by an entry point of the group `fairweight.methods` that names a
module; it is imported when methods are first looked for, and registers its own with `@method`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from fairweight.base.registry import load_entry_points
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.compression.schedules import Step
from fairweight.specs.compression import (
    AGP,
    GMP_PRETRAINED,
    GMP_RANDOM_INIT,
    GMP_RANDOM_INIT_SHORT,
    Int8Dynamic,
    Int8Static,
    Iterative,
    Pruning,
    Quantization,
    ZhuGupta,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


# The kinds of int8 by name; they are specs like those of pruning, but act on an exported model.


@dataclass(frozen=True, kw_only=True)
class Quantiser:
    name: str
    spec: type[Any]
    summary: str
    source: str


QUANTISERS: dict[str, Quantiser] = {
    "int8-static": Quantiser(
        name="int8-static",
        spec=Int8Static,
        summary="Weights and activations in int8 (fixed point), ranges from 100 examples",
        source="Hooker et al.",
    ),
    "int8-dynamic": Quantiser(
        name="int8-dynamic",
        spec=Int8Dynamic,
        summary="Weights in int8, activations quantised as they come (hybrid)",
        source="Hooker et al.",
    ),
}


ENTRY_POINTS = "fairweight.methods"
REMEDIES = {
    "sparsity": "give the share of weights to remove, from 0 to 1, such as 0.9",
    "layers": 'give a list of patterns, such as ["layer1.*", "!@last"]',
    "dim": "use 0 (filters, which make outputs) or 1 (input channels)",
    "seed": "give a whole number of at least 0",
    "n": "give how many weights of each m stay, such as 2",
    "m": "give the size of a group of neighbouring input channels, such as 4",
    "indivisible": 'use "refuse" or "leave"',
    "examples": "give how many training examples set the ranges, at least 1",
    "reduce_range": "use true, false, or leave it out",
    "schedule": 'use "one-shot", "agp", "gmp", "zhu-gupta", "polynomial" or "iterative"',
}

Masks = dict[str, Tensor]  # parameter name → True where it stays
Function = TypeVar("Function", bound=Callable[..., Masks])


@dataclass(frozen=True, kw_only=True)
class Method:
    name: str
    spec: type[Any]
    function: Callable[[nn.Module, Any, Step | None], Masks]
    summary: str  # one line, shown by `fairweight methods`
    source: str  # who uses it


_METHODS: dict[str, Method] = {}


def method(
    name: str, *, spec: type[Any], summary: str, source: str = ""
) -> Callable[[Function], Function]:
    """Register `(model, spec, step) -> masks`, which says what stays after a step.

    `step` is what is due now (nothing, where its amount is 0), and None for the whole of
    `spec.sparsity` at once. Specs are subclasses of `ToSparsity`, which has the common fields.
    """

    def add(function: Function) -> Function:
        if name in _METHODS:
            raise InputError(f"A method named '{name}' is registered already; choose another name.")
        _METHODS[name] = Method(
            name=name, spec=spec, function=function, summary=summary, source=source
        )
        return function

    return add


def unregister(name: str) -> None:
    """Remove a method (for tests and notebooks that define one again)."""
    _METHODS.pop(name)


def methods() -> tuple[Method, ...]:
    """Every method: our own, then those of other packages."""
    _load_own()
    _load_others()
    return tuple(_METHODS.values())


def method_named(name: str) -> Method:
    """The method of that name."""
    _load_own()
    if name not in _METHODS:
        _load_others()
    if name not in _METHODS:
        raise UnknownNameError("Method", name, _METHODS)
    return _METHODS[name]


def method_of(spec: Pruning) -> Method:
    """The method that a spec is of."""
    _load_own()
    for candidate in _METHODS.values():
        if type(spec) is candidate.spec:
            return candidate
    raise InputError(
        f"A {type(spec).__name__} is the spec of no method; make one with spec_of(NAME, …), where "
        f"NAME is one of: {', '.join(_METHODS)}."
    )


def spec_of(name: str, **given: Any) -> Any:
    """The spec of a method (a recipe, a kind of int8) with these fields, or a sentence why not.

    >>> spec_of("global-magnitude", sparsity=0.9).layers
    ('*',)
    >>> spec_of("global-magnitude", sparsity=1.5)
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: Method 'global-magnitude': sparsity = 1.5 cannot be used; give
    the share of weights to remove, from 0 to 1, such as 0.9.
    """

    if (recipe := RECIPES.get(name)) is not None:
        return spec_of(recipe.method, **_with_given(recipe, given))
    found: Method | Quantiser
    try:
        found = QUANTISERS[name] if name in QUANTISERS else method_named(name)
    except UnknownNameError:
        raise UnknownNameError("Method", name, [*_METHODS, *RECIPES, *QUANTISERS]) from None
    try:
        return TypeAdapter(found.spec).validate_python(given)
    except ValidationError as error:
        raise _refusal(error.errors(), found) from None


def _with_given(recipe: Recipe, given: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's fields with those given; parts of a schedule change the recipe's own."""
    both = dict(recipe.fields) | dict(given)
    schedule = given.get("schedule")
    if isinstance(schedule, Mapping) and "kind" not in schedule and "schedule" in recipe.fields:
        both["schedule"] = asdict(recipe.fields["schedule"]) | dict(schedule)
    return both


def fields_of(spec: Pruning | Quantization) -> dict[str, Any]:
    """A spec as plain values, for a file: the method's name and all fields.

    >>> from fairweight.specs.compression import NOfM
    >>> fields = fields_of(NOfM(n=1))
    >>> fields["method"], fields["n"], spec_from(fields) == NOfM(n=1)
    ('n-of-m', 1, True)
    """
    for kind in QUANTISERS.values():
        if isinstance(spec, kind.spec):
            return {"method": kind.name, **asdict(spec)}
    return {"method": method_of(spec).name, **asdict(spec)}  # type: ignore[arg-type]


def spec_from(given: Mapping[str, Any]) -> Any:
    """The spec that `fields_of` wrote."""
    if "method" not in given:
        raise InputError(
            "The compression has no key 'method'; give the name of a method (fairweight methods "
            "lists them)."
        )
    return spec_of(given["method"], **{k: v for k, v in given.items() if k != "method"})


def _load_own() -> None:
    importlib.import_module("fairweight.lab.compression.methods")


@cache
def _load_others() -> None:
    load_entry_points(ENTRY_POINTS, "method")


def _refusal(errors: list[ErrorDetails], found: Method | Quantiser) -> InputError:
    """A complaint as a sentence: which method, which field, what was given, what to do."""
    # A misspelt field explains a missing one.
    error = min(errors, key=lambda e: e["type"] != "unexpected_keyword_argument")
    where = f"Method '{found.name}'"
    place = [str(part) for part in error["loc"]]
    field = place[0] if place else ""
    if field == "schedule" and len(place) > 1:  # schedule, its kind, its field
        where, field = f"{where}, schedule '{place[1]}'", "".join(place[2:3])
    if error["type"] == "unexpected_keyword_argument":
        if len(place) > 2:
            return InputError(
                f"{where} has no field '{field}'; leave it out, or use another schedule."
            )
        return UnknownNameError(f"{where}: the field", field, [f.name for f in fields(found.spec)])
    remedy = REMEDIES.get(field, _lower(error["msg"]))
    if error["type"] == "missing":
        return InputError(f"{where}: {field} is missing; {remedy}.")
    if error["type"] == "value_error":
        return InputError(f"{where} {error['ctx']['error']}.")
    return InputError(f"{where}: {field} = {error['input']!r} cannot be used; {remedy}.")


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


# Names of the papers for a method with a schedule: `gmp-random-init`, `zhu-gupta` …


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A method with some of its fields given; whoever uses it may give others."""

    method: str
    fields: Mapping[str, Any]
    summary: str
    source: str


RECIPES: dict[str, Recipe] = {
    "agp-filters": Recipe(
        method="l1-structured",
        fields={"schedule": AGP(), "layers": ("@conv",)},
        summary="Filters of the smallest L1 norm, gradually over 120 epochs",
        source="Simon Says",
    ),
    "agp-weights": Recipe(
        method="l1-unstructured",
        fields={"schedule": AGP(), "layers": ("*", "!@last")},
        summary="The smallest weights of each layer, gradually over 120 epochs",
        source="Simon Says (code)",
    ),
    "gmp-random-init": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_RANDOM_INIT},
        summary="The smallest weights of all, gradually over 100 epochs from scratch",
        source="Iofinova et al.",
    ),
    "gmp-random-init-short": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_RANDOM_INIT_SHORT},
        summary="The smallest weights of all, gradually over 20 epochs from scratch",
        source="Iofinova et al.",
    ),
    "gmp-pretrained": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_PRETRAINED},
        summary="The smallest weights of all, gradually over 80 epochs from a trained model",
        source="Iofinova et al.",
    ),
    "zhu-gupta": Recipe(
        method="l1-unstructured",
        fields={"schedule": ZhuGupta()},
        summary="The smallest weights of each layer, gradually by step (1,000 to 9,000)",
        source="Hooker et al.",
    ),
    "iterative-magnitude": Recipe(
        method="global-magnitude",
        fields={"schedule": Iterative(rewind_to=0)},
        summary="20 % of the remaining weights after every 30 epochs, rewound to the start",
        source="Paganini",
    ),
}
