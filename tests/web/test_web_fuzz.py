"""Whatever is sent, there is no error of ours: schemathesis on the description of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

schemathesis = pytest.importorskip("schemathesis")

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))


def fuzz(client: TestClient, how: settings) -> int:
    """Draw an operation and a case of it, and send it; how many were answered."""
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    strategies = [found.ok().as_strategy() for found in schema.get_all_operations()]
    secret = client.get("/session.json").json()["csrf"]
    answered: set[int] = set()
    n = 0

    @how
    @given(st.one_of(strategies), st.sampled_from(["plain", "tasks", "hostile", None]))
    def send(case: Any, key: str | None) -> None:
        nonlocal n
        if key is not None and "key" in (case.path_parameters or {}):
            case.path_parameters["key"] = key  # else hardly any request reaches a page
        asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8000")
        sent = {
            name: value for name, value in asked.items()
            if name in ("method", "url", "params", "json", "data", "headers")
        }  # fmt: skip
        if "data" in sent:
            sent["content"] = sent.pop("data")
        held = {k: v for k, v in (sent.pop("headers", None) or {}).items() if v is not None}
        own = {"Origin": "http://127.0.0.1:8000", "X-CSRF-Token": secret}
        answer = client.request(**sent, headers=held | own)
        assert answer.status_code < 500, (case.method, case.path, answer.text[:300])
        answered.add(answer.status_code)
        n += 1

    send()
    assert len(answered) > 1
    return n


def test_no_request_is_an_error_of_ours(client: TestClient) -> None:
    assert fuzz(client, QUICK) >= 15


@pytest.mark.slow
def test_no_request_is_an_error_of_ours_long(client: TestClient) -> None:
    assert fuzz(client, LONG) >= 1000
