"""The viewer against another user of the machine, half-sent requests, and files that vanish."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.web.studies import rows

from fairweight import cli
from fairweight.errors import InputError, OutputError
from fairweight.runs.store import Store
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation
from fairweight.web import application, security
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.site import Settings
from fairweight.web.votes import builder
from fairweight.web.votes.builder import indexed

# 210 of them kept the viewer at 503, when it had 200 places.
HALVES = security.MOST_AT_ONCE + security.MOST_WAITING + 10
TOKEN = "correct-horse-battery-staple"
SAID = {"example_id": "id-004", "verdict": "fine", "annotator": "mallory"}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(builder, "built_apart", indexed)
    monkeypatch.delenv("FAIRWEIGHT_TOKEN", raising=False)
    path = tmp_path / "answers.parquet"
    rows().to_parquet(path)
    return path


@contextmanager
def command(*arguments: object) -> Iterator[tuple[int, str, subprocess.Popen[str]]]:
    """`fairweight view` on this machine: its port, what it printed, and its process."""
    given = [str(word) for word in arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairweight", "view", *given, "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line + process.communicate(timeout=60)[1]
        yield int(found[1]), line, process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def status(port: int, path: str = "/session.json", body: object = None, **headers: str) -> int:
    """The status of an answer; 0 where the connection was cut off."""
    held = HTTPConnection("127.0.0.1", port, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        held.request("GET" if body is None else "POST", path, json.dumps(body), sent)
        return held.getresponse().status
    except ConnectionError:
        return 0
    finally:
        held.close()


# --- another user of the machine -----------------------------------------------------------------


def test_another_user_neither_looks_nor_writes(table: Path) -> None:
    with command(table) as (port, line, _):
        found = re.search(r"/\?token=([\w-]{32,}) ", line)
        assert found
        for path in ("/", "/session.json", "/audit/answers-parquet/examples", "/static/view.css"):
            assert status(port, path) == 401
        own = {"Origin": f"http://127.0.0.1:{port}", "X_CSRF_Token": "guess"}
        assert status(port, "/audit/answers-parquet/annotate", SAID, **own) == 401
        assert status(port, Authorization=f"Bearer {found[1]}") == 200
    assert not list(table.parent.glob("*.sqlite"))


def test_only_who_asks_for_it_goes_without_a_token(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with command(table, "--no-token") as (port, line, _):
        assert "token" not in line
        assert status(port) == 200
    assert cli.run(["view", str(table), "--no-token", "--host", "0.0.0.0"]) == cli.BAD_INPUT
    assert "needs a token; leave --no-token out" in capsys.readouterr().err


def test_a_token_that_is_in_no_process_list(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table.parent / "token"
    with command(table, "--token-file", file) as (port, line, process):
        made = file.read_text()
        assert f"?token={made} " in line
        assert made not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert status(port, Authorization=f"Bearer {made}") == 200
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.setenv("FAIRWEIGHT_TOKEN", TOKEN)
    with command(table) as (port, _, process):
        assert TOKEN not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert status(port, Authorization=f"Bearer {TOKEN}") == 200
    assert application.token_in(file) == made  # the same, start after start


def test_a_token_file_that_others_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o640)
    with pytest.raises(InputError, match=f"can be read by others; run: chmod 600 {file}"):
        application.token_in(file)
    file.chmod(0o600)
    assert application.token_in(file) == TOKEN


def test_the_browser_is_started_without_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairweight.cli import view

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(view, "_has_display", lambda: True)
    view._ready(Settings(token=TOKEN), 1, tmp_path)
    (address,) = opened
    assert address.startswith("file://")
    assert TOKEN not in address
    assert TOKEN in (tmp_path / "open.html").read_text()


def test_files_of_people_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with AnnotationStore(tmp_path / "said.sqlite") as store:
            store.add(Annotation("7", "fine"), "digits")
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
        Store(tmp_path / "runs").register("mine", [])
    finally:
        os.umask(before)
    assert modes == {f"said.sqlite{end}": 0o600 for end in ("", "-wal", "-shm")}
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o700


# --- half-sent requests --------------------------------------------------------------------------


@pytest.fixture
def port(table: Path) -> Iterator[int]:
    """The port of a viewer with a token."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))  # both ends are ours
    items = find_items(table)
    indexed(items[0])
    ready = threading.Event()
    with application.listening("127.0.0.1", 0) as listener:
        number = listener.getsockname()[1]
        settings = Settings(port=number, token=TOKEN, annotations=table.with_name("said.sqlite"))
        server = application.Server(create_app(items, settings=settings), ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        ready.wait(60)
        yield number
        server.should_exit = True
        thread.join()


def secret(port: int) -> bytes:
    """What a page of the viewer sends along with a write."""
    own = {"Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/session.json", headers=own)
    with urllib.request.urlopen(request) as answer:
        found: str = json.load(answer)["csrf"]
    return found.encode()


def halves(stack: ExitStack, port: int, sent: bytes, n: int = HALVES) -> list[socket.socket]:
    """Connections on which a request was begun."""
    made = []
    for _ in range(n):
        made.append(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
        with suppress(ConnectionError):
            made[-1].sendall(sent)
    return made


def is_open(held: socket.socket) -> bool:
    held.setblocking(False)
    try:
        return bool(held.recv(65536)) and is_open(held)
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


HEAD = (
    "POST /audit/answers-parquet/import HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    f"Authorization: Bearer {TOKEN}\r\nOrigin: http://127.0.0.1\r\nX-CSRF-Token: SECRET\r\n"
)
BEGUN = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": HEAD.encode() + b"Content-Length: 1000\r\n\r\nexample_id",
    "a stranger's half": b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
    "a whole request, and half of another": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET",
}


@pytest.mark.parametrize("begun", BEGUN)
def test_whole_requests_always_get_a_place(port: int, begun: str) -> None:
    with ExitStack() as stack:
        held = halves(stack, port, BEGUN[begun].replace(b"SECRET", secret(port)))
        for _ in range(5):
            assert status(port, Authorization=f"Bearer {TOKEN}") == 200
        # Each connection of ours is one of those that wait, until its request is there.
        assert sum(map(is_open, held)) <= security.MOST_WAITING


def test_half_a_request_has_an_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(security, "BODY_SECONDS", 0.6)
    own = secret(port)
    for begun in BEGUN.values():
        with ExitStack() as stack:
            (held,) = halves(stack, port, begun.replace(b"SECRET", own), 1)
            since = time.monotonic()
            while is_open(held):  # bytes that trickle in gain no time
                assert time.monotonic() - since < 20
                time.sleep(0.05)
                with suppress(OSError):
                    held.send(b"x")


def test_slow_requests_that_end_are_answered(port: int) -> None:
    with ExitStack() as stack:
        (held,) = halves(stack, port, BEGUN["half the headers"], 1)
        time.sleep(0.2)
        held.sendall(f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert held.recv(15) == b"HTTP/1.1 200 OK"


def test_half_a_file_is_not_imported(port: int, table: Path) -> None:
    head = HEAD.encode().replace(b"SECRET", secret(port))
    body = b"example_id,verdict\nid-004,fine\nid-005,fine\n"
    for length in (len(body) + 50, len(body)):
        with socket.create_connection(("127.0.0.1", port)) as held:
            held.sendall(head + b"Content-Length: %d\r\n\r\n" % length + body)
            if length == len(body):
                assert held.recv(15) == b"HTTP/1.1 200 OK"
        if length > len(body):
            time.sleep(0.3)
            assert not table.with_name("said.sqlite").exists()
    with AnnotationStore(table.with_name("said.sqlite"), read_only=True) as store:
        assert len(store.current("answers-parquet")) == 2


# --- what is saved -------------------------------------------------------------------------------


def removed(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.sqlite"))


def replaced(path: Path) -> None:
    with AnnotationStore(path.with_name("other.sqlite")) as other:
        other.add(Annotation("1", "ambiguous"), "digits")
    path.with_name("other.sqlite").rename(path)


def without_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


@pytest.mark.parametrize("done", [removed, moved, replaced, without_log])
def test_saved_means_in_the_file_at_that_path(tmp_path: Path, done: Callable[[Path], None]) -> None:
    path = tmp_path / "said.sqlite"
    with AnnotationStore(path) as store:
        store.add(Annotation("7", "fine"), "digits")
        done(path)
        with pytest.raises(OutputError, match="moved, removed or replaced while it was open"):
            store.add(Annotation("8", "fine"), "digits")
        assert store.lost
    if done is without_log:
        with AnnotationStore(path) as again:
            assert [row.example_id for row in again.current("digits")] == ["7"]


def test_the_viewer_says_so_and_goes_on(port: int, table: Path) -> None:
    said = table.with_name("said.sqlite")
    own = {"Authorization": f"Bearer {TOKEN}", "Origin": f"http://127.0.0.1:{port}"}
    own["X-CSRF-Token"] = secret(port).decode()

    def annotate() -> tuple[int, str]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/audit/answers-parquet/annotate",
            json.dumps(SAID).encode(),
            own | {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["error"]

    assert annotate() == (200, "")
    said.rename(table.with_name("backup.sqlite"))
    code, sentence = annotate()
    assert code == 500
    assert "so this was not saved" in sentence
    assert annotate() == (200, "")
    with AnnotationStore(said, read_only=True) as store:
        assert len(store.log("answers-parquet")) == 1
