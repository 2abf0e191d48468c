"""`fairweight choose`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .conftest import Run

FEW = ("--n-boot", "40")
TABLES = ("preds.csv", "--variants", "variants.csv", "--groups", "sex")


@pytest.fixture
def tables(folder: Path) -> None:
    """Three variants; the smallest errs most."""
    n = 300
    i = np.arange(n)
    label = i % 3
    parts = []
    for name, every in {"dense": 20, "half": 15, "tenth": 4}.items():
        answer = np.where(i % every == 0, (label + 1) % 3, label)
        parts.append(
            pd.DataFrame(
                {"example_id": i, "variant": name, "label": label, "prediction": answer,
                 "sex": np.where(i % 2 == 0, "F", "M")}
            )
        )  # fmt: skip
    pd.concat(parts).to_csv("preds.csv", index=False)
    models = {"variant": ["dense", "half", "tenth"], "seed": 0, "size_bytes": [900, 500, 100],
              "sparsity": [0.0, 0.5, 0.9]}  # fmt: skip
    pd.DataFrame(models).to_csv("variants.csv", index=False)


pytestmark = pytest.mark.usefixtures("tables")


def test_the_smallest_that_qualifies(run: Run) -> None:
    made = run("choose", *TABLES, *FEW, "--objective", "size_bytes", "--require", "accuracy>=0.9")
    told = " ".join(made.done().out.split())
    assert told.startswith(
        "Chosen: half, of 2 of 3 variants that meet every requirement, with the lowest size_bytes."
    )
    assert "It has size_bytes 500, accuracy 93.3 %." in told
    assert "Selected on these data" in told
    assert "tenth 100 75.0 % — does not qualify" in told


def test_what_comes_first_is_who_may_be_the_best(run: Run) -> None:
    wanted = ("--objective", "accuracy")
    told = " ".join(run("choose", *TABLES, *FEW, *wanted).done().out.split())
    assert told.startswith("The best is among dense, half (95 %): 2 of 3 variants.")
    assert "Probability of being within 2 points of the best: dense " in told
    assert told.index("within 2 points") < told.index("Chosen: dense")
    assert "P(within 2 points) P(best)" in told
    assert "half 93.3 %" in told
    assert "may be the best" in told
    sure = " ".join(run("choose", *TABLES, *FEW, *wanted, "--exclude", "half").done().out.split())
    assert sure.startswith("The best is dense (95 %).")
    run("choose", *TABLES, *FEW, *wanted, "--margin", "0.5", "--quiet", "--out", "out").done()
    document = json.loads(Path("out/choice.json").read_text())
    assert document["best_is_among"] == [
        {"variant": "dense", "p_within_margin": 1.0}, {"variant": "half", "p_within_margin": 1.0},
    ]  # fmt: skip
    assert document["margin"] == 0.5
    assert document["sentences"][0] == "The best is among dense, half (95 %): 2 of 3 variants."
    # tenth cannot be the best, and with this margin it is near it
    assert document["sentences"][1].endswith("the best: dense 100 %, half 100 %, tenth 100 %.")


def test_none_qualifies(run: Run) -> None:
    made = run("choose", *TABLES, *FEW, "--objective", "accuracy", "--require", "accuracy>=0.99")
    assert made.code == 3
    assert made.err == ""
    told = " ".join(made.out.split())
    assert told.startswith(
        "None of 3 variants qualifies. The nearest is dense, which misses accuracy >= 0.99 by 0.04"
    )


def test_a_folder_and_a_held_out_half(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairweight.report.figures.export.rendered", lambda spec, kind: b"<svg/>")
    made = run(
        "choose", *TABLES, *FEW, "--worth", "accuracy=1", "--worth", "unfairness=100",
        "--confirm-share", "0.5", "--out", "out",
    )  # fmt: skip
    assert "On 150 examples that were not used for choosing" in " ".join(made.done().out.split())
    document = json.loads(Path("out/choice.json").read_text())
    assert document["n_confirmed"] == 150
    assert [o["weight"] for o in document["objectives"]] == [1.0, 100.0]
    assert document["command"].startswith("fairweight choose preds.csv")
    assert Path("out/tables/choice.parquet").exists()
    assert Path("out/figures/PA-F4a.svg").exists()


def test_a_frontier_and_who_wins_over_which_weights(run: Run) -> None:
    wanted = ("--objective", "accuracy", "--objective", "sparsity")
    told = " ".join(run("choose", *TABLES, *FEW, *wanted).done().out.split())
    assert "are on the frontier of highest accuracy, highest sparsity: " in told
    assert "wins while sparsity weighs, per unit of accuracy" in told
    assert run("choose", *TABLES, *FEW, *wanted, "--quiet").done().out == ""


def test_names_are_wrapped_and_not_cut(run: Run) -> None:
    for name in ("preds.csv", "variants.csv"):
        frame = pd.read_csv(name)
        long = frame["variant"].replace({"half": "global-magnitude-finetune-r10"})
        frame.assign(variant=long).to_csv(name, index=False)
    wanted = ("accuracy", "sparsity", "unfairness", "size_bytes")
    asked = [word for name in wanted for word in ("--objective", name)]
    told = run("choose", *TABLES, *FEW, *asked).done().out
    assert "…" not in told
    table = told[told.index("P(frontier)") :]
    assert "-r10" in "".join(table.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--objective is missing"),
        (["--objective", "acuracy"], "Did you mean 'accuracy'"),
        (["--objective", "latency_ms"], "'latency_ms' does not exist"),
        (["--objective", "accuracy", "--worth", "kappa=1"], "--worth kappa is for no objective"),
        (["--objective", "accuracy", "--worth", "accuracy"], "--worth 'accuracy' cannot be read"),
        (["--objective", "accuracy", "--require", "accuracy=0.9"], "cannot be read"),
        (["--objective", "accuracy", "--require", "speed>=1"], "'speed' does not exist"),
        (["--objective", "accuracy", "--exclude", "int4"], "'int4' does not exist"),
        (["--objective", "auc"], "needs scores"),
        (["--objective", "accuracy", "--confirm-share", "2"], "between 0 and 1"),
        (["--objective", "accuracy", "--confirm", "preds.csv"], "300 examples are in both"),
        (["--objective", "accuracy", "--n-boot", "3"], "--n-boot (n_boot=) cannot be 3"),
        (["--objective", "accuracy", "--margin", "-1"], "--margin -1 cannot be used"),
        (["--objective", "accuracy", "--objective", "sparsity", "--margin", "0.1"], "single best"),
        (["--objective", "size_bytes", "--confirm-share", "0.5"], "look at metrics again"),
        (["--objective", "accuracy", "--confirm", "x", "--confirm-share", "0.5"], "both given"),
    ],
)
def test_bad_input_gets_a_sentence(run: Run, words: list[str], told: str) -> None:
    few = () if "--n-boot" in words else FEW
    assert told in run("choose", *TABLES, *few, *words, "--out", "out").refused()
    assert not Path("out").exists()


def test_a_variants_table_without_a_variant(run: Run) -> None:
    pd.read_csv("variants.csv").iloc[:2].to_csv("variants.csv", index=False)
    wanted = ("--objective", "size_bytes")
    told = run("choose", *TABLES, *FEW, *wanted).refused()
    assert "has no row for 'tenth'" in told
    run("choose", *TABLES, *FEW, *wanted, "--exclude", "tenth").done()


POLICY = """
min_group_size = 50
[[rule]]
metric = "accuracy"
by = "group"
margin = 0.15
"""


def test_only_variants_that_pass_a_policy_can_be_chosen(run: Run) -> None:
    """tenth loses 40 points of F, half 6.7 of M; dense is what they are compared with."""
    Path("policy.toml").write_text(POLICY, encoding="utf-8")
    words = (*TABLES, *FEW, "--objective", "size_bytes", "--policy", "policy.toml")
    told = " ".join(run("choose", *words, "--out", "choice").done().out.split())
    assert told.startswith("Chosen: half, of 2 of 3 variants that pass the policy, with the lowest")
    assert "Fails the policy: tenth." in told
    assert "policy: fail" in told
    document = json.loads(Path("choice/choice.json").read_text(encoding="utf-8"))
    assert document["verdicts"] == {"dense": "pass", "half": "pass", "tenth": "fail"}


def test_where_none_passes_the_exit_code_says_so(run: Run) -> None:
    Path("policy.toml").write_text(
        POLICY.replace("0.15", "0.01") + '[[limit]]\ncolumn = "size_bytes"\nmax = 600\n',
        encoding="utf-8",
    )
    words = (*TABLES, *FEW, "--objective", "size_bytes", "--policy", "policy.toml")
    made = run("choose", *words)
    told = " ".join(made.out.split())
    assert made.code == 3
    assert told.startswith("None of 3 variants qualifies.")
    assert "Fails the policy: dense" in told  # 900 bytes
    assert "--confirm FILE" in run("choose", *words, "--confirm-share", "0.5").refused()
