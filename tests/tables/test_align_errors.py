"""Every bad input gets one sentence that says what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.align import align
from fairweight.tables.connection import Workspace
from fairweight.tables.identity import has_duplicates
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import long_frame, model_frames, wide_frame


def refused(source: Any, sentence: str, **options: Any) -> str:
    with pytest.raises(InputError, match=sentence) as caught:
        align(TableSpec(sources_of(source), **options))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_misspelt_columns() -> None:
    wide = wide_frame()
    refused(wide, "column 'lable' does not exist.*Did you mean 'label'", label="lable")
    refused(wide.rename(columns={"label": "labels"}), "Did you mean 'labels'")
    refused(wide, "column 'exmaple_id' does not exist.*Did you mean 'example_id'", id="exmaple_id")
    refused(wide.rename(columns={"example_id": "exmaple_id"}), "Did you mean 'exmaple_id'")
    refused(wide, "the column 'sexx' does not exist.*Did you mean 'sex'", groups=["sexx"])
    refused(wide, "the column 'agee' does not exist", groups=["sex*agee"])
    refused(wide, "column 'wieght' does not exist", weight="wieght")
    refused(wide, "column 'person' does not exist", cluster="person")
    refused(wide, "column 'attr' does not exist", task="attr")
    refused(wide, "column 'pred_dnse' does not exist.*Did you mean 'pred_dense'",
            predictions={"dense": "pred_dnse", "int8": "pred_int8"})  # fmt: skip
    refused(wide, "variant 'int4' does not exist", scores={"int4": "score_int8"})
    refused(long_frame().rename(columns={"prediction": "predicted"}), "Did you mean 'predicted'")
    refused(long_frame(), "column 'model' does not exist", variant="model")


def test_groups_must_be_named_once() -> None:
    refused(wide_frame(), "names a column twice", groups=["sex*sex"])
    refused(wide_frame(), "empty name", groups=["sex*"])


@pytest.mark.parametrize("make", [wide_frame, long_frame])
def test_duplicates(make: Any) -> None:
    frame = make()
    twice = pd.concat([frame, frame.iloc[[0, 1]]])
    refused(twice, "2 duplicate keys .*example 10, example 11; keep one row of each")


def test_duplicates_of_text_identities_and_of_tasks() -> None:
    wide = wide_frame().assign(example_id=list("fedcbb"))
    refused(wide, "1 duplicate key .*example 'b'")
    tasks = pd.concat([wide_frame().assign(task="a"), wide_frame().iloc[:1].assign(task="a")])
    refused(tasks, r"1 duplicate key \(the same example_id and task\)")


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("duplicate", [False, True])
def test_duplicates_are_found_in_any_order(
    workspace: Workspace, shuffled: bool, text: bool, duplicate: bool
) -> None:
    keys = list(range(1000)) + ([500] if duplicate else [])
    order = np.random.default_rng(0).permutation(keys) if shuffled else sorted(keys)
    values = [f"x{k:05d}" if text else int(k) for k in order]
    frame = pd.DataFrame({"example_id": values})
    workspace.connection.register("given", frame)
    workspace.connection.execute("CREATE TEMP TABLE keys AS FROM given")
    kind = "VARCHAR" if text else "BIGINT"
    assert has_duplicates(workspace.connection, "keys", kind, False, len(keys)) is duplicate


def test_missing_examples() -> None:
    long = long_frame()
    lacking = long[~((long.variant == "int8") & long.example_id.isin([10, 12]))]
    message = refused(lacking, "2 examples of 'dense' are missing from 'int8'")
    assert "example 10, example 12" in message
    assert "--missing drop" in message
    frames = model_frames()
    frames["dense"] = frames["dense"].iloc[1:]
    refused(frames, "1 example of 'int8' is missing from 'dense'.*example 10")
    refused(lacking, "missing=.* cannot be 'ignore'; use error or drop", missing="ignore")


def test_nothing_in_common() -> None:
    frames = model_frames()
    frames["int8"]["example_id"] += 100
    refused(frames, "No example is left", missing="drop")


def test_labels_that_differ() -> None:
    long = long_frame()
    long.loc[7, "label"] = "cat"  # example 11 in int8; it is a dog in dense
    message = refused(long, "'label' differs between variants for 1 example")
    assert "11 has 'dog' in one and 'cat' in 'int8'" in message
    refused(long.sample(frac=1, random_state=0), "'label' differs between variants")
    examples = wide_frame()[["example_id", "label"]]
    examples.loc[0, "label"] = "dog"
    refused(wide_frame(), "label differs between the predictions and the examples table",
            examples=examples)  # fmt: skip


@pytest.mark.parametrize("row", [1, 7])
@pytest.mark.parametrize("absent", [None, float("nan")])
def test_missing_labels(row: int, absent: Any) -> None:
    long = long_frame()
    long["label"] = long["label"].astype(object)
    long.loc[row, "label"] = absent
    refused(long, r"1 row has no label \('label'\), such as example 11")
    if row == 1:
        wide = wide_frame()
        wide["label"] = wide["label"].astype(object)
        wide.loc[row, "label"] = absent
        refused(wide, r"1 row has no label \('label'\), such as example 11")


def test_nan_labels_of_arrays() -> None:
    columns = {c: wide_frame()[c].to_numpy() for c in wide_frame()}
    for name in ("label", "pred_dense", "pred_int8"):
        columns[name] = np.array([0.0, 1, 0, 1, 0, 1])
    columns["label"] = np.array([0.0, np.nan, 0, 1, 0, np.nan])
    refused(columns, "2 rows have no label")


def test_variants_and_baselines() -> None:
    refused(wide_frame(), "baseline 'dens' does not exist.*Did you mean 'dense'", baseline="dens")
    long = long_frame()
    refused(long[long.variant == "dense"], "There is no compressed variant, only 'dense'")
    refused(wide_frame().drop(columns="pred_int8"), "no compressed variant")
    refused(model_frames()["dense"], "predictions of one model only")
    nameless = long.copy()
    nameless.loc[0, "variant"] = None
    refused(nameless, "rows without a value in 'variant'")


def test_unrecognisable_predictions_show_the_columns() -> None:
    frame = wide_frame().rename(columns={"pred_dense": "a", "pred_int8": "b"})
    message = refused(frame, "no recognisable predictions")
    assert "'a', 'b'" in message
    assert "--prediction dense=COLUMN" in message


def test_scores() -> None:
    wide = wide_frame()
    wide.loc[2, "score_int8"] = 3.2
    message = refused(wide, "'score_int8' has 1 value outside")
    assert "example 12" in message
    assert "not logits" in message
    refused(long_frame(wide), "'score' has 1 value outside")
    wide.loc[2, "score_int8"] = None
    refused(wide, "'score_int8' is missing for 1 prediction, such as example 12")
    refused(wide.assign(score_int8="high"), "score column 'score_int8' must hold numbers")
    wide["score_int8"] = None
    wide["score_int8"] = wide["score_int8"].astype(float)
    with align(TableSpec(sources_of(wide))) as found:
        assert [m.score for m in found.members] == ["s0", None]
        assert "The score column 'score_int8' is empty for 'int8'." in found.notes


def test_a_score_may_be_absent_where_the_model_abstains() -> None:
    wide = wide_frame()
    wide.loc[2, ["pred_int8", "score_int8"]] = None
    with align(TableSpec(sources_of(wide))) as found:
        assert [m.score for m in found.members] == ["s0", "s1"]


def test_rounding_beyond_one_is_taken_off() -> None:
    wide = wide_frame()
    wide.loc[0, "score_int8"] = 1 + 1e-7
    with align(TableSpec(sources_of(wide))) as found:
        rows = found.connection.execute(f"SELECT max(s1) FROM {found.view}").fetchall()
        assert rows == [(1.0,)]


def test_lists_of_scores() -> None:
    wide = wide_frame().drop(columns=["score_dense", "score_int8"])
    wide["scores_dense"] = [[0.5, 0.5]] * 6
    wide["scores_int8"] = [[0.5, 0.5]] * 5 + [[0.2, 0.3, 0.5]]
    refused(wide, r"different lengths \(2 to 3\)")
    wide["scores_int8"] = [[0.5, 0.5]] * 5 + [[-1.0, 2.0]]
    refused(wide, "'scores_int8' has 1 list with an entry outside")
    wide["scores_int8"] = [[0.5, 0.5]] * 5 + [[None, 0.5]]
    refused(wide, "'scores_int8' has 1 list with an entry outside .* or empty, such as example 15")


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1, 1, -1, 1, 1, 1], "negative, infinite or missing in 1 row.*example 12"),
        ([1, 1, None, 1, 1, 1], "negative, infinite or missing in 1 row"),
        ([1, 1, float("inf"), 1, 1, 1], "negative, infinite or missing in 1 row"),
        ([0] * 6, "zero everywhere"),
        (["a"] * 6, "weight column 'weight' must hold numbers; it holds text"),
    ],
)
def test_weights(weights: list[Any], sentence: str) -> None:
    refused(wide_frame().assign(weight=weights), sentence)


def test_weights_and_clusters_belong_to_the_example() -> None:
    long = long_frame().assign(weight=1.0, writer="a")
    long.loc[7, "weight"] = 2.0
    refused(long, "an example has one weight")
    long["weight"] = 1.0
    long.loc[7, "writer"] = "b"
    refused(long, "an example has one cluster", cluster="writer")


def test_groups_that_differ_between_variants() -> None:
    long = long_frame().assign(method=lambda f: f.variant + "!")
    with align(TableSpec(sources_of(long))) as found:
        assert set(found.group_columns) == {"sex", "age"}
        assert any("'method' (differs between variants of one example)" in n for n in found.notes)
    refused(long, "'method' differs between variants.*cannot be a group", groups=["method"])


def test_default_groups_say_what_they_leave_out() -> None:
    n = 3000
    wide = pd.DataFrame(
        {
            "example_id": range(n),
            "label": [0, 1] * (n // 2),
            "pred_dense": [0, 1] * (n // 2),
            "pred_int8": [0, 1] * (n // 2),
            "sex": ["F", "M", None] * (n // 3),
            "flag": [True, False] * (n // 2),
            "year": [i % 51 for i in range(n)],
            "fifty": [i % 50 for i in range(n)],
            "path": [f"{i}.png" for i in range(n)],
            "some": [str(i % 1001) for i in range(n)],
            "thousand": [str(i % 1000) for i in range(n)],
            "constant": "test",
            "height": np.linspace(1, 2, n),
            "image_path": "x.png",
        }
    )
    with align(TableSpec(sources_of(wide))) as found:
        assert found.group_columns == ("sex", "flag", "fifty", "thousand")
        assert found.groupings == found.group_columns
        (note,) = (n for n in found.notes if n.startswith("Columns not used"))
        for reason in (
            "'year' (more than 50 values)",
            "'path' (more than 1,000 values)",
            "'some' (more than 1,000 values)",
            "'constant' (one value only)",
            "'height' (numbers with fractions)",
            "--groups",
        ):
            assert reason in note
    with align(TableSpec(sources_of(wide), groups=["path", "sex*flag", "sex"])) as found:
        assert found.group_columns == ("path", "sex", "flag")
        assert found.groupings == ("path", "sex*flag", "sex")
        assert any("'path' has 3,000 values; all are in the tables" in n for n in found.notes)


def test_examples_tables() -> None:
    wide = wide_frame()
    examples = wide[["example_id", "sex"]].rename(columns={"sex": "gender"})
    refused(wide, "2 examples are not in the examples table.*example 14, example 15",
            examples=examples.iloc[:4])  # fmt: skip
    refused(long_frame(), "2 examples are not in the examples table", examples=examples.iloc[:4])
    twice = pd.concat([examples, examples.iloc[:1]])
    refused(wide, "examples table .* has 1 duplicate key", examples=twice)
    refused(wide, "joined on it, never on the order of rows",
            examples=examples.drop(columns="example_id"))  # fmt: skip


def test_tables_are_never_joined_by_row_order() -> None:
    frames = {k: f.drop(columns="example_id") for k, f in model_frames().items()}
    refused(frames, "column 'example_id' does not exist.*never on the order of rows")


def test_missing_identities_and_tasks() -> None:
    wide = wide_frame().astype({"example_id": "Int64"})
    wide.loc[3, "example_id"] = None
    refused(wide, "1 rows without an example id")
    tasks = wide_frame().assign(task=["a", None, "a", "a", "a", "a"])
    refused(tasks, "1 rows without a task")


def test_files_of_one_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        model_frames()["dense"].to_csv(tmp_path / folder / "p.csv", index=False)
    refused([tmp_path / "a" / "p.csv", tmp_path / "b" / "p.csv"], "would both be called 'p'")
    refused([model_frames()["dense"], model_frames()["int8"]], "given without names")
    refused([], "No table was given")


def test_training_tables() -> None:
    refused(wide_frame(), "In the training table", train=pd.DataFrame({"lable": [1]}))
    refused(wide_frame(), "counts no examples",
            train=pd.DataFrame({"label": ["cat"], "count": [0]}))  # fmt: skip
    refused(wide_frame(), "holds no numbers",
            train=pd.DataFrame({"label": ["cat"], "count": ["x"]}))  # fmt: skip


@pytest.mark.parametrize("name", ["n", "label"])
def test_a_group_called_as_the_counts_of_training_examples_are(name: str) -> None:
    """Two columns of one name: `n` was an error of ours, `label` was taken for the label."""
    table = wide_frame().rename(columns={"label": "target", "sex": name})
    train = pd.DataFrame({"target": ["cat", "dog"], name: ["F", "M"]})
    said = f"The group column '{name}' has a name that counts of the training table"
    refused(table, said, label="target", train=train)
    refused(table, said, label="target", train=train.drop(columns=[name]))


def test_corrupt_pages_inside_a_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pd.concat([wide_frame()] * 3000, ignore_index=True)
    frame.assign(example_id=range(len(frame)), noise=np.random.default_rng(0).random(len(frame)))
    frame["example_id"] = range(len(frame))
    frame.to_parquet(path)
    data = bytearray(path.read_bytes())
    data[200:4000] = b"\x00" * 3800
    path.write_bytes(data)
    refused(path, "cannot be read")


def test_nothing_stays_open_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Workspace] = []
    original = Workspace.__init__

    def remember(self: Workspace, **options: bool) -> None:
        original(self, **options)
        made.append(self)

    monkeypatch.setattr(Workspace, "__init__", remember)
    with pytest.raises(UnknownNameError):
        align(TableSpec(sources_of(wide_frame()), label="nothing"))
    with pytest.raises(duckdb.ConnectionException):
        made[0].connection.execute("SELECT 1")
