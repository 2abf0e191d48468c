"""The page across the studies: who loses, by which kind of compression, by hand."""

from __future__ import annotations

import os
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from tests.scripts import loaded

import fairweight as fw
from fairweight.specs.claims import Claims
from fairweight.specs.toml import read_spec
from fairweight.studies.authors import simon_says
from fairweight.studies.library import names

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
SHARED = DOCS.parents[1].parent / "shared"


@pytest.fixture
def page() -> ModuleType:
    return loaded("docs/results/summary_page.py")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (("FAIRWEIGHT_GOLDEN", "golden"), ("FAIRWEIGHT_REAL", "real")):
        folder = Path(os.environ.get(variable) or SHARED / name)
        if not folder.is_dir():
            pytest.skip(f"{variable} names no folder, and there is no {folder}")
        monkeypatch.setenv(variable, str(folder))
    simon_says.cache_clear()


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


def test_who_pays_most_beyond_the_rest(page: ModuleType, results: Path) -> None:
    pruned, taught = page.harms(results)
    # `b` loses 20 points and `a` none: an excess of −20.
    assert (pruned.payer.name, pruned.payer.shift) == ("group=b", pytest.approx(-0.2))
    assert pruned.had == 1.0
    assert pruned.smaller == 5
    assert not pruned.of_method
    assert not pruned.apart
    assert taught.apart
    assert taught.payer is None
    assert 0 < taught.excluded < 0.05
    assert page._who(taught.payer) == "nobody shown"


def test_only_compression_counts_by_kind(page: ModuleType, results: Path) -> None:
    found = list(page.harms(results))
    (line,) = page.by_kind(found)[2:]
    assert line.startswith(
        "| smallest weights | 81–90 % | 1 | -10.0 | 1 (0 of 0 for the method) | 20.0 |"
    )
    assert page.by_kind(list(page.harms(results, ["squares"])))[2:] == []


def test_sentences_say_what_the_table_says(page: ModuleType, results: Path) -> None:
    found = list(page.harms(results))
    assert page.sentences(found) == [
        "- *Smallest weights with 81–90 % zeros* (1 variant): accuracy changes by -10.0 points; "
        "somebody pays more than the rest in 1 of 1, the hardest hit by 20.0 points."
    ]
    (_, taught) = found
    quiet = replace(taught, apart=False, kind="int8")
    widest = f"{100 * quiet.excluded:.1f}"
    assert page.sentences([quiet]) == [
        "- *Int8* (1 variant): accuracy changes by +0.0 points; nobody is shown to pay more than "
        f"the rest, and an excess beyond {widest} points is excluded in all of them."
    ]


def test_every_variant_has_a_row(page: ModuleType, results: Path) -> None:
    pruned, taught = page.each(list(page.harms(results)))[2:]
    assert pruned.startswith("| squares | pruned | 1 | 90.0 % | 5.0× | -10.00 [")
    assert "| group=b | 100.0 % | -20.00 [" in pruned
    assert "| nobody shown |" in taught


def test_mitigations_are_claims_of_studies() -> None:
    held = tomllib.loads((DOCS / "mitigations.toml").read_text(encoding="utf-8"))
    assert set(held) <= set(names())
    for study, table in held.items():
        assert read_spec(Claims, table, study).claim


def test_a_mitigation_is_named_once(page: ModuleType) -> None:
    rows = [["m", "p", "1", "c"], ["m", "p", "2", "c"], ["m", "q", "1", "c"], ["n", "q", "1", "c"]]
    assert page.said_once(rows) == [
        ["m", "p", "1", "c"], ["", "", "2", ""], ["", "q", "1", ""], ["n", "q", "1", "c"],
    ]  # fmt: skip


@pytest.mark.usefixtures("shared")
def test_the_page_of_one_study(page: ModuleType, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "summary.md"
    page.main([str(results), "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    assert "3 models of 1 study, 2 compressed variants" in text
    assert "### [mine](mine.md)" in text
    assert "- In 1 variants nobody is shown to pay more than the rest." in text
    assert "Not run yet in the papers' regime: [Characterising Bias" in text


@pytest.mark.usefixtures("shared")
def test_the_committed_page_is_what_its_sources_say(page: ModuleType, tmp_path: Path) -> None:
    text = (DOCS / "summary.md").read_text(encoding="utf-8")
    if "## In short" in text:
        pytest.skip("the page has runs, whose published tables are needed to say so")
    out = tmp_path / "summary.md"
    page.main(["--out", str(out)])
    assert out.read_text(encoding="utf-8") == text


def test_a_folder_without_audits_is_refused(
    page: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        page.main([str(tmp_path), "--out", str(tmp_path / "summary.md")])
    assert ended.value.code == 2
    assert "holds no audited experiment" in capsys.readouterr().err
    assert not (tmp_path / "summary.md").exists()
