"""The page across the studies: who loses, by which kind of compression, by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from tests.scripts import loaded

import fairweight as fw
from fairweight.specs.claims import Claims
from fairweight.specs.toml import read_spec
from fairweight.studies.library import names

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
MODULES = ("summary_harms", "summary_mitigations", "study_tables")


@pytest.fixture
def harms() -> ModuleType:
    return loaded("docs/results/summary_harms.py")


@pytest.fixture(scope="module")
def audit() -> str:
    """Of 400 answers, all right before: `pruned` loses 40 of the 200 of `b`; `taught` none."""
    n = 400
    label = np.arange(n) % 2
    group = np.where(np.arange(n) < n // 2, "a", "b")
    wrong = (group == "b") & (np.arange(n) % 5 == 0)
    table = {
        "example_id": np.arange(n), "label": label, "pred_dense": label,
        "pred_pruned": np.where(wrong, 1 - label, label), "pred_taught": label, "group": group,
    }  # fmt: skip
    return fw.audit_table(table, groups=["group"], n_boot=20).to_json()


@pytest.fixture
def results(audit: str, tmp_path: Path) -> Path:
    """Results of a study with that audit."""
    folder = tmp_path / "mine" / "squares"
    (folder / "predictions").mkdir(parents=True)
    (folder / "audit").mkdir()
    (folder / "audit" / "audit.json").write_text(audit, encoding="utf-8")
    facts = {
        "variant": ["dense", "pruned", "taught"], "seed": [0, 0, 0],
        "method": ["none", "l1-unstructured", "l1-unstructured"], "sparsity": [0.0, 0.9, 0.9],
        "compressed_bytes": [1000, 200, 200], "distillation": [None, None, "kd"],
    }  # fmt: skip
    pd.DataFrame(facts).to_parquet(folder / "variants.parquet")
    (tmp_path / "mine" / "squares-thresholds" / "audit").mkdir(parents=True)
    (tmp_path / "mine" / "squares-thresholds" / "audit" / "audit.json").write_text("{}")
    return tmp_path / "mine"


def test_who_loses_most_and_what_is_excluded(harms: ModuleType, results: Path) -> None:
    pruned, taught = harms.harms(results)
    assert (pruned.hardest.name, pruned.hardest.shift) == ("group=b", pytest.approx(-0.2))
    assert pruned.smaller == 5
    assert pruned.scope == "these models"
    assert not pruned.apart
    assert taught.apart
    assert taught.hardest is None
    assert 0 < taught.excluded < 0.05  # of 200 without a loss at least 1 − .05^(1/200) is excluded
    assert harms._who(taught.hardest) == "nobody shown"


def test_only_compression_counts_by_kind(harms: ModuleType, results: Path) -> None:
    lines = harms.by_kind(list(harms.harms(results)))[2:]
    assert lines == [
        "| smallest weights | 81–90 % | 1 | -10.0 | 1 (0 of 0 beyond retraining) | 20.0 |  |"
    ]
    assert harms.by_kind(list(harms.harms(results, ["squares"])))[2:] == []


def test_every_variant_has_a_row(harms: ModuleType, results: Path) -> None:
    pruned, taught = harms.each(list(harms.harms(results)))[2:]
    assert pruned.startswith("| squares | pruned | 1 | 90.0 % | 5.0× | -10.00 [")
    assert "| group=b | 100.0 % | -20.00 [" in pruned
    assert "| nobody shown |" in taught


def test_mitigations_are_claims_of_studies() -> None:
    held = tomllib.loads((DOCS / "mitigations.toml").read_text(encoding="utf-8"))
    assert set(held) <= set(names())
    for study, table in held.items():
        assert read_spec(Claims, table, study).claim


def test_a_mitigation_is_named_once() -> None:
    module = loaded("docs/results/summary_mitigations.py")
    rows = [["m", "p", "1", "c"], ["m", "p", "2", "c"], ["m", "q", "1", "c"], ["n", "q", "1", "c"]]
    assert module._said_once(rows) == [
        ["m", "p", "1", "c"], ["", "", "2", ""], ["", "q", "1", ""], ["n", "q", "1", "c"],
    ]  # fmt: skip


def test_the_page_of_one_study_keeps_its_notes(results: Path, tmp_path: Path) -> None:
    page = loaded("docs/results/summary_page.py")
    out = tmp_path / "summary.md"
    marks = loaded("docs/results/study_notes.py")
    out.write_text(f"{marks.BEGIN}\nmine\n{marks.END}", encoding="utf-8")
    page.main([str(results), "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    assert "3 models of 1 studies, 2 compressed variants" in text
    assert "\nmine\n" in text
    assert "### [mine](mine.md)" in text
    assert "- In 1 variants nobody is shown to lose. The limits exclude losses beyond" in text


def test_a_folder_without_audits_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = loaded("docs/results/summary_page.py")
    with pytest.raises(SystemExit) as ended:
        page.main([str(tmp_path), "--out", str(tmp_path / "summary.md")])
    assert ended.value.code == 2
    assert "holds no audited experiment" in capsys.readouterr().err
    assert not (tmp_path / "summary.md").exists()
