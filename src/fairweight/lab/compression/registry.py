"""The registry of methods: a method is one frozen dataclass and one function.

Other packages add methods by an entry point of the group `fairweight.methods` that names a
module; it is imported when methods are first looked for, and registers its own with `@method`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from torch import Tensor

from fairweight.base.registry import Registry
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.compression import (
    AGP,
    GMP_PRETRAINED,
    GMP_RANDOM_INIT,
    GMP_RANDOM_INIT_SHORT,
    Iterative,
    Pruning,
    Quantization,
    ZhuGupta,
)
from fairweight.specs.fields import recorded
from fairweight.specs.toml import read_spec

if TYPE_CHECKING:
    import onnx

ENTRY_POINTS = "fairweight.methods"
REMEDIES = {
    "sparsity": "give the share of weights to remove, from 0 to 1, such as 0.9",
    "layers": 'give a list of patterns, such as ["layer1.*", "!@last"]',
    "dim": "use 0 (filters, which make outputs) or 1 (input channels)",
    "seed": "give a whole number of at least 0",
    "n": "give how many weights of each m stay, such as 2 (in commands --method-option n=2)",
    "m": "give the size of a group of neighbouring input channels, such as 4 (--method-option m=4)",
    "indivisible": 'use "refuse" or "leave"',
    "bits": "give the bits of a weight, from 2 to 8 (in commands --method-option bits=4)",
    "examples": "give how many training examples set the ranges, at least 1",
    "reduce_range": "use true, false, or leave it out",
    "schedule": 'use "one-shot", "agp", "gmp", "zhu-gupta", "polynomial" or "iterative"',
}

Masks = dict[str, Tensor]  # parameter name → True where it stays
Function = TypeVar("Function", bound=Callable[..., Any])


class PartlyCompressed(NamedTuple):
    """An ONNX model of which some units are compressed."""

    model: onnx.ModelProto
    saved_bytes: int  # beside the float model; of simulations as if numbers were packed
    facts: dict[str, Any]  # for its card


@dataclass(frozen=True, kw_only=True)
class Method:
    """What can be done to a model.

    Parameters
    ----------
    acts_on
        `weights`: the function is `(model, spec, step) -> masks`. `file`: it is
        `(source, out, inputs, spec)` and writes an ONNX file from another one, with so many inputs
        as `spec.calibration_examples` says.
    output
        What a compressed model is on disk: a folder, or an ONNX file.
    trains
        Whether a model may, must or cannot be trained (finetuned) with it.
    calibrates
        Of methods on files: whether it matters what the inputs are, not only their shape.
    seconds
        What it takes beyond reading data and training, for estimates of cost.
    weight_bits
        Of one weight on disk, for the same.
    simulated
        Whether numbers are shorter or zero in name only, so that a model is no faster.
    by_unit
        Of methods on files: `(model, spec, inputs, folder)` gives a function from units to a
        `PartlyCompressed`; what all units share is computed once, and may be kept in the folder.
        None where a method cannot leave units out.
    """

    name: str
    spec: type[Any]
    function: Callable[..., Any]
    summary: str  # one line, shown by `fairweight methods`
    source: str  # who uses it
    acts_on: Literal["weights", "file"] = "weights"
    output: Literal["folder", "onnx"] = "folder"
    trains: Literal["may", "must", "never"] = "may"
    calibrates: bool = False
    seconds: float = 0.0
    weight_bits: int = 32
    simulated: bool = False
    by_unit: Callable[..., Callable[..., PartlyCompressed]] | None = None


METHODS: Registry[Method] = Registry("method", group=ENTRY_POINTS)
unregister = METHODS.remove


def method(
    name: str, *, spec: type[Any], summary: str, source: str = "", **facts: Any
) -> Callable[[Function], Function]:
    """Register `(model, spec, step) -> masks`, which says what stays after a step.

    `step` is what is due now (nothing, where its amount is 0), and None for the whole of
    `spec.sparsity` at once. Specs are subclasses of `ToSparsity`, which has the common fields.
    `facts` are further fields of `Method`, for methods that are not of this kind.
    """

    def add(function: Function) -> Function:
        entry = Method(
            name=name, spec=spec, function=function, summary=summary, source=source, **facts
        )
        METHODS.add(name, entry)
        return function

    return add


def methods() -> tuple[Method, ...]:
    """Every method: our own, then those of other packages."""
    return tuple(METHODS.values())


def method_of(spec: Pruning | Quantization) -> Method:
    """The method that a spec is of."""
    for candidate in METHODS.values():
        if type(spec) is candidate.spec:
            return candidate
    raise InputError(
        f"A {type(spec).__name__} is the spec of no method; make one with spec_of(NAME, …), where "
        f"NAME is one of: {', '.join(METHODS)}."
    )


def base_method(name: str) -> Method:
    """The method of that name, or the one that the recipe of that name is made of."""
    recipe = RECIPES.get(name)
    if recipe is None and name not in METHODS:
        raise UnknownNameError("Method", name, [*METHODS, *RECIPES])
    return METHODS[name if recipe is None else recipe.method]


def spec_of(name: str, /, **given: Any) -> Any:
    """The spec of a method (a recipe, a kind of int8) with these fields, or a sentence why not.

    >>> spec_of("global-magnitude", sparsity=0.9).layers
    ('*',)
    >>> spec_of("global-magnitude", sparsity=1.5)
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: Method 'global-magnitude': sparsity = 1.5 cannot be used; give
    the share of weights to remove, from 0 to 1, such as 0.9.
    """
    found = base_method(name)
    fields = dict(given)
    if (recipe := RECIPES.get(name)) is not None:
        fields = dict(recipe.fields) | fields
        # Parts of a schedule change the recipe's own.
        schedule = given.get("schedule")
        if isinstance(schedule, Mapping) and "kind" not in schedule and "schedule" in recipe.fields:
            fields["schedule"] = asdict(recipe.fields["schedule"]) | dict(schedule)
    return read_spec(found.spec, fields, f"Method '{found.name}'", REMEDIES)


def fields_of(spec: Pruning | Quantization) -> dict[str, Any]:
    """A spec as plain values, for a file or a key: the method's name and its fields.

    >>> from fairweight.specs.compression import NOfM
    >>> fields = fields_of(NOfM(n=1))
    >>> fields["method"], fields["n"], spec_from(fields) == NOfM(n=1)
    ('n-of-m', 1, True)
    """
    return {"method": method_of(spec).name, **recorded(spec)}


def spec_from(given: Mapping[str, Any]) -> Any:
    """The spec that `fields_of` wrote."""
    if "method" not in given:
        raise InputError(
            "The compression has no key 'method'; give the name of a method (fairweight methods "
            "lists them)."
        )
    return spec_of(given["method"], **{k: v for k, v in given.items() if k != "method"})


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
