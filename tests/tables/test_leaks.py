from __future__ import annotations

import numpy as np
import pandas as pd

from fairweight.tables.companions import leak_notes, leaks


def test_only_audited_variants_with_a_text_are_named() -> None:
    table = pd.DataFrame(
        {
            "variant": ["dense", "kd", "kd", "plain", "other"],
            "leak": ["x", "Saw 5.", "Saw 6.", np.nan, "Saw 7."],
        }
    )
    assert leaks(table, ["kd", "plain"]) == {"kd": "Saw 5. Saw 6."}
    assert leaks(table.drop(columns="leak"), ["kd"]) == {}
    assert leaks(None, ["kd"]) == {}
    assert leaks(table.assign(leak="  "), ["kd"]) == {}


def test_variants_with_the_same_leak_share_a_note() -> None:
    found = {"a": "Saw 5.", "b": "Saw 6.", "c": "Saw 5."}
    assert leak_notes(found) == ["Leak in a, c: Saw 5.", "Leak in b: Saw 6."]
