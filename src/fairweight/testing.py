"""For tests of your own: fail where a compressed model costs some group too much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairweight.api import audit

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict


def assert_no_group_loses(
    y_true: Any,
    y_pred: Mapping[str, Any],
    *,
    sensitive_features: Any,
    margin: float = 0.02,
    metric: str = "accuracy",
    baseline: str | None = None,
    allow_cannot_tell: bool = False,
    **options: Any,
) -> Verdict:
    """Raise AssertionError unless a loss beyond the margin is ruled out for every group.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, baseline, options
        As for `fairweight.audit`: labels, predictions by variant (the baseline first), groups.
    margin
        The largest loss that may pass, as a share: 0.02 are two points.
    metric
        What may be lost.
    allow_cannot_tell
        Whether data that cannot decide pass the test. By default they fail it: a group that is too
        small to check was not checked.

    Returns
    -------
    The verdict, for further assertions.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile(["cat", "dog"], 1000)
    >>> worse = y.copy()
    >>> worse[:300] = "cat"
    >>> sex = np.where(np.arange(2000) < 500, "F", "M")
    >>> assert_no_group_loses(y, {"dense": y, "int8": worse}, sensitive_features={"sex": sex})
    Traceback (most recent call last):
    ...
    AssertionError: int8 fails: ...
    """
    kinds = ("overall", "group", "intersection")
    made = audit(
        y_true,
        dict(y_pred),
        baseline=baseline,
        sensitive_features=sensitive_features,
        confirmatory=[(metric, by) for by in kinds],
        **options,
    )
    crossed = len(made.result.groupings) > len(made.result.single_columns)
    rules = [
        {"metric": metric, "by": by, "margin": margin} for by in (kinds if crossed else kinds[:2])
    ]
    verdict = made.gate({"rule": rules})
    if verdict.passed or (allow_cannot_tell and verdict.exit_code == 3):
        return verdict
    # What failed, at most five rows of it, in points.
    rows = verdict.rows[verdict.rows["decision"] != "pass"]
    words = {"fail": "fails", "cannot tell": "cannot be judged"}
    said = [f"{name} {words[o]}" for name, o in verdict.variants.items() if o != "pass"]
    lines = [f"{', '.join(said)}: {metric} may lose at most {100 * margin:g} points."]
    for row in rows.head(5).to_dict("records"):
        where = row["group"] if isinstance(row["group"], str) else "everyone"
        lines.append(f"  {row['variant']}, {where}: {row['reason']}")
    if len(rows) > 5:
        lines.append(f"  and {len(rows) - 5} more; see the verdict's rows")
    raise AssertionError("\n".join(lines))
