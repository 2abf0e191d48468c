"""How well the dense model alone finds the examples that compression changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.auc import auc_limits, placements
from fairweight.auditing.exemplars.modal import Mask
from fairweight.auditing.exemplars.result import Key
from fairweight.auditing.exemplars.risk_scores import NO_SCORES, risk_scores
from fairweight.auditing.explain.tables import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

RISK_COLUMNS = COLUMNS["risk"]


def risk(
    answers: Answers,
    masks: Mapping[Key, Mask],
    *,
    kind: str = "modal",
    percentile: float | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """The AUC of every risk score for finding a variant's exemplars, with its interval.

    Parameters
    ----------
    masks
        (variant, kind, percentile) → which examples are exemplars, as `find` gives them.
    kind, percentile
        Which of them to find.

    Notes
    -----
    Ties count half. Limits are DeLong's on the logit, over examples or whole clusters; NaN where
    the AUC is 0 or 1. Exemplars are judged by the votes of the very dense members that the score is
    of, so it describes these models; what a score is worth on other data is the evidence of the
    pre-flight check.
    """
    import pandas as pd

    scores = risk_scores(answers)
    rows = []
    for variant in answers.variants:
        mask = masks[variant, kind, percentile]
        place = {"variant": variant, "task": answers.task}
        for name, score in scores.items():
            rows.append({**place, "score": name, **_found(answers, score, mask, alpha)})
        if not scores:
            told = {"n": answers.n_examples, "n_exemplars": int(mask.sum())}
            rows.append({**place, **told, "status": f"cannot tell: {NO_SCORES}"})
    return pd.DataFrame(rows, columns=list(RISK_COLUMNS))


def _found(answers: Answers, score: Floats, mask: Mask, alpha: float) -> dict[str, Any]:
    known = ~np.isnan(score)
    chosen = mask[known]
    row: dict[str, Any] = {"n": int(known.sum()), "n_exemplars": int(chosen.sum()), "status": "ok"}
    if not chosen.any() or chosen.all():
        which = "no exemplars" if not chosen.any() else "every example is an exemplar"
        return row | {"status": f"not_estimable: {which}"}
    cluster = None if answers.cluster is None else answers.cluster[known]
    auc, low, high = auc_limits([placements(score[known], chosen)], cluster, alpha)
    if np.isnan(low):
        few = cluster is not None and len(np.unique(cluster)) < MIN_CLUSTERS
        told = f"fewer than {MIN_CLUSTERS} clusters" if few else "perfectly apart"
        row["status"] = f"no interval: {told}"
    return row | {"auc": auc, "auc_low": low, "auc_high": high}
