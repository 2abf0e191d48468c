"""How the representations of two networks are compared."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

Measure: TypeAlias = Literal["svcca", "cka"]
Variant: TypeAlias = Literal["simon-says", "raghu"]
Maps: TypeAlias = Literal["per-location", "pooled", "folded", "flattened"]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Similarity:
    """A measure of how alike two networks represent the same examples.

    Parameters
    ----------
    measure
        SVCCA, or linear CKA.
    variant
        Of SVCCA: `simon-says` keeps directions by the singular values of activations as they are;
        `raghu` centres them first, keeps directions by variance, and leaves out the smallest
        correlations.
    threshold
        The share of singular values (`raghu`: of variance) that the directions are chosen by.
    centred
        Whether activations are centred before directions are chosen; left out, as the variant
        does (written here when made).
    directions
        A fixed number of directions instead of the threshold; Google's tutorial takes 20.
    ridge
        Added to every direction's variance, as a share of their mean variance: for more features
        than samples, which are refused otherwise.
    maps
        What a convolutional map is: one comparison `per-location`, its mean over space (`pooled`),
        more samples (`folded`), or more features (`flattened`).
    size
        Side to which maps are brought for `per-location`.
    examples
        At most so many, drawn by a fixed seed; all if none is given.
    features
        Names of features, or paths of modules; by default the blocks and the logits.
    minibatch
        CKA as the mean over batches of an estimate that does not grow with the number of features.
    """

    measure: Measure = "svcca"
    variant: Variant = "simon-says"
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.99
    centred: bool | None = None
    directions: Annotated[int, Field(ge=1)] | None = None
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    maps: Maps = "per-location"
    size: Annotated[int, Field(ge=1)] = 16
    examples: Annotated[int, Field(ge=2)] | None = 6400
    features: tuple[Annotated[str, Field(min_length=1)], ...] | None = None
    minibatch: bool = False

    @model_validator(mode="after")
    def _says_whether_it_centres(self) -> Similarity:
        if self.minibatch and self.measure != "cka":
            raise ValueError(
                "minibatch is an estimate of CKA; use measure = 'cka', or leave minibatch out"
            )
        if self.features == ():
            raise ValueError("features names none; name some, or leave it out")
        if self.centred is None:
            # Written down, so that what a spec says never depends on a default of the day.
            object.__setattr__(self, "centred", self.variant == "raghu")
        return self
