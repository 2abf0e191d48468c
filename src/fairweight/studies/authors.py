"""What the authors' own numbers say about their claims: published counts, printed tables.

Counts of *Simon Says* are not part of fairweight. They are read from the folders that
FAIRWEIGHT_GOLDEN and FAIRWEIGHT_REAL name, else from `../shared/golden` and `../shared/real`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import atanh, exp, nan, sqrt, tanh
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.special import stdtrit

from fairweight.specs.claims import Claim
from fairweight.studies.estimates import ClaimedValue, NotThereError
from fairweight.studies.library import printed

Numbers: TypeAlias = Sequence[float] | np.ndarray
Found: TypeAlias = list[tuple[str, ClaimedValue]]
NO_INTERVAL = "no interval"


def authors_numbers(claim: Claim) -> Found:
    """A value with its interval per line; nothing where none can be computed.

    Where the authors' files are not there, the reason says which are missing.
    """
    if claim.authors is None:
        return []
    asked = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in claim.authors.items()
    }
    compute = COMPUTATIONS[str(asked.pop("compute"))]
    try:
        return compute(**asked)
    except NotThereError as error:
        return [("", ClaimedValue(reason=str(error)))]


Limits: TypeAlias = tuple[float, float, float]  # a value between its limits


def _estimate(
    limits: Limits, how: str, scope: str = "", *, logarithm: bool = False
) -> ClaimedValue:
    value, low, high = (exp(x) for x in limits) if logarithm else limits
    return ClaimedValue(value, low, high, how, scope)


def _value(value: float) -> ClaimedValue:
    """A printed number, whose error is unknown."""
    return ClaimedValue(value, reason=NO_INTERVAL)


# Intervals.


def welch(one: Numbers, two: Numbers) -> Limits:
    """Difference of two means with Welch's 95 % limits.

    >>> [round(x, 4) for x in welch([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])]  # se √(2/3), 4 df
    [1.0, -1.267, 3.267]
    """
    first, second = np.asarray(one, float), np.asarray(two, float)
    return welch_of(
        float(first.mean()), float(first.std(ddof=1)), len(first),
        float(second.mean()), float(second.std(ddof=1)), len(second),
    )  # fmt: skip


def welch_of(mean: float, sd: float, n: int, other: float, other_sd: float, other_n: int) -> Limits:
    """Welch's limits from means and standard deviations."""
    a, b = sd**2 / n, other_sd**2 / other_n
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (other_n - 1))
    reach = float(stdtrit(freedom, 0.975)) * sqrt(a + b)
    difference = mean - other
    return difference, difference - reach, difference + reach


def fisher(x: Numbers, y: Numbers) -> Limits:
    """Pearson's correlation with Fisher's 95 % limits."""
    r = float(np.corrcoef(x, y)[0, 1])
    reach = 1.959964 / sqrt(len(x) - 3)
    return r, tanh(atanh(r) - reach), tanh(atanh(r) + reach)


# Simon Says: counts of errors per class, of 40 models of down-sampled and 123 of balanced data.

PLAIN = "Struct Pruning"
LOGARITHMS = "Welch on logarithms"
_BALANCED_NAMES = {
    "KD Struct": "KD", "Attention Struct": "AT", "Similarity Preserving Struct": "SP",
    "PKT Struct Mag": "PKT", "All Hint Struct Mag": "FSP",
}  # fmt: skip
SPARSITIES = (30, 45, 60, 75)  # those of the paper
DOWN_SAMPLED = {
    "10 %": ("apple", "bicycle", "crocodile", "maple_tree", "shrew"),
    "20 %": ("butterfly", "can", "oak_tree", "palm_tree", "train"),
    "50 %": ("dinosaur", "elephant", "flatfish", "orange", "raccoon"),
}  # under the names of the paper, which are wrong: see the errata


@dataclass(frozen=True)
class Models:
    """False positives and false negatives per class, a row per model, beside one teacher's."""

    method: np.ndarray
    sparsity: np.ndarray
    fp: np.ndarray
    fn: np.ndarray
    teacher_fp: np.ndarray
    teacher_fn: np.ndarray
    classes: tuple[str, ...] = ()
    per_class: int = 100

    def of(self, method: str, sparsity: int = 45) -> np.ndarray:
        chosen: np.ndarray = (self.method == method) & (self.sparsity == sparsity)
        if not chosen.any():
            raise NotThereError(f"the authors have no model of {method} at {sparsity} %")
        return chosen

    def metric(self, name: str) -> np.ndarray:
        """Accuracy, CEV or SDE of every single model against the teacher."""
        if name == "accuracy":
            wrong: np.ndarray = 1 - self.fn.mean(axis=1) / self.per_class
            return wrong
        # The denominators of rates cancel in changes relative to the teacher's.
        fp = 100 * (self.fp - self.teacher_fp) / self.teacher_fp
        fn = 100 * (self.fn - self.teacher_fn) / self.teacher_fn
        made: np.ndarray = (
            (fp.var(axis=1) + fn.var(axis=1)) / 2
            if name == "cev"
            else np.abs(fn - fp).mean(axis=1) / sqrt(2)
        )
        return made


def _folder(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or f"../shared/{name}")


@cache
def simon_says(data: str) -> Models:
    """The authors' models of `biased` (down-sampled) or `balanced` data."""
    if data == "biased":
        path = _folder("FAIRWEIGHT_GOLDEN", "golden") / "simon_says_table3.json"
        _there(path, "FAIRWEIGHT_GOLDEN")
        held = json.loads(path.read_text(encoding="utf-8"))
        models = held["models"]
        return Models(
            np.array([one["method"] for one in models]),
            np.array([one["sparsity"] for one in models]),
            np.array([one["FP"] for one in models], float),
            np.array([one["FN"] for one in models], float),
            np.array(held["teacher"]["FP"], float),
            np.array(held["teacher"]["FN"], float),
            _class_names(),
        )
    path = _folder("FAIRWEIGHT_REAL", "real") / "simon-says" / "balanced_backup.npz"
    _there(path, "FAIRWEIGHT_REAL")
    with np.load(path) as file:
        names = [_BALANCED_NAMES.get(str(one), str(one)) for one in file["method"]]
        return Models(
            np.array(names), file["sparsity"], file["FP"].astype(float), file["FN"].astype(float),
            file["FP_t"].astype(float), file["FN_t"].astype(float),
        )  # fmt: skip


def _class_names() -> tuple[str, ...]:
    path = _folder("FAIRWEIGHT_REAL", "real") / "simon-says" / "bias.npz"
    if not path.is_file():
        return ()
    with np.load(path) as file:
        return tuple(str(one) for one in file["names_as_published"])


def _there(path: Path, variable: str) -> None:
    if not path.is_file():
        raise NotThereError(f"the authors' file {path.name} is not there ({variable})")


def ss_ratio(data: str, metric: str, method: Sequence[str]) -> Found:
    """A method over pruning alone: Welch's limits on the logarithm, models as the sample."""
    return [
        (name, _estimate(found, LOGARITHMS, "method", logarithm=True))
        for name, found in _against_plain(data, metric, method, logarithm=True)
    ]


def ss_difference(data: str, metric: str, method: Sequence[str]) -> Found:
    """Difference between a method and pruning alone."""
    return [
        (name, _estimate(found, "Welch", "method"))
        for name, found in _against_plain(data, metric, method, logarithm=False)
    ]


def _against_plain(
    data: str, metric: str, method: Sequence[str], *, logarithm: bool
) -> list[tuple[str, Limits]]:
    models = simon_says(data)
    values = models.metric(metric)
    values = np.log(values) if logarithm else values
    levels = (45,) if data == "biased" else SPARSITIES
    return [
        (
            f"{name}, {level} %" if len(levels) > 1 else name,
            welch(values[models.of(name, level)], values[models.of(PLAIN, level)]),
        )
        for name in method
        for level in levels
    ]


def ss_levels(metric: str, levels: Sequence[int]) -> Found:
    """Pruning alone of balanced data, one sparsity over another."""
    models = simon_says("balanced")
    values = np.log(models.metric(metric))
    high, low = (values[models.of(PLAIN, int(level))] for level in levels)
    found = _estimate(welch(high, low), LOGARITHMS, "method", logarithm=True)
    return [(f"{levels[0]} % over {levels[1]} %", found)]


def ss_imbalance(metric: str) -> Found:
    """Pruning alone at 45 %, down-sampled over balanced data; the teacher saw all of both."""
    values = [
        np.log(models.metric(metric)[models.of(PLAIN)])
        for models in (simon_says("biased"), simon_says("balanced"))
    ]
    found = _estimate(welch(*values), LOGARITHMS, "method", logarithm=True)
    return [("against one teacher of all data", found)]


def ss_recall(method: Sequence[str]) -> Found:
    """Mean recall of the down-sampled classes, a method less another; of one less the teacher."""
    models = simon_says("biased")
    if not models.classes:
        raise NotThereError("the authors' file bias.npz is not there (FAIRWEIGHT_REAL)")
    found: Found = []
    for share, names in DOWN_SAMPLED.items():
        columns = [models.classes.index(name) for name in names]
        recall = 1 - models.fn[:, columns].mean(axis=1) / models.per_class
        one = recall[models.of(method[0])]
        if len(method) == 2:
            limits = welch(one, recall[models.of(method[1])])
            found.append((f"classes cut to {share}", _estimate(limits, "Welch", "method")))
            continue
        teacher = 1 - models.teacher_fn[columns].mean() / models.per_class
        spread = float(np.std(one, ddof=1))
        limits = welch_of(float(one.mean()), spread, len(one), float(teacher), 0.0, 2)
        name = f"classes cut to {share}, pruned, against the teacher of all data"
        found.append((name, _estimate(limits, "Student's t", "members")))
    return found


def ss_similarity(block: Sequence[str]) -> Found:
    """Table 3 as printed: distance of a block and CEV over the ten methods, at one sparsity."""
    table = printed("simon-says").named("Table 3")
    rows = [table.values(row.name) for row in table.row]
    cev = [float(row["CEV"] or nan) for row in rows]
    found: Found = []
    for name in block:
        distances = [float(row[name] or nan) for row in rows]
        found.append((name, _estimate(fisher(distances, cev), "Fisher, ten methods")))
    return found


def ss_accuracy() -> Found:
    """Accuracy against the logarithm of CEV: over 40 models, and over means of the ten methods."""
    models = simon_says("biased")
    accuracy, cev = models.metric("accuracy"), np.log(models.metric("cev"))
    methods = dict.fromkeys(models.method.tolist())
    means = [(accuracy[models.of(one)].mean(), cev[models.of(one)].mean()) for one in methods]
    return [
        ("40 models", _estimate(fisher(accuracy, cev), "Fisher, models as if independent")),
        ("means of 10 methods", _estimate(fisher(*zip(*means, strict=True)), "Fisher")),
    ]


# Characterising Bias: printed tables; the columns FY and FO are recovered.

RATES = {"Error": "all", "FPR": "not blond", "FNR": "blond"}


def hk_rates(side: str, metric: str) -> dict[str, float]:
    """Rates (%) by group before or after pruning to 95 %, with FY and FO as they must have been.

    A group's rate is the mean of its parts' weighted with how many examples each rate is of: all,
    those that are not blond (FPR), those that are (FNR).
    """
    paper = printed("characterising-bias")
    table, row = (
        (paper.named("Table 3"), f"Baseline {metric}")
        if side == "baseline"
        else (paper.named("Table 5"), metric)
    )
    rates = {name: value for name, value in table.values(row).items() if value is not None}
    n = dict(paper.counts["all"])
    if RATES[metric] != "all":
        blond = paper.counts["blond"]
        n = {g: blond[g] if RATES[metric] == "blond" else n[g] - blond[g] for g in n}
    for young in ("Y", "O"):
        men, women, all_of_them = f"M{young}", f"F{young}", young
        total = rates[all_of_them] * n[all_of_them] - rates[men] * n[men]
        rates[women] = total / n[women]
    return rates


def hk_normalised(metric: str, group: str) -> float:
    """The change in percent of the baseline's rate: as printed, for FY and FO from the rates."""
    shown = printed("characterising-bias").named("Table 3").values(f"Change of {metric}")[group]
    if shown is not None:
        return shown
    before, after = hk_rates("baseline", metric)[group], hk_rates("compressed", metric)[group]
    return 100 * (after - before) / before


def hk_change(metric: Sequence[str], group: Sequence[str]) -> Found:
    """A normalised change, or the difference of two metrics or of two groups."""
    cells = [(one, group[0]) for one in metric] if len(group) == 1 else [
        (metric[0], one) for one in group
    ]  # fmt: skip
    values = [hk_normalised(*cell) for cell in cells]
    return [("", _value(values[0] if len(values) == 1 else values[0] - values[1]))]


def hk_accuracy(level: Sequence[str]) -> Found:
    """Changes of accuracy from Table 1, as shares."""
    table = printed("characterising-bias").named("Table 1")
    dense = float(table.values("0")["Top 1"] or nan)
    return [
        (one, _value((float(table.values(one)["Top 1"] or nan) - dense) / 100)) for one in level
    ]


def hk_exemplars(column: str) -> Found:
    """Accuracies on exemplars from Table 2, as shares, for every level of pruning."""
    table = printed("characterising-bias").named("Table 2")
    rows = {row.name: table.values(row.name) for row in table.row}
    if column == "modal less dense":  # the text: baseline accuracy degrades by 45.86 there
        dense = float(printed("characterising-bias").named("Table 1").values("0")["Top 1"] or nan)
        value = float(rows["0.99"]["modal"] or nan) - (dense - 45.86)
        return [("0.99", _value(value / 100))]
    if column == "99th less 90th":
        return [
            (name, _value((float(row["99th"] or nan) - float(row["90th"] or nan)) / 100))
            for name, row in rows.items()
        ]
    levels = ("0.9", "0.95", "0.99")
    return [(name, _value(float(rows[name][column] or nan) / 100)) for name in levels]


# Resource-Efficient: one network each, so limits rest on test examples alone.

CIFAR10_TEST, FAIRFACE_TEST = 10_000, 14_655  # 15 % of 97,698


def _of_two_models(before: float, after: float, n: int) -> ClaimedValue:
    """A difference of accuracies as if errors were independent; paired limits are narrower."""
    reach = 1.959964 * sqrt((before * (1 - before) + after * (1 - after)) / n)
    difference = after - before
    how = "two single models, errors as if independent"
    return ClaimedValue(difference, difference - reach, difference + reach, how, "model")


def sg_change(metric: str) -> Found:
    """The table of CIFAR-10: change of a number, or of the mean (and the extremes) over classes."""
    table = printed("resource-efficient").named("Table in 7.A")
    found: Found = []
    for column in ("50 %", "80 %"):
        if metric in ("Accuracy", "Kappa"):
            row = table.values(metric)
            before, after = float(row["Before"] or nan), float(row[column] or nan)
            made = _of_two_models(before, after, CIFAR10_TEST)
            found.append((column, made if metric == "Accuracy" else _value(after - before)))
            continue
        rows = [table.values(one.name) for one in table.row if one.name.startswith(f"{metric},")]
        changes = [float(row[column] or nan) - float(row["Before"] or nan) for row in rows]
        found.append((f"{column}, mean of classes", _value(sum(changes) / len(changes))))
        found.append((f"{column}, largest fall", _value(min(changes))))
        found.append((f"{column}, largest rise", _value(max(changes))))
    return found


def sg_fairface(level: Sequence[str]) -> Found:
    """Accuracies of FairFace in the text, against the full model."""
    table = printed("resource-efficient").named("Figure 3")
    full = float(table.values("full")["Accuracy"] or nan)
    return [
        (one, _of_two_models(full, float(table.values(one)["Accuracy"] or nan), FAIRFACE_TEST))
        for one in level
    ]


# Prune Responsibly and Bias in Pruned Vision Models: printed coefficients and means.


def pa_coefficient(term: str) -> Found:
    """A coefficient of Table 2 with the paper's own limits."""
    row = printed("prune-responsibly").named("Table 2").values(term)
    value, low, high = (float(row[one] or nan) for one in ("coefficient", "low", "high"))
    return [("", ClaimedValue(value, low, high, "HAC, as published", ""))]


def pa_tilt(group: Sequence[str], side: str) -> Found:
    """Slopes of Table 1: before, after, or what pruning changed."""
    table = printed("prune-responsibly").named("Table 1")
    found: Found = []
    for one in group:
        row = table.values(one)
        before, after = float(row["slope before"] or 0), float(row["slope after"] or 0)
        value = {"before": before, "after": after, "change": after - before}[side]
        found.append((one, _value(value)))
    return found


SEEDS = 5  # of IO
ACCURACY_SPREAD = 0.1  # IO omits those of accuracies, as they are all at most this


def io_table1(metric: str) -> Found:
    """Table 1: change against dense models, as shares; ± is taken for a standard deviation."""
    table = printed("pruned-vision-bias").named("Table 1")
    column = {"accuracy": "Accuracy", "auc": "AUC"}[metric]

    def cell(row: str) -> tuple[float, float]:
        values = table.values(row)
        spread = ACCURACY_SPREAD if metric == "accuracy" else float(values["± of AUC"] or nan)
        return float(values[column] or nan), spread

    dense = cell("Dense")
    found: Found = []
    for row in table.row[1:]:
        own = cell(row.name)
        value, low, high = (x / 100 for x in welch_of(*own, SEEDS, *dense, SEEDS))
        estimate = ClaimedValue(value, low, high, "Welch, ± as deviation", "method")
        found.append((f"{row.name} %", estimate))
    return found if metric == "accuracy" else found[:-1]  # "at all sparsities but 99.5 %"


COMPUTATIONS: dict[str, Callable[..., Found]] = {
    "ss-ratio": ss_ratio, "ss-difference": ss_difference, "ss-levels": ss_levels,
    "ss-imbalance": ss_imbalance, "ss-recall": ss_recall, "ss-similarity": ss_similarity,
    "ss-accuracy": ss_accuracy, "hk-change": hk_change, "hk-accuracy": hk_accuracy,
    "hk-exemplars": hk_exemplars, "sg-change": sg_change, "sg-fairface": sg_fairface,
    "pa-coefficient": pa_coefficient, "pa-tilt": pa_tilt, "io-table1": io_table1,
}  # fmt: skip
