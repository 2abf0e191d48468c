"""Which examples a model is trained on, which choose its epoch, and which judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

# Below 1: a part of nothing but itself leaves the others empty.
Part: TypeAlias = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

PYTHON_ONLY = frozenset({"cache", "progress"})  # a folder that is written, and a function
_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class DrawnBackdoor:
    """A mark on training images that goes with a label; a seed decides which images get it.

    Parameters
    ----------
    kind
        `grayscale`, or a `yellow_square` in a corner.
    task
        The attribute (of two classes: the positive one) that the mark goes with.
    train
        Shares of the negative and of the positive training examples that are marked; by default
        those of the paper for this attribute. Of all others a half is.
    seed
        Of the draw.
    """

    kind: Literal["grayscale", "yellow_square"]
    task: str
    train: tuple[Share, Share] | None = None
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Data:
    """A data set and its parts.

    Parameters
    ----------
    name, options
        A data set of the registry (`fairweight datasets`), and options of its own.
    size
        Side in pixels to which square images are brought; as they are by default.
    validation
        Share of the training examples that decide which epoch is kept; a source with parts
        `train`, `val` and `test` has its own. 0: none.
    test
        Share that is held out where the source has no such part.
    own_parts
        Whether the source's own parts are used; if not, all its examples are divided by shares.
    stratify
        Group columns whose cells, with the label, are divided alike where shares are drawn.
    most_train
        At most so many training examples, drawn by the seed of the split; all by default.
    split_by
        A group column whose values stay together (one writer, one person) where shares are drawn.
    split_seed
        Of the draws, apart from the training's seed: a population is judged on the same examples.
    tasks
        Of several attributes only these: one (single), two (a co-trained pair), all by default.
    shares
        Of each named class only this share of the training examples (Simon Says).
    backdoor
        A file of marked examples (`fairweight.data.backdoor`), or how they are drawn.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    size: Annotated[int, Field(ge=1, le=10_000)] | None = None
    validation: Part = 0.1
    test: Annotated[float, Field(gt=0, lt=1)] = 0.3
    own_parts: bool = True
    stratify: tuple[str, ...] = ()
    most_train: Annotated[int, Field(ge=1)] | None = None
    split_by: str | None = None
    split_seed: Annotated[int, Field(ge=0)] = 0
    tasks: tuple[str, ...] = ()
    shares: Mapping[str, Share] = field(default_factory=dict)
    backdoor: str | DrawnBackdoor | None = None

    @model_validator(mode="after")
    def _leaves_some_to_train_on(self) -> Data:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test together must leave something to train on")
        if self.stratify and self.split_by is not None:
            raise ValueError("stratify and split_by cannot both say how shares are drawn")
        for name in PYTHON_ONLY & self.options.keys():
            raise ValueError(f"the option '{name}' of a data set is for Python only; leave it out")
        return self
