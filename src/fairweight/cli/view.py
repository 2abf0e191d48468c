"""`fairweight view`: studies, audits and examples in a browser."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli import options as o
from fairweight.cli.screen import bar, plain_console
from fairweight.errors import InputError
from fairweight.tables.annotation_store import move_out, place_for

if TYPE_CHECKING:
    from fairweight.base.types import Progress
    from fairweight.web.items import Item
    from fairweight.web.site import Settings

SERVER = o.panel("Server")


def view(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="An audit, a study, a demo, a folder with several, or a prediction table.",
        ),
    ],
    dataset: Annotated[
        str | None,
        o.OPTION("Take images from this data set, where the folder does not say.", "NAME"),
    ] = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    annotations: Annotated[
        str | None,
        o.OPTION(
            "Where verdicts go; by default NAME.annotations.sqlite beside the results NAME.", "FILE"
        ),
    ] = None,
    read_only: Annotated[
        bool, o.OPTION("Look only: nothing can be annotated.", flag="--read-only")
    ] = False,
    host: Annotated[
        str, SERVER("The address to listen on; by default only this machine's own.")
    ] = "127.0.0.1",
    port: Annotated[int, SERVER("The port; 0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None,
        SERVER(
            "What opens the pages, instead of one that is made anew. Other users of this "
            "machine see it in the list of processes: better FAIRWEIGHT_TOKEN or --token-file."
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        SERVER("A file with the token; made, with a new token, where there is none.", "FILE"),
    ] = None,
    no_token: Annotated[
        bool, SERVER("Anyone on this machine may look and annotate.", flag="--no-token")
    ] = False,
    no_browser: Annotated[bool, SERVER("Do not open a browser.", flag="--no-browser")] = False,
) -> None:
    """Look at audits and single examples in a browser, and annotate them.

    The demo, an audit, or a folder with several studies:

        fairweight view fairweight-demo

    Images come from the examples table, or from the data set of the study:

        fairweight view results/mnist --data DIR

    The address that is printed holds a token: whoever has it may look, also from other
    machines where --host lets them:

        fairweight view results --host 0.0.0.0 --read-only

    Ctrl-C ends it. Verdicts are in NAME.annotations.sqlite beside the folder NAME, and as a
    file in the page; `fairweight mitigate overrides --labels` takes both.
    """
    o.require(
        "fastapi",
        "uvicorn",
        remedy="The viewer needs {missing}, which is not installed: pip install 'fairweight[web]'.",
    )
    from fairweight.web.application import create_app, listening, made_token, run, token_in
    from fairweight.web.items import find_items
    from fairweight.web.site import Settings

    options = o.assignments(dataset_option, "--dataset-option")
    items = find_items(path, dataset=dataset, options=options, data=data)
    if sum((token is not None, token_file is not None, no_token)) > 1:
        raise InputError("--token, --token-file and --no-token exclude each other; give one.")
    secret = token if token is not None else os.environ.get("FAIRWEIGHT_TOKEN")
    if no_token:
        secret = None
    elif token_file is not None:
        secret = token_in(Path(token_file))
    elif secret is None:
        secret = made_token()
    settings = Settings(host, port, secret, read_only, _annotations(path, annotations, read_only))
    with listening(host, port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        with bar() as progress:
            _prepare(items, progress)
        app = create_app(items, settings=settings)
        with tempfile.TemporaryDirectory(prefix="fairweight-view-") as private:
            browse = None if no_browser else Path(private)
            run(app, listener, lambda: _ready(settings, len(items), browse))


def _annotations(path: str, given: str | None, read_only: bool) -> Path | None:
    """Where verdicts are kept; told before the work where they cannot be."""
    if given is not None:
        file = Path(given)
    else:
        file, earlier = place_for(Path(path).expanduser())
        if not read_only:
            file, said = move_out(earlier, file)
            if said is not None:
                print(f"fairweight: {said}", file=sys.stderr)
        elif earlier.is_file() and not file.exists():
            file = earlier
    if read_only:
        if given is not None and not file.is_file():
            raise InputError(f"--annotations '{given}' does not exist, and nothing may be written.")
        return file
    if file.is_dir():
        raise InputError(f"--annotations '{file}' is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise InputError(f"--annotations '{file}' is in a folder that does not exist; create it.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        if given is None:  # the study of somebody else: it can still be looked at
            print(
                f"fairweight: '{file}' cannot be written, so nothing can be annotated; name "
                "another file with --annotations.",
                file=sys.stderr,
            )
            return None
        raise InputError(f"--annotations '{file}' cannot be written; name another file.")
    return file


def _prepare(items: list[Item], progress: Progress) -> None:
    """The libraries of figures; and the answers, where there is nothing else to look at.

    Everything else is indexed when its examples are asked for: a folder may hold many studies.
    """
    from fairweight.report.html import javascript
    from fairweight.web.votes.builder import indexed

    progress("preparing figures", 0, 1)
    javascript()
    if len(items) == 1 and items[0].audit_json is None and items[0].tables is not None:
        indexed(items[0], progress)


def _ready(settings: Settings, n: int, browse: Path | None) -> None:
    """Say where the pages and verdicts are; a browser is opened on a file in `browse`."""
    from fairweight.web.application import address
    from fairweight.web.security import onwards

    url = address(settings)
    studies = "1 study" if n == 1 else f"{n} studies"
    console = plain_console()
    console.print(f"fairweight shows {studies} at {url} (Ctrl-C ends it)", soft_wrap=True)
    if settings.writable:
        console.print(f"Verdicts go to {settings.annotations}", soft_wrap=True)
    if browse is not None and _has_display():
        page = browse / "open.html"  # what a browser is started with, everybody can read
        page.write_text(onwards(url), encoding="utf-8")
        webbrowser.open(page.as_uri())


def _has_display() -> bool:
    """Whether there is somebody to show a browser to."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
