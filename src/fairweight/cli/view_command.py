"""`fairweight view`: studies, audits and examples in a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli import lab_options
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.web.item import Item

Progress = Callable[[str, int, int], None]

SERVER = "Server"


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
        typer.Option(
            metavar="NAME", help="Take images from this data set, where the folder does not say."
        ),
    ] = None,
    data: lab_options.DataFolder = None,
    dataset_option: lab_options.DatasetOptions = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where verdicts go; by default annotations.sqlite in the folder.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Look only: nothing can be annotated.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; others than this machine's own need a token.",
            rich_help_panel=SERVER,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 takes any that is free.", rich_help_panel=SERVER)
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            help="Who opens the pages must have it; made where one is needed.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    no_browser: Annotated[
        bool,
        typer.Option("--no-browser", help="Do not open a browser.", rich_help_panel=SERVER),
    ] = False,
) -> None:
    """Look at audits and single examples in a browser, and annotate them.

    The demo, an audit, or a folder with several studies:

        fairweight view fairweight-demo

    Images come from the examples table, or from the data set of the study:

        fairweight view results/mnist --data DIR

    Other machines may look when they have the token that is printed:

        fairweight view results --host 0.0.0.0 --read-only

    Ctrl-C ends it. Verdicts are in annotations.sqlite, and as a file in the page;
    `fairweight mitigate overrides --labels` takes both.
    """
    _check_installed()
    from dataclasses import replace

    from fairweight.cli.assignments import assignments
    from fairweight.cli.progress import bar
    from fairweight.web.places import find_items
    from fairweight.web.security.hosts import is_loopback
    from fairweight.web.serve import address, listening, made_token, run
    from fairweight.web.settings import Settings

    options = assignments(dataset_option, "--dataset-option")
    items = find_items(path, dataset=dataset, options=options, data=data)
    if token is None and not is_loopback(host):
        token = made_token()
    settings = Settings(host, port, token, read_only, _annotations(path, annotations, read_only))
    with listening(host, port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        with bar() as progress:
            _prepare(items, progress)
        from fairweight.web.app import create_app

        app = create_app(items, settings=settings)
        run(app, listener, lambda: _ready(address(settings), len(items), no_browser))


def _check_installed() -> None:
    from importlib.util import find_spec

    for name in ("fastapi", "uvicorn"):
        if find_spec(name) is None:
            raise InputError(
                f"The viewer needs {name}, which is not installed: pip install 'fairweight[web]'."
            )


def _annotations(path: str, given: str | None, read_only: bool) -> Path | None:
    """Where verdicts are kept; told before the work where they cannot be."""
    place = Path(path)
    beside = (place if place.is_dir() else place.parent) / "annotations.sqlite"
    file = beside if given is None else Path(given)
    if read_only:
        if given is not None and not file.is_file():
            raise InputError(f"--annotations '{given}' does not exist, and nothing may be written.")
        return file
    if file.is_dir():
        raise InputError(f"--annotations '{file}' is a folder; name a file in it.")
    if not file.parent.is_dir():
        raise InputError(f"--annotations '{file}' is in a folder that does not exist; make it.")
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
    from fairweight.report.bundle import javascript
    from fairweight.web.votes.build import indexed

    progress("preparing figures", 0, 1)
    javascript()
    if len(items) == 1 and items[0].audit_json is None and items[0].predictions is not None:
        indexed(items[0], progress)


def _ready(url: str, n: int, no_browser: bool) -> None:
    import webbrowser

    from rich.console import Console

    said = "1 study" if n == 1 else f"{n} studies"
    Console(stderr=False).print(
        f"fairweight shows {said} at {url} (Ctrl-C ends it)", markup=False, soft_wrap=True,
        highlight=False,
    )  # fmt: skip
    if not no_browser and _has_display():
        webbrowser.open(url)


def _has_display() -> bool:
    """Whether there is somebody to show a browser to."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
