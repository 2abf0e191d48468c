"""Requirements: what a variant must keep to be chosen at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.choose.objectives import Term, read_term
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError

_FORM = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>[^<>=\s]+)\s*")
ONE_SIDED = 0.05
MET, NEAR, MISSED = "met", "met, within noise", "missed"
NEARLY = "missed, within noise"


@dataclass(frozen=True)
class Requirement:
    """A term with a limit that may not be passed."""

    term: Term
    sign: str  # >=, >, <=, <
    limit: float

    @property
    def shown(self) -> str:
        """As it is printed: `accuracy >= 0.9`."""
        return f"{self.term.name} {self.sign} {self.limit:g}"

    def met(self, values: Floats) -> NDArray[np.bool_]:
        """Which values keep it; an undefined one does not."""
        compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
        found: NDArray[np.bool_] = compare[self.sign](values, self.limit)
        return found

    def shortfall(self, values: Floats) -> Floats:
        """By how much values miss it, in their own unit; 0 where they keep it."""
        lacking = self.limit - values if ">" in self.sign else values - self.limit
        found: Floats = np.where(self.met(values), 0.0, np.maximum(lacking, 0.0))
        return found


def read_requirement(text: str, columns: Sequence[str]) -> Requirement:
    """`accuracy>=0.9`, `worst_group_shift >= -0.02`, `size_bytes<=200000`.

    >>> read_requirement("size_bytes<=2e5", ["size_bytes"]).shown
    'size_bytes <= 200000'
    """
    found = _FORM.fullmatch(text)
    limit = None if found is None else _number(found["limit"])
    if found is None or limit is None:
        raise InputError(
            f"--require {text!r} cannot be read; write a name, a sign (>=, <=, >, <) and a number: "
            "--require 'accuracy>=0.9'."
        )
    return Requirement(read_term(found["name"], columns), found["sign"], limit)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def standings(requirement: Requirement, values: Floats, replicates: Floats) -> list[str]:
    """How every variant stands to a requirement, and whether noise could turn it round.

    Noise could where more than 5 % of the replicates stand on the other side.
    """
    kept = requirement.met(values)
    other = (requirement.met(replicates) != kept).mean(axis=0) > ONE_SIDED
    words = {(True, False): MET, (True, True): NEAR, (False, False): MISSED, (False, True): NEARLY}
    return [words[bool(k), bool(o)] for k, o in zip(kept, other, strict=True)]


def nearest_miss(requirements: Sequence[Requirement], values: Floats) -> tuple[int, Floats]:
    """The variant that lacks least, and by how much it misses each requirement.

    Parameters
    ----------
    values
        (V, requirements). Misses of different units are compared relative to the spread of the
        variants' values (or to the limit, where they are all alike).
    """
    short = np.stack([r.shortfall(values[:, i]) for i, r in enumerate(requirements)], axis=1)
    short = np.where(np.isnan(values), np.inf, short)
    spread = np.array([np.nanstd(values[:, i]) for i in range(len(requirements))])
    limits = np.array([abs(r.limit) for r in requirements])
    unit = np.where(spread > 0, spread, np.where(limits > 0, limits, 1.0))
    missed = (~np.stack([r.met(values[:, i]) for i, r in enumerate(requirements)], axis=1)).sum(1)
    far = (short / unit).sum(axis=1)
    best = int(np.lexsort((missed, far))[0])
    return best, short[best]
