"""A study: populations of dense models, what is done to them, and how they are audited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from fairweight.base.trust import NAME
from fairweight.specs.data import Data
from fairweight.specs.similarity import Similarity
from fairweight.specs.training import Distillation, Model, Training

Count: TypeAlias = Annotated[int, Field(ge=1, le=10**9)]
Members: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]
Name: TypeAlias = Annotated[str, Field(pattern=f"^{NAME}$")]
Grid: TypeAlias = Mapping[str, tuple[Any, ...]]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Copy:
    """What is done to dense members: one variant for every combination of the grid.

    Parameters
    ----------
    method
        A method, a recipe or a kind of int8 (`fairweight methods`).
    fields, grid
        Fields of the method: the same for all variants, and lists of values to combine; `method`,
        `rewind` and `distill` (`["plain", "kd", "at+kd"]`) may be in the grid too.
    name
        What the variants are called, with fields in braces: `pruned-{sparsity}`,
        `{method}-{rewind}` (rewind or finetune), `{distill}-{sparsity}`. By default the method
        with its sparsity.
    start
        `trained` derives copies from dense members; `first-weights` prunes while a model trains
        from its first weights.
    finetune
        How copies are trained; none for pruning at once and for int8.
    rounds, rewind
        Prune again and again: each round starts from the one before, and with `rewind` from the
        first weights. Every round is a variant, called NAME-rK.
    distill
        How copies are held near the dense member that they come from while they train.
    members
        How many dense members get a copy; all by default.
    from_seed
        The one dense member that all copies come from and are taught by, which then differ in
        their own seeds only; by default each has its own.
    remove_channels
        Of structured methods: whether channels are really removed.
    """

    method: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)
    name: str | None = None
    start: Literal["trained", "first-weights"] = "trained"
    finetune: Training | None = None
    rounds: Annotated[int, Field(ge=1, le=1000)] | None = None
    rewind: bool = False
    distill: Distillation | None = None
    members: Members | None = None
    from_seed: Annotated[int, Field(ge=0)] | None = None
    remove_channels: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> Copy:
        if self.rewind and self.rounds is None:
            raise ValueError("rewind needs rounds: it goes back after each of them")
        if self.rounds is not None and self.finetune is None:
            raise ValueError("rounds need finetune: how each round is trained")
        if self.rounds is not None and self.start == "first-weights":
            raise ValueError("rounds start from trained members; leave start out")
        distils = self.distill is not None or "distill" in self.grid
        if distils and self.finetune is None and self.start == "trained":
            raise ValueError("distill needs finetune: how copies are trained")
        if self.start == "first-weights" and self.remove_channels:
            raise ValueError('remove_channels needs start = "trained"')
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Expected:
    """The published size of a data set, to estimate costs where its files are absent.

    Parameters
    ----------
    train, test
        Numbers of examples.
    size, channels, classes
        Of the images, and how many outputs a network has.
    """

    train: Count
    test: Count
    size: Count
    channels: Count = 3
    classes: Count = 10


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Experiment:
    """One population of dense models on one data set, its copies, and their audit.

    Parameters
    ----------
    name
        Of the experiment within the study.
    data, model, training
        What dense members are; the training's seed is each member's own.
    members, first_seed
        How many dense members there are, with the seeds first_seed, first_seed + 1, …
    teachers
        Another experiment of the study, whose dense members stand in for this one's: copies start
        from them and are taught by them, and are finetuned on this experiment's data.
    copies
        What is done to them.
    grid
        Lists of values of fields of this experiment, such as `{"model.width": [0.5, 1]}`: one
        experiment for each combination.
    groups, cluster, positive
        What the audit asks about; columns of the data set.
    fixed_side
        Of bias amplification: the level whose side is always watched, without rules for skipping
        (`backdoor=yes`).
    setting
        What the experiment is one of several of: `joint`, `single`, `grayscale`. Those of a study
        with a setting are set side by side.
    scores
        Whether predictions hold the probabilities of all classes.
    ask_validation
        Whether the validation examples are predicted too, for what is fitted on predictions, such
        as thresholds.
    audit
        Whether the experiment is audited; large sweeps are only tabulated.
    audited, audited_tasks
        The variants, and of several attributes those, that the audit looks at; by default all. One
        attribute is audited as a label of its own.
    n_boot
        Replicates of the audit's bootstrap.
    explain
        What else is looked for: exemplars, slices, properties (of images), individuals (the
        clusters), similarity (of representations, where their distances were measured).
    individual_group
        A column by which individuals are compared.
    tie_rule, fill
        Of exemplars: who wins equally many votes (HK's code: `max`), and whether a cut of the
        distance is filled at random with examples on which nothing differs (`random`, as there).
    similarity
        How representations of copies are compared with those of the dense member that they come
        from; by default they are not.
    figures
        Ids of the figures that are drawn of the audit (`docs/gallery.md`).
    expected
        For estimating costs without the data; it decides nothing else.
    optional
        Whether the experiment is left out where its data are not there.
    """

    name: Name
    data: Data
    model: Model
    training: Training
    members: Members = 5
    first_seed: Annotated[int, Field(ge=0, lt=2**62)] = 0
    teachers: Name | None = None
    copies: tuple[Copy, ...] = ()
    grid: Grid = field(default_factory=dict)
    groups: tuple[str, ...] | None = None
    cluster: str | None = None
    positive: str | None = None
    fixed_side: str | None = None
    setting: Name | None = None
    scores: bool = True
    ask_validation: bool = False
    audit: bool = True
    audited: tuple[str, ...] | None = None
    audited_tasks: tuple[str, ...] | None = None
    n_boot: Annotated[int, Field(ge=20)] = 2000
    explain: tuple[
        Literal["exemplars", "slices", "properties", "individuals", "similarity"], ...
    ] = ()
    individual_group: str | None = None
    tie_rule: Literal["disjoint", "max", "min", "negative", "random", "baseline"] = "disjoint"
    fill: Literal["random"] | None = None
    similarity: Similarity | None = None
    figures: tuple[str, ...] = ()
    expected: Expected | None = None
    optional: bool = False


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Study:
    """Experiments that belong together.

    Parameters
    ----------
    name, title
        Its name on the command line, and what it is about in one line.
    classes
        Whether the accuracies of all classes of all experiments are explained by regressions.
    experiment
        Its experiments.
    """

    name: Name
    title: str = ""
    classes: bool = False
    experiment: Annotated[tuple[Experiment, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> Study:
        names = [one.name for one in self.experiment]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"has two experiments named '{name}'; give each its own name")
        return self
