"""Does bias go along with how far representations moved? Variants as points, a line per block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.auditing.explain.regress import Regression, regress
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.result import AuditResult

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "METRICS", "Regression", "distance_columns", "regress",
           "similarity", "similarity_points"]  # fmt: skip

MEASURES = ("svcca", "cka")
METRICS = ("cev", "sde", "accuracy")
_SHOWN = {"cev": "CEV", "sde": "SDE", "accuracy": "accuracy"}


def distance_columns(variants_table: pd.DataFrame | None) -> list[tuple[str, str]]:
    """The (measure, block) pairs whose distances a variants table holds, in its order.

    >>> import pandas as pd
    >>> distance_columns(pd.DataFrame(columns=["variant", "svcca.block1", "svcca_status"]))
    [('svcca', 'block1')]
    """
    names = [] if variants_table is None else [str(name) for name in variants_table.columns]
    return [
        (measure, name.removeprefix(f"{measure}."))
        for measure in MEASURES
        for name in names
        if name.startswith(f"{measure}.")
    ]


def similarity_points(result: AuditResult) -> pd.DataFrame:
    """Each variant's mean distance to its own dense models beside its bias, per measure and block.

    Notes
    -----
    `floor` is the mean distance between dense models: what retraining alone gives. A member
    without a distance takes no part in the mean. CEV and SDE are as published, of scope `model`,
    and NaN where the audit cannot estimate them.
    """
    import pandas as pd

    columns = distance_columns(result.variants_table)
    names = list(COLUMNS["similarity_points"])
    table = result.variants_table
    if table is None or not columns:
        return pd.DataFrame(columns=names)
    whose = table["variant"].astype(str)
    values = {metric: _overall(result, metric) for metric in METRICS}
    sparsity = _means(table, whose, "sparsity")
    rows = []
    for measure, block in columns:
        distance = _means(table, whose, f"{measure}.{block}")
        for variant in result.variants:
            rows.append(
                {
                    "measure": measure,
                    "block": block,
                    "variant": variant,
                    "distance": distance.get(variant),
                    "floor": distance.get(result.baseline),
                    **{metric: values[metric].get(variant) for metric in METRICS},
                    "sparsity": sparsity.get(variant),
                }
            )
    numbers = names[names.index("distance") :]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(numbers, "float64"))


def similarity(points: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    """The line of every bias metric on every distance, over the variants.

    Parameters
    ----------
    points
        As `similarity_points` makes them.

    Notes
    -----
    An association over variants: what moves representations (sparsity, above all) also moves
    errors, and variants made from the same dense models are not independent. Rows with fewer than
    4 variants, equal distances or an undefined metric are NaN, and `status` says why.
    """
    import pandas as pd

    rows = []
    for (measure, block), own in points.groupby(["measure", "block"], sort=False):
        for metric in METRICS:
            line = regress(own["distance"].to_numpy(), own[metric].to_numpy(), alpha=alpha)
            lacking = own.loc[own[["distance", metric]].isna().any(axis=1), "variant"]
            rows.append(
                {
                    "measure": measure,
                    "block": block,
                    "metric": metric,
                    "n_variants": line.n,
                    "slope": line.slope,
                    "slope_low": line.slope_low,
                    "slope_high": line.slope_high,
                    "correlation": line.correlation,
                    "correlation_low": line.correlation_low,
                    "correlation_high": line.correlation_high,
                    "p_value": line.p_value,
                    "status": _status(line, lacking.tolist(), metric),
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS["similarity"]))


def _status(line: Regression, lacking: Sequence[str], metric: str) -> str:
    if not lacking:
        return line.status
    some = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    left_out = f"left out for want of a distance or {_SHOWN[metric]}: {some}"
    return left_out if line.status == "ok" else f"{line.status} ({left_out})"


def _means(table: pd.DataFrame, whose: pd.Series, column: str) -> dict[str, float]:
    """The mean over members of each variant; variants without any value are NaN."""
    import pandas as pd

    if column not in table.columns:
        return {}
    values = pd.to_numeric(table[column], errors="coerce").astype("float64")
    return {str(name): float(mean) for name, mean in values.groupby(whose).mean().items()}


def _overall(result: AuditResult, metric: str) -> dict[str, float]:
    """The value of whole variants; those that the audit cannot estimate are left out."""
    rows = result.results
    own = rows[
        (rows["metric"] == metric)
        & (rows["by"] == "overall")
        & (rows["scope"].fillna("model") == "model")
        & rows["task"].isna()
        & (rows["status"].fillna("ok") == "ok")
    ]
    return {str(v): float(x) for v, x in zip(own["variant"], own["compressed"], strict=True)}
