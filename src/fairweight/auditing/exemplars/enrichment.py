"""Who is over-represented among exemplars, and is that more than difficulty?

A group that is hard is over-represented among the examples on which *any* two populations differ,
retrained ones too. So beside every odds ratio stands that of dense against dense at equal sizes,
and what is tested is the ratio of the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.counts.cube import Codes, Cube
from fairweight.auditing.counts.groupings import groupings
from fairweight.auditing.exemplars.odds import (
    MATCHED,
    RATIO,
    RETRAINING,
    Definition,
    OddsRows,
    Rates,
    Sampled,
    influences,
    linear,
    log_odds_limits,
    log_odds_ratio,
    odds_ratios,
    retrained_rates,
)
from fairweight.auditing.exemplars.selection import FEWEST_EXEMPLARS, Key
from fairweight.auditing.exemplars.votes import TieRule
from fairweight.auditing.intervals.multiplicity import holm
from fairweight.auditing.pairing import FEWEST, FEWEST_MEMBERS, pair_members
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.base.types import Mask
from fairweight.base.wording import counted
from fairweight.tables.companions import parents
from fairweight.tables.names import level_name

# The partitions of the examples that rows speak of: classes, group levels, intersections.


@dataclass(frozen=True)
class Partition:
    """Disjoint parts that hold every example between them."""

    kind: str  # class, group, intersection: the families of corrections
    levels: tuple[str, ...]
    code: Codes  # (n,) into levels
    missing: NDArray[np.bool_]  # (levels,): stands for missing values
    columns: tuple[str, ...] = ()  # group columns; () for classes

    @property
    def by(self) -> str:
        return "class" if self.kind == "class" else "group"

    def place(self, level: int) -> dict[str, str | None]:
        """The columns `by`, `group` and `class` of a level's row."""
        name = self.levels[level]
        return {
            "by": self.by,
            "group": None if self.by == "class" else name,
            "class": name if self.by == "class" else None,
        }


def partitions(answers: Answers) -> tuple[Partition, ...]:
    """By class, and by every grouping that was asked for."""
    labels = answers.classes[: answers.n_label_classes]
    by_class = Partition(
        "class", labels, answers.label.astype(np.int32), np.zeros(len(labels), dtype=bool)
    )
    n = answers.n_examples
    rows = Cube(  # one cell per example and no member: what `groupings` looks at
        members=(),
        label_classes=answers.classes,
        other_classes=(),
        columns=answers.columns,
        tasks=(),
        label=by_class.code,
        prediction=np.zeros((n, 0), dtype=np.int32),
        count=np.ones(n, dtype=np.int64),
        n_examples=n,
    )
    by_group = tuple(
        Partition(
            "group" if found.single else "intersection",
            found.levels,
            found.code,
            found.missing,
            found.columns,
        )
        for found in groupings(rows, answers.groupings)
    )
    return by_class, *by_group


def training_sizes(answers: Answers, partition: Partition) -> NDArray[np.float64] | None:
    """Training examples in each level; None where the training table cannot tell."""
    train = answers.train
    if train is None or any(name not in train for name in partition.columns) or train.empty:
        return None
    if partition.columns:
        texts = [[level_name(name, value) for value in train[name]] for name in partition.columns]
        names = [" & ".join(parts) for parts in zip(*texts, strict=True)]
    else:
        names = [str(value) for value in train["label"]]
    place = {name: i for i, name in enumerate(partition.levels)}
    sizes = np.zeros(len(partition.levels))
    for name, n in zip(names, train["n"], strict=True):
        if name in place:  # levels that the test data do not have cannot be asked about
            sizes[place[name]] += float(n)
    return sizes


DIFFICULTY = "may reflect difficulty alone"
DISJOINT = TieRule()
OF_POPULATIONS = ("modal", "unanimous", "taxicab", "jaccard")


def enrichment(
    answers: Answers,
    masks: Mapping[Key, Mask],
    *,
    rule: TieRule = DISJOINT,
    alpha: float = 0.05,
    min_group: int = 10,
    random_state: int = 0,
    fewest: int = FEWEST_EXEMPLARS,
) -> pd.DataFrame:
    """Odds ratios of every class, group level and intersection among exemplars.

    Parameters
    ----------
    masks
        (variant, kind, percentile) → its exemplars, (n,), as `find` gives them.
    rule
        Of ties between modal answers.
    min_group
        Smaller parts are shown and not tested.
    fewest
        Exemplars without which no part is compared with others.

    Returns
    -------
    frame
        `odds_ratio`: inside against outside, for the exemplars of `masks`, with its interval over
        examples (square-and-add of Wilson's; with clusters the linearised one).
        `matched_odds_ratio` and `retraining_odds_ratio`: at equal sizes, compressed against dense
        and dense against dense, over the same splits. `ratio` = the first over the second, with the
        interval and the p of a ratio of 1; Holm within variant, definition and family (classes,
        levels, intersections).

    Notes
    -----
    The interval of the ratio has members and examples sampled: it asks whether compressing again
    would make the group over-represented beyond what retraining does. Undefined without a baseline
    population (status: may reflect difficulty alone), and without an interval below 5 baseline or
    3 compressed members. Examples count once each, whatever their weight.
    """
    parts = partitions(answers)
    rows: list[dict[str, Any]] = []
    base = answers.rows(answers.baseline)
    for variant in answers.variants:
        definitions = {
            Definition(kind, math.nan if percentile is None else percentile): mask
            for (name, kind, percentile), mask in masks.items()
            if name == variant
        }
        own = answers.rows(variant)
        prediction = np.concatenate([answers.prediction[base], answers.prediction[own]])
        live = np.flatnonzero((prediction != prediction[0]).any(axis=0))
        sampled = Sampled(live, answers.n_examples, answers.cluster)
        lineage = parents(answers.variants_table)
        pairing = pair_members(answers.members[base], answers.members[own], lineage)
        units = OddsRows(
            tuple(int(np.flatnonzero(row)[0]) for row in pairing.first),
            tuple(tuple(int(m) for m in np.flatnonzero(row)) for row in pairing.second),
            pairing.paired,
        )
        compared = [one for one in definitions if one.kind in OF_POPULATIONS]
        rates, reason = None, ""
        if len(units.dense) < 2:
            reason = f"{DIFFICULTY}: one baseline model"
        else:
            if len(units.dense) < FEWEST_MEMBERS:
                reason = f"not_estimable: fewer than {FEWEST_MEMBERS} baseline members"
            elif len(units.compressed) < FEWEST:
                reason = f"not_estimable: fewer than {FEWEST} compressed members"
            rates = retrained_rates(
                np.ascontiguousarray(prediction[:, live]),
                answers.n_examples,
                units,
                compared,
                rule,
                stream(random_state, variant, answers.task or "", "exemplars enrichment"),
                left_out=not reason,
            )
        for one, mask in definitions.items():
            place = compared.index(one) if one in compared else None
            untested = reason if place is not None else f"{DIFFICULTY}: a stand-in for exemplars"
            families: dict[str, list[dict[str, Any]]] = {}
            for part in parts:
                families.setdefault(part.kind, []).extend(
                    _part_rows(
                        answers,
                        part,
                        mask,
                        place,
                        rates,
                        untested,
                        sampled,
                        alpha,
                        min_group,
                        fewest,
                    )
                )
            for family in families.values():
                adjusted = holm([row["p_value"] for row in family])
                for row, p in zip(family, adjusted, strict=True):
                    row |= {"variant": variant, "task": answers.task, "p_adjusted": float(p)}
                    row |= {"kind": one.kind, "percentile": one.percentile}
                    rows.append(row)
    return schema.frame("enrichment", rows)


def _part_rows(
    answers: Answers,
    part: Partition,
    mask: Mask,
    place: int | None,
    rates: Rates | None,
    reason: str,
    sampled: Sampled,
    alpha: float,
    min_group: int,
    fewest: int,
) -> list[dict[str, Any]]:
    """A row for every level of a partition that has examples."""
    levels = len(part.levels)
    n = np.bincount(part.code, minlength=levels).astype(float)
    chosen = np.bincount(part.code[mask], minlength=levels).astype(float)
    train = training_sizes(answers, part)
    if train is not None:
        train = train / train.sum() if train.sum() else np.full(levels, np.nan)
    clusters = sampled.clusters_of(part.code, levels)
    total = chosen.sum()
    rows = []
    for level in range(levels):
        if n[level] == 0:
            continue
        inside = part.code == level
        status = "ok"
        if not total:
            status = "not_estimable: no exemplars"
        elif total < fewest:
            status = f"not_estimable: {counted(int(total), 'exemplar')}, {fewest} are needed"
        elif n[level] == n.sum():
            status = "not_estimable: every example is in this group"
        elif n[level] < min_group:
            status = f"small_group: n < {min_group}"
        elif clusters[level] < MIN_CLUSTERS:
            status = f"not_estimable: {int(clusters[level])} clusters"
        row: dict[str, Any] = {
            **part.place(level),
            "n": int(n[level]),
            "n_exemplars": int(chosen[level]),
            "share_exemplars": chosen[level] / total if total else np.nan,
            "share_test": n[level] / n.sum(),
            "share_train": np.nan if train is None else float(train[level]),
            "p_value": np.nan,
            "status": status,
        }
        untold = status != "ok"
        if total >= max(1, fewest) and n[level] < n.sum():
            row |= _whole(mask, inside, sampled, alpha, untold and clusters[level] < MIN_CLUSTERS)
            if rates is not None and place is not None:
                row |= _against_retraining(rates, place, inside, sampled, alpha, untold or reason)
        if not untold and reason:
            row["status"] = reason
        rows.append(row)
    return rows


def _whole(
    mask: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    sampled: Sampled,
    alpha: float,
    untold: bool,
) -> dict[str, float]:
    """The odds ratio of the exemplars at hand, with its interval over examples or clusters."""
    cells = (
        float((mask & inside).sum()), float(inside.sum()),
        float((mask & ~inside).sum()), float((~inside).sum()),
    )  # fmt: skip
    value = float(log_odds_ratio(*cells))
    if sampled.cluster is None:
        low, high = (float(side) for side in log_odds_limits(*cells, alpha))
    else:
        near = linear(*cells)
        n_within, n_without, _ = sampled.sizes(inside)
        exemplar = mask[sampled.live].astype(float)
        here = inside[sampled.live]
        moved = influences(
            near, sampled.sums(exemplar * here), n_within,
            sampled.sums(exemplar * ~here), n_without,
        )  # fmt: skip
        g = sampled.n_clusters
        variance = g / (g - 1) * (moved**2).sum() + near.pseudo if g > 1 else np.nan
        reach = -stdtrit(max(g - 1, 1), alpha / 2) * np.sqrt(variance)
        low, high = value - reach, value + reach
    if untold:
        low = high = np.nan
    return {
        "odds_ratio": float(np.exp(value)),
        "or_low": float(np.exp(low)),
        "or_high": float(np.exp(high)),
    }


def _against_retraining(
    rates: Rates,
    place: int,
    inside: NDArray[np.bool_],
    sampled: Sampled,
    alpha: float,
    untested: Any,
) -> dict[str, float]:
    """Odds ratios at matched sizes, beside those of retraining, and their ratio with its limits."""
    found = odds_ratios(rates, place, inside, sampled)
    values = {
        "matched_odds_ratio": float(np.exp(np.dot(MATCHED, found.value))),
        "retraining_odds_ratio": float(np.exp(np.dot(RETRAINING, found.value))),
        "ratio": float(np.exp(np.dot(RATIO, found.value))),
    }
    if untested:
        return values
    retraining, ratio = found.estimate(RETRAINING), found.estimate(RATIO)
    low, high = (np.exp(side) for side in retraining.limits(alpha))
    ratio_low, ratio_high = (np.exp(side) for side in ratio.limits(alpha))
    return values | {
        "retraining_low": float(low),
        "retraining_high": float(high),
        "ratio_low": float(ratio_low),
        "ratio_high": float(ratio_high),
        "p_value": float(ratio.p_value),
    }
