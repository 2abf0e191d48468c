"""Predictions in small files: a lost store is filled from them, and no model is made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch")

from fairweight.errors import InputError
from fairweight.runs import packed
from fairweight.runs.packed import Packed, needed, pack, restore
from fairweight.runs.plan import StudyPlan, plan
from fairweight.runs.runner import run
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store
from fairweight.specs.toml import read_study
from fairweight.studies import library as _library  # noqa: F401  registers those of audits

ALIKE = ["example_id", "variant", "seed", "label", "prediction"]


def planned(members: int = 2, **more: Any) -> StudyPlan:
    """Small networks on the bundled digits, hardly trained: their scores are spread out."""
    experiment = {
        "name": "digits",
        "members": members,
        "data": {"name": "digits"},
        "model": {"architecture": "lenet", "width": 0.5},
        "training": {"epochs": 1, "batch_size": 128, "lr": 0.05},
        "copies": [
            {"method": "global-magnitude", "fields": {"sparsity": 0.8}, "name": "pruned"},
            {"method": "int8-static"},
        ],
        "audit": False,
        **more,
    }
    return plan(read_study({"name": "packed", "experiment": [experiment]}))


def predictions(made: StudyPlan, store: Store) -> dict[str, pd.DataFrame]:
    return {
        f"{model.variant}:{model.seed}:{part}": pd.read_parquet(
            store.read(key) / "predictions.parquet"
        )
        for model in made.models
        for part, key in (("test", model.asked_by), ("validation", model.validated_by))
        if key is not None
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyPlan, Store]:
    """Scores of all classes, validation examples too, and distances."""
    more = {"audit": True, "ask_validation": True, "n_boot": 20}
    more["similarity"] = {"measure": "cka", "examples": 100}
    study, store = planned(**more), Store(tmp_path_factory.mktemp("store"))
    stages = [stage for stage in study.stages.values() if stage.kind != "audit"]
    assert run(stages, store, workers=0).complete
    return study, store


def test_a_lost_store_is_filled_again(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    study, store = made
    files = pack(study, store, tmp_path / "packed")
    assert [path.name for path in files] == [
        "packed-digits-0.parquet",
        "packed-digits-0-validation.parquet",
        "packed-digits-1.parquet",
        "packed-digits-1-validation.parquet",
    ]
    again = Store(tmp_path / "again")
    assert restore(study, again, tmp_path / "packed", None) == 12  # 2 members, 3 variants, 2 parts
    before, after = predictions(study, store), predictions(study, again)
    for name, table in before.items():
        assert list(table) == list(after[name])
        assert table[ALIKE].equals(after[name][ALIKE])
        apart = np.stack(table["scores"].tolist()) - np.stack(after[name]["scores"].tolist())
        assert np.abs(apart).max() < 0.002
        assert (table["score"] - after[name]["score"]).abs().max() < 0.002
    for model in study.models:
        for key, file in ((model.asked_by, "variant.json"), (model.compared_by, "similarity.json")):
            if key is not None:
                held = [json.loads((one.read(key) / file).read_text()) for one in (store, again)]
                assert held[0] == held[1]


def test_nothing_but_the_audit_is_left_to_do(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    study, store = made
    pack(study, store, tmp_path / "packed")
    again = Store(tmp_path / "again")
    restore(study, again, tmp_path / "packed", None)
    left = needed(study.stages.values(), again.done())
    assert [stage.kind for stage in left] == ["audit"]
    assert run(left, again, workers=0).complete
    folder = again.read(study.audits["digits"])
    assert (folder / "audit.json").is_file()


def test_what_is_packed_is_not_packed_again(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    study, store = made
    assert len(pack(study, store, tmp_path)) == 4
    assert pack(study, store, tmp_path) == []
    (tmp_path / "packed-digits-0.parquet").unlink()
    assert [path.name for path in pack(study, store, tmp_path)] == ["packed-digits-0.parquet"]


def test_half_a_member_is_not_packed(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    """Of a store that lacks one prediction of member 1, only member 0 is packed."""
    study, store = made
    part = Store(tmp_path / "part")
    pack(study, store, tmp_path / "all")
    (tmp_path / "all" / "packed-digits-1-validation.parquet").unlink()
    restore(study, part, tmp_path / "all", None)
    names = {path.name for path in pack(study, part, tmp_path / "again")}
    assert names == {"packed-digits-0.parquet", "packed-digits-0-validation.parquet"}


def test_files_hold_no_labels_and_no_groups(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    for path in pack(*made, tmp_path):
        names = set(pq.read_schema(path).names)
        assert {name.partition(".")[2] or name for name in names} <= {
            "example_id",
            "prediction",
            *map(str, range(10)),
        }


def test_a_sweep_keeps_classes_only(tmp_path: Path) -> None:
    study, store = planned(members=1, scores=False), Store(tmp_path / "store")
    assert run(study.stages.values(), store, workers=0).complete
    (file,) = pack(study, store, tmp_path / "packed")
    assert pq.read_schema(file).names == ["example_id"] + [f"{n}.prediction" for n in range(3)]
    again = Store(tmp_path / "again")
    assert restore(study, again, tmp_path / "packed", None) == 3
    before, after = predictions(study, store), predictions(study, again)
    for name, table in before.items():
        assert table[ALIKE].equals(after[name][ALIKE])
        assert after[name]["score"].isna().all()


def test_large_files_are_divided(
    made: tuple[StudyPlan, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "LARGEST", 1)
    files = pack(*made, tmp_path)
    assert len(files) == 12  # a model each
    again = Store(tmp_path / "again")
    assert restore(made[0], again, tmp_path, None) == 12


def test_other_files_are_refused(made: tuple[StudyPlan, Store], tmp_path: Path) -> None:
    study, store = made
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"other\.parquet' is no file of packed predictions"):
        pack(study, store, tmp_path)
    with pytest.raises(InputError, match="is no file of packed predictions"):
        restore(study, Store(tmp_path / "again"), tmp_path, None)
    assert restore(study, Store(tmp_path / "again"), tmp_path / "absent", None) == 0


def outputs(shares: list[list[int]], said: list[int], **fields: Any) -> Any:
    """What three examples a, b, c get back, asked for in the order c, a, b."""
    from fairweight.data.dataset import Images

    one = Packed(
        key="k",
        variant="v",
        seed=0,
        ids=("a", "b", "c"),
        predictions=np.array(said, dtype=np.uint16),
        thousandths=np.array(shares, dtype=np.uint16),
        row=None,
        **fields,
    )
    tasks = one.tasks
    part = Images(
        name="made",
        images=np.zeros((3, 1, 1, 1), np.uint8),
        labels=np.zeros((3, len(tasks)) if tasks else 3, np.int64),
        classes=tasks or ("x", "y", "z"),
        groups={},
        example_id=np.array(["c", "a", "b"]),
        split=np.array(["test"] * 3),
    )
    return packed._outputs(one, part)


def test_rounding_takes_no_prediction_to_the_other_side() -> None:
    """0.5002 is packed as 500 thousandths and was a yes; 0.4998 is packed so too and was a no."""
    found = outputs([[500], [500], [10]], [1, 0, 0], tasks=("smiles",), classes=("0", "1"))
    assert (found > 0.5)[:, 0].tolist() == [False, True, False]  # c, a, b
    assert found[:, 0].tolist() == pytest.approx([0.01, 0.5, 0.5], abs=1e-5)


def test_the_prediction_stays_first_where_two_classes_round_alike() -> None:
    """Packed classes are z, y, x; the data's are x, y, z."""
    found = outputs(
        [[400, 400, 200], [0, 0, 1000], [300, 300, 400]],
        [1, 2, 2],
        tasks=(),
        classes=("z", "y", "x"),
    )
    assert found.argmax(axis=1).tolist() == [0, 1, 0]  # c: x, a: y, b: x
    assert found[1].tolist() == pytest.approx([0.2, 0.4, 0.4], abs=1e-5)


def test_predictions_of_a_model_that_is_trained_again_are_not_restored(
    made: tuple[StudyPlan, Store], tmp_path: Path
) -> None:
    """One prediction of member 1 is lost, so that it is made again: all of it, and nothing of 0."""
    study, store = made
    pack(study, store, tmp_path / "packed")
    (tmp_path / "packed" / "packed-digits-1-validation.parquet").unlink()
    part = Store(tmp_path / "part")
    assert restore(study, part, tmp_path / "packed", None) == 6  # 3 variants, 2 parts
    left = needed(study.stages.values(), part.done())
    assert {one.member for one in left if one.kind != "audit"} == {1}
    assert [one.kind for one in left].count("predict") == 6
    assert [one.kind for one in left].count("train") == 1
    assert [one.kind for one in left].count("similarity") == 1  # of the pruned copy


def test_a_copy_of_a_model_that_only_predicted_is_refused(
    made: tuple[StudyPlan, Store], tmp_path: Path
) -> None:
    study, store = made
    pack(study, store, tmp_path / "packed")
    again = Store(tmp_path / "again")
    restore(study, again, tmp_path / "packed", None)
    packed.check_same_models(study, again, study.stages)  # only the audit is left to do
    copies = [{"method": "global-magnitude", "fields": {"sparsity": 0.5}, "name": "half"}]
    other = planned(copies=copies, audit=True, ask_validation=True, n_boot=20)
    with pytest.raises(InputError, match=r"predictions of 'digits: dense, seed 0'.*--store"):
        packed.check_same_models(other, again, other.stages)
    packed.check_same_models(other, store, other.stages)  # where the model itself is there


def test_needed_leaves_out_models_that_nothing_reads_any_more() -> None:
    def stage(key: str, *inputs: str) -> Stage:
        return Stage(key, "made", "none:none", {}, inputs, key)

    stages = [stage("dense"), stage("copy", "dense"), stage("asked", "copy"), stage("b", "dense")]
    stages.append(stage("audit", "asked", "b"))
    keys = [one.key for one in needed(stages, {"asked", "b"})]
    assert keys == ["audit"]
    assert [one.key for one in needed(stages, {"asked"})] == ["dense", "b", "audit"]
    assert needed(stages, {"asked", "b", "audit"}) == []
