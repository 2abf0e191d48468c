"""Which tables and columns, as one typed value: stored, read again, and written as a command."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.base.fields import options_of
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import ARRAYS, SourceRef, TableSpec, sources_of

FULL: dict[str, Any] = {
    "baseline": "big", "examples": SourceRef("people.csv"), "train": SourceRef("train.csv"),
    "variants": SourceRef("v.csv"), "missing": "drop", "query": "SELECT * FROM data",
    "log_tasks": ["law", "art, old"], "log_filter": "strict", "allow_different": ["limit"],
    "score_threshold": 0.3,
    "id": "key", "label": "truth",
    "predictions": {"big": "p 1", "a=b": ["p2", "p3"]}, "scores": {"big": "s1"},
    "groups": ["sex", '"age, years"', "sex*site"], "task": "t", "cluster": "person", "weight": "w",
    "count": "n", "variant": "model", "seed": "run", "prediction": "says", "score": "sure",
    "positive": "yes", "score_classes": ["cat", "dog, small"], "force": True,
    "class_scores": {"big": "p_*"},
    "labels_are": "positions",
}  # fmt: skip
# Fields that cannot stand beside some of those: an outcome has no predictions in columns.
OUTCOME: dict[str, Any] = {
    "outcome": {"big": "o 1", "a=b": ["o2", "o3"]}, "better": "lower", "range": (0.0, 4.0),
    "cluster": ("a", "b"),
}  # fmt: skip
RATIO: dict[str, Any] = {
    "outcome": "errors", "better": "lower", "denominator": "words", "repeat": "epoch",
}  # fmt: skip
UNLABELLED: dict[str, Any] = {"unlabelled": True}


@pytest.fixture
def full() -> TableSpec:
    """Every field that can at something else than its default."""
    made = TableSpec(sources_of(["big=a b.csv", "c.csv"]), **FULL)
    names = [f.name for f in fields(TableSpec)]
    assert {"sources", *FULL, *OUTCOME, *RATIO, *UNLABELLED} == {*names}
    return made


@pytest.mark.parametrize("more", [OUTCOME, RATIO, UNLABELLED])
def test_requests_without_classes_are_stored_and_written_again(more: dict[str, Any]) -> None:
    made = TableSpec(sources_of("a.csv"), **more)
    assert TableSpec.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert TableSpec.from_words(shlex.split(shlex.join(made.arguments()))) == made


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"outcome": "o"}, "--better higher .* or --better lower"),
        ({"better": "lower"}, "needs --outcome"),
        ({"denominator": "words"}, "needs --outcome"),
        ({"outcome": "o", "better": "more"}, "use higher or lower"),
        ({"outcome": "o", "better": "lower", "range": (4, 1)}, "LOW below HIGH"),
        ({"outcome": "o", "better": "lower", "range": (0, 1), "denominator": "d"}, "leave it out"),
        ({"outcome": "o", "better": "lower", "predictions": {"a": "b"}}, "--outcome NAME=COL"),
        ({"outcome": "o", "better": "lower", "unlabelled": True}, "need no labels"),
        ({"outcome": "o", "better": "lower", "labels_are": "positions"}, "leave it out"),
        ({"cluster": ["a", "a"]}, "two different ones"),
        ({"cluster": ["a", "b", "c"]}, "two different ones"),
        ({"repeat": "epoch", "seed": "run"}, "not both"),
    ],
)
def test_what_cannot_stand_together_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TableSpec(sources_of("a.csv"), **more)


def test_every_field_is_stored_and_read_again(full: TableSpec) -> None:
    assert TableSpec.from_json(json.loads(json.dumps(full.to_json()))) == full
    later = {**full.to_json(), "of a later version": 1}
    assert TableSpec.from_json(later) == full


def test_every_field_is_in_the_words_of_the_next_command(full: TableSpec) -> None:
    words = full.arguments()
    assert words[:2] == ["big=a b.csv", "c.csv"]
    for name, (_, about) in options_of(TableSpec).items():
        assert name not in FULL or about.flag in words, name
    assert TableSpec.from_words(shlex.split(shlex.join(words))) == full
    assert "--count" not in full.arguments(without=["count"])
    assert TableSpec(sources_of("a.csv")).arguments() == ["a.csv"]


def test_words_of_other_options_are_skipped() -> None:
    words = [
        "-q",
        "p.csv",
        "--exact",
        "q=r.csv",
        "--alpha",
        "0.1",
        "--id=key",
        "--n-boot",
        "20",
        "--force",
    ]
    found = TableSpec.from_words(words, ["-q", "--exact"])
    assert found == TableSpec(sources_of(["p.csv", "q=r.csv"]), id="key", force=True)


def test_a_frame_is_carried_but_neither_compared_nor_stored() -> None:
    frame = pd.DataFrame({"label": [0, 1] * 20, "pred_a": [0, 1] * 20, "pred_b": [0, 0] * 20})
    tables = TableSpec(sources_of(frame))
    again = TableSpec(sources_of(frame.copy()))
    other = TableSpec(sources_of(frame.assign(pred_b=1)))
    longer = TableSpec(sources_of(pd.concat([frame, frame])))
    assert tables == again
    assert len({t.sources[0].digest for t in (tables, other, longer)}) == 3
    (held,) = tables.to_json()["sources"]
    assert set(held) == {"frame", "digest"}
    assert held["frame"] == "pandas DataFrame"
    assert "label" not in repr(tables.sources)
    stored = TableSpec.from_json(tables.to_json())
    assert stored == tables
    with pytest.raises(InputError, match="pandas DataFrame in memory, which is not stored"):
        align(stored)
    with align(tables) as aligned:
        assert aligned.n_examples == 40


def test_the_digest_is_of_the_values() -> None:
    columns = {"label": [0, 1], "p": ["a", "b"]}
    dict_, frame = SourceRef.of(columns), SourceRef.of(pd.DataFrame(columns))
    assert dict_.digest == SourceRef.of({name: list(v) for name, v in columns.items()}).digest
    assert frame.digest is not None
    assert SourceRef.of(object()).digest is None  # the reader says what is wrong with it
    stream = pd.DataFrame(columns)
    import duckdb

    with duckdb.connect() as connection:
        connection.register("t", stream)
        assert SourceRef.of(connection.sql("FROM t")).digest is None


def test_arrays_have_columns_of_ours_which_no_command_names() -> None:
    made = TableSpec(
        (SourceRef(frame=ARRAYS),), baseline="dense", groups=["sex"],
        predictions={"dense": "prediction:dense:0"},
    )  # fmt: skip
    assert made.arguments() == ["PREDICTIONS", "--baseline", "dense", "--groups", "sex"]


def test_tables_in_memory_have_placeholders() -> None:
    frame = pd.DataFrame({"a": [1]})
    made = TableSpec(sources_of({"dense": frame, "int8": frame}), examples=SourceRef.of(frame))
    assert made.arguments() == [
        "dense=PREDICTIONS", "int8=PREDICTIONS", "--examples", "FILE"
    ]  # fmt: skip


def test_values_are_put_into_one_form() -> None:
    made = TableSpec(sources_of(Path("a.csv")), groups="sex", positive=np.int64(1))
    assert (made.groups, made.positive, made.sources[0].path) == (("sex",), 1, "a.csv")
    assert TableSpec.from_json(made.to_json()) == made


@pytest.mark.parametrize("held", [
    {}, {"sources": 3}, {"sources": [{"path": 7}]}, {"sources": [{"path": "a"}], "label": []},
    {"sources": [{"path": "a"}], "groups": 5}, {"sources": [{"path": "a"}], "predictions": 5},
        {"sources": [{"path": "a"}], "class_scores": 5},
        {"sources": [{"path": "a"}], "class_scores": {"a": ["p_*"]}},
    {"sources": [{"path": "a"}], "examples": "e.csv"}, {"sources": [{"held": "a"}]},
    {"sources": [{"path": "a"}], "missing": "never"},
])  # fmt: skip
def test_what_others_wrote_is_refused_or_ignored(held: dict[str, Any]) -> None:
    from fairweight.auditing.document import tables_of

    assert tables_of({"tables": held}) is None


def test_a_wrong_choice_names_option_and_argument() -> None:
    with pytest.raises(InputError, match=r"--missing \(missing=\) cannot be 'no'; use error or"):
        TableSpec((), missing="no")
