"""Verdicts that the server acknowledged survive its SIGKILL, and the next server shows them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from fairweight.tables.annotation_store import AnnotationStore
from fairweight.web.items import find_items
from fairweight.web.votes.builder import indexed

from .studies import rows

WRITERS = 3
# Imports once and forks a server for every line that it reads: a round takes no start of Python.
LAUNCHER = """
import os, sys
from pathlib import Path
import uvicorn
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.application import listening, run
from fairweight.web.site import Settings

items = find_items(Path(sys.argv[1]))
for _ in sys.stdin:
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = os.fork()
    if server == 0:
        settings = Settings(port=port, annotations=Path(sys.argv[2]))
        run(create_app(items, settings=settings), listener, lambda: None)
        os._exit(0)
    listener.close()
    print(items[0].key, server, port, flush=True)
    os.waitpid(server, 0)
"""


@contextmanager
def launcher(study: Path, file: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(study), str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.communicate()  # closes its input, on which it ends


def asked(connection: HTTPConnection, path: str, body: Any = None, **headers: str) -> Any:
    sent = None if body is None else json.dumps(body)
    kind = {} if body is None else {"Content-Type": "application/json"}
    connection.request("GET" if body is None else "POST", path, sent, {**headers, **kind})
    answer = connection.getresponse()
    held = answer.read()
    assert answer.status == 200, held
    return json.loads(held)


def write(key: str, port: int, who: str, acknowledged: list[tuple[str, str]]) -> None:
    """One verdict after the other, until the server is gone."""
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    with closing(connection), suppress(ConnectionError, HTTPException):
        secret = asked(connection, "/session.json")["csrf"]
        headers = {"Origin": f"http://127.0.0.1:{port}", "X-CSRF-Token": secret}
        for i in range(10_000):
            note = f"{who}-{i}"
            said = {"example_id": "id-003", "verdict": "ambiguous", "annotator": who, "note": note}
            asked(connection, f"/audit/{key}/annotate", said, **headers)
            acknowledged.append((who, note))


def one_round(process: subprocess.Popen[str], number: int, seconds: float) -> list[tuple[str, str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    key, server, port = process.stdout.readline().split()
    acknowledged: list[tuple[str, str]] = []
    writers = [
        threading.Thread(target=write, args=(key, int(port), f"r{number}w{i}", acknowledged))
        for i in range(WRITERS)
    ]
    for thread in writers:
        thread.start()
    waited = threading.Event()
    while len(acknowledged) < WRITERS and any(thread.is_alive() for thread in writers):
        waited.wait(0.005)
    waited.wait(seconds)
    os.kill(int(server), signal.SIGKILL)
    for thread in writers:
        thread.join()
    return acknowledged


def check_rounds(folder: Path, rounds: int) -> None:
    study, file = folder / "answers.parquet", folder / "said.sqlite"
    rows().to_parquet(study)
    indexed(find_items(study)[0])  # a server that is killed while it indexes acknowledges nothing
    draw = random.Random(0)
    acknowledged: list[tuple[str, str]] = []
    with launcher(study, file) as process:
        for number in range(rounds):
            acknowledged += one_round(process, number, draw.uniform(0, 0.05))
            with AnnotationStore(file, read_only=True) as store:
                (audit,) = store.audits()
                entries = store.log(audit)
                said = [entry.annotation for entry in entries if entry.annotation is not None]
                kept = {(row.annotator, row.note) for row in said}
            assert set(acknowledged) <= kept
            # Each writer may have had one more on its way.
            assert len(kept) - len(acknowledged) <= WRITERS * (number + 1)
    assert len(acknowledged) >= rounds * WRITERS


def test_acknowledged_verdicts_survive_the_server(tmp_path: Path) -> None:
    check_rounds(tmp_path, 2)


@pytest.mark.slow
def test_acknowledged_verdicts_survive_a_hundred_servers(tmp_path: Path) -> None:
    check_rounds(tmp_path, 100)
