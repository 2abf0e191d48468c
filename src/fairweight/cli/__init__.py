"""The command line: one file per command, each of which parses, calls and prints.

Exit codes: 0 done (a gate: pass), 1 a gate fails, 2 bad input, 3 a gate cannot tell, 70 an error of
ours, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

DONE, FAILED, BAD_INPUT, CANNOT_TELL, OUR_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _open_streams()
    sys.exit(run(arguments))


def _open_streams() -> None:
    """Lead closed standard streams (`>&-`) nowhere: the next file opened would take their place."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; no traceback for what a user can repair."""
    from fairweight.errors import LESS_MEMORY, FairweightError

    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        import typer.main

        from fairweight.cli.app import app

        code = typer.main.get_command(app).main(
            args=list(words), prog_name="fairweight", standalone_mode=False, obj=words
        )
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say("interrupted; nothing was left half-written.")
        return INTERRUPTED
    except FairweightError as error:
        _say(str(error))
        return BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "start new thread" not in str(error):
            return _unforeseen(error)
        _say(f"there is not enough memory for this; {LESS_MEMORY}.")
        return BAD_INPUT
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has gone; there is nobody to complain to. The parser and rich
        # turn that into an exit with 1, which is a gate's `fail`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _unforeseen(error)
    if code == INTERRUPTED:  # the parser turns Ctrl-C into an exit code of its own
        _say("interrupted; nothing was left half-written.")
    return code if isinstance(code, int) else DONE


def _say(sentence: str) -> None:
    print(f"fairweight: {sentence}", file=sys.stderr)


def _unforeseen(error: Exception) -> int:
    """Usage errors of the parser, its aborts, and our own mistakes."""
    if "interrupted" in str(error).lower() and not hasattr(error, "format_message"):
        _say("interrupted; nothing was left half-written.")  # DuckDB was asked to stop
        return INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "message", ""))
        return BAD_INPUT
    if hasattr(error, "format_message"):  # of the parser: wrong flags, wrong arguments
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "fairweight"
        # A wrong choice is an error within an error: the outer one says it all.
        message = error.format_message().replace("Value error, ", "").rstrip(". \n")
        _say(f"{message}; see {command} --help.")
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
