"""`fairweight view`: what it says before it serves, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from fairweight import cli
from fairweight.cli import view
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation
from fairweight.web.application import address
from fairweight.web.site import Settings

from .conftest import Run, wide_frame
from .test_outputs import hears_ctrl_c


@pytest.fixture
def preds(folder: Path) -> str:
    wide_frame(24).to_csv("preds.csv", index=False)
    return "preds.csv"


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_extra(run: Run, preds: str, missing: str, monkeypatch: Any) -> None:
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == missing else real(name))
    sentence = run("view", preds).refused()
    assert missing in sentence
    assert "pip install 'fairweight[web]'" in sentence


def test_a_port_that_is_taken(run: Run, preds: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        sentence = run("view", preds, "--port", port, "--no-browser").refused()
    assert (
        sentence
        == f"Port {port} is taken; give another one with --port, or 0 for any that is free."
    )


def test_addresses_that_do_not_exist(run: Run, preds: str) -> None:
    assert "does not exist" in run("view", "nothing").refused()
    assert "--port 99999 is not a port number" in run("view", preds, "--port", 99999).refused()
    assert "no address" in run("view", preds, "--host", "no such host").refused()
    assert "give an address of this machine" in run("view", preds, "--host", "192.0.2.1").refused()


def test_annotations_that_cannot_be_kept(run: Run, preds: str) -> None:
    Path("taken").mkdir()
    assert "is a folder" in run("view", preds, "--annotations", "taken").refused()
    assert "does not exist" in run("view", preds, "--annotations", "no/where.sqlite").refused()
    lost = run("view", preds, "--read-only", "--annotations", "lost.sqlite").refused()
    assert "'lost.sqlite' does not exist" in lost


def test_tokens_that_are_refused(run: Run, preds: str) -> None:
    assert "at least 16" in run("view", preds, "--token", "short").refused()
    assert "at least 16" in run("view", preds, "--token", "").refused()
    both = run("view", preds, "--token", "t" * 16, "--no-token").refused()
    assert both == "--token, --token-file and --no-token exclude each other; give one."
    lost = run("view", preds, "--token-file", "no/where").refused()
    assert lost.startswith("--token-file 'no/where' cannot be used")


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (Settings(port=8000), "http://127.0.0.1:8000/"),
        (Settings(host="::1", port=1), "http://[::1]:1/"),
        (Settings(host="10.0.0.1", port=1, token="t" * 16), f"http://10.0.0.1:1/?token={'t' * 16}"),
    ],
)
def test_the_address_that_is_printed(settings: Settings, url: str) -> None:
    assert address(settings) == url


def test_a_server_from_start_to_ctrl_c(preds: str, tmp_path: Path) -> None:
    """A token is made for other addresses, and asked for."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairweight", "view", preds, "--port", "0", "--host", "0.0.0.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hears_ctrl_c,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r":(\d+)/\?token=(\S+) ", line)
        assert found, line + process.communicate(timeout=60)[1]
        port, token = found.groups()
        place = f"http://127.0.0.1:{port}/index.json"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(place)
        request = urllib.request.Request(place, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["studies"][0]["examples"] is True
    finally:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED
    assert told == "fairweight: interrupted; nothing was left half-written.\n"
    assert not Path("annotations.sqlite").exists()


# --- where verdicts go ---------------------------------------------------------------------------


def results(folder: Path, mark: str = "audit.json") -> Path:
    folder.mkdir(parents=True)
    (folder / mark).write_text("{}")
    return folder


def test_annotations_lie_beside_results(folder: Path) -> None:
    place = folder.resolve()
    results(folder / "study" / "digits", "study.json")
    results(folder / "study" / "digits" / "audit")
    results(folder / "fairweight-audit", ".fairweight-files.json")
    (folder / "preds.csv").touch()
    beside = place / "study" / "digits.annotations.sqlite"
    for path in ("study/digits", "study/digits/audit", "study/digits/audit/audit.json"):
        assert view._annotations(path, None, False) == beside
    assert view._annotations("fairweight-audit", None, False) == (
        place / "fairweight-audit.annotations.sqlite"
    )
    # Beside the results already: a folder that holds several, and a table.
    assert view._annotations("study", None, False) == Path("study/annotations.sqlite")
    assert view._annotations("preds.csv", None, False) == Path("annotations.sqlite")


def said_in(path: Path) -> list[str]:
    with AnnotationStore(path, read_only=True) as store:
        return [row.note for row in store.current("digits")]


def say(path: Path, note: str) -> None:
    with AnnotationStore(path) as store:
        store.add(Annotation("7", "fine", note=note, annotator=note), "digits")


def test_annotations_inside_results_are_moved_with_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = results(folder / "digits") / "annotations.sqlite"
    say(earlier, "kept")
    assert view._annotations("digits", None, True) == Path("digits/annotations.sqlite")
    assert said_in(earlier) == ["kept"]  # whoever only looks moves nothing
    beside = view._annotations("digits", None, False)
    assert beside == folder.resolve() / "digits.annotations.sqlite"
    assert said_in(beside) == ["kept"]
    assert [file.name for file in (folder / "digits").iterdir()] == ["audit.json"]
    assert "'digits/annotations.sqlite' was moved to" in capsys.readouterr().err
    say(earlier, "by an old viewer")
    assert view._annotations("digits", None, False) == beside
    assert "stay in 'digits/annotations.sqlite', because there are newer" in capsys.readouterr().err
    assert (said_in(earlier), said_in(beside)) == (["by an old viewer"], ["kept"])


def test_what_is_no_file_of_annotations_is_left_alone(folder: Path) -> None:
    mine = folder / "mine.sqlite"
    say(mine, "private")
    inside = results(folder / "digits") / "annotations.sqlite"
    inside.symlink_to(mine)
    beside = folder.resolve() / "digits.annotations.sqlite"
    assert view._annotations("digits", None, False) == beside
    assert inside.is_symlink()
    inside.unlink()
    inside.write_text("not a database")
    assert view._annotations("digits", None, False) == beside
    assert inside.read_text() == "not a database"


def test_a_move_that_was_stopped_half_way(folder: Path) -> None:
    earlier = results(folder / "digits") / "annotations.sqlite"
    say(earlier, "kept")
    beside = folder.resolve() / "digits.annotations.sqlite"
    beside.hardlink_to(earlier)
    assert view._annotations("digits", None, False) == beside
    assert not earlier.exists()
    assert said_in(beside) == ["kept"]
