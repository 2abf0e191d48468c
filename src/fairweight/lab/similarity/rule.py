"""Which directions SVCCA compares, and how it sums up their correlations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.similarity import Similarity

Reduce: TypeAlias = Literal["singular-values", "variances"]
Keep: TypeAlias = Literal["below", "reach"]
Summary: TypeAlias = Literal["mean", "share"]


def _check_name(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UnknownNameError(what, given, known)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The choices of SVCCA; the defaults are those of Simon Says.

    Parameters
    ----------
    reduce
        By what directions are chosen: the running share of singular values or of their squares,
        or a fixed number of the largest.
    threshold, keep
        The directions whose running share lies `below` the threshold, or as many as `reach` it.
    centred
        Whether activations are centred before directions are chosen; correlations always are.
    summary, share
        `mean`: of all correlations. `share`: of the largest that make up this share of their sum.
    ridge
        Added to every direction's variance, as a share of the mean variance of those kept.
    """

    reduce: Reduce | int = "singular-values"
    threshold: float = 0.99
    centred: bool = False
    keep: Keep = "below"
    summary: Summary = "mean"
    share: float = 0.98
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.reduce, str):
            _check_name("reduce", self.reduce, get_args(Reduce))
        elif self.reduce < 1:
            raise InputError(f"reduce = {self.reduce} keeps no direction; use at least 1.")
        _check_name("keep", self.keep, get_args(Keep))
        _check_name("summary", self.summary, get_args(Summary))
        for name in ("threshold", "share"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(
                    f"{name} = {getattr(self, name)} cannot be used; give a share above 0 and up "
                    "to 1."
                )
        if not 0 <= self.ridge < float("inf"):
            raise InputError(f"ridge = {self.ridge} cannot be used; give 0 or more.")


# anatome's svcca with accept_rate .99, which Simon Says used.
SIMON_SAYS = Rule()
# google/svcca: centred, and the mean of the coefficients up to 98 % of their sum.
RAGHU = Rule(reduce="variances", centred=True, keep="reach", summary="share")


def rule_of(spec: Similarity) -> Rule:
    """The rule that a spec names."""
    published = SIMON_SAYS if spec.variant == "simon-says" else RAGHU
    return replace(
        published,
        reduce=published.reduce if spec.directions is None else spec.directions,
        threshold=spec.threshold,
        centred=bool(spec.centred),
        ridge=spec.ridge,
    )
