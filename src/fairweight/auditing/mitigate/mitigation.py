"""A mitigated variant: new answers of the members of an old one."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import GroupColumn
from fairweight.auditing.pairing import pair_members
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.streams import stream
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical
from fairweight.tables.companions import parents


@dataclass(frozen=True)
class NewVariant:
    """The answers of one task after a mitigation, member by member."""

    name: str  # int8+thresholds
    origin: str  # int8
    prediction: Answer  # (members, n) into the classes of the answers
    score: NDArray[np.float32] | None = None  # (members, n)


def chosen_variants(
    answers: Answers, wanted: Sequence[str] | None, what: str = "The variant"
) -> tuple[str, ...]:
    """The variants to mitigate: those named, else all compressed ones."""
    if wanted is None:
        if not answers.variants:
            raise InputError("There is no variant but the baseline; give a compressed one too.")
        return answers.variants
    known = (*answers.variants, answers.baseline)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(what, name, known)
    return tuple(dict.fromkeys(wanted))


def prediction_table(
    tasks: Sequence[Answers], made: Sequence[Sequence[NewVariant]]
) -> pd.DataFrame:
    """A long prediction table of the baseline, the origins and the new variants.

    Columns: example_id, task (if there are any), variant, seed, label, prediction, score (if
    there are any), cluster, weight, and the groups. `fairweight audit` reads it as it is.
    """
    parts = []
    for answers, new_variants in zip(tasks, made, strict=True):
        names = np.array([*answers.classes, None], dtype=object)
        shared = {"example_id": answers.example_id, "label": names[answers.label]}
        if answers.task is not None:
            shared["task"] = np.full(answers.n_examples, answers.task, dtype=object)
        if answers.cluster is not None:
            shared["cluster"] = np.array(answers.cluster_names, dtype=object)[answers.cluster]
        if answers.weight is not None:
            shared["weight"] = answers.weight
        for column in answers.columns:
            shared[column.name] = np.array(column.values, dtype=object)[column.code]
        frame = pd.DataFrame(shared)
        origins = [
            NewVariant(
                variant,
                variant,
                answers.of(variant),
                None if answers.score is None else answers.score[answers.rows(variant)],
            )
            for variant in dict.fromkeys((answers.baseline, *(new.origin for new in new_variants)))
        ]
        for new in (*origins, *new_variants):
            for row, member in enumerate(answers.members[answers.rows(new.origin)]):
                prediction = names[new.prediction[row]]
                part = frame.assign(variant=new.name, seed=member.seed, prediction=prediction)
                if new.score is not None:
                    part = part.assign(score=new.score[row].astype(np.float64))
                parts.append(part)
    return pd.concat(parts, ignore_index=True)


def training_rows(tasks: Sequence[Answers]) -> pd.DataFrame | None:
    """The training table of these answers, with the names of the columns of `prediction_table`."""
    parts = [
        answers.train if answers.task is None else answers.train.assign(task=answers.task)
        for answers in tasks
        if answers.train is not None
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def variants_with(
    table: pd.DataFrame | None,
    pairs: Sequence[tuple[str, str]],
    measured: Mapping[str, Mapping[str, float]] | None = None,
) -> pd.DataFrame | None:
    """The variants table with a row for every member of a new variant, derived from its origin.

    Parameters
    ----------
    pairs
        New names with their origins. Neither thresholds nor overrides change size or speed, so
        what was measured of the origin holds.
    measured
        New name → column → what holds instead (a cascade's latency).
    """
    if table is None:
        return None

    parts = [table]
    for name, origin in pairs:
        own = table[table["variant"].map(canonical) == origin].assign(variant=name)
        if "parent" in own and own["parent"].notna().any():
            own = own.assign(parent=origin)  # of the same seed
        if "parent_variant" in own and own["parent_variant"].notna().any():
            own = own.assign(parent_variant=origin, parent_seed=own.get("seed"))
        parts.append(own.assign(**dict((measured or {}).get(name, {}))))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


# Which dense model answers for which compressed one, and what each of them costs.


def dense_partners(answers: Answers, variant: str) -> NDArray[np.intp]:
    """For every member of a variant, the row of its own dense model; the first where unknown."""
    first, second = answers.rows(answers.baseline), answers.rows(variant)
    if variant == answers.baseline:
        return np.arange(second.start, second.stop)
    pairing = pair_members(
        answers.members[first], answers.members[second], parents(answers.variants_table)
    )
    return np.asarray(np.maximum(pairing.parent, 0) + first.start)


def item_latency(table: pd.DataFrame | None, variant: str) -> float:
    """Milliseconds per item of a variant, the mean over its members; NaN where not measured.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["a", "a"], "latency_ms": [8.0, 12.0], "batch_size": 4})
    >>> item_latency(table, "a")
    2.5
    """
    if table is None or "latency_ms" not in table:
        return nan
    own = table[table["variant"].map(canonical) == variant]
    batch = own["batch_size"].fillna(1) if "batch_size" in own else 1
    latency = (own["latency_ms"] / batch).mean()
    return float(latency) if len(own) and not isnan(latency) else nan


# Answers on some of the rows, and two parts that share no example and no cluster.


def some_rows(answers: Answers, keep: NDArray[np.bool_]) -> Answers:
    """The answers on the rows where `keep` is true."""
    cluster, names = answers.cluster, answers.cluster_names
    if cluster is not None:
        used, cluster = np.unique(cluster[keep], return_inverse=True)
        names = tuple(names[i] for i in used) if names else ()
    return replace(
        answers,
        label=answers.label[keep],
        prediction=answers.prediction[:, keep],
        example_id=None if answers.example_id is None else answers.example_id[keep],
        columns=tuple(GroupColumn(c.name, c.values, c.code[keep]) for c in answers.columns),
        numbers={name: values[keep] for name, values in answers.numbers.items()},
        texts={name: values[keep] for name, values in answers.texts.items()},
        cluster=None if cluster is None else cluster.astype(np.int64),
        cluster_names=names,
        weight=None if answers.weight is None else answers.weight[keep],
        score=None if answers.score is None else answers.score[:, keep],
        scores=None if answers.scores is None else answers.scores[:, keep],
    )


def same_examples(tasks: Sequence[Answers]) -> bool:
    """Whether all tasks speak of the same examples, in the same order."""
    ids = [np.asarray(answers.example_id) for answers in tasks]
    return all(np.array_equal(own, ids[0]) for own in ids)


def two_parts(tasks: Sequence[Answers], random_state: int) -> tuple[list[Answers], list[Answers]]:
    """One half of the examples (of the clusters) to choose on, the other to judge on."""
    first = tasks[0]
    unit = np.arange(first.n_examples) if first.cluster is None else first.cluster
    n_units = int(unit.max()) + 1
    if n_units < 2:
        raise InputError(
            "There is one cluster only, which cannot be divided into rows to choose on and rows to "
            "judge on; give a validation table (--validation)."
        )
    chosen = np.zeros(n_units, dtype=np.bool_)
    order = stream(random_state, "choose and judge").permutation(n_units)
    chosen[order[: n_units // 2]] = True
    keep = chosen[unit]
    return [some_rows(a, keep) for a in tasks], [some_rows(a, ~keep) for a in tasks]


# Which rows a rule was fitted on, so that nobody judges it on the same ones.
#
# Rows are found again by their identity and, where they come under other identities or have none
# (the number of a row is no identity), by what they say: a fingerprint of label, predictions and
# scores (of groups where there are no scores). How much a fingerprint shows depends on how often
# rows are alike by accident, and a table tells that itself: if few of its rows have a twin in it,
# few rows of another table have one there either.

DIGEST = 8  # bytes: among a million rows, two are confused once in forty million times
LEAST_SHARE, LEAST_ROWS = 0.01, 5  # fewer rows that are alike are told, not refused
ACCIDENTS = 3.0  # how many times as often as expected rows may be alike by accident
UNSEEN = 3  # twins that two tables without any may well have had
BY_ACCIDENT = 1e-4  # chance below which two tables with the same rows are one table
TOLD_APART = 0.5  # share of unique rows, and of rows in common, at which fingerprints show little

Prints = NDArray[np.uint64]


@dataclass(frozen=True)
class Content:
    """What fingerprints are made of, beside task and label."""

    members: tuple[tuple[str, str], ...] = ()  # (variant, seed), whose predictions
    score: bool = False
    score_classes: tuple[str, ...] = ()  # of score vectors
    columns: tuple[str, ...] = ()  # of groups, where there are no scores


@dataclass(frozen=True)
class RowsSeen:
    """Digests of rows and clusters: enough to find a row again, not to list them."""

    examples: frozenset[bytes]
    clusters: frozenset[bytes] = frozenset()
    packed: bytes = b""  # a fingerprint of every row of every task, sorted
    content: Content = field(default_factory=Content)

    @property
    def prints(self) -> Prints:
        return np.frombuffer(self.packed, dtype="<u8").astype(np.uint64)

    def as_json(self) -> dict[str, Any]:
        """Digests side by side, in order, as base64."""
        return {
            "examples": _packed(self.examples),
            "clusters": _packed(self.clusters),
            "prints": base64.b64encode(self.packed).decode("ascii"),
            "content": dict(vars(self.content)),
        }

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> RowsSeen:
        """Read what `as_json` wrote; rules of version 0.1.0 have no fingerprints."""
        content = held.get("content", {})
        return cls(
            _unpacked(held["examples"]),
            _unpacked(held["clusters"]),
            base64.b64decode(held.get("prints", "")),
            Content(
                tuple((str(variant), str(seed)) for variant, seed in content.get("members", ())),
                bool(content.get("score", False)),
                tuple(str(name) for name in content.get("score_classes", ())),
                tuple(str(name) for name in content.get("columns", ())),
            ),
        )


def rows_seen(tasks: Sequence[Answers], like: RowsSeen | None = None) -> RowsSeen:
    """The rows of these answers, all tasks together.

    Parameters
    ----------
    like
        Rows to be compared with: fingerprints are made of what theirs are made of; there are none
        if that is not here.
    """
    examples: set[bytes] = set()
    clusters: set[bytes] = set()
    for number, answers in enumerate(tasks):
        if answers.example_id is None:
            raise InputError(
                "Counts do not say which example is which; a mitigation needs prediction tables."
            )
        if answers.has_id and (number == 0 or not same_examples([answers, tasks[0]])):
            examples |= digests(answers.example_id)
        clusters |= digests(answers.cluster_names)
    if like is None:
        first = tasks[0]
        scored = first.score is not None or first.scores is not None
        content = Content(
            members=tuple((member.variant, member.seed) for member in first.members),
            score=first.score is not None,
            score_classes=() if first.scores is None else first.score_classes,
            columns=() if scored else tuple(sorted(column.name for column in first.columns)),
        )
    else:
        content = like.content
    made = [_prints(answers, content) for answers in tasks]
    found = RowsSeen(frozenset(examples), frozenset(clusters), content=content)
    prints = [part for part in made if part is not None]
    if len(prints) < len(made):
        return found
    return replace(found, packed=np.sort(np.concatenate(prints)).astype("<u8").tobytes())


def refuse_overlap(fitted: RowsSeen, judged: RowsSeen, claim: str) -> list[str]:
    """Raise where a row or a cluster is in both; say what could not be compared.

    Parameters
    ----------
    claim
        What would be wrong, as the sentence begins: `The thresholds would be judged on rows on
        which they were fitted`.
    """
    for kind, first, second in (
        ("example", fitted.examples, judged.examples),
        ("cluster", fitted.clusters, judged.clusters),
    ):
        both = len(first & second)
        if both:
            some = f"1 {kind} is" if both == 1 else f"{both:,} {kind}s are"
            raise InputError(
                f"{claim}: {some} in both tables. Give rows apart (other examples, whole "
                f"clusters); if these are different {kind}s that share a name, rename them."
            )
    if not fitted.examples and not fitted.packed:
        return []
    notes = []
    if bool(judged.clusters) != bool(fitted.clusters):
        notes.append(
            "One of the two tables has clusters and the other has none, so it could not be checked "
            "that no cluster is in both."
        )
    named = bool(fitted.examples and judged.examples)
    return notes + _refuse_alike(fitted.prints, judged.prints, claim, named=named)


def _refuse_alike(fitted: Prints, judged: Prints, claim: str, *, named: bool) -> list[str]:
    """Raise where rows are the same under other identities; say where that cannot be seen."""
    unseen = (
        "That no row is in both tables was checked by identity alone: "
        if named
        else "Whether a row is in both tables could not be checked: rows have no identity (--id), "
        "and "
    )
    if not len(fitted) or not len(judged):
        return [f"{unseen}the tables do not have the same variants, seeds, scores and groups."]
    if np.array_equal(fitted, judged) and equal_by_accident(fitted) <= BY_ACCIDENT:
        raise InputError(_sentence(claim, len(judged), len(judged), named=named))
    both = alike(fitted, judged), alike(judged, fitted)
    for found in both:
        if found.refused:
            raise InputError(_sentence(claim, found.rows, found.of, named=named))
    able = [found for found in both if found.tells]
    if not able:
        return [f"{unseen}too many rows are alike in label, predictions, scores and groups."]
    few = max((found.rows for found in able if not found.expected), default=0)
    if not few:
        return []
    under = " under another identity" if named else ""
    rows = "1 row has" if few == 1 else f"{few:,} rows have"
    return [f"{rows} the same label, predictions and scores in both tables{under}."]


def _sentence(claim: str, rows: int, of: int, *, named: bool) -> str:
    under = "under another identity " if named else ""
    return (
        f"{claim}: {rows:,} of {of:,} rows of one table are in the other {under}"
        "(the same label, predictions, scores or groups). Give other examples; if these are other "
        "examples that look alike, give their scores with all digits."
    )


@dataclass(frozen=True)
class Likeness:
    """Rows of one table that are the only ones of their kind there and look like one of another."""

    rows: int
    of: int
    unique: float  # share of rows that are the only ones of their kind
    expected: float  # rows by accident
    limit: float  # the share of rows in the other table above which it is no accident

    @property
    def refused(self) -> bool:
        return self.rows >= LEAST_ROWS and self.rows / self.of > self.limit

    @property
    def tells(self) -> bool:
        """Whether half of the rows in common would be found."""
        return self.unique * TOLD_APART > self.limit


def alike(first: Prints, second: Prints) -> Likeness:
    """How many rows of the first table, unique there, have the fingerprint of one of the second.

    What is allowed is a multiple of what is expected by accident of independent rows, of what
    chance may add to it, and of a few twins that neither table happens to have.

    >>> found = alike(np.array([1, 2, 3, 4, 4], np.uint64), np.array([2, 4, 9], np.uint64))
    >>> found.rows, found.of, found.unique, round(found.expected, 3)  # 2 × 1 twin × 3 / 5 rows
    (1, 5, 0.6, 1.2)
    """
    values, counts = np.unique(first, return_counts=True)
    n, m = len(first), len(second)
    expected = _accidents(counts, np.unique(second, return_counts=True)[1])
    unseen = UNSEEN * 2 * n * m / (n**2 + m**2)
    return Likeness(
        rows=int(np.isin(values[counts == 1], second).sum()),
        of=n,
        unique=float((counts == 1).sum() / n),
        expected=expected,
        limit=LEAST_SHARE + ACCIDENTS * (expected + 2 * expected**0.5 + unseen) / n,
    )


def _accidents(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """How many rows that are unique in a first table have a like one in a second by accident.

    Of counts of every kind of row. Kinds of probability p give the sum of n p e⁻ⁿᵖ (1 − e⁻ᵐᵖ). The
    larger table tells it without knowing p, because counts c of mean λ have a mean of c sᶜ⁻¹ of
    λ exp(λ (s − 1)) (Good and Toulmin, 1956); terms that would lessen it are left out.
    """
    n, m = float(first.sum()), float(second.sum())
    if n >= m:  # n p e⁻ⁿᵖ m p, of which kinds with two rows are half
        return 2 * float((first == 2).sum()) * m / n
    share = n / m
    several = second[second >= 2].astype(np.float64)
    found = (several * (1 - share) ** (several - 1)).sum() + 2 * share * (several == 2).sum()
    return float(share * found)


def equal_by_accident(prints: Prints) -> float:
    """About how probably another table of as many rows has every kind of row as often.

    Two draws of a multinomial with k cells agree with probability √(4πn) Π 1 / √(4π nᵢ).

    >>> round(equal_by_accident(np.repeat(np.array([1, 2], np.uint64), 50)), 3)  # 2 × 50 rows
    0.056
    """
    counts = np.unique(prints, return_counts=True)[1]
    log = np.log(4 * np.pi * counts.sum()) - np.log(4 * np.pi * counts).sum()
    return float(np.exp(0.5 * log))


def digests(names: Iterable[Any]) -> set[bytes]:
    """One digest per name; `1`, `1.0` and `"1"` are one name."""
    return {_digest(canonical(name) or "") for name in names}


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=DIGEST).digest()


def _prints(answers: Answers, content: Content) -> Prints | None:
    """A fingerprint of every row; None where something that it is made of is not there."""
    members = {(member.variant, member.seed): i for i, member in enumerate(answers.members)}
    columns = {column.name: column for column in answers.columns}
    places = {name: i for i, name in enumerate(answers.score_classes)}
    if (
        not content.members
        or not members.keys() >= set(content.members)
        or not columns.keys() >= set(content.columns)
        or not places.keys() >= set(content.score_classes)
        or (content.score and answers.score is None)
    ):
        return None
    classes = _hashes((*answers.classes, None))
    task = _hashes([answers.task])[0]
    parts = [np.full(answers.n_examples, task), classes[answers.label]]
    rows = [members[name] for name in content.members]
    parts += [classes[answers.prediction[row]] for row in rows]
    for name in content.columns:
        parts.append(_hashes(columns[name].values)[columns[name].code])
    if content.score and answers.score is not None:
        parts += [_bits(answers.score[row]) for row in rows]
    if content.score_classes and answers.scores is not None:
        at = [places[name] for name in content.score_classes]
        parts += [_bits(answers.scores[row, :, place]) for row in rows for place in at]
    found = np.zeros(answers.n_examples, dtype=np.uint64)
    for part in parts:
        found = _mixed(found ^ part)
    return found


def _hashes(names: Iterable[str | None]) -> Prints:
    texts = ["no value" if name is None else f"value {name}" for name in names]
    return np.array([int.from_bytes(_digest(text), "little") for text in texts], dtype=np.uint64)


def _bits(scores: NDArray[np.float32]) -> Prints:
    """The bits of scores; one pattern for every NaN, and for both zeros."""
    plain = np.where(np.isnan(scores), np.float32(np.nan), scores + np.float32(0))
    return plain.astype(np.float32).view(np.uint32).astype(np.uint64)


def _mixed(values: Prints) -> Prints:
    """Every bit spread over all bits (the finaliser of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Prints = values ^ (values >> np.uint64(31))
    return mixed


def _packed(held: frozenset[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(held))).decode("ascii")


def _unpacked(text: str) -> frozenset[bytes]:
    raw = base64.b64decode(text)
    return frozenset(raw[i : i + DIGEST] for i in range(0, len(raw), DIGEST))
