"""Which properties of a class go with its accuracy in pruned models: Paganini's question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.explain.class_design import NUMBERS, REFERENCES, Design, design
from fairweight.auditing.explain.class_frames import (
    RESIDUAL_COLUMNS,
    coefficient_frame,
    coefficient_rows,
    fit_frame,
    fit_row,
    refused_row,
)
from fairweight.auditing.explain.class_models import (
    FEWEST_CLUSTERS,
    LEAST_SQUARES,
    LOGIT,
    Codes,
    LeastSquares,
    binomial,
    least_squares,
)
from fairweight.auditing.explain.class_rows import in_row_order
from fairweight.auditing.explain.wild_bootstrap import WildP, wild_cluster_p
from fairweight.auditing.streams import stream
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

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
    _check(class_rows, alpha, n_boot)
    rows, notes = _usable(class_rows)
    n, root, of_class = len(rows), _codes(rows, "root"), _codes(rows, "dataset", "class")
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
    fits = (*squares.fits, binomial(accuracy, _n_examples(rows), made, root, alpha))
    wild = None
    if FEWEST_CLUSTERS <= n_roots < ENOUGH_ROOTS:
        wild = _wild(made, squares, root, n_boot, random_state)
    return ClassExplanation(
        coefficients=coefficient_frame(
            [row for fit in fits for row in coefficient_rows(fit, made, wild)]
        ),
        fits=fit_frame([fit_row(fit, made, n, n_roots, notes) for fit in fits]),
        residuals=_residuals(rows, squares),
    )


def _check(class_rows: pd.DataFrame, alpha: float, n_boot: int) -> None:
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


def _usable(class_rows: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Rows without missing values, in the order of the fit; `row` says where each came from."""
    complete = class_rows[list(_NEEDED)].notna().all(axis=1)
    dropped = int((~complete).sum())
    notes = (f"{dropped:,} rows with a missing value take no part",) if dropped else ()
    return in_row_order(class_rows.assign(row=class_rows.index)[complete]), notes


def _codes(rows: pd.DataFrame, *names: str) -> Codes:
    codes: Any = rows.groupby(list(names), sort=True).ngroup()
    return np.asarray(codes, dtype=np.intp)


def _n_examples(rows: pd.DataFrame) -> Any:
    if "n" not in rows.columns:
        return np.full(len(rows), np.nan)
    return rows["n"].to_numpy(dtype=float, na_value=np.nan)


def _wild(made: Design, fit: LeastSquares, root: Codes, n_boot: int, random_state: int) -> WildP:
    return wild_cluster_p(
        made.matrix,
        fit.coefficient,
        fit.residual,
        fit.inverse,
        root,
        n_boot=n_boot,
        rng=stream(random_state, "class regression: wild cluster bootstrap"),
    )


def _residuals(rows: pd.DataFrame, fit: LeastSquares) -> pd.DataFrame:
    import pandas as pd

    values = {"row": rows["row"], "predicted": fit.predicted, "residual": fit.residual}
    return pd.DataFrame(values, columns=list(RESIDUAL_COLUMNS))


def _nothing(reason: str, n: int, n_roots: int, notes: tuple[str, ...]) -> ClassExplanation:
    """Every fit refused for one reason."""
    import pandas as pd

    names = (*LEAST_SQUARES, LOGIT)
    return ClassExplanation(
        coefficients=coefficient_frame([]),
        fits=fit_frame([refused_row(fit, reason, n, n_roots, notes) for fit in names]),
        residuals=pd.DataFrame(columns=list(RESIDUAL_COLUMNS)),
    )
