"""The fits of class accuracy: Paganini's own, and those whose errors respect who is related.

`ols-hac`      the paper's: ordinary least squares, errors robust to heteroscedasticity and to
               autocorrelation over 3 neighbouring rows, small-sample correction, t
`ols-linear`   the same without cross terms
`ols-cluster`  the paper's coefficients, errors clustered on the lineage root, t(G − 1)
`ols-two-way`  the same, clustered on the lineage root and on the class of a data set
`glm-cluster`  binomial with logit link on right and wrong answers, clustered on the root
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr, stdtrit

from fairweight.base.types import Floats
from fairweight.errors import InputError

# Paganini's regression as a matrix: one column per term, in the order and names of the paper.
#
# accuracy ~ dataset + model + weight_treatment * pruning_technique
#     + np.exp(sparsity) + np.exp(sparsity):dataset + np.exp(sparsity):pruning_technique
#     + sparsity + accuracy0 + accuracy0:weight_treatment + accuracy0:pruning_technique
#     + accuracy0_quartile + imbalance + class_entropy
#     + np.exp(sparsity):accuracy0 + accuracy0:accuracy0_quartile

INTERCEPT = "Intercept"
GROWTH = "np.exp(sparsity)"
# The level that the others are compared with, where it is there.
REFERENCES: dict[str, str] = {
    "dataset": "cifar-10",
    "model": "alexnet",
    "weight_treatment": "finetune",
    "pruning_technique": "global_unstructured",
}
NUMBERS: tuple[str, ...] = (
    "sparsity", "accuracy0", "accuracy0_quartile", "imbalance", "class_entropy",
)  # fmt: skip
# In the order of the paper's table; a single name is a linear term, a pair a cross term.
TERMS: tuple[tuple[str, ...], ...] = (
    ("dataset",),
    ("model",),
    ("weight_treatment",),
    ("pruning_technique",),
    ("weight_treatment", "pruning_technique"),
    (GROWTH,),
    (GROWTH, "dataset"),
    (GROWTH, "pruning_technique"),
    ("sparsity",),
    ("accuracy0",),
    ("accuracy0", "weight_treatment"),
    ("accuracy0", "pruning_technique"),
    ("accuracy0_quartile",),
    ("imbalance",),
    ("class_entropy",),
    (GROWTH, "accuracy0"),
    ("accuracy0", "accuracy0_quartile"),
)
# A column is taken to follow from others when less than this share of it does not.
_LEFT_OVER = 1e-8
_ROUNDING = 1e-12
_ABSENT = "no row has this combination"
_FOLLOWS = "it follows from the terms before it"

Columns: TypeAlias = dict[str, list[tuple[str, NDArray[Any]]]]


@dataclass(frozen=True)
class DesignTerm:
    """A column of the full model, or a variable that brings none."""

    name: str
    cross: bool  # a product of two variables
    left_out: str = ""  # why, where it is


@dataclass(frozen=True)
class Design:
    """The columns that can be told apart, and what is to be said of the others."""

    matrix: NDArray[np.float64]  # (rows, kept terms)
    terms: tuple[DesignTerm, ...]  # kept and left out, as in the paper's table
    notes: tuple[str, ...]  # references that are not the paper's, variables without terms

    @property
    def kept(self) -> tuple[DesignTerm, ...]:
        """The terms that have a column."""
        return tuple(term for term in self.terms if not term.left_out)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(term.name for term in self.kept)

    @property
    def cross(self) -> NDArray[np.bool_]:
        """Which columns are products of two variables."""
        return np.array([term.cross for term in self.kept])


def design(rows: pd.DataFrame) -> Design:
    """The matrix of the full model; rows must have no missing values.

    Terms that say nothing are left out: factors with one level, covariates that never vary,
    columns that follow from columns before them. Linear terms come first in this, so that a cross
    term never takes the place of a linear one.
    """
    columns, silent, notes = _variables(rows)
    notes += [f"{why}, so its terms are left out" for why in silent.values()]
    terms, places = [DesignTerm(INTERCEPT, cross=False)], [0]
    width = 1 + sum(prod(len(columns[name]) for name in term) for term in TERMS)
    matrix = np.ones((len(rows), width))
    for term in TERMS:
        if len(term) == 1 and term[0] in silent:
            terms.append(DesignTerm(term[0], cross=False, left_out=silent[term[0]]))
        for name, values in _products(term, columns):
            matrix[:, len(places)] = values
            places.append(len(terms))
            terms.append(DesignTerm(name, cross=len(term) > 1))
    cross = np.array([terms[place].cross for place in places])
    kept = _independent(matrix, np.argsort(cross, kind="stable"))
    for column in np.flatnonzero(~kept):
        why = _FOLLOWS if matrix[:, column].any() else _ABSENT
        terms[places[column]] = replace(terms[places[column]], left_out=why)
    return Design(matrix if kept.all() else matrix[:, kept], tuple(terms), tuple(notes))


def _variables(rows: pd.DataFrame) -> tuple[Columns, dict[str, str], list[str]]:
    """The columns that each variable brings, why some bring none, and references to be named.

    A factor has one column per level after its reference.
    """
    columns: Columns = {}
    silent: dict[str, str] = {}
    notes: list[str] = []
    for factor, wanted in REFERENCES.items():
        levels, code = np.unique(rows[factor].to_numpy(dtype=str), return_inverse=True)
        reference = next((i for i, name in enumerate(levels) if _same(name, wanted)), 0)
        columns[factor] = [
            (f"{factor}[T.{level}]", code == i) for i, level in enumerate(levels) if i != reference
        ]
        if len(levels) == 1:
            silent[factor] = f"{factor} has one level ({levels[0]})"
        elif not _same(levels[reference], wanted):
            notes.append(f"the reference of {factor} is {levels[reference]}, as {wanted} is absent")
    for number in NUMBERS:
        values = rows[number].to_numpy(dtype=float)
        columns[number] = [(number, values)]
        if np.ptp(values) == 0:
            columns[number] = []
            silent[number] = f"{number} never varies ({values[0]:.6g})"
    columns[GROWTH] = [(GROWTH, np.exp(values)) for _, values in columns["sparsity"]]
    if not columns[GROWTH]:
        silent[GROWTH] = f"{GROWTH} never varies"
    return columns, silent, notes


def _same(name: str, wanted: str) -> bool:
    """`cifar10`, `CIFAR-10` and `cifar-10` are one data set."""
    return re.sub(r"\W|_", "", name).lower() == re.sub(r"\W|_", "", wanted).lower()


def _products(term: tuple[str, ...], columns: Columns) -> Iterator[tuple[str, NDArray[Any]]]:
    if len(term) == 1:
        yield from columns[term[0]]
        return
    first, second = term
    for name, values in columns[first]:
        for other, by in columns[second]:
            yield f"{name}:{other}", values * by


def _independent(matrix: NDArray[np.float64], priority: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns do not follow from those before them in the order of priority."""
    # R has the inner products of all columns in as many rows as there are columns, and unlike
    # the products themselves it keeps small differences.
    triangle: NDArray[np.float64] = np.asarray(np.linalg.qr(matrix, mode="r"))
    rest = triangle[:, priority]
    kept = np.zeros(len(priority), dtype=bool)
    size = np.linalg.norm(rest, axis=0)
    least = _ROUNDING * size
    for i, place in enumerate(priority):
        if i == 1:  # the intercept is out: what is left of a column is what it varies by
            size = np.linalg.norm(rest, axis=0)
        left = float(np.linalg.norm(rest[:, i]))
        if left <= max(float(least[i]), _LEFT_OVER * float(size[i])):
            continue
        kept[place] = True
        direction = rest[:, i] / left
        rest = rest - np.outer(direction, direction @ rest)
    return kept


# What residuals look like: the lower half of a regression table.

_FEWEST = 8  # below this the skewness test is not defined


@dataclass(frozen=True)
class Diagnostics:
    """Durbin–Watson depends on the order of rows; normality is not needed for robust errors."""

    durbin_watson: float = np.nan  # 2: neighbouring rows are unrelated; towards 0: they are alike
    omnibus: float = np.nan  # D'Agostino and Pearson, of skewness and kurtosis together
    omnibus_p: float = np.nan
    jarque_bera: float = np.nan
    jarque_bera_p: float = np.nan
    skew: float = np.nan
    kurtosis: float = np.nan  # 3 for a normal distribution
    outside: float = np.nan  # share of fitted accuracies below 0 or above 1


def diagnostics(predicted: NDArray[np.float64], residual: NDArray[np.float64]) -> Diagnostics:
    """The paper's diagnostics, and how often the fit leaves the range of an accuracy."""
    from statsmodels.stats.stattools import durbin_watson, jarque_bera, omni_normtest

    outside = float(((predicted < 0) | (predicted > 1)).mean())
    if len(residual) < _FEWEST or np.allclose(residual, 0, atol=1e-12):
        return Diagnostics(outside=outside)
    omnibus, omnibus_p = omni_normtest(residual)
    statistic, p, skew, kurtosis = jarque_bera(residual)
    return Diagnostics(
        durbin_watson=float(durbin_watson(residual)),
        omnibus=float(omnibus),
        omnibus_p=float(omnibus_p),
        jarque_bera=float(statistic),
        jarque_bera_p=float(p),
        skew=float(skew),
        kurtosis=float(kurtosis),
        outside=outside,
    )


Codes = NDArray[np.intp]

LEAST_SQUARES = ("ols-hac", "ols-linear", "ols-cluster", "ols-two-way")
LOGIT = "glm-cluster"
LAGS = 3
FEWEST_CLUSTERS = 2
# A logit beyond this is a share that no number of test examples can tell from 0 or 1.
_UNBOUNDED = 25.0
_ONE_ROOT = "there is one lineage root, so that errors cannot be clustered"
_ONE_CLASS = "there is one class, so that errors cannot be clustered"


@dataclass(frozen=True)
class Fitted:
    """One fit: an entry per column of its design, and its summary."""

    fit: str
    names: tuple[str, ...]
    n: int
    coefficient: Floats
    std_error: Floats
    statistic: Floats
    p_value: Floats
    low: Floats
    high: Floats
    df: float  # of the t that statistics are compared with
    r2: float = np.nan
    r2_adjusted: float = np.nan
    condition_number: float = np.nan
    f_cross: float = np.nan  # all cross terms at once, against the linear model
    f_cross_p: float = np.nan
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A fit that cannot be made, and why."""

    fit: str
    reason: str


@dataclass(frozen=True)
class LeastSquares:
    """The fits by least squares, with what the bootstrap and the residual plots need."""

    fits: tuple[Fitted | Refused, ...]
    coefficient: Floats
    predicted: Floats
    residual: Floats
    inverse: Floats  # (X'X)⁻¹


def least_squares(
    accuracy: Floats, design: Design, root: Codes, of_class: Codes, alpha: float
) -> LeastSquares:
    """All fits by least squares; errors differ, the coefficients of the full model do not."""
    try:
        import statsmodels.api as sm
    except ImportError:
        raise InputError(
            "regressions of classes need statsmodels, which is not installed: "
            "pip install 'fairweight[explain]'."
        ) from None

    full = sm.OLS(accuracy, design.matrix).fit()
    linear = full
    if design.cross.any():
        linear = sm.OLS(accuracy, design.matrix[:, ~design.cross]).fit()
    linear_names = tuple(np.array(design.names, dtype=object)[~design.cross].tolist())
    # The usual F test between nested models: it takes rows as independent.
    cross = (np.nan, np.nan)
    terms = len(full.params) - len(linear.params)
    if terms and full.ssr > 0:
        f = (linear.ssr - full.ssr) / terms / (full.ssr / full.df_resid)
        cross = float(f), float(fdtrc(terms, full.df_resid, f))
    fits = (
        _hac("ols-hac", full, design.names, alpha, cross),
        _hac("ols-linear", linear, linear_names, alpha, (np.nan, np.nan)),
        _clustered("ols-cluster", full, design, root, alpha),
        _two_way("ols-two-way", full, design, root, of_class, alpha),
    )
    return LeastSquares(
        fits=fits,
        coefficient=full.params,
        predicted=full.fittedvalues,
        residual=full.resid,
        inverse=full.normalized_cov_params,
    )


def binomial(
    accuracy: Floats, n: Floats, design: Design, root: Codes, alpha: float
) -> Fitted | Refused:
    """A logit on right and wrong answers: fitted shares stay between 0 and 1.

    Where the number of examples of a class is not known, every row counts alike.
    """
    import statsmodels.api as sm

    roots = int(root.max()) + 1
    if roots < FEWEST_CLUSTERS:
        return Refused(LOGIT, _ONE_ROOT)
    notes = []
    weight = n
    if not (np.isfinite(n) & (n > 0)).all():
        notes.append("the number of test examples is not known, so every row counts alike")
        weight = np.ones(len(accuracy))
    right = accuracy * weight
    answers = np.column_stack((right, weight - right))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            results = sm.GLM(answers, design.matrix, sm.families.Binomial()).fit(
                cov_type="cluster", cov_kwds={"groups": root}, use_t=True
            )
        except (np.linalg.LinAlgError, ValueError) as failed:
            return Refused(LOGIT, f"the fit failed ({' '.join(str(failed).split())})")
        null_deviance = float(results.null_deviance)
    if not results.converged or any("perfect" in str(w.message).lower() for w in warned):
        return Refused(
            LOGIT, "the fit did not converge: some terms tell right from wrong perfectly"
        )
    if np.abs(design.matrix @ results.params).max() > _UNBOUNDED:
        notes.append("some rows are fitted as always right or always wrong, with unbounded terms")
    known = _told_apart(design, root)
    f, p, why = _wald_test(results, design.cross, known, roots)
    error = np.where(known, results.bse, np.nan)
    return Fitted(
        **_numbers(LOGIT, results, error, roots - 1, design.names, alpha),
        r2=1 - float(results.deviance) / null_deviance if null_deviance > 0 else np.nan,
        f_cross=f,
        f_cross_p=p,
        notes=(*notes, *why),
    )


def _hac(
    fit: str, results: Any, names: tuple[str, ...], alpha: float, cross: tuple[float, float]
) -> Fitted:
    robust = results.get_robustcov_results("HAC", maxlags=LAGS, use_correction=True, use_t=True)
    return Fitted(
        **_numbers(fit, results, robust.bse, results.df_resid, names, alpha),
        **_summary(results),
        f_cross=cross[0],
        f_cross_p=cross[1],
        diagnostics=diagnostics(results.fittedvalues, results.resid),
    )


def _clustered(
    fit: str, results: Any, design: Design, root: Codes, alpha: float
) -> Fitted | Refused:
    roots = int(root.max()) + 1
    if roots < FEWEST_CLUSTERS:
        return Refused(fit, _ONE_ROOT)
    robust = results.get_robustcov_results("cluster", groups=root, use_t=True)
    known = _told_apart(design, root)
    f, p, why = _wald_test(robust, design.cross, known, roots)
    error = np.where(known, robust.bse, np.nan)
    return Fitted(
        **_numbers(fit, results, error, roots - 1, design.names, alpha),
        **_summary(results),
        f_cross=f,
        f_cross_p=p,
        notes=why,
    )


def _two_way(
    fit: str, results: Any, design: Design, root: Codes, of_class: Codes, alpha: float
) -> Fitted | Refused:
    """Clustered on both at once (Cameron, Gelbach and Miller 2011).

    The two variances less that of their overlap, and not below either: the difference alone may be
    negative, and found effects where there were none in 7 to 11 % of tests instead of 5 %.
    """
    clusters = min(int(root.max()), int(of_class.max())) + 1
    if clusters < FEWEST_CLUSTERS:
        return Refused(fit, _ONE_ROOT if root.max() == 0 else _ONE_CLASS)
    both = np.unique(np.column_stack((root, of_class)), axis=0, return_inverse=True)[1].reshape(-1)
    by_root, by_class, by_both = (
        results.get_robustcov_results("cluster", groups=groups, use_t=True).bse ** 2
        for groups in (root, of_class, both)
    )
    variance = np.maximum.reduce((by_root, by_class, by_root + by_class - by_both))
    known = _told_apart(design, root) & _told_apart(design, of_class)
    error = np.where(known, np.sqrt(variance), np.nan)
    numbers = _numbers(fit, results, error, clusters - 1, design.names, alpha)
    return Fitted(**numbers, **_summary(results))


def _numbers(
    fit: str, results: Any, error: Floats, df: float, names: tuple[str, ...], alpha: float
) -> dict[str, Any]:
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = results.params / error
    reach = stdtrit(df, 1 - alpha / 2) * error
    return {
        "fit": fit,
        "names": names,
        "n": int(results.nobs),
        "coefficient": results.params,
        "std_error": error,
        "statistic": statistic,
        "p_value": 2 * stdtr(df, -np.abs(statistic)),
        "low": results.params - reach,
        "high": results.params + reach,
        "df": df,
    }


def _summary(results: Any) -> dict[str, Any]:
    return {
        "r2": float(results.rsquared),
        "r2_adjusted": float(results.rsquared_adj),
        "condition_number": float(results.condition_number),
    }


def _told_apart(design: Design, cluster: Codes) -> NDArray[np.bool_]:
    """Columns that are not 0 in at least two clusters.

    Least squares makes the residuals of a column that one cluster alone has add up to 0, and its
    clustered error comes out near 0, whatever the truth.
    """
    held = [np.bincount(cluster, weights=column != 0) > 0 for column in design.matrix.T]
    return np.array([clusters.sum() >= FEWEST_CLUSTERS for clusters in held])


def _wald_test(
    results: Any, cross: NDArray[np.bool_], known: NDArray[np.bool_], clusters: int
) -> tuple[float, float, tuple[str, ...]]:
    """All cross terms at once with clustered errors: fewer terms than clusters are needed.

    F is Hotelling's, with q and G − q degrees of freedom for q terms and G clusters: the
    covariance is itself estimated from G clusters, and Wald's F takes it as known.
    """
    terms = int(cross.sum())
    if not terms:
        return np.nan, np.nan, ()
    if terms >= clusters:
        words = f"{terms} cross terms cannot be tested at once with {clusters} clusters"
        return np.nan, np.nan, (words,)
    covariance = results.cov_params()[np.ix_(cross, cross)]
    error = np.sqrt(np.diag(covariance))
    unit = np.divide(covariance, np.outer(error, error), where=error > 0, out=0 * covariance)
    if not known[cross].all() or np.linalg.matrix_rank(unit, hermitian=True) < terms:
        return np.nan, np.nan, ("the cross terms vary over too few clusters to be tested at once",)
    scaled = results.params[cross] / error
    f = (
        float(scaled @ np.linalg.solve(unit, scaled))
        * (clusters - terms)
        / (terms * (clusters - 1))
    )
    return f, float(fdtrc(terms, clusters - terms, f)), ()
