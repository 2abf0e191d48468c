"""A suite without a browser is not whole, and says how to make it so."""

import pytest
from tests.chromium import missing


def test_it_fails_where_it_must_be_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"Chromium is missing.*apt-get install"):
        missing("Chromium")


def test_it_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"Chromium is missing.*apt-get install"):
        missing("Chromium")
