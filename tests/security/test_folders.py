"""Nothing outside its folder is written, read or removed, and nothing of the user's is replaced."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from fairweight import cli
from fairweight.base.files import MANIFEST, check_folder
from fairweight.errors import InputError
from fairweight.runs.plan import plan
from fairweight.specs.toml import read_study
from fairweight.studies import library as _library  # noqa: F401  registers those of audits

from .mutations import below

pytestmark = pytest.mark.usefixtures("few_metrics")

Refused = Callable[..., str]
QUICK = ("--n-boot", "20", "--quiet")
OUTSIDE = "../../../../escaped"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with predictions and their audit in `out`."""
    folder = tmp_path_factory.mktemp("made")
    i = np.arange(60)
    wide = pd.DataFrame(
        {
            "example_id": i,
            "label": i % 2,
            "pred_dense": (i + (i % 10 == 0)) % 2,
            "pred_int8": (i + (i % 6 == 0)) % 2,
            "sex": np.where(i % 3, "f", "m"),
        }
    )
    wide.to_parquet(folder / "q.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
        done("audit", "q.parquet", *QUICK, "--out", "out")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with predictions in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
    shutil.copy(made / "q.parquet", tmp_path)
    return tmp_path


@pytest.fixture
def audited(made: Path, here: Path) -> Path:
    """The same with an audit in `out`."""
    shutil.copytree(made / "out", here / "out")
    return here


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must be refused and must change nothing below the current folder."""

    def run(*words: object) -> str:
        before = below(Path.cwd())
        capsys.readouterr()
        assert cli.run([str(word) for word in words]) == cli.BAD_INPUT
        assert below(Path.cwd()) == before
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        return told

    return run


def done(*words: object) -> None:
    assert cli.run([str(word) for word in words]) == cli.DONE


# --- names that lead elsewhere -------------------------------------------------------------------


@pytest.mark.parametrize(
    "copy",
    [
        {"name": OUTSIDE},
        {"name": "a/b"},
        {"name": ""},
        {"name": "a\0b"},
        {"name": ".hidden"},
        {"name": "x" * 300},
        {"name": "{dim}", "fields": {"sparsity": 0.5}, "grid": {"dim": ["../x"]}},
        {"name": "{sparsity.__class__}"},
        {"name": "{sparsity:>999999999}"},
        {"name": "{0}"},
        {"name": "{distill}-x", "grid": {"distill": ["../x"]}, "finetune": {"epochs": 1}},
    ],
)
def test_the_name_of_a_copy_stays_in_its_store(copy: dict[str, object]) -> None:
    given = {"method": "l1-structured", "fields": {"sparsity": 0.5}, **copy}
    experiment = {
        "name": "a",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 1},
        "copies": [given],
    }
    with pytest.raises(InputError):
        plan(read_study({"name": "s", "experiment": [experiment]}))


@pytest.mark.parametrize("key", ["name", "experiment"])
@pytest.mark.parametrize("name", [OUTSIDE, "a/b", "", ".", "a\n"])
def test_the_names_of_a_study_stay_in_its_store(key: str, name: str) -> None:
    experiment = {
        "name": name if key == "experiment" else "a",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 1},
    }
    with pytest.raises(InputError):
        read_study({"name": name if key == "name" else "s", "experiment": [experiment]})


def test_a_copy_that_would_be_written_outside(here: Path, refused: Refused) -> None:
    """The study as it was found: its predictions went four folders up."""
    (here / "evil.toml").write_text(
        'name = "evil"\n[[experiment]]\nname = "a"\ndata = {name = "digits"}\n'
        'model = {architecture = "lenet"}\ntraining = {epochs = 1}\nmembers = 1\n'
        f'[[experiment.copies]]\nname = "{OUTSIDE}"\nmethod = "global-magnitude"\n'
        "fields = {sparsity = 0.5}\n"
    )
    assert "cannot be the name of a folder" in refused("study", "run", "evil.toml")


def test_the_variant_of_a_card_names_no_folder(here: Path, refused: Refused) -> None:
    (here / "m").mkdir()
    (here / "m" / "model.json").write_text(json.dumps({"schema": 1, "variant": OUTSIDE}))
    words = ("compress", "m", "--method", "int8-dynamic")
    assert "cannot be the name of a folder" in refused(*words)


# --- links and databases -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report.html", "audit.json"])
def test_the_viewer_serves_no_link_that_leads_out(here: Path, name: str, refused: Refused) -> None:
    (here / "secret").write_text('{"schema": 1, "secret": true}')
    (here / "out").mkdir()
    (here / "out" / name).symlink_to(here / "secret")
    assert "is a link that leads out of its folder" in refused("view", "out", "--no-browser")


@pytest.mark.parametrize("name", ["report.html", "audit.json"])
def test_a_file_that_becomes_a_link_is_served_no_longer(here: Path, name: str) -> None:
    from starlette.testclient import TestClient

    from fairweight.web.application import create_app
    from fairweight.web.items import find_items
    from fairweight.web.site import Settings

    (here / "secret").write_text("the secret")
    (here / "out").mkdir()
    for held in ("report.html", "audit.json"):
        (here / "out" / held).write_text("{}")
    settings = Settings(annotations=here / "said.sqlite")
    app = create_app(find_items(here / "out"), settings=settings)
    page = "report" if name == "report.html" else "report.json"
    with TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False) as client:
        assert client.get(f"/audit/out/{page}").status_code == 200
        (here / "out" / name).unlink()
        (here / "out" / name).symlink_to(here / "secret")
        answer = client.get(f"/audit/out/{page}")
    assert answer.status_code == 400
    assert "the secret" not in answer.text


def test_linked_folders_are_not_looked_into(here: Path) -> None:
    from fairweight.web.items import find_items

    for folder in ("elsewhere/audits", "given/own"):
        (here / folder).mkdir(parents=True)
        (here / folder / "audit.json").write_text("{}")
    (here / "given" / "link").symlink_to(here / "elsewhere")
    assert [item.title for item in find_items(here / "given")] == ["own"]
    assert [item.title for item in find_items(here / "given" / "link")] == ["audits"]


@pytest.mark.parametrize(
    "body",
    [
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM 'secret.csv'",
        "SELECT content AS label FROM read_text('secret.csv')",
        "SELECT file AS label FROM glob('*')",
    ],
)
def test_a_view_in_a_database_reads_no_other_file(here: Path, refused: Refused, body: str) -> None:
    (here / "secret.csv").write_text("example_id,label,pred_a,pred_b\n1,0,0,1\n2,1,1,0\n")
    with duckdb.connect("evil.duckdb") as made:
        made.execute("CREATE TABLE t AS FROM 'q.parquet'")
        made.execute(f"CREATE VIEW v AS {body}")
        made.execute(f"CREATE MACRO m() AS TABLE {body}")
    asked = ("v", body, "SELECT * FROM m()", "SELECT * FROM t, v")
    for query in asked:
        told = refused("count", f"evil.duckdb::{query}", "--out", "cube.parquet")
        assert "disabled by configuration" in told
    for query in ("COPY t TO 'x.csv'", "SELECT 1; SELECT 2", "ATTACH 'x.duckdb'"):
        assert refused("count", f"evil.duckdb::{query}", "--out", "cube.parquet")


def test_a_database_of_ones_own_works(here: Path) -> None:
    """Its tables, views and queries, and other files beside it."""
    with duckdb.connect("own.duckdb") as made:
        made.execute("CREATE TABLE t AS FROM 'q.parquet'")
        made.execute("CREATE VIEW v AS SELECT * FROM t WHERE example_id < 50")
    for number, query in enumerate(("t", "v", "SELECT * FROM v ORDER BY example_id DESC")):
        done("count", f"own.duckdb::{query}", "--out", f"cube{number}.parquet")
    duckdb.sql("SELECT example_id, sex FROM 'q.parquet'").write_csv("people.csv")
    query = "own.duckdb::SELECT * EXCLUDE sex FROM t"
    done("count", query, "--examples", "people.csv", "--out", "both.parquet")
    done("count", "a=own.duckdb::t", "b=own.duckdb::v", "--prediction-column", "pred_int8",
         "--missing", "drop", "--out", "two.parquet")  # fmt: skip


def test_a_query_sees_no_variable_of_ours(here: Path, refused: Refused) -> None:
    """DuckDB takes an unknown table for a frame in Python, wherever it finds one."""
    duckdb.connect("a.duckdb").close()
    for name in ("workspace", "held", "config"):
        told = refused("count", f"a.duckdb::SELECT * FROM {name}", "--out", "cube.parquet")
        assert "does not exist" in told


# --- manifests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "planted",
    [
        ["notes.txt", "thesis.tex"],
        {"format": 2, "files": {"notes.txt": "0" * 64, "thesis.tex": None}},
    ],
)
def test_a_planted_manifest_removes_nothing(here: Path, planted: object) -> None:
    out = here / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / "thesis.tex").write_text("mine")
    (out / MANIFEST).write_text(json.dumps(planted))
    done("audit", "q.parquet", *QUICK, "--out", "out")
    assert (out / "notes.txt").read_text() == (out / "thesis.tex").read_text() == "mine"
    done("audit", "q.parquet", *QUICK, "--out", "out", "--overwrite")
    assert (out / "notes.txt").read_text() == (out / "thesis.tex").read_text() == "mine"


def test_a_manifest_with_a_null_character_stops_before_anything_is_gone(
    audited: Path, refused: Refused
) -> None:
    """It failed after the report had gone."""
    held = json.loads((audited / "out" / MANIFEST).read_text())
    held["files"] |= {"zz\0": "0" * 64}
    (audited / "out" / MANIFEST).write_text(json.dumps(held))
    told = refused("audit", "q.parquet", *QUICK, "--out", "out")
    assert "fairweight cannot have written" in told


@pytest.mark.parametrize("inside", [True, False])
def test_a_linked_folder_in_the_output(audited: Path, refused: Refused, inside: bool) -> None:
    """Tables were written through it, and listed files removed."""
    elsewhere = audited / ("out/mine" if inside else "mine")
    (audited / "out" / "tables").rename(elsewhere)
    (audited / "out" / "tables").symlink_to(elsewhere)
    for words in ((), ("--overwrite",)):
        told = refused("audit", "q.parquet", "--alpha", "0.1", *QUICK, "--out", "out", *words)
        assert "is a link to another folder" in told


def test_folders_of_the_first_version(audited: Path, refused: Refused) -> None:
    """Their manifests have no checksums: nothing is replaced before it is asked for."""
    listed = list(json.loads((audited / "out" / MANIFEST).read_text())["files"])
    (audited / "out" / MANIFEST).write_text(json.dumps(listed))
    words = ("audit", "q.parquet", "--alpha", "0.1", *QUICK, "--out", "out")
    assert "an earlier version that wrote it kept no checksums" in refused(*words)
    done("report", "out", "--format", "md")
    done(*words, "--overwrite")
    done("audit", "q.parquet", *QUICK, "--out", "out")


# --- outputs -------------------------------------------------------------------------------------


def test_an_output_that_is_an_input(audited: Path, refused: Refused) -> None:
    """`count q.parquet --out q.parquet` replaced its input; so might every other command."""
    (audited / "policy.toml").write_text("version = 1\n")
    (audited / "link.parquet").symlink_to("q.parquet")
    for words in (
        ("count", "q.parquet", "--out", "q.parquet"),
        ("count", "a=q.parquet", "--out", "q.parquet", "--parts", "2"),
        ("count", "*.parquet", "--out", "./q.parquet"),
        ("count", "link.parquet", "--out", "q.parquet"),
        ("count", "q.parquet", "--examples", "policy.toml", "--out", "policy.toml"),
        ("report", "out", "--format", "md", "--out", "out/audit.json"),
        ("report", "out/audit.json", "--format", "html", "--out", "out/audit.json"),
        ("report", "out", "--policy", "policy.toml", "--format", "md", "--out", "policy.toml"),
        ("report", "figure", "FW-1", "out/audit.json", "--out", "out/audit.json"),
        ("gate", "q.parquet", "--policy", "policy.toml", "--json", "policy.toml"),
        ("gate", "out", "--policy", "policy.toml", "--junit", "out/audit.json"),
        ("gate", "q.parquet", "--policy", "policy.toml", "--markdown", "q.parquet"),
    ):
        for more in ((), ("--overwrite",)):
            told = refused(*words, *more)
            assert "is an input of this command" in told, (words, told)


def test_an_input_among_the_files_of_an_output(audited: Path, refused: Refused) -> None:
    """An audit into the folder of its own predictions would remove them: they are listed there."""
    table = "out/tables/results.parquet"
    for words in (
        ("audit", table, "--out", "out"),
        ("audit", "q.parquet", "--examples", table, "--out", "out"),
        ("explain", "q.parquet", "--train", table, "--out", "out"),
        ("exemplars", table, "--out", "out"),
        ("exemplars", table, "--out", "other", "--images", "out"),
        ("choose", table, "--objective", "accuracy", "--out", "out"),
        ("preflight", table, "--out", "out"),
        ("mitigate", "thresholds", "q.parquet", "--validation", table, "--out", "out"),
        ("mitigate", "overrides", "q.parquet", "--labels", table, "--out", "out"),
        ("mitigate", "cascade", table, "--out", "out"),
        ("audit", "out", "--out", "out"),
    ):
        told = refused(*words)
        assert "input of this command" in told, (words, told)
        assert refused(*words, "--overwrite")


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (("audit", "q.parquet", *QUICK, "--out", "."), ("report.html", "audit.json")),
        (("audit", "q.parquet", *QUICK, "--out", "."), ("tables/results.csv",)),
        (("demo", "--quick", "--out", "."), ("predictions.parquet",)),
        (("demo", "--quick", "--out", "."), ("audit/audit.json",)),
        (("count", "q.parquet", "--out", "cube.parquet"), ("cube.parquet",)),
        (("explain", "q.parquet", "--out", "."), ("report.html",)),
        (("exemplars", "q.parquet", "--out", "."), ("exemplars.csv",)),
        (("preflight", "q.parquet", "--out", "."), ("preflight.csv",)),
        (("choose", "q.parquet", "--objective", "accuracy", "--out", "."), ("choice.json",)),
        (("mitigate", "cascade", "q.parquet", "--out", "."), ("predictions.parquet",)),
        (("mitigate", "cascade", "q.parquet", "--out", "."), ("audit/report.html",)),
        (("predict", "m", "--out", "mine.txt"), ("mine.txt",)),
        (("predict", "m", "--variants", "mine.txt"), ("mine.txt",)),
        (("predict", "m", "--train-table", "mine.txt"), ("mine.txt",)),
        (("train", "--epochs", "1", "--out", "."), ("weights.safetensors",)),
        (("similarity", "m", "m", "--out", "mine.json"), ("mine.json",)),
        (("study", "export", "mine.csv"), ("mine.csv",)),
        (("study", "claims", "characterising-bias", "--out", "mine.md"), ("mine.md",)),
        (("gate", "q.parquet", "--policy", "p.toml", "--json", "mine.json"), ("mine.json",)),
        (("report", "a", "--format", "md", "--out", "mine.md"), ("mine.md",)),
        (("report", "figure", "FW-1", "a", "--out", "mine.svg"), ("mine.svg",)),
    ],
)
def test_a_file_of_the_user_is_not_replaced(
    here: Path, refused: Refused, words: tuple[str, ...], files: tuple[str, ...]
) -> None:
    """By any command that writes; what else is wrong with these commands is not looked at."""
    pytest.importorskip("torch")
    for name in files:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("mine")
    (here / "m").mkdir()
    card = {"schema": 1, "data": {"name": "digits"}}
    (here / "m" / "model.json").write_text(json.dumps(card))
    told = refused(*words)
    assert f"{files[0]}' exists" in told, told
    assert "--overwrite" in told


def test_what_was_written_may_be_written_again(audited: Path) -> None:
    done("audit", "q.parquet", *QUICK, "--out", "out")
    done("report", "out", "--out", "out/report.html")  # of the same folder
    done("audit", "q.parquet", *QUICK, "--out", "out")
    (audited / "out" / "report.html").write_text("mine")
    assert cli.run(["audit", "q.parquet", *QUICK, "--out", "out"]) == cli.BAD_INPUT
    assert (audited / "out" / "report.html").read_text() == "mine"
    done("audit", "q.parquet", *QUICK, "--out", "out", "--overwrite")
    assert (audited / "out" / "report.html").read_text() == "<!doctype html>"


def test_inputs_in_the_folder_that_is_overwritten(here: Path) -> None:
    check_folder(str(here), inputs=["q.parquet"])
    with pytest.raises(OSError, match="where --overwrite might replace it"):
        check_folder(str(here), inputs=["q.parquet"], overwrite=True)
