"""The command line: one file per command, each of which parses, calls and prints.

Exit codes: 0 done, 2 bad input, 70 an error of ours, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

DONE, BAD_INPUT, OUR_ERROR, INTERRUPTED = 0, 2, 70, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; no traceback for what a user can repair."""
    import typer.main

    from fairweight.cli.app import app
    from fairweight.errors import FairweightError

    try:
        code = typer.main.get_command(app).main(
            args=arguments, prog_name="fairweight", standalone_mode=False
        )
    except KeyboardInterrupt:
        _say("interrupted; nothing was left half-written.")
        return INTERRUPTED
    except FairweightError as error:
        _say(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody to complain to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _unforeseen(error)
    return code if isinstance(code, int) else DONE


def _say(sentence: str) -> None:
    print(f"fairweight: {sentence}", file=sys.stderr)


def _unforeseen(error: Exception) -> int:
    """Usage errors of the parser, its aborts, and our own mistakes."""
    show = getattr(error, "show", None)
    if callable(show):  # a click exception: wrong flags, wrong arguments
        show()
        return BAD_INPUT
    if type(error).__name__ == "Abort":
        _say("interrupted; nothing was left half-written.")
        return INTERRUPTED
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        _say(f"{error.strerror or error}{place}.")
        return BAD_INPUT
    if os.environ.get("FAIRWEIGHT_DEBUG"):
        raise error
    _say(
        f"an error of ours, please report it: {type(error).__name__}: {error} "
        "(FAIRWEIGHT_DEBUG=1 shows where)."
    )
    return OUR_ERROR
