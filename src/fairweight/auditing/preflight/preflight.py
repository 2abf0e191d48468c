"""Which attributes, classes, groups and examples are at risk, from the dense model alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing import schema
from fairweight.auditing.exemplars.enrichment import Partition, partitions, training_sizes
from fairweight.auditing.exemplars.risk import DISAGREEMENT, LOW_CONFIDENCE, NO_SCORES, risk_scores
from fairweight.auditing.prediction_matrix import Answers, answers_of
from fairweight.auditing.preflight.evidence import (
    ERROR_RATE,
    LEVELS,
    RARITY,
    Limited,
    Support,
    best_score,
    beyond,
    mean_of,
    rarity,
    read_evidence,
    scores_of_examples,
    support,
)
from fairweight.auditing.vocabulary import joined, of_answers
from fairweight.base.files import atomic_directory
from fairweight.specs.audit import AuditOptions
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec

AT_RISK, NOT_HIGHER, CANNOT_TELL = "at risk", "not higher", "cannot tell"
FEWEST_EXAMPLES = 10
UNTRIED = (LOW_CONFIDENCE, DISAGREEMENT, ERROR_RATE)  # what is shown where no study has tried any


@dataclass(frozen=True)
class Preflight:
    """What a dense model alone can say; every number is in one of the frames.

    parts     `preflight`: a row per part and score. `value` is the part's mean score with its
              interval, `excess` its distance from everybody else (from an even share for `rarity`)
              with limits that hold for all parts of its kind together, `rank` 1 the highest.
    examples  task, example_id, label, prediction, one column per score, rank by the best of them
    chosen    level → the score that did best in past studies, among those available here
    support   level → what that score was worth in past studies
    """

    parts: pd.DataFrame
    examples: pd.DataFrame
    chosen: dict[str, str]
    support: dict[str, Support]
    n_members: int
    n_examples: int
    alpha: float
    notes: tuple[str, ...]

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write `preflight.csv`, `preflight_examples.csv` and the evidence."""
        frames = {
            "preflight": self.parts,
            "preflight_examples": self.examples,
            "preflight_evidence": read_evidence(),
        }
        with atomic_directory(directory, completion=(), overwrite=overwrite) as folder:
            for name, frame in frames.items():
                frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        return Path(directory)


def preflight_of(tables: TableSpec, options: AuditOptions) -> Preflight:
    """Read the dense model's tables and rank; notes of reading come first."""
    with align(tables, alone=True) as aligned:
        tasks = answers_of(aligned, tables.positive)
        notes = list(aligned.notes)
        if aligned.variants:
            shown = ", ".join(f"'{name}'" for name in aligned.variants)
            notes.append(
                f"Only the baseline '{aligned.baseline}' was looked at; not used: {shown}. "
                "Seeds of one model share a NAME: dense=a.csv dense=b.csv."
            )
    notes += joined(map(of_answers, tasks)).check(tasks[0].baseline, force=tables.force)
    found = preflight(tasks, read_evidence(), alpha=options.alpha, min_group=options.min_group)
    return replace(found, notes=(*notes, *found.notes))


def preflight(
    tasks: Sequence[Answers],
    evidence: pd.DataFrame,
    *,
    alpha: float = 0.05,
    min_group: int = FEWEST_EXAMPLES,
) -> Preflight:
    """Rank the parts of the data by how likely compression is to change their answers.

    Parameters
    ----------
    tasks
        The answers of every task (one, where there is a single one); only the baseline's members
        are looked at.
    evidence
        What each score was worth in past studies (`evidence.read_evidence`).

    Notes
    -----
    A part is `at risk` where its score lies above everybody else's, by limits that hold for all
    parts of its kind together, and the score foretold who lost in past studies (the lower limit
    over studies lies above chance). It is `not higher` where past studies support the score and the
    limits do not lie above: that is no promise. Everything else is `cannot tell`, with the reason.
    """
    rows: list[dict[str, Any]] = []
    n_members = len(tasks[0].of(tasks[0].baseline))
    members = "one" if n_members == 1 else "several"
    if len(tasks) > 1:
        rows += _attributes(tasks, alpha)
    for answers in tasks:
        for partition in partitions(answers):
            rows += _parts(answers, partition, alpha, min_group)
    for row in rows:
        found = support(evidence, row["by"], members, row["score"])
        row |= {"evidence": found.value, "n_studies": found.n_studies}
        row |= {"evidence_low": found.low, "evidence_high": found.high}
        row["verdict"] = AT_RISK if row["excess_low"] > 0 else NOT_HIGHER
        if row["status"] != "ok" or found.reason:
            row["verdict"] = CANNOT_TELL
        if row["status"] == "ok" and found.reason:
            row["status"] = found.reason
    parts = schema.frame("preflight", rows)
    known = {level: list(parts.loc[parts["by"] == level, "score"].unique()) for level in LEVELS[:3]}
    scores = [risk_scores(answers) for answers in tasks]
    known["example"] = [  # scores that tell any two examples of a task apart
        name
        for name in scores[0]
        if any(len(np.unique(s[name][~np.isnan(s[name])])) > 1 for s in scores if name in s)
    ]
    chosen = {
        level: best_score(evidence, level, members, names)
        or next(name for name in UNTRIED if name in names)
        for level, names in known.items()
        if names
    }
    notes = []
    if not known["example"]:
        why = "their scores are all equal" if scores[0] else NO_SCORES
        notes.append(f"Single examples cannot be ranked: {why}.")
    return Preflight(
        parts,
        _examples(tasks, chosen.get("example")),
        chosen,
        {level: support(evidence, level, members, name) for level, name in chosen.items()},
        n_members,
        tasks[0].n_examples,
        alpha,
        tuple(notes),
    )


def _attributes(tasks: Sequence[Answers], alpha: float) -> Iterator[dict[str, Any]]:
    """Whole tasks against the mean of the others.

    Their errors are on the same examples; taking them as independent makes the limits of a
    difference wider, not narrower, where tasks are hard on the same examples.
    """
    for name in scores_of_examples(tasks[0]):
        known = [(t, scores_of_examples(t).get(name)) for t in tasks]
        held = [(t, score) for t, score in known if score is not None]
        means, strict = (
            [mean_of(score, np.ones(len(score), dtype=bool), t.cluster, a) for t, score in held]
            for a in (alpha, alpha / len(held))
        )
        order = pd.Series([m.value for m in means]).rank(ascending=False, method="min")
        for i, (answers, _) in enumerate(held):
            others = strict[:i] + strict[i + 1 :]
            row: dict[str, Any] = {
                "task": answers.task, "by": "attribute", "group": None, "class": None,
                "score": name, "n": answers.n_examples,
                "n_train": np.nan if answers.train is None else float(answers.train["n"].sum()),
                "rank": order[i], "status": "ok",
            }  # fmt: skip
            if not others:
                row["status"] = "one attribute only"
                yield row | _columns(means[i], Limited(np.nan, np.nan, np.nan))
                continue
            yield row | _columns(means[i], beyond(strict[i], _mean_of_means(others)))


def _mean_of_means(found: Sequence[Limited]) -> Limited:
    """The mean of several means with its limits, taken as independent."""
    k = len(found)
    value = sum(one.value for one in found) / k
    down = np.sqrt(sum((one.value - one.low) ** 2 for one in found)) / k
    up = np.sqrt(sum((one.high - one.value) ** 2 for one in found)) / k
    return Limited(value, value - float(down), value + float(up))


def _parts(
    answers: Answers, partition: Partition, alpha: float, min_group: int
) -> Iterator[dict[str, Any]]:
    """Rows of the levels of a partition, for every score."""
    levels = len(partition.levels)
    n = np.bincount(partition.code, minlength=levels)
    train = training_sizes(answers, partition)
    present = [i for i in range(levels) if n[i] and not partition.missing[i]]
    sized = sum(n[i] >= min_group for i in present)
    strict = alpha / max(sized, 1)
    found: dict[str, list[tuple[Limited, Limited]]] = {}
    for name, score in scores_of_examples(answers).items():
        found[name] = []
        for inside in (partition.code == i for i in present):
            mean = mean_of(score, inside, answers.cluster, alpha)
            own, others = (
                mean_of(score, part, answers.cluster, strict) for part in (inside, ~inside)
            )
            found[name].append((mean, beyond(own, others)))
    rare, rare_strict = (rarity(answers, partition, a) for a in (alpha, strict))
    if rare is not None and rare_strict is not None:
        found[RARITY] = [
            (rare[i], Limited(*(x - 1 for x in (rare[i].value, rare_strict[i].low,
                                                rare_strict[i].high))))
            for i in present
        ]  # fmt: skip
    for name, pairs in found.items():
        order = pd.Series([mean.value for mean, _ in pairs], dtype=float)
        order = order.rank(ascending=False, method="min")
        for place, (i, (mean, excess)) in enumerate(zip(present, pairs, strict=True)):
            status = "too few examples or clusters" if np.isnan(excess.low) else "ok"
            if len(present) < 2:
                status = "every example is in this group"
            elif n[i] < min_group:
                status = f"fewer than {min_group} examples"
            yield {
                **partition.place(i),
                "task": answers.task,
                "score": name,
                "n": int(n[i]),
                "n_train": np.nan if train is None else float(train[i]),
                "rank": order[place],
                "status": status,
                **_columns(mean, excess),
            }


def _columns(mean: Limited, excess: Limited) -> dict[str, float]:
    return {
        "value": mean.value, "low": mean.low, "high": mean.high, "excess": excess.value,
        "excess_low": excess.low, "excess_high": excess.high,
    }  # fmt: skip


def _examples(tasks: Sequence[Answers], score: str | None) -> pd.DataFrame:
    """Every example with its scores, the riskiest first in each task."""
    frames = []
    for answers in tasks:
        found = risk_scores(answers)
        names = np.array([*answers.classes, None], dtype=object)
        first = answers.of(answers.baseline)[0]
        frame = pd.DataFrame(
            {
                "task": np.full(answers.n_examples, answers.task, dtype=object),
                "example_id": answers.example_id,
                "label": names[answers.label],
                "prediction": names[first],
                **found,
            }
        )
        rank = frame[score].rank(ascending=False, method="min") if score in frame else np.nan
        frames.append(frame.assign(rank=rank).sort_values("rank", kind="stable"))
    return pd.concat(frames, ignore_index=True)
