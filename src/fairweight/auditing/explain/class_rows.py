"""One row per class of every pruned model: what Paganini's regression is fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names, frame
from fairweight.data.image_properties import image_entropy
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.companions import Member, parents
from fairweight.tables.layout import seed_of

# Heteroscedasticity- and autocorrelation-robust errors depend on it: this order is part of the fit.
ROW_ORDER: tuple[str, ...] = (
    "dataset", "model", "pruning_technique", "weight_treatment", "seed", "sparsity", "class",
)  # fmt: skip

# The paper's names for the methods that it has; others keep their own.
TECHNIQUES: dict[str, str] = {
    "global-magnitude": "global_unstructured",
    "l1-unstructured": "l1_unstructured",
    "random-unstructured": "random_unstructured",
    "l1-structured": "l1_structured",
    "l2-structured": "l2_structured",
    "linf-structured": "linf_structured",
    "random-structured": "random_structured",
}
_DESCRIBED = ("variant", "seed", "dataset", "model", "method", "treatment", "sparsity")
# Why a row cannot enter a regression, by the column that lacks a value; the first counts.
_MISSING = {
    "accuracy": "no test examples of the class",
    "accuracy0": "no unpruned model of this seed",
    "sparsity": "the sparsity is not known",
    "imbalance": "no covariates of this class and data set",
    "class_entropy": "no training images of the class",
}
_COVARIATES = ("imbalance", "class_entropy", "intra_class_distance")


def class_rows(
    audits: Iterable[AuditResult], covariates: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Accuracy of every class of every pruned model, with what is known of class and model.

    Parameters
    ----------
    audits
        Of one or several experiments; each with a variants table that says data set,
        architecture, method, treatment and sparsity of its models, as studies write it.
    covariates
        `class_covariates` of the training images, by the name of the data set.

    Returns
    -------
    The table `class_rows`, in ROW_ORDER (seeds and classes as numbers where they are numbers).
    `accuracy` is the recall of the class, `accuracy0` that of the unpruned model which the pruned
    one descends from: its parents' parent as the variants table says, else the baseline's member
    of the same seed, else its only member. `root` names that model (data set, architecture, seed):
    rows of one root share its luck. `sparsity` is the measured share of zeros; where channels were
    taken out of the model, the share that was asked for. `n` counts test examples.

    `accuracy0_quartile` is 1 to 4. Cuts are the quartiles of `accuracy0` over all rows of this
    table (linear interpolation); a value at a cut belongs below it.

    Models that were not pruned (the baseline, int8) have no rows. `status` is `ok`, or says why a
    row cannot enter a regression.
    """
    parts = [_rows_of(audit, covariates) for audit in audits]
    if not parts:
        raise InputError("No audit was given; give the audits of one or several experiments.")
    rows = pd.concat(parts, ignore_index=True)
    rows["accuracy0_quartile"] = quartile(rows["accuracy0"].to_numpy(dtype=float))
    rows["status"] = "ok"
    for name, reason in reversed(_MISSING.items()):
        rows.loc[rows[name].isna(), "status"] = f"not_estimable: {reason}"
    return in_row_order(rows)[list(column_names("class_rows"))]


def quartile(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """In which quarter of all values each one lies, 1 to 4; NaN where it is missing.

    >>> quartile(np.array([0.1, 0.2, 0.3, 0.4, 0.5, np.nan]))
    array([ 1.,  1.,  2.,  3.,  4., nan])
    """
    known = np.isfinite(values)
    found = np.full(len(values), np.nan)
    if known.any():
        cuts = np.quantile(values[known], (0.25, 0.5, 0.75))
        found[known] = 1 + np.searchsorted(cuts, values[known], side="left")
    return found


def in_row_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows sorted as ROW_ORDER says, numbered anew."""
    return rows.sort_values(list(ROW_ORDER), key=_sortable, kind="stable", ignore_index=True)


def _sortable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers in text by their size, other text by the alphabet."""
    if column.name not in ("seed", "class"):
        return column
    number = pd.to_numeric(column, errors="coerce")
    return number if number.notna().all() else column.astype(str)


def _rows_of(audit: AuditResult, covariates: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    if audit.tasks:
        raise InputError(
            "Classes are explained for audits of a single task; this one has "
            f"{len(audit.tasks)} tasks. Audit one of them by itself."
        )
    models = _models(audit)
    recalls = audit.per_seed
    recalls = recalls[(recalls["metric"] == "recall") & (recalls["by"] == "class")]
    recalls = recalls[["variant", "seed", "class", "n", "value"]].rename(
        columns={"value": "accuracy"}
    )
    unpruned = recalls[recalls["variant"] == audit.baseline]
    unpruned = unpruned.rename(columns={"seed": "root_seed", "accuracy": "accuracy0"})
    rows = recalls.merge(models, on=["variant", "seed"], validate="many_to_one")
    rows = rows.merge(
        unpruned[["root_seed", "class", "accuracy0"]], on=["root_seed", "class"], how="left"
    )
    known = [
        frame.assign(dataset=name)[["dataset", "class", *_COVARIATES]]
        for name, frame in covariates.items()
    ]
    if known:
        return rows.merge(pd.concat(known), on=["dataset", "class"], how="left")
    return rows.assign(**dict.fromkeys(_COVARIATES, np.nan))


def _models(audit: AuditResult) -> pd.DataFrame:
    """What was done to each pruned member, and which unpruned one it came from."""
    table = audit.variants_table
    if table is None:
        raise InputError(
            "The audit has no variants table, so methods and sparsities are not known; audit with "
            "--variants (variants=)."
        )
    missing = [name for name in _DESCRIBED if name not in table.columns]
    if missing:
        raise InputError(
            f"The variants table has no column '{missing[0]}'; explaining classes needs "
            f"{', '.join(_DESCRIBED)}."
        )
    lineage = parents(table)
    table = table.assign(
        variant=[str(canonical(name)) for name in table["variant"]],
        seed=[str(seed_of(seed)) for seed in table["seed"]],
    )
    held = audit.per_seed
    seeds = held.loc[held["variant"] == audit.baseline, "seed"].unique().tolist()
    roots = [
        _root_seed(member, lineage, audit.baseline, seeds)
        for member in zip(table["variant"], table["seed"], strict=True)
    ]
    models = table[["variant", "seed"]].copy()
    models["root_seed"] = roots
    for name in ("dataset", "model"):
        models[name] = table[name].astype(object).where(table[name].notna(), "unknown")
    models["weight_treatment"] = (
        table["treatment"].astype(object).where(table["treatment"].notna(), "none")
    )
    models["pruning_technique"] = [
        TECHNIQUES.get(str(method), str(method).replace("-", "_")) for method in table["method"]
    ]
    # int8 has zeros too, from rounding; and without the pruned channels there are none to count.
    wanted = table["nominal_sparsity" if "nominal_sparsity" in table else "sparsity"]
    nominal = wanted.to_numpy(dtype=float, na_value=np.nan)
    models["sparsity"] = table["sparsity"].to_numpy(dtype=float, na_value=np.nan)
    if "n_params" in table:
        params = table["n_params"].to_numpy(dtype=float, na_value=np.nan)
        own = (table["variant"] == audit.baseline).to_numpy()
        dense = dict(zip(table["seed"][own], params[own], strict=True))
        before = np.array([dense.get(str(seed), np.nan) for seed in roots])
        models["sparsity"] = np.where(params < before, nominal, models["sparsity"])
    models["root"] = [
        f"{dataset}/{model}/{'?' if seed is None else seed}"
        for dataset, model, seed in zip(models["dataset"], models["model"], roots, strict=True)
    ]
    return models[(nominal > 0) & (models["variant"] != audit.baseline)]


def _root_seed(
    member: Member, lineage: Mapping[Member, Member], baseline: str, seeds: Sequence[str]
) -> str | None:
    """The seed of the unpruned model that a member came from; None where it is not known."""
    oldest = member
    while oldest in lineage:
        oldest = lineage[oldest]
        if oldest[0] == baseline:
            return oldest[1]
    if member[1] in seeds:
        return member[1]
    return seeds[0] if len(seeds) == 1 else None


# What a class is like before anything is trained: its share, its images' entropy and spread.

_VALUES = 256
_PIXELS_AT_ONCE = 1 << 22


def class_covariates(
    images: NDArray[np.uint8], labels: ArrayLike, classes: Sequence[str] | None = None
) -> pd.DataFrame:
    """Covariates of every class of a data set, from its training images.

    Parameters
    ----------
    images
        uint8, (examples, height, width) or (examples, height, width, channels); may be
        memory-mapped: a few million pixels are read at a time.
    labels
        One per image: places in `classes`, or the classes themselves where `classes` is left out.
    classes
        Names of all classes; a class without images keeps its row, with NaN where a mean is asked.

    Returns
    -------
    One row per class: `class`, `n_train`, `share` (n_c), `imbalance` (r_c = n_c − 1 / C, for C
    classes), `class_entropy` (H_c: mean Shannon entropy of the images in bits) and
    `intra_class_distance` (mean Euclidean distance to the mean image of the class, on pixel
    values of 0 to 255).

    Notes
    -----
    Paganini 2020, section 3.1. The paper prints 1 / C before the sum of entropies; the mean over
    the images of the class is meant. It does not say what happens to colour: here the values of
    all channels of an image make one histogram.

    Examples
    --------
    Two flat images, and one that is half black and half white (1 bit):

    >>> images = np.zeros((3, 2, 2), dtype=np.uint8)
    >>> images[2, 0] = 255
    >>> class_covariates(images, ["a", "a", "b"])[["class", "imbalance", "class_entropy"]]
      class  imbalance  class_entropy
    0     a   0.166667            0.0
    1     b  -0.166667            1.0
    """
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        raise InputError(
            f"images are {images.dtype} of shape {images.shape}; give at least one image, uint8 of "
            "shape (examples, height, width) or (examples, height, width, channels)."
        )
    codes, names = _codes(labels, classes, len(images))
    rows = []
    for code, name in enumerate(names):
        own = np.flatnonzero(codes == code)
        share = len(own) / len(images)
        entropy, distance = _entropy_and_distance(images, own)
        rows.append((name, len(own), share, share - 1 / len(names), entropy, distance))
    return frame("class_covariates", rows)


def _entropy_and_distance(images: NDArray[np.uint8], own: NDArray[np.intp]) -> tuple[float, float]:
    """Means over the images of one class, in two passes so that none of them is kept."""
    if not len(own):
        return np.nan, np.nan
    total = np.zeros(images.shape[1:])
    entropy = distance = 0.0
    for rows in _pieces(own, images):
        piece = images[rows]
        total += piece.sum(axis=0, dtype=np.float64)
        entropy += float(image_entropy(piece).sum())
    mean = (total / len(own)).reshape(-1)
    for rows in _pieces(own, images):
        apart = images[rows].reshape(len(rows), -1) - mean
        distance += float(np.sqrt(np.einsum("ij,ij->i", apart, apart)).sum())
    return entropy / len(own), distance / len(own)


def _pieces(rows: NDArray[np.intp], images: NDArray[np.uint8]) -> Iterator[NDArray[np.intp]]:
    # A histogram takes 256 places, however small its image is.
    size = max(1, _PIXELS_AT_ONCE // max(_VALUES, int(np.prod(images.shape[1:]))))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _codes(
    labels: ArrayLike, classes: Sequence[str] | None, n: int
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise InputError(
            f"labels have shape {given.shape} for {n:,} images; give one label per image."
        )
    if classes is None:
        values, places = np.unique(given, return_inverse=True)
        texts = [canonical(value) for value in values]
        if None in texts:
            raise InputError("labels have a missing value; leave those images out.")
        names = class_order([str(text) for text in texts])
        return np.array([names.index(str(text)) for text in texts], dtype=np.intp)[places], names
    if given.dtype.kind not in "iu" or not ((given >= 0) & (given < len(classes))).all():
        raise InputError(
            f"labels must be whole numbers from 0 to {len(classes) - 1}, places in `classes`."
        )
    return given.astype(np.intp), tuple(str(canonical(name)) for name in classes)
