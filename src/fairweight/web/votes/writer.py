"""Answers of a task as files that are mapped, not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.risk import surest, unsure_scores
from fairweight.auditing.exemplars.selection import Marked, checked_request, marked
from fairweight.auditing.exemplars.votes import BLOCK, count_votes
from fairweight.auditing.pairing import pair_members
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.files import atomic_directory
from fairweight.base.types import Floats, Progress
from fairweight.tables.companions import parents

if TYPE_CHECKING:
    import pyarrow as pa


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


def kind_name(kind: str, percentile: float | None) -> str:
    """How a set of exemplars is called in a filter.

    >>> kind_name("modal", None), kind_name("taxicab", 95.0)
    ('modal', 'taxicab-95')
    """
    return kind if percentile is None else f"{kind}-{percentile:g}"


def kinds_in(bits: int) -> list[str]:
    """The kinds whose bits are set.

    >>> kinds_in(5)
    ['modal', 'taxicab-90']
    """
    return [name for name, bit in KINDS.items() if bits & bit]


# What is worked out of the answers once, so that pages only look it up.

Columns = dict[str, NDArray[Any]]


def narrowest(largest: int) -> Any:
    """The smallest unsigned type that holds a number."""
    return np.min_scalar_type(largest)


def side_columns(answers: Answers, variant: str) -> Columns:
    """The most frequent answer of a variant's members, its votes, how many are right, how surely.

    Of equally frequent answers the first class.
    """
    given = answers.of(variant)
    n = answers.n_examples
    modal = np.zeros(n, dtype=given.dtype)
    votes = np.zeros(n, dtype=narrowest(len(given)))
    right = np.zeros(n, dtype=narrowest(len(given)))
    for start in range(0, n, BLOCK):
        here = slice(start, start + BLOCK)
        block = given[:, here]
        modal[here], votes[here] = _most_frequent(block)
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
        name = kind_name(chosen.kind, chosen.percentile)
        if chosen.mask is not None:
            bits[chosen.mask] |= BITS(KINDS[name])
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


def group_codes(answers: Answers) -> Iterator[tuple[str, tuple[str | None, ...], NDArray[Any]]]:
    """Name, levels and codes of every group column."""
    for column in answers.columns:
        yield column.name, column.values, column.code.astype(narrowest(len(column.values)))


def _most_frequent(block: Answer) -> tuple[Answer, NDArray[Any]]:
    votes = count_votes(block, block[:1])
    top = votes.first[0].copy()
    modal = np.broadcast_to(np.asarray(votes.answers[0], dtype=block.dtype), top.shape).copy()
    for answer, count in zip(votes.answers[1:], votes.first[1:], strict=True):
        more = count > top
        np.copyto(modal, np.asarray(answer, dtype=block.dtype), where=more)
        np.copyto(top, count, where=more)
    return modal, top


# Columns of text in a file: mapped, so that a million names cost nothing until one is read.

COLUMN = "text"
CHUNK = 8192  # texts that are looked through together


def write_texts(path: Path, values: Iterable[str | None]) -> None:
    """Write a column of text; None is a missing value."""
    import pyarrow as pa
    import pyarrow.feather as feather

    # Text that came from files may hold lone surrogates, which Arrow cannot store.
    clean = [v if v is None else v.encode("utf-8", "replace").decode("utf-8") for v in values]
    table = pa.table({COLUMN: pa.array(clean, pa.large_string())})
    feather.write_feather(table, path, compression="uncompressed", chunksize=max(len(clean), 1))


class Texts(Sequence[Any]):
    """A column of text that `write_texts` wrote, by place."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

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
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self[order[middle]] < text:
                low = middle + 1
            else:
                high = middle
        found = low < len(order) and self[order[low]] == text
        return int(order[low]) if found else None


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

    def step(done: int) -> None:
        if progress is not None:
            progress(told, done, steps)

    step(0)
    scores = member_scores(answers)
    _save(folder, "label", answers.label)
    _save(folder, "prediction", answers.prediction)
    if scores is not None:
        kind = np.float32 if scores.size <= MOST_FULL_SCORES else np.float16
        _save(folder, "score", scores.astype(kind, copy=False))
    groups = _write_groups(answers, folder, cluster)
    texts = {name: v for name, v in answers.texts.items() if name not in HIDDEN}
    for i, values in enumerate(answers.numbers.values()):
        _save(folder, f"number{i}", values)
    for i, named in enumerate(texts.values()):
        write_texts(folder / f"text{i}.arrow", named.tolist())
    integer_ids = _write_ids(answers, folder)
    scales = _write_sides(answers, folder, step)
    step(steps)
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
        scales=scales,
        groups=groups,
        numbers=tuple(answers.numbers),
        texts=tuple(texts),
        integer_ids=integer_ids,
        scored=scores is not None,
    )


def _write_sides(answers: Answers, folder: Path, step: Callable[[int], None]) -> tuple[int, ...]:
    """Columns of the baseline (number 0) and of every variant."""
    scales = []
    for number, variant in enumerate((answers.baseline, *answers.variants)):
        columns = side_columns(answers, variant)
        if number:
            more, scale = variant_columns(answers, variant, columns["bits"])
            columns |= more
            scales.append(scale)
        for name, values in columns.items():
            _save(folder, f"{name}{number}", values)
        step(number + 1)
    return tuple(scales)


def _write_groups(answers: Answers, folder: Path, cluster: str | None) -> tuple[str, ...]:
    names: list[str] = []
    for name, levels, codes in group_codes(answers):
        _save(folder, f"group{len(names)}", codes)
        write_texts(folder / f"level{len(names)}.arrow", levels)
        names.append(name)
    if cluster is not None and cluster not in names and answers.cluster is not None:
        _save(
            folder,
            f"group{len(names)}",
            answers.cluster.astype(narrowest(len(answers.cluster_names))),
        )
        write_texts(folder / f"level{len(names)}.arrow", answers.cluster_names)
        names.append(cluster)
    return tuple(names)


def _write_ids(answers: Answers, folder: Path) -> bool:
    """Identities; whole numbers stay numbers, others become text with the order that sorts it."""
    ids = answers.example_id
    if ids is None:
        ids = np.arange(answers.n_examples)
    if ids.dtype.kind in "iu":
        _save(folder, "id", ids)
        return True
    texts = [str(value).encode("utf-8", "replace").decode("utf-8") for value in ids.tolist()]
    write_texts(folder / "id.arrow", texts)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    _save(folder, "id_order", np.array(order, dtype=np.uint32))
    return False


def _save(folder: Path, name: str, values: NDArray[Any]) -> None:
    np.save(folder / f"{name}.npy", np.ascontiguousarray(values), allow_pickle=False)
