"""The fits of class accuracy as tables: coefficients, summaries, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.explain.class_design import Design
from fairweight.auditing.explain.class_models import Fitted, Refused
from fairweight.auditing.explain.residual_diagnostics import Diagnostics
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.explain.wild_bootstrap import WildP

if TYPE_CHECKING:
    import pandas as pd

COEFFICIENT_COLUMNS = COLUMNS["class_coefficients"]
FIT_COLUMNS = (*COLUMNS["class_fits"], *(one.name for one in fields(Diagnostics)))
RESIDUAL_COLUMNS = COLUMNS["class_residuals"]

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
            drawn = wild if fit.fit == BOOTSTRAPPED else None
            rows.append(_estimated(fit, term.name, place[term.name], drawn))
    return rows


def fit_row(
    fit: Fitted | Refused, design: Design, n: int, n_roots: int, notes: Sequence[str]
) -> dict[str, Any]:
    """The summary of a fit, with what is to be said of it."""
    notes = (*notes, *design.notes, *_left_out(design, linear=fit.fit == LINEAR))
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


def fit_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Summaries as a table; counts that are not known stay missing."""
    import pandas as pd

    whole = ("n", "n_parameters", "df_residual", "n_roots")
    return pd.DataFrame(rows, columns=list(FIT_COLUMNS)).astype(dict.fromkeys(whole, "Int64"))


def coefficient_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Coefficients as a table."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(COEFFICIENT_COLUMNS))


def _estimated(fit: Fitted, term: str, j: int, wild: WildP | None) -> dict[str, Any]:
    from scipy.special import stdtr

    tail = TAILS.get(term, "")
    t = fit.statistic[j]
    known = np.isfinite(fit.std_error[j])
    return {
        "fit": fit.fit,
        "term": term,
        "coefficient": fit.coefficient[j],
        "std_error": fit.std_error[j],
        "statistic": t,
        "p_value": fit.p_value[j],
        "low": fit.low[j],
        "high": fit.high[j],
        "p_one_tailed": stdtr(fit.df, -t if tail == "greater" else t) if tail else np.nan,
        "tail": tail,
        "status": "ok" if known else "not_estimable: no error, as one cluster alone has this term",
        "p_wild": np.nan if wild is None or not known else wild.two_sided[j],
        "p_wild_one_tailed": (
            np.nan if wild is None or not known or not tail else getattr(wild, tail)[j]
        ),
    }


def _left_out(design: Design, linear: bool) -> list[str]:
    """Columns without a say of their own, those of one reason in one sentence."""
    names: dict[str, list[str]] = {}
    silent = " ".join(design.notes)
    for term in design.terms:
        if term.left_out and term.left_out not in silent and not (linear and term.cross):
            names.setdefault(term.left_out, []).append(term.name)
    return [f"left out as {why}: {', '.join(same)}" for why, same in names.items()]
