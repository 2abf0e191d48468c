"""The fits of class accuracy: Paganini's own, and those whose errors respect who is related.

`ols-hac`      the paper's: ordinary least squares, errors robust to heteroscedasticity and to
               autocorrelation over 3 neighbouring rows, small-sample correction, t
`ols-linear`   the same without cross terms
`ols-cluster`  the paper's coefficients, errors clustered on the lineage root, t(G − 1)
`ols-two-way`  the same, clustered on the lineage root and on the class of a data set
`glm-cluster`  binomial with logit link on right and wrong answers, clustered on the root
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.explain.class_design import Design
from fairweight.auditing.explain.residual_diagnostics import Diagnostics, diagnostics
from fairweight.errors import InputError

Floats = NDArray[np.float64]
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
    fits = (
        _hac("ols-hac", full, design.names, alpha, _sums_of_squares_test(full, linear)),
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
    from scipy.special import stdtr, stdtrit

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


def _sums_of_squares_test(full: Any, linear: Any) -> tuple[float, float]:
    """The usual F test between nested models: it takes rows as independent."""
    from scipy.special import fdtrc

    terms = len(full.params) - len(linear.params)
    if not terms or full.ssr <= 0:
        return np.nan, np.nan
    f = (linear.ssr - full.ssr) / terms / (full.ssr / full.df_resid)
    return float(f), float(fdtrc(terms, full.df_resid, f))


def _wald_test(
    results: Any, cross: NDArray[np.bool_], known: NDArray[np.bool_], clusters: int
) -> tuple[float, float, tuple[str, ...]]:
    """All cross terms at once with clustered errors: fewer terms than clusters are needed.

    F is Hotelling's, with q and G − q degrees of freedom for q terms and G clusters: the
    covariance is itself estimated from G clusters, and Wald's F takes it as known.
    """
    from scipy.special import fdtrc

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
