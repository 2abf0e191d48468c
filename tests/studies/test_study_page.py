"""The page of a paper: its tables beside the run's, takeaways, notes; techniques by hand."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from tests.scripts import loaded
from tests.studies.published import claim, claims, publish
from tests.studies.published import results as results_of

from fairweight.auditing.schema import column_names
from fairweight.runs.plan import plan
from fairweight.specs.claims import Exhibit, Printed
from fairweight.specs.toml import read_spec
from fairweight.studies import library
from fairweight.studies.authors import hk_normalised, hk_rates, simon_says
from fairweight.studies.claims import CANNOT_TELL, judged
from fairweight.studies.claims_page import counted
from fairweight.studies.estimates import Stored

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture
def page() -> ModuleType:
    return loaded("docs/results/study_page.py")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (("FAIRWEIGHT_GOLDEN", "golden"), ("FAIRWEIGHT_REAL", "real")):
        folder = Path(os.environ.get(variable) or SHARED / name)
        if not folder.is_dir():
            pytest.skip(f"{variable} names no folder, and there is no {folder}")
        monkeypatch.setenv(variable, str(folder))
    simon_says.cache_clear()


def exhibit(**fields: Any) -> Exhibit:
    given: dict[str, Any] = {
        "name": "Table 1", "caption": "Accuracy.",
        "run": {"folder": "digits", "where": {"metric": "accuracy"}, "times": 100.0},
        "column": [{"name": "Top 1", "decimals": 1}],
        "row": [
            {"name": "dense", "values": [94.7], "run": {"value": "baseline"}},
            {"name": "0.9", "values": [93.4], "run": {
                "value": "compressed", "level": {"family": "pruned-*", "loss": [0.06]}}},
            {"name": "0.99", "values": [90.0], "run": {
                "value": "compressed", "level": {"family": "pruned-*", "loss": [0.3]}}},
            {"name": "0.5", "values": ["-"], "recovered": {"Top 1": 94.0}},
        ],
    }  # fmt: skip
    return read_spec(Exhibit, given | fields, "The exhibit")


def test_paper_and_run_side_by_side(page: ModuleType, tmp_path: Path) -> None:
    results_of(tmp_path, {})  # .9 before, .85 after: a loss of 5 points
    lines, levels = page.side_by_side(exhibit(), Stored(tmp_path))
    assert lines == [
        "|  |  | Top 1 |",
        "|---|---|---:|",
        "| dense | paper | 94.7 |",
        "|  | **run** | 90.0 |",
        "| 0.9 | paper | 93.4 |",
        "|  | **run** | 85.0 |",
        "| 0.99 | paper | 90.0 |",
        "|  | **run** | not reached |",
        "| 0.5 | paper | *94.0* |",
        "",
        "Levels of the run: 0.9: pruned-90 (loses 5.0, the paper 6.0).",
        "",
    ]
    assert [level.variant for level in levels] == ["pruned-90"]
    without, _ = page.side_by_side(exhibit(), None)
    assert [line for line in without if "run" in line] == []
    assert len(without) == 7


def test_the_first_table_of_results_comes_first(page: ModuleType) -> None:
    plain = {"name": "Figure 1", "caption": "A picture."}
    table = {"name": "Table 2", "caption": "c", "column": [{"name": "a"}],
             "row": [{"name": "r", "values": [1.0]}]}  # fmt: skip
    paper = read_spec(Printed, {"says": "s", "ran": "r", "exhibit": [plain, table]}, "The paper")
    assert [one.name for one in page.in_order(paper)] == ["Table 2", "Figure 1"]
    for place, expected in (
        ("Table 2; 3", "Table 2"), ("3; Figure 1a", "Figure 1"), ("Figure 12", ""), ("3.1", ""),
    ):  # fmt: skip
        (found,) = judged(claims(claim(place=place)), None)
        assert page.exhibit_of(found, paper) == expected


def test_takeaways_are_filled_and_held_to_their_verdicts(page: ModuleType, tmp_path: Path) -> None:
    results_of(tmp_path, {})
    found = judged(claims(claim()), tmp_path)
    exhibits = [{"name": "Figure 1", "caption": "c"}]

    def paper(**takeaway: Any) -> Printed:
        held = {"says": "s", "ran": "r", "exhibit": exhibits, "takeaway": [takeaway]}
        return read_spec(Printed, held, "The paper")

    holds = {"c": "reproduces"}
    assert page.takeaways(paper(text="It falls by {c}.", holds=holds), found) == [
        "- It falls by −0.05 [−0.07, −0.03]."
    ]
    in_points = paper(text="It changes by {c|points}.", holds=holds)
    assert page.takeaways(in_points, found) == ["- It changes by −5.00 points [−7.00, −3.00]."]
    with pytest.raises(SystemExit, match=r"'c' being 'cannot tell', and it is 'reproduces'"):
        page.takeaways(paper(text="Nobody knows.", holds={"c": CANNOT_TELL}), found)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("study", library.with_claims())
def test_the_committed_page_is_what_its_sources_say(
    page: ModuleType, study: str, tmp_path: Path
) -> None:
    """Where the run is not made; with one, the published tables are needed to say so."""
    committed = Path("docs/results") / f"{study}.md"
    text = (Path(__file__).parents[2] / committed).read_text(encoding="utf-8")
    if "**The run is not made yet.**" not in text:
        pytest.skip("the page has a run")
    out = tmp_path / f"{study}.md"
    page.main([str(tmp_path / "nowhere" / study), "--out", str(out)])
    assert out.read_text(encoding="utf-8") == text


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("lines", sorted(RESULTS.glob("*/claims.csv")), ids=lambda p: p.parent.name)
def test_a_page_with_a_run_says_what_its_stored_lines_say(lines: Path) -> None:
    """Its counts of verdicts, and the interval and verdict of every line that was judged."""
    name = lines.parent.name
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    stored = pd.read_csv(lines)
    allowed = {one.id for one in library.claims(name).claim
               if one.unjudged is None and one.twin_of is None}  # fmt: skip
    run = stored[(stored["source"] == "run") & stored["claim"].isin(allowed)]
    verdicts = run.drop_duplicates("claim")["claim_verdict"].tolist()
    assert len(verdicts) == len(allowed)
    assert f"These data allow {len(allowed)} of them" in text
    assert counted(verdicts) in text
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    for one in run.dropna(subset=["low"]).to_dict("records"):
        value, low, high = (f"{one[key]:.3g}".replace("-", "−") for key in ("value", "low", "high"))
        shown = [row for row in rows if low.rstrip("0") in row and high.rstrip("0") in row]
        assert any(value.rstrip("0") in row and one["verdict"] in row for row in shown), one


@pytest.mark.parametrize("study", library.with_claims())
def test_every_claim_of_a_table_finds_it(page: ModuleType, study: str) -> None:
    paper = library.printed(study)
    for one in judged(library.claims(study), None):
        named = [p.strip() for p in one.claim.place.split(";")]
        expected = any(p.startswith(("Table", "Figure")) for p in named)
        assert bool(page.exhibit_of(one, paper)) == expected, one.claim.id


@pytest.mark.parametrize("study", library.with_claims())
def test_cells_name_tables_columns_and_experiments_that_exist(page: ModuleType, study: str) -> None:
    made = plan(library.study(study, "laptop"))
    places = {*made.experiments, "classes", "settings"}
    for one in library.printed(study).exhibit:
        assert one.folder is None or one.folder in places, one.name
        for row in one.row:
            for column in one.column if row.run is not None else ():
                cells = page.cells_of(one, column, row)
                if column.run is None and one.run is None:
                    continue
                assert cells.folder in places, (one.name, row.name, column.name)
                table = cells.table or "results"
                known = column_names(table)
                assert set(cells.where) <= set(known), (one.name, row.name, column.name)
                if table != "results" and (one.name, row.name) != ("Table 1", "0"):
                    assert cells.value in known, (one.name, row.name, column.name)
                variants = {model.variant for model in made.of(str(cells.folder))} if (
                    cells.folder in made.experiments
                ) else set()  # fmt: skip
                if "variant" in cells.where:
                    assert cells.where["variant"] in variants, (one.name, row.name)


def test_recovered_columns_are_those_computed() -> None:
    paper = library.printed("characterising-bias")
    for row in (*paper.named("Table 3").row, *paper.named("Table 5").row):
        kind, _, metric = row.name.rpartition(" ")
        for group, value in row.recovered.items():
            computed = (
                hk_normalised(metric, group)
                if kind == "Change of"
                else hk_rates("baseline" if kind == "Baseline" else "compressed", metric)[group]
            )
            assert value == pytest.approx(computed, abs=5.1e-3), (row.name, group)
        assert set(row.recovered) == {"FY", "FO"}


@pytest.mark.usefixtures("shared")
def test_means_of_the_authors_counts_are_those_printed() -> None:
    table = library.printed("simon-says").named("Table 2")
    biased, balanced = simon_says("biased"), simon_says("balanced")
    from fairweight.studies.authors import DOWN_SAMPLED, PLAIN

    for row, names in zip(table.row, DOWN_SAMPLED.values(), strict=True):
        columns = [biased.classes.index(name) for name in names]
        means = [
            100 - models.fn[models.of(method)][:, columns].mean()
            for models, method in ((balanced, PLAIN), (biased, PLAIN), (biased, "AT + KD"))
        ]
        assert [row.number(n) for n in range(3)] == pytest.approx(means)
    true = {name: biased.metric("accuracy")[biased.of(name)].mean() for name in set(biased.method)}
    for row in library.printed("simon-says").named("Table 3").row:
        assert row.number(7) == pytest.approx(100 * true[row.name], abs=6e-3)


# The whole page, written twice.


def test_notes_are_kept_and_a_study_of_no_paper_has_no_claims(
    page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "audited", lambda folder: ["audited here"])
    monkeypatch.setattr(page, "worst_individuals", lambda folder: [])
    monkeypatch.setattr(page, "dense_attributes", lambda folder: [])
    results = tmp_path / "mine"
    (results / "digits" / "audit").mkdir(parents=True)
    (results / "digits" / "predictions").mkdir()
    (results / "digits-thresholds" / "audit").mkdir(parents=True)
    out, notes = tmp_path / "page.md", tmp_path / "notes.md"
    notes.write_text("By hand.\n")
    page.main([str(results), "--out", str(out), "--notes", str(notes)])
    first = out.read_text()
    page.main([str(results), "--out", str(out)])
    assert out.read_text() == first
    places = [first.index(part) for part in ("By hand.", "### digits", "audited here")]
    assert places == sorted(places)
    assert "digits-thresholds" not in first  # a mitigation that was tried, no experiment


def test_notes_without_an_end_are_not_lost(page: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    assert page.kept_notes(out) == ""
    out.write_text("no marks")
    assert page.kept_notes(out) == ""
    out.write_text(f"a\n{page.BEGIN}\n\nkept\n\n{page.END}\nb")
    assert page.kept_notes(out) == "kept"
    out.write_text(f"a\n{page.BEGIN}\nkept")
    with pytest.raises(SystemExit, match="notes without an end"):
        page.kept_notes(out)


def test_figures_of_the_levels_are_shown(page: ModuleType, tmp_path: Path) -> None:
    drawn = tmp_path / "results" / "digits" / "audit" / "figures"
    drawn.mkdir(parents=True)
    for name in ("HK-T3-pruned-90", "HK-T3-pruned-99", "HK-T1", "HK-F3-pruned-90", "HK-T10"):
        (drawn / f"{name}.svg").write_text("<svg/>")
    asked = exhibit(figures=["HK-T3", "HK-T1", "HK-F3"], folder="digits")
    out = tmp_path / "page.md"
    lines = page.figures(asked, tmp_path / "results", out, ["pruned-90"], False)
    assert [line for line in lines if line] == [
        "![Table 1, redrawn from the run: HK-T3-pruned-90](page/digits-HK-T3-pruned-90.svg)",
        "![Table 1, redrawn from the run: HK-T1](page/digits-HK-T1.svg)",
    ]  # pictures of people are not published
    assert (tmp_path / "page" / "digits-HK-T1.svg").is_file()


# Tables of techniques.


@pytest.fixture
def tables() -> ModuleType:
    return loaded("docs/results/study_tables.py")


def row(seed: int, treatment: str, number: int, name: str, accuracy: float) -> dict[str, object]:
    return {
        "dataset": "digits", "model": "lenet", "weight_treatment": treatment,
        "pruning_technique": "l1", "sparsity": 0.2 * number, "seed": str(seed),
        "root": f"digits/lenet/{seed}", "class": name, "accuracy": accuracy, "accuracy0": 0.9,
        "n": 10 if name == "a" else 30, "variant": f"l1-{treatment}-r{number}",
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two lineages, two classes of 10 and 30 examples; the second of two rounds is the last."""
    last = {(0, "rewind"): 0.5, (1, "rewind"): 0.7, (0, "finetune"): 0.7, (1, "finetune"): 0.8}
    rows = [row(s, t, 1, name, 0.8) for s, t in last for name in "ab"]
    rows += [row(s, t, 2, "a", accuracy) for (s, t), accuracy in last.items()]
    rows += [row(s, t, 2, "b", 0.9) for s, t in last]
    pd.DataFrame(rows).to_parquet(tmp_path / "class_rows.parquet")
    return tmp_path


def test_techniques_by_lineage(tables: ModuleType, folder: Path) -> None:
    # Accuracy after: (10 · .5 + 30 · .9) / 40 = .8 and (10 · .7 + 27) / 40 = .85, before .9: −10
    # and −5 points; mean −7.5 ± 12.706 · 3.5355 / √2. Gaps grow by 40 and 20 points.
    found = {line.split(" | ")[2]: line for line in tables.techniques(folder)[2:]}
    assert found["rewind"] == (
        "| lenet | l1 | rewind | 2 | 40.0 % | -7.50 [-39.27, +24.27] | +30.00 [-97.06, +157.06] |"
    )
    assert found["finetune"].startswith("| lenet | l1 | finetune | 2 | 40.0 % | -3.75 [")


def test_treatments_are_paired_by_lineage(tables: ModuleType, folder: Path) -> None:
    # .8 − .85 and .85 − .875: −5 and −2.5 points.
    (line,) = tables.rewound(folder)[2:]
    assert line.startswith("| lenet | l1 | 2 | -3.75 [-19.63, +12.13] | +15.00 [")


def test_no_limits_where_nothing_differs(tables: ModuleType) -> None:
    mean, low, high = tables._mean_limits(pd.Series([0.1, 0.1]))
    assert mean == pytest.approx(0.1)
    assert low != low
    assert high != high


def test_accuracy_of_the_last_round_by_data_set(tables: ModuleType, folder: Path) -> None:
    head, _, line = tables.by_data_set(folder)
    assert head == "|  | dense | l1, rewind | l1, finetune |"
    assert line == "| digits, lenet | 90.0 | 82.5 | 86.2 |"


def test_the_dense_models_attribute_by_attribute(tables: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"by": "class", "task": "hat", "class": name, "metric": metric, "n": n, "baseline": value}
        for metric, values in (("recall", (0.9, 0.5)), ("selection_rate", (0.85, 0.15)))
        for name, n, value in zip(("0", "1"), (80, 20), values, strict=True)
    ]
    publish(tmp_path, "results", rows)
    # (80 × .9 + 20 × .5) / 100 = .82; .15 / .2 = .75
    assert tables.dense_attributes(tmp_path / "digits")[2] == (
        "| hat | 82.0 % | 20.0 % | 50.0 % | 0.75 |"
    )


def test_attributes_among_exemplars(tables: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "celeba"
    (folder / "predictions" / "dense").mkdir(parents=True)
    labels = [
        {"example_id": f"e{n}", "task": task, "label": label}
        for n, pair in enumerate([(1, 1), (1, 0), (0, 0), (0, 1), (0, 0)])
        for task, label in zip(("hat", "beard"), pair, strict=True)
    ]
    pd.DataFrame(labels).to_parquet(folder / "predictions" / "dense" / "0.parquet")
    train = {"task": ["hat", "hat", "beard", "beard"], "label": [1, 0, 1, 1]}
    pd.DataFrame(train).to_parquet(folder / "train.parquet")
    rows = [{"variant": "gmp-90", "example_id": name, "top_10": True} for name in ("e0", "e1")]
    rows += [{"variant": "gmp-90", "example_id": "e2", "top_10": False}]
    publish(tmp_path, "exemplars", rows, folder="celeba")
    hat, beard = tables.attributes_among_exemplars(folder, "gmp-90")[2:]
    # Hats: 2 of 2 exemplars, 0 of 3 others: (2.5 × 3.5) / (.5 × .5) = 35.
    assert hat.startswith("| hat | 50.0 % | 100.0 % | 0.0 % | 35.00 [")
    # Beards: 1 of 2 and 1 of 3: (1.5 × 2.5) / (1.5 × 1.5) = 1.67.
    assert beard.startswith("| beard | 100.0 % | 50.0 % | 33.3 % | 1.67 [")
    assert tables.attribute_shares(folder)[2:] == [
        "| beard | 100.0 % | 2 |", "| hat | 50.0 % | 1 |",
    ]  # fmt: skip
