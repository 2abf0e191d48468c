"""A metric before and after by group, and what an audit and a verdict say of themselves."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fairweight as fw
from fairweight.errors import InputError

COLUMNS = ["group", "n", "baseline", "compressed", "shift", "low", "high", "finding"]
N = 600
Y = np.arange(N) % 2
SITE = np.repeat(["a", "b", "c"], N // 3)


def wrong(share: dict[str, float], seed: int) -> np.ndarray:
    """Predictions of which a share is wrong, by site."""
    random = np.random.default_rng(seed).random(N)
    return np.where(random < np.vectorize(share.get)(SITE), 1 - Y, Y)


@pytest.fixture(scope="module")
def made() -> fw.Audit:
    dense = wrong({"a": 0.3, "b": 0.1, "c": 0.1}, 1)
    better, same = Y.copy(), dense.copy()
    better[SITE == "c"] = dense[SITE == "c"]
    better[SITE == "b"] = wrong({"a": 0.0, "b": 0.6, "c": 0.0}, 2)[SITE == "b"]
    return fw.audit(
        Y, {"dense": dense, "int8": better, "fp16": same}, n_boot=60,
        sensitive_features={"site": SITE, "tiny": np.where(np.arange(N) < 4, "x", "y")},
    )  # fmt: skip


def test_one_row_per_group_with_what_happened_to_it(made: fw.Audit) -> None:
    table = made.compare("accuracy", variant="int8")
    assert list(table.columns) == COLUMNS
    table = table.set_index("group")
    found = table["finding"].to_dict()
    assert found["site=b"] == "loses more than the rest"
    assert found["site=a"] == "gains"
    assert found["site=c"] == "no clear change"
    assert found["tiny=x"] == "too small to test"
    row = table.loc["site=b"]
    assert row["shift"] == pytest.approx(row["compressed"] - row["baseline"])
    assert row["low"] < row["shift"] < row["high"] < 0
    assert row["n"] == 200
    # The limits are those of the family, with which the finding is said.
    rows = made.by_group.query("metric == 'accuracy' and variant == 'int8' and scope == 'model'")
    held = rows.set_index("group").loc["site=b"]
    assert (row["low"], row["high"]) == (held["sim_low"], held["sim_high"])


def test_several_variants_and_other_rows(made: fw.Audit) -> None:
    both = made.compare()
    assert list(both.columns) == ["variant", *COLUMNS]
    assert set(both["variant"]) == {"int8", "fp16"}
    assert set(both.query("variant == 'fp16' and group != 'tiny=x'")["finding"]) == {
        "no clear change"
    }
    classes = made.compare("recall", by="class", variant="int8")
    assert list(classes.columns) == ["class", *COLUMNS[1:]]
    assert made.compare(by="overall", variant="int8")["group"].tolist() == ["overall"]
    # Where lower is better, a rise is a loss.
    errors = made.compare("error_rate", variant="int8").set_index("group")
    assert errors.loc["site=b", "shift"] > 0
    assert errors.loc["site=b", "finding"].startswith("loses")
    assert errors.loc["site=a", "finding"].startswith("gains")


def test_what_cannot_be_compared_says_what_can(made: fw.Audit) -> None:
    with pytest.raises(InputError, match="Did you mean 'accuracy'"):
        made.compare("acuracy")
    with pytest.raises(InputError, match="Did you mean 'int8'"):
        made.compare(variant="int")
    with pytest.raises(InputError, match="has no value before and after"):
        made.compare("harmful_flips")
    alone = fw.audit(Y, {"dense": Y, "int8": Y}, n_boot=20)
    with pytest.raises(InputError, match=r"no groups .*; use by='class'|no groups .*by='overall'"):
        alone.compare("accuracy")


def test_an_audit_says_its_finding(made: fw.Audit) -> None:
    said = repr(made)
    assert said.startswith("<Audit of int8, fp16 against dense, 600 examples: ")
    assert "site=b" in said


def test_a_verdict_is_a_table_in_a_notebook_and_a_line_in_a_console(made: fw.Audit) -> None:
    verdict = made.gate({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    assert verdict.exit_code == 1
    assert "FAIL" in repr(verdict)
    assert "int8: fail" in repr(verdict)
    page = verdict._repr_html_()  # type: ignore[attr-defined]
    assert page.count("<details") == 2
    assert "accuracy of site=b" in page
    hostile = fw.audit(Y, {"dense": Y, "<script>x": 1 - Y}, n_boot=20)
    verdict = hostile.gate({"rule": [{"metric": "accuracy", "by": "overall", "margin": 0.02}]})
    assert "<script>" not in verdict._repr_html_()  # type: ignore[attr-defined]


def test_every_property_of_an_audit_and_a_verdict_is_described(made: fw.Audit) -> None:
    verdict = made.gate({"rule": [{"metric": "accuracy", "by": "overall", "margin": 0.02}]})
    for kind in (fw.Audit, type(verdict)):
        for name, held in inspect.getmembers(kind, lambda one: isinstance(one, property)):
            assert inspect.getdoc(held), f"{kind.__name__}.{name}"
