"""The examples that lose most, of outcomes that are numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fairweight as fw
from fairweight.auditing.exemplars.largest_losses import LargestLosses, gains
from fairweight.auditing.prediction_matrix import from_aligned
from fairweight.cli.app import app
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

# Word errors and words of eight utterances; words are the same for both models.
ERRORS = {"f16": [0, 1, 0, 2, 0, 0, 1, 0], "q4": [3, 1, 1, 0, 0, 4, 1, 0]}
WORDS = [10, 5, 4, 8, 3, 20, 6, 4]
TABLE = pd.DataFrame(
    {"example_id": list("abcdefgh"), "words": WORDS, "sex": list("FMFMFMFM"), **ERRORS}
)
OUTCOME: dict[str, Any] = {
    "outcome": {"f16": "f16", "q4": "q4"},
    "denominator": {"f16": "words", "q4": "words"},
    "better": "lower",
    "groups": ["sex"],
}


def test_losses_are_what_examples_add_to_the_loss_of_all() -> None:
    with align(TableSpec(sources_of(TABLE), **OUTCOME)) as aligned:
        answers = from_aligned(aligned, numeric=True)
    gained = gains(answers, "q4")
    # 60 words, 7.5 on average: three more errors in a cost 3 / 7.5 = .4, two fewer in d gain .267.
    assert gained == pytest.approx([-0.4, 0, -1 / 7.5, 2 / 7.5, 0, -4 / 7.5, 0, 0], abs=1e-15)
    # The rate rises from 4 / 60 to 10 / 60, which is the mean of what examples add.
    assert -gained.mean() == pytest.approx(6 / 60)


def test_the_largest_losses_come_first_and_no_gain_is_among_them() -> None:
    found = fw.exemplars(TableSpec(sources_of(TABLE), **OUTCOME), percentiles=(50, 75))
    assert isinstance(found, LargestLosses)
    rows = found.rows
    assert rows["example_id"].tolist() == ["f", "a", "c"]  # four were asked for, three lose
    assert rows["rank"].tolist() == [1, 2, 3]
    # 4, 3 and 1 of the 8 errors that were added.
    assert rows["share_of_losses"].tolist() == pytest.approx([0.5, 0.875, 1.0])
    assert rows["baseline"].tolist() == [0, 0, 0]
    assert rows["compressed"].tolist() == pytest.approx([4 / 20, 3 / 10, 1 / 4])
    assert rows["denominator_compressed"].tolist() == [20, 10, 4]
    assert rows["top_25"].tolist() == [True, True, False]
    assert rows["sex"].tolist() == ["M", "F", "F"]


def test_a_denominator_of_each_model_counts_with_its_own_mean() -> None:
    rng = np.random.default_rng(0)
    n = 50
    table = pd.DataFrame(
        {
            "example_id": range(n),
            "i": rng.integers(1, 90, n),
            "j": rng.integers(1, 90, n),
            "u": rng.integers(90, 120, n),
            "v": rng.integers(90, 130, n),
        }
    )
    spec = TableSpec(
        sources_of(table),
        outcome={"f16": "i", "q4": "j"},
        denominator={"f16": "u", "q4": "v"},
        better="higher",
    )
    with align(spec) as aligned:
        answers = from_aligned(aligned, numeric=True)
    shift = table["j"].sum() / table["v"].sum() - table["i"].sum() / table["u"].sum()
    assert gains(answers, "q4").mean() == pytest.approx(shift, rel=1e-12)


def test_exemplars_of_numbers_on_the_command_line(tmp_path: Path) -> None:
    path, out = tmp_path / "asr.csv", tmp_path / "out"
    TABLE.to_csv(path, index=False)
    words = ["--outcome", "f16=f16", "--outcome", "q4=q4", "--better", "lower", "--groups", "sex"]
    words += ["--denominator", "f16=words", "--denominator", "q4=words", "--percentile", "50"]
    done = CliRunner().invoke(app, ["exemplars", str(path), *words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "of all losses" in done.output
    written = pd.read_parquet(out / "largest_losses.parquet")
    assert written["example_id"].tolist() == ["f", "a", "c"]
    with pytest.raises(InputError, match="--percentile alone"):
        fw.exemplars(TableSpec(sources_of(TABLE), **OUTCOME), kinds=("modal",))


def test_explain_names_who_loses_most_and_says_what_it_leaves_out() -> None:
    rng = np.random.default_rng(3)
    n = 1200
    site = rng.choice(["x", "y", "z"], n)
    before = rng.normal(3, 1, n).round(2)
    worse = (site == "y") & (rng.random(n) < 0.6)
    after = before + rng.normal(0, 0.2, n).round(2) + np.where(worse, 1.5, 0)
    table = pd.DataFrame(
        {"example_id": range(n), "site": site, "age": rng.integers(20, 80, n), "d": before,
         "c": after}
    )  # fmt: skip
    spec = TableSpec(
        sources_of(table), outcome={"d": "d", "c": "c"}, better="lower", groups=["site"]
    )
    made = fw.explain(spec, fw.AuditOptions(n_boot=100))
    tables = made.result.explanations
    first = tables["slices"].iloc[0]
    assert first["slice"] == "site=y"
    assert first["status"].startswith("confirmed")
    # Less is better: what pays more rises more, in the outcome's own unit.
    assert 0.6 < first["excess_low"] < first["excess"] < first["excess_high"] < 1.2
    assert (tables["largest_losses"]["loss"].diff().dropna() <= 0).all()
    assert any("properties, individuals, classes, similarity" in n for n in made.result.notes)
    html = made.to_html() if hasattr(made, "to_html") else made._repr_html_()
    assert "site=y" in html
