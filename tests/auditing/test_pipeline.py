"""The audit from cube to frames: what is refused, what is noted, what is never left out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.metrics.registry import metrics, register, unregister
from fairweight.auditing.schema import column_names
from fairweight.errors import InputError, UnknownNameError

from .strategies import audited, random_table, row


def test_answers_in_another_language_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"No prediction of 'small' is equal to any label"
    ) as caught:
        fw.audit(["cat", "dog"] * 10, {"dense": ["cat", "dog"] * 10, "small": [0, 1] * 10})
    assert "'cat'" in str(caught.value)
    assert "'0'" in str(caught.value)


def test_a_model_that_always_abstains_is_audited() -> None:
    label = [0, 1] * 20
    audit = fw.audit(label, {"dense": label, "small": [None] * 40}, n_boot=20)
    assert row(audit.results, "abstention_rate")["compressed"] == 1.0
    assert row(audit.results, "accuracy")["shift"] == -1.0
    assert any("'small': 40 missing predictions, counted as wrong" in note for note in audit.notes)


def test_progress_is_told_and_ends() -> None:
    table = random_table(1, 60)
    heard: list[tuple[str, int, int]] = []
    audited(table, progress=lambda *event: heard.append(event))
    names = [what for what, _, _ in heard]
    assert names[:2] == ["reading", "counting"]
    assert any("small" in name for name in names)
    assert heard[-1][1] == heard[-1][2]


def test_frames_have_their_columns_even_when_empty() -> None:
    audit = audited(random_table(2, 60))
    assert tuple(audit.power.columns) == column_names("power")
    assert tuple(audit.concentration.columns) == column_names("concentration")
    assert tuple(audit.group_error.columns) == column_names("group_error")
    assert audit.group_error.empty
    assert audit.reliability.empty
    assert "contribution" in audit.reliability.columns
    for field in fields(audit.result):
        if field.type == "pd.DataFrame":
            assert isinstance(getattr(audit.result, field.name), pd.DataFrame), field.name


def test_declared_label_error_gives_a_range() -> None:
    audit = audited(random_table(3, 400), group_error=0.05)
    frame = audit.group_error
    assert set(frame["group"]) == {"sex=F", "sex=M", "site=x", "site=y", "site=z"}
    by_group = audit.results[
        (audit.results["metric"] == "accuracy") & (audit.results["by"] == "group")
    ]
    merged = frame.merge(by_group, on="group", suffixes=("", "_plain"))
    np.testing.assert_allclose(merged["excess_shift"], merged["excess_shift_plain"], atol=1e-12)
    assert (frame["corrected_low"] <= frame["corrected_high"]).all()
    # wrong labels blur groups, so the true excess is at least as large as the one seen
    larger = frame[["corrected_low", "corrected_high"]].abs().max(axis=1)
    assert (larger >= frame["excess_shift"].abs() - 1e-12).all()


def test_the_table_of_examples_adds_up() -> None:
    table = random_table(4, 120)
    data = audited(table).data
    assert (data["split"] == "test").all()
    of_sex = data["group"].fillna("").str.startswith("sex=") & (data["by"] == "group")
    for where in (data["by"] == "overall", data["by"] == "class", of_sex):
        assert data.loc[where, "n"].sum() == 120
        assert data.loc[where, "share"].sum() == pytest.approx(1.0)
    crossed = data[data["by"] == "group*class"]
    women_0 = crossed[(crossed["group"] == "sex=F") & (crossed["class"] == "0")]["n"].item()
    rows = zip(table.groups["sex"], table.label, strict=True)
    assert women_0 == sum(pair == ("F", "0") for pair in rows)


def test_training_data_are_in_the_table_of_examples() -> None:
    table = random_table(5, 100)
    train = pd.DataFrame({"label": ["0"] * 30 + ["1"] * 50 + ["2"] * 20, "sex": ["F", "M"] * 50})
    data = audited(table, train=train).data
    found = data[(data["split"] == "train") & (data["by"] == "class")].set_index("class")["n"]
    assert found.to_dict() == {"0": 30, "1": 50, "2": 20}


def test_how_many_variants_were_tried_is_said() -> None:
    table = random_table(6, 80)
    models = {"dense": list(table.dense), "a": list(table.small), "b": list(table.small)}
    several = fw.audit(list(table.label), models, n_boot=20)
    assert any("2 compressed variants" in note for note in several.notes)
    assert not any("compressed variants" in note for note in audited(table).notes)


def test_without_training_data_the_source_of_signs_is_said() -> None:
    label = [0, 1] * 20
    options: dict[str, Any] = {"sensitive_features": {"g": ["x", "y"] * 20}, "n_boot": 20}
    models = {"dense": label, "small": label}
    said = fw.audit(label, models, **options).notes
    assert any("come from the test labels" in note for note in said)
    train = pd.DataFrame({"label": label, "g": ["x", "y"] * 20})
    with_training = fw.audit(label, models, train=train, **options).notes
    assert not any("come from the test labels" in note for note in with_training)


def test_a_users_own_metric_is_one_registered_function() -> None:
    @register(
        name="share_of_first", kind="value", by=("overall", "group"), better="none", low=0, high=1,
        summary="share of answers that are the first class", formula="predicted[0] / n",
        source="test", undefined="no examples",
    )  # fmt: skip
    def share_of_first(counts: Any) -> Any:
        return counts.predicted[..., 0] / counts.n

    try:
        table = random_table(7, 100)
        results = audited(table, n_boot=60).results
        found = row(results, "share_of_first")
        assert found["baseline"] == pytest.approx(np.mean(np.array(table.dense) == "0"))
        assert found["compressed"] == pytest.approx(np.mean(np.array(table.small) == "0"))
        assert found["ci_low"] <= found["shift"] <= found["ci_high"]
        here = np.array(table.groups["sex"]) == "F"
        by_group = row(results, "share_of_first", "group", group="sex=F")
        assert by_group["compressed"] == pytest.approx(np.mean(np.array(table.small)[here] == "0"))
    finally:
        unregister("share_of_first")
    assert "share_of_first" not in {m.name for m in metrics()}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0}, ("alpha=", "0; give a level between 0 and 1")),
        ({"alpha": "5%"}, ("alpha=", "'5%'")),
        ({"n_boot": 3}, ("n_boot=", "3; give a whole number of at least 20")),
        ({"correction": "bonferroni"}, ("correction=", "'bonferroni'; use holm, bh or none")),
        ({"min_group": 0}, ("min_group=", "0; give a whole number of at least 1")),
        ({"random_state": -1}, ("random_state=", "-1; give a whole number of at least 0")),
        (
            {"zero_baseline": "skip"},
            ("zero_baseline=", "'skip'; use drop, raise, epsilon or absolute"),
        ),
        ({"group_error": 0.7}, ("group_error=", "0.7; give a share of wrong labels below 0.5")),
        ({"margin": 2}, ("margin=", "2; give a fraction", "did you mean 0.02?")),
        ({"reference_shift": 5}, ("margin=", "5; give a fraction", "did you mean 0.05?")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_are_checked_in_words(options: dict[str, Any], said: tuple[str, str]) -> None:
    """The argument, what was given, and what to do."""
    with pytest.raises(InputError) as caught:
        audited(random_table(8, 30), **options)
    for part in said:
        assert part in str(caught.value)


def test_unknown_names_name_the_nearest() -> None:
    table = random_table(9, 30)
    with pytest.raises(UnknownNameError, match="dense"):
        audited(table, baseline="dens")
    with pytest.raises(UnknownNameError, match="sex"):
        audited(table, groups=["sxe"])
    with pytest.raises(UnknownNameError):
        audited(table, positive="7")


def test_provenance_says_how_to_do_it_again() -> None:
    audit = audited(random_table(10, 40), random_state=5, alpha=0.1, positive=None)
    options = audit.result.provenance.options
    assert options["random_state"] == 5
    assert options["alpha"] == 0.1
    assert audit.result.provenance.version == fw.__version__


def test_alpha_and_exact_reach_every_interval() -> None:
    table = random_table(12, 200)
    wide, narrow = (audited(table, n_boot=200, alpha=a).results for a in (0.01, 0.2))
    both = wide["ci_low"].notna() & narrow["ci_low"].notna()
    assert both.sum() > 50
    assert (wide["ci_low"][both] <= narrow["ci_low"][both] + 1e-12).all()
    assert (wide["ci_high"][both] >= narrow["ci_high"][both] - 1e-12).all()
    mid, exact = (
        row(audited(table, exact=e).results, "accuracy")["p_value"] for e in (False, True)
    )
    assert mid < exact < 1
