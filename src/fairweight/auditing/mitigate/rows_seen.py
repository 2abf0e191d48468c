"""Which rows a rule was fitted on, so that nobody judges it on the same ones."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from fairweight.auditing.answers import Answers
from fairweight.auditing.mitigate.some_rows import same_examples
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

DIGEST = 8  # bytes: among a million rows, two are confused once in forty million times


@dataclass(frozen=True)
class RowsSeen:
    """Digests of examples and clusters: enough to find a row again, not to list them."""

    examples: frozenset[bytes]
    clusters: frozenset[bytes] = frozenset()

    def as_json(self) -> dict[str, str]:
        """Digests side by side, in order, as base64."""
        return {"examples": _packed(self.examples), "clusters": _packed(self.clusters)}

    @classmethod
    def from_json(cls, held: Mapping[str, str]) -> RowsSeen:
        return cls(_unpacked(held["examples"]), _unpacked(held["clusters"]))


def rows_seen(tasks: Sequence[Answers]) -> RowsSeen:
    """The rows of these answers, all tasks together."""
    examples: set[bytes] = set()
    clusters: set[bytes] = set()
    for number, answers in enumerate(tasks):
        if answers.example_id is None:
            raise InputError(
                "Counts do not say which example is which; a mitigation needs prediction tables."
            )
        if number == 0 or not same_examples([answers, tasks[0]]):
            examples |= digests(answers.example_id)
        clusters |= digests(answers.cluster_names)
    return RowsSeen(frozenset(examples), frozenset(clusters))


def refuse_overlap(fitted: RowsSeen, judged: RowsSeen, what: str) -> list[str]:
    """Raise where a row (or a cluster) is in both; say where clusters cannot be compared.

    Parameters
    ----------
    what
        What was fitted or chosen, as the sentence begins: `The thresholds`.
    """
    for kind, first, second in (
        ("example", fitted.examples, judged.examples),
        ("cluster", fitted.clusters, judged.clusters),
    ):
        both = len(first & second)
        if both:
            some = f"1 {kind} is" if both == 1 else f"{both:,} {kind}s are"
            raise InputError(
                f"{what} would be judged on rows on which they were fitted: {some} in both "
                f"tables. Give rows apart (other examples, whole clusters); if these are different "
                f"{kind}s that share a name, rename them."
            )

    if fitted.examples and bool(judged.clusters) != bool(fitted.clusters):
        where = "are judged" if judged.clusters else "were fitted"
        return [
            f"{what} {where} on rows with clusters and the other rows have none, so it could not "
            "be checked that no cluster is in both."
        ]
    return []


def digests(names: Iterable[Any]) -> set[bytes]:
    """One digest per name; `1`, `1.0` and `"1"` are one name."""
    return {
        blake2b((canonical(name) or "").encode(), digest_size=DIGEST).digest() for name in names
    }


def _packed(held: frozenset[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(held))).decode("ascii")


def _unpacked(text: str) -> frozenset[bytes]:
    raw = base64.b64decode(text)
    return frozenset(raw[i : i + DIGEST] for i in range(0, len(raw), DIGEST))
