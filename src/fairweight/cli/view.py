"""`fairweight view`: studies, audits and examples in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli import options
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.base.types import Progress
    from fairweight.web.items import Item
    from fairweight.web.site import Settings


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
    data: options.DataFolder = None,
    dataset_option: options.DatasetOptions = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where verdicts go; by default NAME.annotations.sqlite beside the results NAME.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Look only: nothing can be annotated.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; by default only this machine's own.",
            rich_help_panel=SERVER,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 takes any that is free.", rich_help_panel=SERVER)
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            help="What opens the pages, instead of one that is made anew. Other users of this "
            "machine see it in the list of processes: better FAIRWEIGHT_TOKEN or --token-file.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A file with the token; made, with a new token, where there is none.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Everybody on this machine may look and annotate.",
            rich_help_panel=SERVER,
        ),
    ] = False,
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

    The address that is printed holds a token: whoever has it may look, also from other
    machines where --host lets them:

        fairweight view results --host 0.0.0.0 --read-only

    Ctrl-C ends it. Verdicts are in NAME.annotations.sqlite beside the folder NAME, and as a
    file in the page; `fairweight mitigate overrides --labels` takes both.
    """
    _check_installed()
    import tempfile
    from dataclasses import replace

    from fairweight.cli.options import assignments
    from fairweight.cli.progress import bar
    from fairweight.web.application import listening, run
    from fairweight.web.items import find_items
    from fairweight.web.site import Settings

    options = assignments(dataset_option, "--dataset-option")
    items = find_items(path, dataset=dataset, options=options, data=data)
    secret = _token(token, token_file, no_token)
    settings = Settings(host, port, secret, read_only, _annotations(path, annotations, read_only))
    with listening(host, port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        with bar() as progress:
            _prepare(items, progress)
        from fairweight.web.application import create_app

        app = create_app(items, settings=settings)
        with tempfile.TemporaryDirectory(prefix="fairweight-view-") as private:
            browse = None if no_browser else Path(private)
            run(app, listener, lambda: _ready(settings, len(items), browse))


def _check_installed() -> None:
    from importlib.util import find_spec

    for name in ("fastapi", "uvicorn"):
        if find_spec(name) is None:
            raise InputError(
                f"The viewer needs {name}, which is not installed: pip install 'fairweight[web]'."
            )


def _token(given: str | None, file: str | None, none: bool) -> str | None:
    """The secret of the pages: of the command, a file or the environment, or a new one."""
    from fairweight.web.application import made_token, token_in

    if sum((given is not None, file is not None, none)) > 1:
        raise InputError("--token, --token-file and --no-token exclude each other; give one.")
    if none:
        return None
    if file is not None:
        return token_in(Path(file))
    if given is None:
        given = os.environ.get("FAIRWEIGHT_TOKEN")
    return made_token() if given is None else given


def _annotations(path: str, given: str | None, read_only: bool) -> Path | None:
    """Where verdicts are kept; told before the work where they cannot be."""
    from fairweight.tables.annotation_store import move_out, place_for

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
    from fairweight.report.html import javascript
    from fairweight.web.votes.builder import indexed

    progress("preparing figures", 0, 1)
    javascript()
    if len(items) == 1 and items[0].audit_json is None and items[0].tables is not None:
        indexed(items[0], progress)


def _ready(settings: Settings, n: int, browse: Path | None) -> None:
    """Say where the pages and verdicts are; a browser is opened on a file in `browse`."""
    import webbrowser

    from rich.console import Console

    from fairweight.web.application import address
    from fairweight.web.security import onwards

    url = address(settings)
    studies = "1 study" if n == 1 else f"{n} studies"
    told = [f"fairweight shows {studies} at {url} (Ctrl-C ends it)"]
    if settings.writable:
        told.append(f"Verdicts go to {settings.annotations}")
    for line in told:
        Console(stderr=False).print(line, markup=False, soft_wrap=True, highlight=False)
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
