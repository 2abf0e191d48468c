"""Accuracy and recall of every model of a large sweep, without comparing any of them.

A sweep of hundreds of variants is not audited variant by variant; what its regressions and curves
need is one pass over the answers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from fairweight import __version__
from fairweight.auditing import schema
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.result import AuditResult, Provenance


def tabulated(answers: Answers) -> AuditResult:
    """An audit's result with means and the tables `per_seed` and `data`; all others are empty.

    `results` has accuracy and class gap of whole models, as means over members and without
    intervals or tests: nothing was compared.
    """
    nothing = pd.DataFrame()
    names = answers.classes[: answers.n_label_classes]
    sizes = np.bincount(answers.label, minlength=len(names))
    rows: list[dict[str, Any]] = []
    for place, member in enumerate(answers.members):
        right = answers.prediction[place] == answers.label
        hits = np.bincount(answers.label[right], minlength=len(names))
        recall = hits / sizes  # a label class has at least one example
        base = {"variant": member.variant, "seed": member.seed, "task": answers.task}
        whole = {**base, "by": "overall", "group": None, "class": None, "n": answers.n_examples}
        rows.append({**whole, "metric": "accuracy", "value": float(right.mean())})
        gap = float(recall.max() - recall.min())
        rows.append({**whole, "metric": "class_gap", "value": gap})
        rows += [
            {**base, "metric": "recall", "by": "class", "group": None, "class": name, "n": n,
             "value": value}
            for name, n, value in zip(names, sizes.tolist(), recall.tolist(), strict=True)
        ]  # fmt: skip
    members = schema.frame("per_seed", rows)
    overall = members[members["by"] == "overall"]
    values = {key: part["value"] for key, part in overall.groupby(["variant", "metric"])}
    means = []
    for variant in answers.variants:
        for metric in ("accuracy", "class_gap"):
            before, after = values[answers.baseline, metric], values[variant, metric]
            first, second = float(np.mean(before.to_numpy())), float(np.mean(after.to_numpy()))
            means.append(
                {
                    "variant": variant, "metric": metric, "by": "overall", "scope": "model",
                    "aggregation": "mean over members", "n": answers.n_examples,
                    "n_seeds_baseline": len(before), "n_seeds_compressed": len(after),
                    "baseline": first, "compressed": second, "shift": second - first,
                    "status": "not_estimable: tabulated, not compared",
                }
            )  # fmt: skip
    splits = {"test": sizes.astype(float)}
    if answers.train is not None:
        by_class = answers.train.groupby("label")["n"].sum()
        splits["train"] = np.array([float(by_class.get(name, 0.0)) for name in names])
    data = [
        {"split": split, "task": None, "by": "class", "group": None, "class": name, "n": n,
         "share": n / counts.sum()}
        for split, counts in splits.items()
        for name, n in zip(names, counts.tolist(), strict=True)
    ]  # fmt: skip
    return AuditResult(
        baseline=answers.baseline,
        variants=answers.variants,
        classes=names,
        positive=None,
        tasks=(),
        groupings=(),
        n_examples=answers.n_examples,
        results=schema.frame("results", means),
        per_seed=members,
        confusion=nothing,
        reliability=nothing,
        data=pd.DataFrame(data),
        power=nothing,
        concentration=nothing,
        group_error=nothing,
        notes=answers.notes,
        provenance=Provenance(
            version=__version__,
            command=None,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=(),
            options={},
        ),
        variants_table=answers.variants_table,
    )
