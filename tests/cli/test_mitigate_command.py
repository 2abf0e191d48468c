"""`fairweight mitigate`: what is written, what is said, and what is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.mitigate.mitigation import digests

from .conftest import Run

pytestmark = pytest.mark.usefixtures("no_page")
FEW = ("--groups", "sex", "--n-boot", "20")


def table(n: int, first: int, *, scores: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    man = rng.random(n) < 0.4
    label = (rng.random(n) < 0.25 + 0.2 * man).astype(int)
    dense = 1.6 * label - 0.8 + 0.6 * rng.normal(size=n) + 0.3 * man
    small = dense + 0.5 * rng.normal(size=n) - 1.0
    parts = []
    for variant, z in (("dense", dense), ("small", small)):
        part = pd.DataFrame(
            {
                "example_id": np.arange(first, first + n),
                "variant": variant,
                "label": label,
                "prediction": (z > 0).astype(int),
                "sex": np.where(man, "m", "f"),
                "person": np.arange(first, first + n) // 3,
            }
        )
        parts.append(part.assign(score=1 / (1 + np.exp(-2 * z))) if scores else part)
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def tables(folder: Path) -> None:
    table(240, 0).to_parquet("val.parquet")
    table(300, 9000).to_parquet("test.parquet")


def rule_of(kind: str, *, first: int = 0, **held: object) -> None:
    """A rule as an earlier run would have written it, fitted on 240 examples."""
    ids = range(first, first + 240)
    packed = base64.b64encode(b"".join(sorted(digests(ids)))).decode()
    rule = {"schema": 1, "kind": kind, "fitted_on": {"examples": packed, "clusters": ""}, **held}
    Path(f"{kind}.json").write_text(json.dumps(rule))


@pytest.mark.usefixtures("tables", "no_page")
def test_thresholds_are_written_applied_and_judged(run: Run) -> None:
    told = run("mitigate", "thresholds", "test.parquet", "--validation", "val.parquet", *FEW).done()
    assert "small+thresholds against small: it helps: threshold bias" in told.out
    out = Path("fairweight-thresholds")
    rule = json.loads((out / "thresholds.json").read_text())
    (member,) = rule["members"]
    validation = pd.read_parquet("val.parquet").query("variant == 'small'")
    scores = np.sort(validation["score"].to_numpy(np.float32))
    assert member["threshold"] == float(scores[-int(validation["label"].sum())])
    made = pd.read_parquet(out / "predictions.parquet")
    assert list(dict.fromkeys(made["variant"])) == ["dense", "small", "small+thresholds"]
    new = made[made["variant"] == "small+thresholds"]
    assert (new["prediction"].astype(int) == (new["score"] > member["threshold"])).all()
    changes = pd.read_parquet(out / "mitigation.parquet")
    assert set(changes["against"]) == {"small", "dense"}
    assert (out / "audit" / "audit.json").exists()
    again = ("--rule", out / "thresholds.json", "--out", "again", *FEW)
    sentence = run("mitigate", "thresholds", "val.parquet", *again).refused()
    assert "240 examples are in both" in sentence
    assert not Path("again").exists()


@pytest.mark.usefixtures("tables", "no_page")
def test_a_rule_of_an_earlier_run_is_applied_to_other_rows(run: Run) -> None:
    member: dict[str, Any] = {
        "variant": "small", "seed": "0", "task": None, "n": 240, "n_positive": 80,
        "positive": "1", "threshold": 0.25, "offsets": {}, "status": "ok",
    }  # fmt: skip
    rule_of("thresholds", smooth=False, members=[member])
    told = run(
        *("mitigate", "thresholds", "test.parquet", "--rule", "thresholds.json"),
        *("--out", "out", "--cluster", "person", *FEW),
    ).done()
    assert "it could not be checked that no cluster is in both" in " ".join(told.out.split())
    made = pd.read_parquet("out/predictions.parquet")
    new = made[made["variant"] == "small+thresholds"]
    assert (new["prediction"].astype(int) == (new["score"] > 0.25)).all()
    assert json.loads(Path("out/thresholds.json").read_text())["members"] == [member]


@pytest.mark.usefixtures("tables", "no_page")
def test_overrides_ship_with_a_function_and_a_list(run: Run) -> None:
    told = run("mitigate", "overrides", "test.parquet", "--budget", "0.2", *FEW).done()
    assert "small+overrides-20" in told.out
    assert "Every attribute is overridden" in " ".join(told.out.split())
    out = Path("fairweight-overrides")
    held = json.loads((out / "overrides.json").read_text())
    assert len(held["overrides"][""]) == 60
    curves = pd.read_parquet(out / "override_curves.parquet")
    assert curves["budget"].nunique() == 21
    assert "def apply_overrides" in (out / "apply_overrides.py").read_text()
    todo = pd.read_csv(out / "to_annotate.csv")
    assert todo["example_id"].astype(str).tolist() == list(held["overrides"][""])
    assert todo["label"].isna().all()
    other = ("--rule", out / "overrides.json", "--out", "other", *FEW)
    assert "for other examples" in run("mitigate", "overrides", "val.parquet", *other).refused()
    assert not Path("other").exists()


@pytest.mark.usefixtures("tables", "no_page")
def test_people_s_labels_override_where_they_gave_some(run: Run) -> None:
    ids = range(9000, 9300)
    pd.DataFrame({"example_id": ids, "label": [1, None] * 150}).to_csv("annotated.csv", index=False)
    given = ("--labels", "annotated.csv", "--out", "human", "--budget", "0.1", "--quiet", *FEW)
    run("mitigate", "overrides", "test.parquet", *given).done()
    held = json.loads(Path("human/overrides.json").read_text())
    assert held["labels"] == "human"
    assert set(held["overrides"][""].values()) == {"1"}
    assert 5 < len(held["overrides"][""]) < 25  # some of the 30 least sure
    assert all(int(name) % 2 == 0 for name in held["overrides"][""])


@pytest.mark.usefixtures("tables", "no_page")
def test_a_cascade_is_chosen_on_half_and_judged_on_the_other(run: Run) -> None:
    pd.DataFrame({"variant": ["dense", "small"], "latency_ms": [9.0, 3.0]}).to_csv(
        "variants.csv", index=False
    )
    given = ("--variants", "variants.csv", "--cluster", "person", "--margin", "0.1", *FEW)
    told = run("mitigate", "cascade", "test.parquet", *given).done()
    assert "chosen on half of the examples" in " ".join(told.out.split())
    out = Path("fairweight-cascade")
    threshold = json.loads((out / "cascade.json").read_text())["thresholds"]["small"]
    made = pd.read_parquet(out / "predictions.parquet")
    assert made["example_id"].nunique() == 150
    assert f"small+cascade-{threshold:.6g}" in set(made["variant"])
    curve = pd.read_parquet(out / "cascade_curve.parquet")
    assert set(curve["part"]) == {"choosing", "judging"}
    assert curve["cost_ms"].between(3, 12).all()
    models = pd.read_parquet(out / "variants.parquet").set_index("variant")["latency_ms"]
    used = curve[(curve["part"] == "judging") & curve["recommended"]]["cost_ms"].iloc[0]
    assert models.iloc[-1] == pytest.approx(used)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("thresholds", "test.parquet"), "give either --validation FILE, or --rule"),
        (("thresholds", "test.parquet", "--validation", "test.parquet"), "300 examples are in"),
        (("thresholds", "test.parquet", "--validation", "renamed.parquet"), "300 of 300 rows of"),
        (("cascade", "test.parquet", "--validation", "renamed.parquet"), "300 of 300 rows of one"),
        (("overrides", "test.parquet", "--validation", "renamed.parquet"), "300 of 300 rows of"),
        (("thresholds", "test.parquet", "--validation", "part.parquet"), "90 of 300 rows of one"),
        (("thresholds", "bare.parquet", "--validation", "val.parquet"), "Scores of 'small' are"),
        (("thresholds", "test.parquet", "--rule", "none.json"), "cannot be read"),
        (("thresholds", "test.parquet", "--rule", "test.parquet"), "is no JSON"),
        (("thresholds", "test.parquet", "--rule", "x.json"), "no rule of the kind thresholds"),
        (("cascade", "test.parquet", "--rule", "x.json"), "--rule 'x.json' is not whole"),
        (("cascade", "test.parquet", "--rule", "cascade.json"), "the variant 'small'"),
        (("cascade", "tasks.parquet", "--task", "task"), "not have the same examples"),
        (
            ("thresholds", "test.parquet", "--validation", "close.parquet", "--cluster", "person"),
            "1 cluster is in both",
        ),
        (
            ("cascade", "test.parquet", "--validation", "named.parquet"),
            "In the validation rows, the variant 'small' does not exist",
        ),
        (
            ("thresholds", "test.parquet", "--validation", "other.parquet"),
            "No threshold was fitted for 'small' (seed 0)",
        ),
        (
            ("thresholds", "test.parquet", "--validation", "val.parquet", "--variant", "smal"),
            "Did you mean 'small'",
        ),
        (("overrides", "test.parquet", "--budget", "2"), "--budget 2 is no share"),
        (("overrides", "bare.parquet"), "Scores of 'dense' are missing"),
        (("overrides", "test.parquet", "--labels", "val.csv"), "it is for other examples"),
        (("overrides", "test.parquet", "--labels", "x.csv"), "has no column 'label'"),
        (("overrides", "test.parquet", "--identity", "sx"), "--identity 'sx'"),
        (("cascade", "bare.parquet"), "Scores of 'small' are missing"),
        (("cascade", "test.parquet", "--threshold", "1.5"), "--threshold 1.5"),
        (("cascade", "test.parquet", "--alpha", "2"), "--alpha (alpha=) cannot be 2"),
        (
            ("cascade", "test.parquet", "--validation", "close.parquet", "--cluster", "person"),
            "1 cluster is in both",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    table(60, 9000, scores=False).to_parquet("bare.parquet")
    close = table(60, 20_000)
    close.loc[close["example_id"] < 20_003, "person"] = 3000
    close.to_parquet("close.parquet")
    renamed = table(300, 9000)
    renamed["example_id"] += 50_000
    renamed.to_parquet("renamed.parquet")
    part = renamed["example_id"] < 59_090
    pd.concat([renamed[part], table(210, 70_000)]).to_parquet("part.parquet")
    table(60, 0).query("variant == 'dense'").to_csv("val.csv", index=False)
    close.assign(seed=7).to_parquet("other.parquet")
    close.replace({"variant": {"small": "int8"}}).to_parquet("named.parquet")
    few = table(60, 0).query("example_id < 50").assign(task="hat")
    pd.concat([few, table(60, 0).assign(task="smile")]).to_parquet("tasks.parquet")
    Path("x.json").write_text('{"kind": "cascade"}')
    rule_of("cascade", thresholds={"int8": 0.3}, margin=None)
    Path("x.csv").write_text("example_id,answer\n1,0\n")
    told = run("mitigate", *words, "--groups", "sex", "--n-boot", "20", "--out", "out").refused()
    assert sentence in told
    assert not Path("out").exists()
