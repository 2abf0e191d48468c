from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairweight.base import files
from fairweight.report import html

JAVASCRIPT = html.javascript  # before a server of other tests keeps its own copy


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "javascript", JAVASCRIPT)


@pytest.fixture(scope="module")
def bundled() -> str:
    """The JavaScript, which takes seconds to make."""
    return html.vega_bundle()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_second_use_reads_the_kept_copy(
    folder: Path, bundled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "vega_bundle", lambda: bundled)
    made = html.javascript()
    assert "vegaEmbed" in made
    assert "</script" not in made
    assert [p.suffix for p in folder.iterdir()] == [".js"]
    monkeypatch.setattr(html, "vega_bundle", lambda: pytest.fail("made again"))
    start = time.perf_counter()
    assert html.javascript() == made
    assert time.perf_counter() - start < 0.5


def test_a_damaged_copy_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "vega_bundle", lambda: "good();")
    assert html.javascript() == "good();"
    (kept,) = folder.iterdir()
    kept.write_text(kept.read_text()[:-3])
    assert html.javascript() == "good();"
    assert kept.read_text().endswith("good();")


def test_a_folder_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(html, "vega_bundle", lambda: "good();")
    assert html.javascript() == "good();"


def test_the_cache_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRWEIGHT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder() == tmp_path / "fairweight"
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "own"))
    assert files.cache_folder() == tmp_path / "own"


def test_nothing_heavy_is_imported_to_read_the_kept_copy_or_to_start(
    folder: Path, bundled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "vega_bundle", lambda: bundled)
    html.javascript()
    code = (
        "import sys\n"
        "import fairweight.report.html, fairweight.report.terminal, fairweight.auditing.archive\n"
        "import fairweight.report.notebook\n"
        "from fairweight.report.html import javascript\n"
        "assert len(javascript()) > 100_000\n"
        "heavy = 'vl_convert pandas duckdb pyarrow jinja2 scipy.stats statsmodels'.split()\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    root = Path(html.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"FAIRWEIGHT_CACHE": str(folder), "PYTHONPATH": str(root)},
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("planted", ["nothing", "a folder that all may write", "a link"])
def test_without_a_home_nobody_else_can_plant_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    for name in ("FAIRWEIGHT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(files, "_own_temporary", files._own_temporary.__wrapped__)
    own = tmp_path / f"fairweight-{os.getuid()}"
    if planted == "a link":
        own.symlink_to(tmp_path)
    elif planted != "nothing":
        own.mkdir()
        own.chmod(0o777)
    found = files.cache_folder()
    assert (found == own) is (planted == "nothing")
    assert found.stat().st_mode & 0o077 == 0
