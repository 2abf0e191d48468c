"""How a model is trained: everything that decides the result, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.fields import later

Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeastZero: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Augment:
    """Random changes of a batch of training images; 0 and False leave it as it is.

    Parameters
    ----------
    crop
        Pixels of padding before a random crop to the image's own size.
    flip
        Mirror half of the images from left to right.
    rotate
        Largest rotation in degrees.
    shift, zoom
        Largest shift and change of size, as shares of the image.
    """

    crop: Annotated[int, Field(ge=0)] = 0
    flip: bool = False
    rotate: AtLeastZero = 0.0
    shift: Share = 0.0
    zoom: Share = 0.0


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Training:
    """One training run.

    Parameters
    ----------
    epochs
        Passes over the training images.
    lr, schedule, warmup_epochs, milestones, gamma
        Learning rate; `cosine` falls to 0, `step` multiplies by `gamma` at every milestone (in
        epochs), `constant` stays. It rises linearly during the warm-up.
    weight_decay, decay_of
        Of all parameters, and of those whose names fit a pattern: `{"*.bias": 0}`.
    loss
        `cross-entropy` of one label, or `binary` of every attribute by itself.
    weighting
        How much classes (of an attribute: its two values) weigh in the loss. `class-balanced`:
        all the same, however many examples they have. `worst-class`: alike at first, and after
        every epoch more for those with more errors in it.
    sampling, sampling_group
        Which training images an epoch sees: all of them once (`shuffled`), or as many as there are,
        drawn with replacement so that every class (`class-balanced`) or every level of the column
        `sampling_group` (`group-balanced`) is as likely as the others.
    precision
        Of the networks' arithmetic while they train. `bfloat16` keeps weights, losses and the
        optimiser in float32 and computes the layers in 16 bits: ResNet and EfficientNet train
        twice as fast on processors that have it. Evaluation and prediction are always in float32.
    keep_best
        Keep the weights of the epoch that is best on the validation images, not the last ones.
    seed
        Decides the order of images and all random changes of them.
    """

    epochs: Annotated[int, Field(ge=0)]
    batch_size: Annotated[int, Field(ge=1)] = 128
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: Positive = 0.1
    momentum: Share = 0.9
    nesterov: bool = False
    schedule: Literal["constant", "cosine", "step"] = "cosine"
    warmup_epochs: AtLeastZero = 0.0
    milestones: tuple[Positive, ...] = ()
    gamma: Positive = 0.1
    weight_decay: AtLeastZero = 0.0
    decay_of: tuple[tuple[str, AtLeastZero], ...] = ()
    augment: Augment = Augment()
    loss: Literal["cross-entropy", "binary"] = "cross-entropy"
    weighting: Literal["none", "class-balanced", "worst-class"] = later("none")
    sampling: Literal["shuffled", "class-balanced", "group-balanced"] = later("shuffled")
    sampling_group: str | None = later(None)
    precision: Literal["float32", "bfloat16"] = later("float32")
    keep_best: bool = True
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _fits_together(self) -> Training:
        if self.schedule == "step" and not self.milestones:
            raise ValueError('schedule = "step" needs milestones, such as milestones = [30, 60]')
        if self.schedule != "step" and self.milestones:
            raise ValueError('milestones mean something only with schedule = "step"')
        if (self.sampling == "group-balanced") != (self.sampling_group is not None):
            raise ValueError(
                "sampling_group is the column by which images are drawn: give both "
                'sampling = "group-balanced" and sampling_group, or neither'
            )
        if self.epochs and self.warmup_epochs >= self.epochs:
            raise ValueError("warmup_epochs must be below epochs")
        return self


# Which network is trained.


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Model:
    """A network; channels, size and outputs follow from the data.

    Parameters
    ----------
    architecture
        A registered name, or `module:function`.
    width
        Every layer's number of channels is multiplied by it.
    options
        Of the architecture, such as `{"stem": "imagenet"}`.
    init
        The weights that a training starts from: `random`, drawn by its seed, or `imagenet`, those
        that were trained on ImageNet, with a last layer of its own, or `shipped`, those of a
        network that is deployed as it is.
    weights
        Of `imagenet` and `shipped`: the SHA-256 of the file with the weights, so that a key says
        which they were; the file itself is named where a model is trained or a study is run.
    scaling
        How pixels are scaled: by mean and spread of the training images (`data`), or as the
        pretrained weights expect it (`weights`); by default the one that fits `init`.
    """

    architecture: Annotated[str, Field(min_length=1)]
    width: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    init: Literal["random", "imagenet", "shipped"] = later("random")
    weights: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = later(None)
    scaling: Literal["data", "weights"] | None = later(None)

    @model_validator(mode="after")
    def _fits_together(self) -> Model:
        if self.init == "random" and (self.weights is not None or self.scaling == "weights"):
            raise ValueError('weights and scaling = "weights" need init = "imagenet" or "shipped"')
        return self


# How a student is held near its teacher while it trains.

Weight: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

INITIAL_EPOCHS = 30  # as RepDistiller


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Distillation:
    """A sum of losses between the features of a student and of its teacher.

    Parameters
    ----------
    losses
        One loss or a sum: `kd`, `at+kd` (`fairweight methods` lists them).
    weights
        Of the losses and of the cross-entropy (`ce`); by default those that were published.
    options
        Of the losses: `{"kd": {"temperature": 2}}`.
    features, teacher_features
        For a network of your own: where its features are, `{"block1": "encoder.0"}`; the teacher's
        where they differ.
    initial_epochs
        Length of the stage before the training, for losses that act only there (`fsp`).
    cache
        Compute the teacher's features once for all training examples and keep them in memory; for
        small data sets without random changes of the images.
    """

    losses: Annotated[str, Field(min_length=1)]
    weights: Mapping[str, Weight] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=dict)
    teacher_features: Mapping[str, str] = field(default_factory=dict)
    initial_epochs: Annotated[int, Field(ge=1)] = INITIAL_EPOCHS
    cache: bool = False
