"""Logs of evaluations: real files of each tool, and what must be refused before any number."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairweight.errors import InputError
from fairweight.tables.logs import LogRequest, audit_of, read_log

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def formats() -> Path:
    folder = Path(os.environ.get("FAIRWEIGHT_REAL", ROOT.parent / "shared" / "real")) / "formats"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set FAIRWEIGHT_REAL to run this test")
    return folder


# --- real files ----------------------------------------------------------------------------------


def test_a_pair_of_lm_eval_folders(formats: Path) -> None:
    """Accuracies are those that lm-eval itself reported, task by task."""
    logs = {name: read_log(formats / "lm_eval" / "pair" / name) for name in ("dense", "int8")}
    made = audit_of(logs)
    assert (made.outcome, made.better, made.denominator) == ("correct", "higher", None)
    assert made.groups[0] == "task"
    assert "gold" in made.groups  # and not `subject`, which is the task
    for variant, expected in (("dense", (21, 25, 26)), ("int8", (20, 27, 23))):
        table = made.tables[variant]
        assert len(table) == 360
        for task, right in zip(("anatomy", "astronomy", "law"), expected, strict=True):
            rows = table.filter(pa.compute.equal(table["task"], f"mymmlu_{task}"))
            assert pa.compute.sum(rows["correct"]).as_py() == right
    notes = " ".join(made.notes)
    assert "filter 'strict-match'" in notes
    assert "fewshot_seed is 1234 for 'dense' and 7 for 'int8'" in notes
    assert "Labels are positions" in notes
    assert "'subject' tells the same examples apart as 'task'" in notes
    assert "Of the 360 generations of 'dense', 60 were unparsed (task: mygsm 60" in notes


def test_another_filter_and_another_metric(formats: Path) -> None:
    pair = formats / "lm_eval" / "pair"
    with pytest.raises(InputError, match="no samples of the filter 'flexible-extract'"):
        read_log(
            pair / "dense", LogRequest(filter="flexible-extract")
        )  # the multiple choices have none
    choices = tuple(f"mymmlu_{one}" for one in ("anatomy", "astronomy", "law"))
    only = LogRequest(tasks=choices)
    made = audit_of({n: read_log(pair / n, only) for n in ("dense", "int8")}, outcome="acc_norm")
    assert made.outcome == "acc_norm"
    assert [len(table) for table in made.tables.values()] == [300, 300]
    with pytest.raises(
        InputError, match="'mygsm' has no metric 'acc_norm' for every example; it has: exact_match"
    ):
        audit_of({n: read_log(pair / n) for n in ("dense", "int8")}, outcome="acc_norm")


def test_inspect_archives_and_json(formats: Path) -> None:
    read = [read_log(file) for file in sorted((formats / "inspect_eval").glob("*.eval"))]
    scored = [log.tasks["popularity"] for log in read if log.tasks["popularity"].metrics]
    assert [task.samples.num_rows for task in scored] == [10]
    assert [metric.name for metric in scored[0].metrics] == ["match"]
    arc = read_log(formats / "inspect_json" / "data_arc_qwen.json").tasks["inspect_evals/arc_easy"]
    assert arc.positions
    assert set(arc.samples["field:gold"].to_pylist()) <= set("ABCD")


def test_a_run_of_helm(formats: Path) -> None:
    (task,) = read_log(formats / "helm").tasks.values()
    assert task.name == "commonsense:dataset=hellaswag,method=multiple_choice_joint"
    assert task.metrics[0].name == "exact_match"
    assert task.samples.num_rows == 10
    assert set(task.samples["field:gold"].to_pylist()) <= set("0123")


# --- made files ----------------------------------------------------------------------------------

TIME = "2026-01-02T03-04-05.678900"


def record(place: int, **given: Any) -> dict[str, Any]:
    """A sample of lm-eval: a question with four choices, of which the right one is `place` % 4."""
    return {
        "doc_id": place,
        "doc": {"question": f"What is {place}?", "level": "easy" if place % 2 else "hard"},
        "target": place % 4,
        "arguments": {"gen_args_0": {"arg_0": f"What is {place}?"}},
        "filtered_resps": [[-1.0, False], [-2.0, False], [-3.0, False], [-4.0, False]],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(place % 4 == 0),
        **given,
    }


def write(folder: Path, records: list[dict[str, Any]], task: str = "quiz", **results: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (folder / f"samples_{task}_{TIME}.jsonl").write_text(lines)
    held = {"higher_is_better": {task: {"acc": True}}, "configs": {task: {}}, **results}
    (folder / f"results_{TIME}.json").write_text(json.dumps(held))
    return folder


def pair(
    tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any]], **results: Any
) -> dict[str, Any]:
    base = [record(place) for place in range(40)]
    return {
        "dense": read_log(write(tmp_path / "dense", base)),
        "int8": read_log(write(tmp_path / "int8", [change(dict(one)) for one in base], **results)),
    }


def test_groups_come_from_short_fields_of_the_record(tmp_path: Path) -> None:
    made = audit_of(pair(tmp_path, lambda one: one))
    assert made.groups == ("gold", "level")
    assert set(made.tables["dense"]["level"].to_pylist()) == {"easy", "hard"}
    assert made.tables["dense"]["prediction"].to_pylist() == ["0"] * 40


@pytest.mark.parametrize(
    ("change", "results", "said"),
    [
        (lambda one: one | {"arguments": "other"}, {}, "prompts of 40 of 40 examples"),
        (lambda one: one | {"target": 1}, {}, "questions or targets of 30 of 40 examples"),
        (lambda one: one | {"doc_id": one["doc_id"] + 1}, {}, "2 examples in only one of the two"),
        (lambda one: one, {"versions": {"quiz": 2}}, r"version is not set .* and 2 for 'int8'"),
        (
            lambda one: one,
            {"configs": {"quiz": {"generation_kwargs": {"temperature": 1}}}},
            r"generation_kwargs is .*--allow-different generation_kwargs",
        ),
        (lambda one: one, {"chat_template_sha": "ab"}, "chat_template_sha is not set"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(
    tmp_path: Path,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    results: dict[str, Any],
    said: str,
) -> None:
    with pytest.raises(InputError, match=said):
        audit_of(pair(tmp_path, change, **results))


def test_a_difference_that_is_allowed_becomes_a_note(tmp_path: Path) -> None:
    made = audit_of(pair(tmp_path, lambda one: one, versions={"quiz": 2}), allow=["version"])
    assert "The runs differ: version is not set for 'dense' and 2 for 'int8'." in made.notes


def test_numbers_that_are_text_and_pairs_with_a_denominator(tmp_path: Path) -> None:
    """A log-likelihood and a number of words become a loss per word."""
    words = [
        record(place, metrics=["word_perplexity"], word_perplexity=[-12.0, place + 1])
        for place in range(30)
    ]
    text = [record(place, acc="1.0") for place in range(30)]
    logs = {
        name: read_log(write(tmp_path / name, words, "wiki", higher_is_better={}))
        for name in ("dense", "int8")
    }
    made = audit_of(logs)
    assert (made.better, made.denominator) == ("lower", "denominator")
    assert made.tables["dense"]["word_perplexity"].to_pylist()[:2] == [12.0, 12.0]
    assert made.tables["dense"]["denominator"].to_pylist()[:2] == [1.0, 2.0]
    (task,) = read_log(write(tmp_path / "text", text)).tasks.values()
    assert set(task.values("acc").to_pylist()) == {1.0}


def test_a_perplexity_of_whole_texts_is_a_loss(tmp_path: Path) -> None:
    """LAMBADA logs a log-likelihood; the higher it is, the lower is what it reports."""
    config = {"lambada": {"metric_list": [{"metric": "perplexity", "aggregation": "perplexity"}]}}
    texts = [record(p, metrics=["perplexity"], perplexity=-2.5) for p in range(30)]
    logs = {
        name: read_log(write(tmp_path / name, texts, "lambada", configs=config))
        for name in ("dense", "int8")
    }
    made = audit_of(logs)
    assert (made.better, made.denominator) == ("lower", None)
    assert set(made.tables["int8"]["perplexity"].to_pylist()) == {2.5}


def test_prompts_may_differ_if_that_is_allowed(tmp_path: Path) -> None:
    logs = pair(tmp_path, lambda one: one | {"arguments": "other"})
    made = audit_of(logs, allow=["prompts"])
    assert any("prompts of 40 of 40 examples" in note for note in made.notes)


def test_a_side_that_contradicts_the_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the logs say that 'acc' is better when it is higher"):
        audit_of(pair(tmp_path, lambda one: one), outcome="acc", better="lower")


def test_fields_with_many_values_are_kept_where_they_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", [record(p) for p in range(200)])
    named = LogRequest(named=frozenset(["question"]))
    found = [read_log(folder, one).tasks["quiz"].samples for one in (LogRequest(), named)]
    assert ["field:question" in table.schema.names for table in found] == [False, True]


def test_lists_that_are_no_perplexities_are_not_offered(tmp_path: Path) -> None:
    """BBQ logs (accuracy, whether it counts) and four numbers for its bias scores."""
    lists = {"accuracy_amb": [1.0, True], "amb_bias_score": [1.0, 0.0, 1.0, True]}
    listed = [record(p, metrics=["acc", *lists], **lists) for p in range(30)]
    (task,) = read_log(write(tmp_path / "a", listed)).tasks.values()
    assert [metric.name for metric in task.metrics] == ["acc"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"doc_id": 0, "acc"', r"line 1: no whole JSON record .* cut off"),
        ("[1]", "line 1: no sample of lm-eval"),
        (json.dumps(record(0, acc="none")), "line 1: the sample has no number"),
        ("\n".join([json.dumps(record(0))] * 2), "example '0' of the task 'quiz' occurs 2 times"),
        ("", "no samples"),
    ],
)
def test_broken_files_are_named_with_their_line(tmp_path: Path, lines: str, said: str) -> None:
    folder = write(tmp_path / "a", [])
    (folder / f"samples_quiz_{TIME}.jsonl").write_text(lines)
    with pytest.raises(InputError, match=said):
        read_log(folder)


def test_results_that_contradict_their_samples(tmp_path: Path) -> None:
    samples = [record(place) for place in range(40)]  # accuracy .25
    config = {"quiz": {"metric_list": [{"metric": "acc", "aggregation": "mean"}]}}
    said = {"quiz": {"acc,none": 0.5}}
    with pytest.raises(InputError, match=r"say acc = 0.5000 .* samples give 0.2500"):
        read_log(write(tmp_path / "a", samples, results=said, configs=config))


def test_tasks_without_a_common_unit(tmp_path: Path) -> None:
    logs, only = {}, {}
    for name in ("dense", "int8"):
        folder = write(tmp_path / name, [record(p) for p in range(30)])
        write(folder, [record(p, metrics=["bleu"], bleu=0.5) for p in range(30)], "translation")
        logs[name] = read_log(folder)
        only[name] = read_log(folder, LogRequest(tasks=("translation",)))
    with pytest.raises(
        InputError, match=r"different metrics \(acc, bleu\).*--outcome.*--log-tasks"
    ):
        audit_of(logs)
    assert audit_of(only).outcome == "bleu"
    with pytest.raises(InputError, match="has no task 'speech'; it has: quiz, translation"):
        read_log(tmp_path / "dense", LogRequest(tasks=("speech",)))


def test_the_newest_of_several_runs_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", [record(p, acc=1.0) for p in range(10)])
    old = folder / "samples_quiz_2025-01-02T03-04-05.678900.jsonl"
    old.write_text(json.dumps(record(0)))
    log = read_log(folder)
    assert log.tasks["quiz"].samples.num_rows == 10
    assert "several runs" in log.notes[0]


# --- archives of Inspect -------------------------------------------------------------------------


def inspect_log(file: Path, method: int = zipfile.ZIP_DEFLATED, **header: Any) -> Path:
    held = {
        "version": 2,
        "status": "success",
        "eval": {"task": "quiz", "config": {}, "scorers": [{"name": "match"}]},
        **header,
    }
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("header.json", json.dumps(held))
        for place in range(4):
            for epoch in (1, 2):
                sample = {
                    "id": place,
                    "epoch": epoch,
                    "input": f"What is {place}?",
                    "target": "A",
                    "scores": {"match": {"value": "C" if place % 2 else "I", "answer": "A"}},
                    "metadata": {"level": "easy"},
                }
                archive.writestr(f"samples/{place}_epoch_{epoch}.json", json.dumps(sample))
    return file


def test_epochs_are_repeats_of_an_example(tmp_path: Path) -> None:
    logs = {name: read_log(inspect_log(tmp_path / f"{name}.eval")) for name in ("dense", "int8")}
    made = audit_of(logs)
    assert made.repeat == "repeat"
    assert made.tables["int8"]["match"].to_pylist() == [0.0, 0.0, 1.0, 1.0] * 2


def test_members_by_zstandard(tmp_path: Path) -> None:
    """The same archive with members packed as inspect_ai packs them since 2025."""
    plain = inspect_log(tmp_path / "plain.eval", zipfile.ZIP_STORED)
    packed = tmp_path / "packed.eval"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(packed, "w") as target:
        for member in source.infolist():
            raw = source.read(member)
            squeezed = pa.compress(raw, codec="zstd", asbytes=True)
            target.writestr(member.filename, squeezed)
            written = target.infolist()[-1]
            written.compress_type, written.file_size = 93, len(raw)
    # The local headers still say "stored"; readers go by the central directory.
    assert read_log(packed).tasks["quiz"].samples == read_log(plain).tasks["quiz"].samples


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"status": "started"}, "ended with status 'started'"),
        ({"eval": {}}, "its header names no task"),
    ],
)
def test_runs_that_did_not_end(tmp_path: Path, header: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_log(inspect_log(tmp_path / "a.eval", **header))


def test_an_archive_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits of a member and of the whole, made smaller so that the test is quick."""
    file = inspect_log(tmp_path / "a.eval")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/bomb_epoch_1.json", b" " * 2**21)
    monkeypatch.setattr("fairweight.tables.logs.inspect_ai.LARGEST_RECORD", 2**20)
    with pytest.raises(InputError, match="more than 1 MB"):
        read_log(file)
    monkeypatch.setattr("fairweight.tables.logs.inspect_ai.LARGEST_UNCHECKED", 2**20)
    with pytest.raises(InputError, match="over 100 times its size"):
        read_log(file)


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    file = inspect_log(tmp_path / "a.eval")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"no whole \.eval archive"):
        read_log(file)


def test_what_is_no_log_says_which_are_known(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(InputError, match="lm-eval with --log_samples, Inspect, HELM"):
        read_log(tmp_path / "a.txt")
