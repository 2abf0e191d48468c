"""Every rule of safety has a test that fails without it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairweight.errors import InputError
from fairweight.web.pages import audit
from fairweight.web.security import POLICY, STORED_REPORT_POLICY
from fairweight.web.site import Settings

from .conftest import BASE, Open, headers_of
from .test_web_pages import PAGES, Found

TOKEN = "correct-horse-battery-staple"
SAID = {"example_id": "id-004", "verdict": "fine", "annotator": "ann"}


# --- what a page may do --------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["/", *PAGES, "/nowhere"])
def test_no_script_and_no_style_inside_a_page(reader: TestClient, page: str) -> None:
    assert Found(reader.get(page).text).inline == []


def test_the_policy_is_strict() -> None:
    rules = dict(part.split(" ", 1) for part in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert "unsafe" not in POLICY
    assert STORED_REPORT_POLICY.startswith("sandbox ")
    assert "allow-same-origin" not in STORED_REPORT_POLICY
    assert "default-src 'none'" in STORED_REPORT_POLICY


def test_headers_of_every_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(audit, "_overview_page", broken)
    asset = next(link for link in Found(client.get("/").text).links if "static" in link)
    answers = [
        *(client.get(page) for page in ("/", "/index.json", asset, "/openapi.json", "/nowhere")),
        client.get("/audit/plain/examples"),
        client.get("/audit/plain/image?id=id-004"),
        client.get("/audit/plain/annotations.csv"),
        client.get("/audit/plain"),
        client.get("/", headers={"Host": "evil.example"}),
        client.post("/audit/plain/annotate", json=SAID),
        client.post("/audit/plain/annotate", json=SAID, headers=headers_of(client)),
        client.post("/audit/plain/annotate", content="{", headers=headers_of(client)),
        client.post("/audit/plain/import", content=b"x" * 9_000_000, headers=headers_of(client)),
        client.put("/"),
    ]
    statuses = [answer.status_code for answer in answers]
    assert statuses == [200, 200, 200, 200, 404, 200, 200, 200, 500, 421, 403, 200, 422, 413, 403]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "secret detail" not in answers[8].text
    report = client.get("/audit/plain/report")
    assert report.headers["content-security-policy"] == STORED_REPORT_POLICY
    assert "window.ran" in report.text


# --- who is asked, and by whom -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200), ("localhost:9999", 200), ("[::1]:8000", 200), ("LOCALHOST", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost@evil.example", 421),
        ("192.168.0.7:8000", 421), ("", 421), ("localhost:evil", 421),
    ],
)  # fmt: skip
def test_only_known_names_of_the_server(reader: TestClient, host: str, status: int) -> None:
    assert reader.get("/index.json", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"Origin": None}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Origin": "http://evil.example"}, "Origin"),
        ({"Origin": "http://127.0.0.1:9000"}, "Origin"),
        ({"Origin": "file://127.0.0.1:8000"}, "Origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "another site"),
        ({"Sec-Fetch-Site": "same-site"}, "another site"),
        ({"Sec-Fetch-Site": "none"}, "another site"),
        ({"X-CSRF-Token": None}, "X-CSRF-Token"),
        ({"X-CSRF-Token": "guess"}, "X-CSRF-Token"),
    ],
)
@pytest.mark.parametrize("what", ["annotate", "undo", "import"])
def test_writes_from_elsewhere(
    reader: TestClient, studies: Path, what: str, changes: dict[str, str | None], words: str
) -> None:
    headers = {k: v for k, v in (headers_of(reader) | changes).items() if v is not None}
    answer = reader.post(f"/audit/plain/{what}", json=SAID, headers=headers)
    assert answer.status_code == 403
    assert words in answer.json()["error"]
    assert not (studies / "said.sqlite").exists()


def test_writes_from_our_own_pages(client: TestClient) -> None:
    headers = headers_of(client) | {"Sec-Fetch-Site": "same-origin"}
    assert client.post("/audit/plain/annotate", json=SAID, headers=headers).status_code == 200
    page = client.get("/audit/plain/examples").text
    assert f'<meta name="csrf" content="{headers["X-CSRF-Token"]}">' in page


def test_read_only(opened: Open, tmp_path: Path) -> None:
    client = opened(read_only=True)
    for what in ("annotate", "undo", "import"):
        answer = client.post(f"/audit/plain/{what}", json=SAID, headers=headers_of(client))
        assert answer.status_code == 403
        assert "read-only" in answer.json()["error"]
    assert not (tmp_path / "said.sqlite").exists()
    page = client.get("/audit/plain/examples").text
    assert "csrf" not in page
    assert "data-verdict" not in page


# --- how much ------------------------------------------------------------------------------------


def asked(client: TestClient, chunks: list[bytes], headers: dict[str, str]) -> tuple[int, int]:
    """Post in chunks without a length; the status, and how many chunks were read."""
    sent: list[int] = []
    status = 0

    async def receive() -> dict[str, Any]:
        place = len(sent)
        sent.append(place)
        return {"type": "http.request", "body": chunks[place], "more_body": place + 1 < len(chunks)}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http", "method": "POST", "path": "/audit/plain/import", "query_string": b"",
        "raw_path": b"/audit/plain/import", "scheme": "http", "http_version": "1.1",
        "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1), "root_path": "",
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }  # fmt: skip
    # In a thread of its own: beside tests with a browser, Playwright's loop runs in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, client.app(scope, receive, send)).result()
    return status, len(sent)


def test_a_body_in_pieces_ends_at_the_limit(opened: Open) -> None:
    client = opened(max_body=1000)
    headers = headers_of(client) | {"Host": "127.0.0.1:8000"}
    assert asked(client, [b"x" * 300] * 50, headers) == (413, 4)
    small = [b"example_id,verdict\n", b"id-004,fine\n"]
    assert asked(client, small, headers) == (200, 2)


def test_a_body_that_says_its_length(opened: Open) -> None:
    client = opened(max_body=1000)
    answer = client.post("/audit/plain/import", content=b"x" * 1001, headers=headers_of(client))
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert "1,000 bytes" in answer.json()["error"]


# --- the token -----------------------------------------------------------------------------------


def test_other_addresses_need_a_token() -> None:
    with pytest.raises(InputError, match="needs a token"):
        Settings(host="0.0.0.0")
    with pytest.raises(InputError, match="at least 16"):
        Settings(token="short")
    with pytest.raises(InputError, match="printable ASCII"):
        Settings(token="ümlaut" * 4)
    assert Settings(host="0.0.0.0", token=TOKEN).writable is False


def test_the_token_is_exchanged_for_a_cookie(opened: Open) -> None:
    client = opened(token=TOKEN)
    for place in ("/", "/index.json", "/audit/plain/image?id=id-004", "/static/view.css"):
        assert client.get(place).status_code == 401
    assert client.get("/?token=wrong-wrong-wrong").status_code == 401
    answer = client.get(f"/audit/plain/examples?label=b&token={TOKEN}&order=id")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/audit/plain/examples?label=b&order=id"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert client.get(answer.headers["location"]).status_code == 200
    again = opened(token=TOKEN)
    again.cookies.set(*cookie.partition(";")[0].split("=", 1))
    assert again.get("/").status_code == 401  # of another start of the server


def test_the_exchange_leads_nowhere_else(opened: Open) -> None:
    client = opened(token=TOKEN)
    for place in ("//evil.example/", "/\\evil.example/", "///evil.example"):
        answer = client.get(f"{BASE}{place}?token={TOKEN}")
        assert answer.status_code == 303
        assert answer.headers["location"].strip("/") in ("evil.example", "%5Cevil.example")
        assert answer.headers["location"][:2] not in ("//", "/\\")


def test_a_program_may_send_the_token_itself(opened: Open) -> None:
    client = opened(token=TOKEN)
    sent = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/index.json", headers=sent).status_code == 200
    assert client.get("/index.json", headers={"Authorization": "Bearer x"}).status_code == 401
    refused = client.post("/audit/plain/annotate", json=SAID, headers=sent)
    assert refused.status_code == 403  # a token does not replace the other rules


def test_secrets_are_compared_in_constant_time(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []
    real = secrets.compare_digest

    def watched(a: bytes, b: bytes) -> bool:
        compared.append(b)
        return real(a, b)

    monkeypatch.setattr(secrets, "compare_digest", watched)
    client = opened(token=TOKEN)
    client.get("/?token=guess")
    assert TOKEN.encode() in compared
    client.get("/", headers={"Authorization": f"Bearer {TOKEN}"})
    sent = {"Authorization": f"Bearer {TOKEN}", "Origin": BASE}
    csrf = client.get("/session.json", headers=sent).json()["csrf"]
    client.post("/audit/plain/undo", json={}, headers=sent | {"X-CSRF-Token": "guess"})
    assert csrf.encode() in compared


def test_logs_hold_no_queries(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = opened(token=TOKEN)
    client.get(f"/?token={TOKEN}")
    client.get("/audit/plain/example?id=private-name")
    client.get("/audit/two%0Alines")
    ours = [record.getMessage() for record in caplog.records if record.name == "fairweight.web"]
    assert len(ours) == 3
    assert ours[0].startswith("GET / 303 ")
    assert ours[2].startswith("GET /audit/two\\nlines 404 ")
    assert TOKEN not in " ".join(ours)
    assert "private-name" not in " ".join(ours)
