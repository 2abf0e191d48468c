"""Which properties of a class go with its accuracy in pruned models: Paganini's question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr

from fairweight.auditing import schema
from fairweight.auditing.explain.class_models import (
    FEWEST_CLUSTERS,
    LEAST_SQUARES,
    LOGIT,
    NUMBERS,
    REFERENCES,
    Design,
    Diagnostics,
    Fitted,
    Refused,
    binomial,
    design,
    least_squares,
)
from fairweight.auditing.explain.class_rows import in_row_order
from fairweight.base.streams import stream
from fairweight.base.types import Floats
from fairweight.errors import InputError

# Tests of single coefficients with few clusters: the wild cluster bootstrap, null imposed.

# Signs alone make 2^G different draws; below this many clusters they are too few.
FEWEST_FOR_SIGNS = 12
_WEBB = np.sqrt(np.array([1.5, 1.0, 0.5]))
_TIES = 1e-9


@dataclass(frozen=True)
class WildP:
    """p-values of every coefficient being 0; NaN where no cluster varies."""

    two_sided: Floats
    greater: Floats  # against a coefficient above 0
    less: Floats


def wild_cluster_p(
    matrix: Floats,
    coefficient: Floats,
    residual: Floats,
    inverse: Floats,
    cluster: NDArray[np.intp],
    *,
    n_boot: int,
    rng: np.random.Generator,
) -> WildP:
    """p of each coefficient of a least-squares fit, by drawing signs of whole clusters.

    Parameters
    ----------
    matrix, coefficient, residual, inverse
        Of the fit: X, b, y − Xb and (X'X)⁻¹.
    cluster
        Codes 0 to G − 1, one per row.

    Notes
    -----
    Cameron, Gelbach and Miller 2008: residuals of the fit without the term, multiplied cluster by
    cluster with a random sign (below 12 clusters one of Webb's six values), are added to that
    fit; t of the term, with clustered errors, is compared with its draws.

    A draw needs no pass over the rows. All that enters are S_g = X_g'X_g and X_g'û_g of each
    cluster: leaving term j out adds (b_j / Q_jj) Q_j to the fit's residuals in the space of X, for
    Q = (X'X)⁻¹, so a million rows cost as much as a thousand.
    """
    groups = int(cluster.max()) + 1
    squares = np.empty((groups, matrix.shape[1], matrix.shape[1]))
    scores = np.empty((groups, matrix.shape[1]))
    for g in range(groups):
        rows = np.flatnonzero(cluster == g)
        own = matrix[rows]
        squares[g], scores[g] = own.T @ own, own.T @ residual[rows]
    weights = wild_weights(groups, n_boot, rng)
    found = np.full((3, len(coefficient)), np.nan)
    for j, value in enumerate(coefficient.tolist()):
        toward = squares @ inverse[:, j]  # (G, k): X_g'a_g, where a = X Q_j and b_j = a'y
        own = scores @ inverse[:, j]  # (G,): a_g'û_g
        spread = float(np.sqrt(own @ own))
        if spread <= _TIES * max(abs(value), np.finfo(float).tiny):
            continue
        observed = value / spread
        restricted = scores + value / inverse[j, j] * toward  # X_g'ũ_g
        pushes = restricted @ inverse[:, j]  # (G,): what each cluster moves b_j by
        refit = toward @ (restricted @ inverse).T  # (G, G): what the fit takes back of it
        moved = weights @ pushes
        left = weights * pushes - weights @ refit.T
        deviation = np.sqrt(np.einsum("bg,bg->b", left, left))
        drawn = np.divide(moved, deviation, out=np.zeros_like(moved), where=deviation > 0)
        slack = _TIES * max(1.0, abs(observed))
        as_far = (
            np.abs(drawn) >= abs(observed) - slack,
            drawn >= observed - slack,
            drawn <= observed + slack,
        )
        # The observed value counts as one of the draws, so that p is never 0.
        found[:, j] = (1 + np.sum(as_far, axis=1)) / (1 + n_boot)
    return WildP(*found)


def wild_weights(groups: int, n_boot: int, rng: np.random.Generator) -> Floats:
    """What residuals of whole clusters are multiplied with, (draws, clusters)."""
    values = np.ones(1) if groups >= FEWEST_FOR_SIGNS else _WEBB
    drawn: Floats = rng.choice(np.concatenate((-values, values)), size=(n_boot, groups))
    return drawn


# The fits of class accuracy as tables: coefficients, summaries, residuals.

# The paper's alternatives: a class with fewer images, or with richer ones, is less accurate.
TAILS: dict[str, str] = {"imbalance": "greater", "class_entropy": "less"}
LINEAR = "ols-linear"
BOOTSTRAPPED = "ols-cluster"


def coefficient_rows(fit: Fitted | Refused, design: Design, wild: WildP | None) -> list[Any]:
    """A row per term of a fit, kept or left out; none for a fit that was refused."""
    if isinstance(fit, Refused):
        return []
    place = {name: i for i, name in enumerate(fit.names)}
    rows: list[dict[str, Any]] = []
    for term in design.terms:
        if term.cross and fit.fit == LINEAR:
            continue
        if term.left_out:
            status = f"not_estimable: {term.left_out}"
            rows.append({"fit": fit.fit, "term": term.name, "tail": "", "status": status})
        else:
            j, tail = place[term.name], TAILS.get(term.name, "")
            t, known = fit.statistic[j], np.isfinite(fit.std_error[j])
            drawn = wild if fit.fit == BOOTSTRAPPED and known else None
            alone = "not_estimable: no error, as one cluster alone has this term"
            rows.append(
                {
                    "fit": fit.fit,
                    "term": term.name,
                    "coefficient": fit.coefficient[j],
                    "std_error": fit.std_error[j],
                    "statistic": t,
                    "p_value": fit.p_value[j],
                    "low": fit.low[j],
                    "high": fit.high[j],
                    "p_one_tailed": (
                        stdtr(fit.df, -t if tail == "greater" else t) if tail else np.nan
                    ),
                    "tail": tail,
                    "status": "ok" if known else alone,
                    "p_wild": np.nan if drawn is None else drawn.two_sided[j],
                    "p_wild_one_tailed": (
                        getattr(drawn, tail)[j] if drawn is not None and tail else np.nan
                    ),
                }
            )
    return rows


def fit_row(
    fit: Fitted | Refused, design: Design, n: int, n_roots: int, notes: Sequence[str]
) -> dict[str, Any]:
    """The summary of a fit, with what is to be said of it."""
    # Columns without a say of their own, those of one reason in one sentence.
    names: dict[str, list[str]] = {}
    silent = " ".join(design.notes)
    for term in design.terms:
        beside = term.cross and fit.fit == LINEAR
        if term.left_out and term.left_out not in silent and not beside:
            names.setdefault(term.left_out, []).append(term.name)
    left_out = [f"left out as {why}: {', '.join(same)}" for why, same in names.items()]
    notes = (*notes, *design.notes, *left_out)
    if isinstance(fit, Refused):
        return refused_row(fit.fit, fit.reason, n, n_roots, notes)
    return {
        "fit": fit.fit,
        "n": n,
        "n_parameters": len(fit.names),
        "df_residual": n - len(fit.names),
        "r2": fit.r2,
        "r2_adjusted": fit.r2_adjusted,
        "condition_number": fit.condition_number,
        "n_roots": n_roots,
        "f_against_linear": fit.f_cross,
        "f_p": fit.f_cross_p,
        "status": "; ".join(("ok", *fit.notes, *notes)),
        **asdict(fit.diagnostics),
    }


def refused_row(
    fit: str, reason: str, n: int, n_roots: int, notes: Sequence[str]
) -> dict[str, Any]:
    """The row of a fit that cannot be made."""
    status = "; ".join((f"not_estimable: {reason}", *notes))
    return {"fit": fit, "n": n, "n_roots": n_roots, "status": status}


_DIAGNOSTICS = [one.name for one in fields(Diagnostics)]
ENOUGH_ROOTS = 30  # from here on t(G − 1) alone is trusted
_NEEDED = ("accuracy", *NUMBERS, *REFERENCES, "class", "seed", "root")


@dataclass(frozen=True)
class ClassExplanation:
    """Associations, never causes; columns as `class_frames` names them."""

    coefficients: pd.DataFrame
    fits: pd.DataFrame
    residuals: pd.DataFrame  # of `ols-hac`; `row` is the index of a row in the table given


def explain_classes(
    class_rows: pd.DataFrame,
    *,
    alpha: float = 0.05,
    random_state: int = 0,
    n_boot: int = 999,
) -> ClassExplanation:
    """Fit Paganini's regression of class accuracy, and the same with other errors beside it.

    Parameters
    ----------
    class_rows
        As `class_rows` makes them. Rows are sorted by ROW_ORDER before they are fitted, because
        errors of `ols-hac` depend on it; rows with a missing value take no part.
    alpha
        One minus the confidence of the intervals.
    random_state, n_boot
        Of the wild cluster bootstrap, which is drawn for fewer than 30 lineage roots.
    """
    missing = [name for name in _NEEDED if name not in class_rows.columns]
    if missing:
        raise InputError(
            f"class_rows has no column '{missing[0]}'; give the table that class_rows(…) makes, "
            f"with {', '.join(_NEEDED)}."
        )
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    if n_boot < 1:
        raise InputError(f"n_boot is {n_boot}; give at least 1, such as 999.")
    complete = class_rows[list(_NEEDED)].notna().all(axis=1)
    dropped = int((~complete).sum())
    notes = (f"{dropped:,} rows with a missing value take no part",) if dropped else ()
    rows = in_row_order(class_rows.assign(row=class_rows.index)[complete])
    n = len(rows)
    root, of_class = (
        np.asarray(rows.groupby(names, sort=True).ngroup(), dtype=np.intp)
        for names in (["root"], ["dataset", "class"])
    )
    n_roots = int(root.max(initial=-1)) + 1
    if not n:
        return _nothing("no row is without missing values", n, n_roots, notes)
    accuracy = rows["accuracy"].to_numpy(dtype=float)
    if np.ptp(accuracy) == 0:
        return _nothing(f"the accuracy never varies ({accuracy[0]:.6g})", n, n_roots, notes)
    if np.array_equal(accuracy, rows["accuracy0"].to_numpy(dtype=float)):
        return _nothing("every class is as accurate as before pruning", n, n_roots, notes)
    made = design(rows)
    if n <= len(made.names):
        reason = f"{n:,} rows are too few for {len(made.names)} parameters"
        return _nothing(reason, n, n_roots, (*notes, *made.notes))
    squares = least_squares(accuracy, made, root, of_class, alpha)
    examples = np.full(n, np.nan)
    if "n" in rows.columns:
        examples = rows["n"].to_numpy(dtype=float, na_value=np.nan)
    fits = (*squares.fits, binomial(accuracy, examples, made, root, alpha))
    wild = None
    if FEWEST_CLUSTERS <= n_roots < ENOUGH_ROOTS:
        wild = wild_cluster_p(
            made.matrix,
            squares.coefficient,
            squares.residual,
            squares.inverse,
            root,
            n_boot=n_boot,
            rng=stream(random_state, "class regression: wild cluster bootstrap"),
        )
    coefficients = [row for fit in fits for row in coefficient_rows(fit, made, wild)]
    summaries = [fit_row(fit, made, n, n_roots, notes) for fit in fits]
    residuals = {
        "row": rows["row"], "predicted": squares.predicted, "residual": squares.residual,
    }  # fmt: skip
    return ClassExplanation(
        coefficients=schema.frame("class_coefficients", coefficients),
        fits=schema.frame("class_fits", summaries, more=_DIAGNOSTICS),
        residuals=schema.frame("class_residuals", residuals),
    )


def _nothing(reason: str, n: int, n_roots: int, notes: tuple[str, ...]) -> ClassExplanation:
    """Every fit refused for one reason."""
    refused = [refused_row(fit, reason, n, n_roots, notes) for fit in (*LEAST_SQUARES, LOGIT)]
    return ClassExplanation(
        coefficients=schema.frame("class_coefficients"),
        fits=schema.frame("class_fits", refused, more=_DIAGNOSTICS),
        residuals=schema.frame("class_residuals"),
    )
