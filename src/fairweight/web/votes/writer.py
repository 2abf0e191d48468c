"""Answers of a task as files that are mapped, not read."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairweight.auditing.exemplars.risk import surest, unsure_scores
from fairweight.auditing.exemplars.selection import Marked, checked_request, marked
from fairweight.auditing.exemplars.votes import BLOCK, count_votes
from fairweight.auditing.pairing import pair_members
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.files import atomic_directory
from fairweight.base.types import Floats, Progress
from fairweight.tables.companions import parents

# What is kept of an example in single bits: kinds of exemplars, and how sure a side is.

# The order is that of the pages: from the plainest definition to the strictest cut.
KINDS: Mapping[str, int] = {
    "modal": 1 << 0,
    "unanimous": 1 << 1,
    "taxicab-90": 1 << 2,
    "taxicab-95": 1 << 3,
    "taxicab-99": 1 << 4,
    "surrogate-90": 1 << 5,
    "surrogate-95": 1 << 6,
    "surrogate-99": 1 << 7,
}
UNSURE = 1 << 8  # the mean score is in the middle
SCORED = 1 << 9  # there is one
BITS = np.uint16


def kinds_in(bits: int) -> list[str]:
    """The kinds whose bits are set.

    >>> kinds_in(5)
    ['modal', 'taxicab-90']
    """
    return [name for name, bit in KINDS.items() if bits & bit]


# What is worked out of the answers once, so that pages only look it up.

Columns = dict[str, NDArray[Any]]


def side_columns(answers: Answers, variant: str) -> Columns:
    """The most frequent answer of a variant's members, its votes, how many are right, how surely.

    Of equally frequent answers the first class.
    """
    given = answers.of(variant)
    n = answers.n_examples
    modal = np.zeros(n, dtype=given.dtype)
    votes, right = (np.zeros(n, dtype=np.min_scalar_type(len(given))) for _ in range(2))
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        block = given[:, here]
        counted = count_votes(block, block[:1])
        top = counted.first[0].copy()
        most = np.full(top.shape, counted.answers[0], dtype=block.dtype)
        for answer, count in zip(counted.answers[1:], counted.first[1:], strict=True):
            more = count > top
            np.copyto(most, np.asarray(answer, dtype=block.dtype), where=more)
            np.copyto(top, count, where=more)
        modal[here], votes[here] = most, top
        right[here] = (block == answers.label[here]).sum(axis=0)
    bits = np.zeros(n, dtype=BITS)
    certainty = np.full(n, np.nan, dtype=np.float32)
    # `surest` speaks of the baseline; every side is asked as if it were it.
    found = surest(replace(answers, baseline=variant))
    if found is not None:
        score, two = found[0].astype(np.float32), found[1]
        bits |= np.where(np.isnan(score), 0, SCORED).astype(BITS)
        bits |= np.where(unsure_scores(score, two), UNSURE, 0).astype(BITS)
        certainty = np.abs(score - np.float32(0.5)) if two else score
    # NaN comes last in numpy's order: who has no score is not known to be unsure.
    order = np.argsort(certainty, kind="stable").astype(np.uint32)
    return {
        "modal": modal,
        "modal_votes": votes,
        "right": right,
        "bits": bits,
        "uncertain_order": order,
    }


def variant_columns(answers: Answers, variant: str, bits: NDArray[Any]) -> tuple[Columns, int]:
    """Distances, percentiles and the ranking of a compressed variant, and the distances' scale.

    Its kinds of exemplars go into `bits`.
    """
    seen: Marked = marked(checked_request(answers), variant)
    for chosen in seen.sets:
        if chosen.mask is not None:
            cut = "" if chosen.percentile is None else f"-{chosen.percentile:g}"
            bits[chosen.mask] |= BITS(KINDS[f"{chosen.kind}{cut}"])
    columns = {
        "distance": seen.found.distance,
        "percentile": percentiles(seen.order),
        "distance_order": np.lexsort((seen.priority, -seen.order)).astype(np.uint32),
    }
    return columns, seen.found.scale


def percentiles(order: Floats) -> NDArray[np.float32]:
    """Of 100 examples, how many have a smaller value.

    >>> percentiles(np.array([0.0, 0.5, 0.5, 2.0])).tolist()
    [0.0, 25.0, 25.0, 75.0]
    """
    below = np.searchsorted(np.sort(order), order, side="left")
    return (100.0 * below / max(len(order), 1)).astype(np.float32)


def member_scores(answers: Answers) -> NDArray[np.float32] | None:
    """Of every member its score, (members, n): of the positive one of two classes, else of its own
    answer; NaN where there is none, None where nobody has any.
    """
    if answers.score is not None or answers.scores is None:
        return answers.score
    entry = {name: i for i, name in enumerate(answers.score_classes)}
    if answers.positive is not None:
        return answers.scores[:, :, entry[answers.classes[answers.positive]]]
    none = len(entry)
    place = np.array([entry.get(name, none) for name in answers.classes] + [none])
    found = np.full(answers.prediction.shape, np.nan, dtype=np.float32)
    for row, given in enumerate(answers.prediction):
        at = place[given]
        known = np.flatnonzero(at != none)
        found[row, known] = answers.scores[row, known, at[known]]
    return found


def partners(answers: Answers) -> list[int | None]:
    """Of every member of a compressed variant, the row of the baseline member it comes from."""
    start = answers.rows(answers.baseline).start
    first = answers.members[answers.rows(answers.baseline)]
    known = parents(answers.variants_table)
    found: list[int | None] = [None] * len(answers.members)
    for variant in answers.variants:
        span = answers.rows(variant)
        pairing = pair_members(first, answers.members[span], known)
        for row, parent in zip(range(span.start, span.stop), pairing.parent.tolist(), strict=True):
            found[row] = None if parent < 0 else start + parent
    return found


# Columns of text in a file: mapped, so that a million names cost nothing until one is read.

COLUMN = "text"
CHUNK = 8192  # texts that are looked through together


def write_texts(path: Path, values: Iterable[str | None]) -> None:
    """Write a column of text; None is a missing value."""
    import pyarrow.feather as feather

    # Text that came from files may hold lone surrogates, which Arrow cannot store.
    clean = [v if v is None else v.encode("utf-8", "replace").decode("utf-8") for v in values]
    table = pa.table({COLUMN: pa.array(clean, pa.large_string())})
    feather.write_feather(table, path, compression="uncompressed", chunksize=max(len(clean), 1))


class Texts(Sequence[Any]):
    """A column of text that `write_texts` wrote, by place."""

    def __init__(self, path: Path) -> None:
        with pa.memory_map(str(path)) as file:
            self._column: pa.ChunkedArray = pa.ipc.open_file(file).read_all().column(COLUMN)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self._column[place].to_pylist()
        return self._column[int(place)].as_py()

    def place(self, text: str | None) -> int | None:
        """The first place of a text, looked for one by one; None where it is not there."""
        # Without pyarrow.compute: importing it takes longer than looking through most columns.
        for start in range(0, len(self), CHUNK):
            part = self[start : start + CHUNK]
            if text in part:
                return start + int(part.index(text))
        return None

    def holds(self, texts: Collection[str]) -> set[str]:
        """Which of many texts are there; the column is read once."""
        wanted, found = set(texts), set[str]()
        for start in range(0, len(self), CHUNK):
            found |= wanted.intersection(self[start : start + CHUNK])
        return found

    def searched(self, text: str, order: NDArray[np.unsignedinteger[Any]]) -> int | None:
        """The same by halves, where `order` sorts the texts."""
        at = bisect_left(order, text, key=self.__getitem__)
        found = at < len(order) and self[order[at]] == text
        return int(order[at]) if found else None


INDEX = "index.json"
FORMAT = 1
MOST_FULL_SCORES = 2**26  # scores up to which they keep four bytes each; beyond it two
HIDDEN = frozenset({"image", "image_path"})  # texts that are shown as images


@dataclass(frozen=True)
class TaskHead:
    """What is known of a task without its arrays."""

    name: str | None
    n_examples: int
    classes: tuple[str, ...]
    n_label_classes: int
    positive: int | None
    baseline: str
    variants: tuple[str, ...]
    members: tuple[tuple[str, str], ...]  # variant, seed
    partners: tuple[int | None, ...]  # of every member, the row of the baseline's it comes from
    scales: tuple[int, ...]  # of every variant, what its votes add up to
    groups: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    integer_ids: bool
    scored: bool


def write_index(
    tasks: Iterable[Answers],
    folder: Path,
    *,
    cluster: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> None:
    """Write the index of one or several tasks; whole or not at all.

    Parameters
    ----------
    cluster
        What the clusters of the answers are called; they become a group column.
    progress
        Called with words, what is done and what there is to do.
    """
    heads: list[TaskHead] = []
    told: dict[str, None] = dict.fromkeys(notes)
    with atomic_directory(folder, completion=(INDEX,)) as room:
        for number, answers in enumerate(tasks):
            place = room / str(number)
            place.mkdir()
            heads.append(_write_task(answers, place, cluster, progress))
            told |= dict.fromkeys(answers.notes)
        held = {
            "format": FORMAT,
            "tasks": [asdict(head) for head in heads],
            "notes": list(told),
        }
        (room / INDEX).write_text(json.dumps(held), encoding="utf-8")


def _write_task(
    answers: Answers, folder: Path, cluster: str | None, progress: Progress | None
) -> TaskHead:
    steps = len(answers.variants) + 2
    told = "indexing votes" if answers.task is None else f"indexing votes of {answers.task}"
    if progress is not None:
        progress(told, 0, steps)
    scores = member_scores(answers)
    _save(folder, "label", answers.label)
    _save(folder, "prediction", answers.prediction)
    if scores is not None:
        kind = np.float32 if scores.size <= MOST_FULL_SCORES else np.float16
        _save(folder, "score", scores.astype(kind, copy=False))
    groups: dict[str, tuple[NDArray[Any], Sequence[str | None]]] = {
        column.name: (column.code, column.values) for column in answers.columns
    }
    if cluster is not None and cluster not in groups and answers.cluster is not None:
        groups[cluster] = answers.cluster, answers.cluster_names
    for i, (codes, levels) in enumerate(groups.values()):
        _save(folder, f"group{i}", codes.astype(np.min_scalar_type(len(levels))))
        write_texts(folder / f"level{i}.arrow", levels)
    texts = {name: v for name, v in answers.texts.items() if name not in HIDDEN}
    for i, values in enumerate(answers.numbers.values()):
        _save(folder, f"number{i}", values)
    for i, named in enumerate(texts.values()):
        write_texts(folder / f"text{i}.arrow", named.tolist())
    # Whole numbers stay numbers; other identities become text with the order that sorts it.
    ids = np.arange(answers.n_examples) if answers.example_id is None else answers.example_id
    integer_ids = ids.dtype.kind in "iu"
    if integer_ids:
        _save(folder, "id", ids)
    else:
        names = [str(value).encode("utf-8", "replace").decode("utf-8") for value in ids.tolist()]
        write_texts(folder / "id.arrow", names)
        order = sorted(range(len(names)), key=names.__getitem__)
        _save(folder, "id_order", np.array(order, dtype=np.uint32))
    scales = []
    for number, variant in enumerate((answers.baseline, *answers.variants)):
        columns = side_columns(answers, variant)
        if number:  # the baseline has no distance from itself
            more, scale = variant_columns(answers, variant, columns["bits"])
            columns |= more
            scales.append(scale)
        for name, values in columns.items():
            _save(folder, f"{name}{number}", values)
        if progress is not None:
            progress(told, number + 1, steps)
    if progress is not None:
        progress(told, steps, steps)
    return TaskHead(
        name=answers.task,
        n_examples=answers.n_examples,
        classes=answers.classes,
        n_label_classes=answers.n_label_classes,
        positive=answers.positive,
        baseline=answers.baseline,
        variants=answers.variants,
        members=tuple((m.variant, m.seed) for m in answers.members),
        partners=tuple(partners(answers)),
        scales=tuple(scales),
        groups=tuple(groups),
        numbers=tuple(answers.numbers),
        texts=tuple(texts),
        integer_ids=integer_ids,
        scored=scores is not None,
    )


def _save(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Write an array as a file that can be mapped."""
    np.save(folder / f"{name}.npy", np.ascontiguousarray(values), allow_pickle=False)
