"""`fairweight exemplars`: tables and images, whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .conftest import Run, long_frame, wide_frame

pytestmark = pytest.mark.usefixtures("few_metrics", "no_page")

PNG = b"\x89PNG\r\n\x1a\n"
FRAMES = (
    "exemplars",
    "exemplar_counts",
    "exemplar_accuracy",
    "exemplar_overlap",
    "exemplar_surrogate",
)


def population(n: int = 60) -> pd.DataFrame:
    """Six dense and six small members; the small ones change their minds on every tenth."""
    rng = np.random.default_rng(0)
    label = np.arange(n) % 2
    parts = []
    for variant in ("dense", "small"):
        for seed in range(6):
            wrong = rng.random(n) < 0.05
            if variant == "small":
                wrong |= np.arange(n) % 10 == 3
            parts.append(
                pd.DataFrame(
                    {
                        "example_id": [f"../x/{i}" for i in range(n)],
                        "variant": variant,
                        "seed": seed,
                        "label": label,
                        "prediction": np.where(wrong, 1 - label, label),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def table(folder: Path) -> Path:
    population().to_parquet(folder / "preds.parquet")
    pd.DataFrame(
        {
            "example_id": [f"../x/{i}" for i in range(60)],
            "image": [PNG + str(i).encode() for i in range(60)],
            "site": ["a", "b"] * 30,
        }
    ).to_parquet(folder / "examples.parquet")
    return folder


def test_tables_are_written_as_parquet_and_csv(run: Run, table: Path) -> None:
    told = run("exemplars", "preds.parquet", "--percentile", "90,50").done().out
    assert "modal" in told
    assert "taxicab 90" in told
    assert "fairweight-exemplars" in told
    out = table / "fairweight-exemplars"
    for name in FRAMES:
        held = pd.read_parquet(out / f"{name}.parquet")
        assert len(pd.read_csv(out / f"{name}.csv")) == len(held)
    rows = pd.read_parquet(out / "exemplars.parquet")
    modal = rows[rows["modal"]]
    assert set(modal["example_id"]) >= {f"../x/{i}" for i in range(3, 60, 10)}
    assert {"top_50", "top_10", "votes_baseline", "votes_compressed"} <= set(rows.columns)
    counts = pd.read_parquet(out / "exemplar_counts.parquet")
    assert counts.loc[counts["kind"] == "modal", "p_retraining"].item() == pytest.approx(2 / 64)


def test_images_of_exemplars_and_as_many_others_of_their_labels(run: Run, table: Path) -> None:
    run("exemplars", "preds.parquet", "--examples", "examples.parquet", "--images", "look",
        "--quiet").done()  # fmt: skip
    manifest = pd.read_csv(table / "look/manifest.csv")
    assert manifest["part"].value_counts().nunique() == 1
    labels = manifest.groupby("part")["label"].apply(sorted)
    assert labels["exemplar"] == labels["non-exemplar"]
    for row in manifest.to_dict("records"):
        number = row["example_id"].rpartition("/")[2]
        written = table / "look" / row["file"]
        assert written.parent == table / "look" / row["part"]  # no identity leads elsewhere
        assert written.read_bytes() == PNG + number.encode()
    shown = set(manifest.loc[manifest["part"] == "exemplar", "example_id"])
    assert shown.isdisjoint(manifest.loc[manifest["part"] == "non-exemplar", "example_id"])
    assert not list(table.glob(".look*"))


def test_fewer_images_are_announced(run: Run, table: Path) -> None:
    told = run("exemplars", "preds.parquet", "--examples", "examples.parquet", "--images", "look",
               "--most-images", "2").done().out  # fmt: skip
    assert len(list((table / "look/exemplar").iterdir())) == 2
    assert "at most 2 exemplars each" in " ".join(told.split())


def test_images_by_path_start_at_the_table(run: Run, table: Path) -> None:
    (table / "there").mkdir()
    (table / "there/one.png").write_bytes(PNG)
    ids = [f"../x/{i}" for i in range(60)]
    examples = pd.DataFrame({"example_id": ids, "image_path": "one.png"})
    examples.to_csv(table / "there/examples.csv", index=False)
    run("exemplars", "preds.parquet", "--examples", "there/examples.csv", "--images", "look",
        "-q").done()  # fmt: skip
    assert all(file.read_bytes() == PNG for file in (table / "look/exemplar").iterdir())
    (table / "there/one.png").write_bytes(b"root:x:0:0")
    told = run("exemplars", "preds.parquet", "--examples", "there/examples.csv", "--images",
               "again", "-q").refused()  # fmt: skip
    assert "holds no image" in told
    assert not (table / "again").exists()


def test_images_of_a_data_set(run: Run, folder: Path) -> None:
    pytest.importorskip("sklearn")
    image = pytest.importorskip("PIL.Image")
    from fairweight.data import load

    digits = load("digits")
    ids = digits.example_id[:40]
    label = digits.labels[:40]
    wrong = np.where(np.arange(40) % 8 == 0, (label + 1) % 10, label)
    pd.DataFrame(
        {"example_id": ids, "label": label, "pred_dense": label, "pred_small": wrong}
    ).to_csv(folder / "preds.csv", index=False)
    run("exemplars", "preds.csv", "--dataset", "digits", "--images", "look", "-q").done()
    manifest = pd.read_csv(folder / "look/manifest.csv", dtype=str)
    row = manifest.iloc[0]
    shown = np.asarray(image.open(io.BytesIO((folder / "look" / row["file"]).read_bytes())))
    place = list(digits.example_id).index(row["example_id"])
    np.testing.assert_array_equal(shown, digits.images[place][..., 0])


def test_several_variants_have_folders_of_their_own(run: Run, table: Path) -> None:
    held = population()
    other = held[held["variant"] == "small"].assign(variant="..")
    pd.concat([held, other]).to_parquet(table / "both.parquet")
    run("exemplars", "both.parquet", "--examples", "examples.parquet", "--images", "look",
        "-q").done()  # fmt: skip
    assert sorted(p.name for p in (table / "look").iterdir() if p.is_dir()) == ["%2E.", "small"]
    overlap = pd.read_csv(table / "fairweight-exemplars/exemplar_overlap.csv")
    assert overlap.loc[overlap["kind"] == "modal", "jaccard"].item() == 1
    run("exemplars", "both.parquet", "--variant", "small", "--out", "only", "-q").done()
    assert set(pd.read_csv(table / "only/exemplar_counts.csv")["variant"]) == {"small"}


def test_one_pair_is_called_a_surrogate(run: Run, folder: Path) -> None:
    long_frame(wide_frame()).to_csv(folder / "preds.csv", index=False)
    told = run("exemplars", "preds.csv").done().out
    assert "surrogate 95" in told
    counts = pd.read_csv(folder / "fairweight-exemplars/exemplar_counts.csv")
    assert counts.loc[counts["kind"] == "taxicab", "n_exemplars"].isna().all()
    changed = (wide_frame()["pred_dense"] != wide_frame()["pred_int8"]).sum()
    assert counts.loc[counts["kind"] == "modal", "n_exemplars"].item() == changed


def test_tasks_stand_below_each_other(run: Run, folder: Path) -> None:
    first = long_frame(wide_frame(), scores=False).drop(columns=["w"])
    both = pd.concat([first.assign(task="hat"), first.assign(task="coat")])
    both.to_parquet(folder / "preds.parquet")
    run("exemplars", "preds.parquet", "--task", "task", "-q").done()
    counts = pd.read_csv(folder / "fairweight-exemplars/exemplar_counts.csv")
    assert set(counts["task"]) == {"hat", "coat"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--percentile", "ninety"], "--percentile 'ninety'"),
        (["--percentile", "100"], "between 0 and 100"),
        (["--tie-rule", "most"], "'--tie-rule': 'most' is not one of"),
        (["--kind", "typical"], "Kind of exemplars"),
        (["--fill", "all"], "'--fill': 'all' is not one of 'random'"),
        (["--variant", "huge"], "huge"),
        (["--dataset", "digits"], "need --images"),
        (["--images", "look"], "finds no images"),
        (["--images", "look", "--kind", "taxicab"], "add modal"),
        (["--images", "look", "--most-images", "0"], "at least 1"),
        (["--images", "same", "--out", "same"], "its own folder"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, table: Path, options: list[str], told: str) -> None:
    assert told in run("exemplars", "preds.parquet", *options).refused()
    assert not (table / "fairweight-exemplars").exists()
    assert not (table / "look").exists()
