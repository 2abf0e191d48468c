"""Reports to open in a browser, and a server that shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.page_figures import without_figures

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from tests.chromium import Watched

TOKEN = "correct-horse-battery-staple"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of twelve squares of which five are exemplars of `a` and two of `b`."""
    return made_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def plain_report(report: Path) -> Path:
    """The same without figures, which take a second each time that they are drawn."""
    text = report.read_text(encoding="utf-8")
    plain = report.with_name("plain.html")
    plain.write_text(without_figures(text), encoding="utf-8")
    return plain


@pytest.fixture(scope="package")
def viewer(report: Path) -> Iterator[str]:
    """The address of a server that shows the same squares; its verdicts are beside the report."""
    from fairweight.report import html
    from fairweight.web.application import Server, create_app, listening
    from fairweight.web.items import find_items
    from fairweight.web.site import Settings
    from fairweight.web.votes.builder import indexed

    folder = report.parent
    with pytest.MonkeyPatch.context() as patch, listening("127.0.0.1", 0) as listener:
        kept = html.javascript()
        patch.setattr(html, "javascript", lambda: kept)
        patch.setenv("FAIRWEIGHT_CACHE", str(folder / "cache"))
        (item,) = find_items(folder)
        indexed(item)
        port = listener.getsockname()[1]
        settings = Settings(port=port, token=TOKEN, annotations=folder / "annotations.sqlite")
        ready = threading.Event()
        made = Server(create_app([item], settings=settings), ready.set)
        thread = threading.Thread(target=made.run, kwargs={"sockets": [listener]})
        thread.start()
        ready.wait(60)
        yield f"http://127.0.0.1:{port}/audit/{item.key}"
        made.should_exit = True
        thread.join()


@pytest.fixture
def viewer_page(watched: Watched, viewer: str) -> Iterator[Page]:
    """A page of the viewer: its console stays empty, and nothing is asked of anybody else."""
    own = viewer.partition("/audit/")[0]
    watched.page.goto(f"{own}/?token={TOKEN}")
    yield watched.page
    assert watched.errors == []
    asked = [url for url in watched.requests if not url.startswith(("data:", "blob:"))]
    assert [url for url in asked if not url.startswith(f"{own}/")] == []
    assert asked


def made_report(folder: Path) -> Path:
    import pandas as pd

    import fairweight as fw
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.data import Images
    from fairweight.data.codecs import png

    n = 12
    label = np.arange(n) % 3
    names = np.array([f"e{i}" for i in range(n)], dtype=object)
    names[1], names[7] = "=e1+'x'", "<img src=x onerror=alert(1)>"
    pixels = np.zeros((n, 8, 8, 1), dtype=np.uint8)
    pixels[:, 2:6, 2:6, 0] = (60 + 15 * np.arange(n))[:, None, None]
    images = Images(
        name="squares",
        images=pixels,
        labels=label.astype(np.int64),
        classes=("0", "1", "2"),
        groups={},
        example_id=names,
        split=np.array(["test"] * n),
    )
    first, second = label.copy(), label.copy()
    first[[0, 1, 2, 3, 4]] = (label[[0, 1, 2, 3, 4]] + 1) % 3
    second[[0, 7]] = (label[[0, 7]] + 1) % 3
    words = np.array(["cat", "dog", "owl"])
    table = {
        "example_id": names, "label": words[label], "pred_dense": words[label],
        "pred_a": words[first], "pred_b": words[second], "sex": ["f", "m"] * 6,
    }  # fmt: skip
    asked = ExplainRequest(parts=("exemplars",), images=images)
    made = fw.audit_table(table, groups=["sex"], explain=asked, n_boot=20, min_group=2)
    made.save_html(folder / "report.html")
    (folder / "audit.json").write_text(made.to_json(), encoding="utf-8")
    pd.DataFrame(table).to_parquet(folder / "predictions.parquet")
    shown = [png(square[..., 0]) for square in pixels]
    pd.DataFrame({"example_id": names, "image": shown}).to_parquet(folder / "examples.parquet")
    return folder / "report.html"
