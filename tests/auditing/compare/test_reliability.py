"""What a calibrated model of the same size would show."""

from __future__ import annotations

import pandas as pd

from fairweight.auditing.compare.reliability import beside_calibrated, if_calibrated

TABLE = pd.DataFrame(
    [
        # two members, each with two bins: the number stands in every bin of a member
        ("dense", "0", None, "ece", None, 0.10), ("dense", "0", None, "ece", None, 0.10),
        ("dense", "1", None, "ece", None, 0.20), ("dense", "1", None, "ece", None, 0.20),
        ("small", "0", None, "ece", None, 0.05), ("small", "0", None, "ece", "g=x", 0.4),
        ("small", "0", "smile", "ece", None, 0.3),
    ],
    columns=["variant", "seed", "task", "definition", "group", "expected_if_calibrated"],
)  # fmt: skip


def test_it_is_the_mean_over_members() -> None:
    found = if_calibrated(TABLE)
    assert round(found["dense", None, "ece", None], 12) == 0.15
    assert found["small", None, "ece", "g=x"] == 0.4
    assert found["small", "smile", "ece", None] == 0.3


def test_it_stands_where_limits_would() -> None:
    results = pd.DataFrame(
        {
            "variant": "small", "metric": ["ece", "ece", "ece", "brier"],
            "task": pd.Series([None] * 4, dtype=object), "group": [None, "g=x", None, None],
            "compressed": [0.1, 0.2, float("nan"), 0.1], "interval": ["none: why"] * 4,
        }
    )  # fmt: skip
    found = beside_calibrated(results, TABLE, "dense")["interval"].tolist()
    assert found == [
        "none: why; calibrated models of this size have 0.15 and 0.05",
        "none: why",  # nothing is known about the baseline there
        "none: why",
        "none: why",
    ]
