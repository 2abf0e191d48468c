"""The command line: its modules hold commands, each of which parses, calls and prints.

Exit codes: 0 done (a gate: pass), 1 a gate fails, 2 bad input, 3 a gate cannot tell, 70 an error of
ours, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys

from fairweight.errors import LESS_MEMORY, FairweightError

DONE, FAILED, BAD_INPUT, CANNOT_TELL, OUR_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    # Closed standard streams (`>&-`) lead nowhere: the next file opened would take their place.
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    # Matrices of an audit are small, and draws have threads of their own: those of BLAS would wait
    # for each other, for a fifth of the processor time of a small audit.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command is short and makes few cycles: looking for them every 700 objects costs a twentieth
    # of a small audit, most of it while modules are loaded.
    gc.set_threshold(50_000)
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; no traceback for what a user can repair."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        import typer.main

        from fairweight.cli.app import app

        code = typer.main.get_command(app).main(
            args=list(words), prog_name="fairweight", standalone_mode=False, obj=words
        )
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted()
    except FairweightError as error:
        return _refused(str(error))
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has gone; there is nobody to complain to. The parser and rich
        # turn that into an exit with 1, which is a gate's `fail`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        return _unforeseen(error)
    if code == INTERRUPTED:  # the parser turns Ctrl-C into an exit code of its own
        return _interrupted()
    return code if isinstance(code, int) else DONE


def _say(sentence: str) -> None:
    print(f"fairweight: {sentence}", file=sys.stderr)


def _interrupted() -> int:
    _say("interrupted; nothing was left half-written.")
    return INTERRUPTED


def _refused(sentence: str) -> int:
    _say(sentence)
    return BAD_INPUT


def _unforeseen(error: Exception) -> int:
    """Usage errors of the parser, its aborts, a full memory, and our own mistakes."""
    if hasattr(error, "format_message"):  # of the parser: wrong flags, wrong arguments
        if type(error).__name__ == "NoArgsIsHelpError":
            print(getattr(error, "message", ""))
            return BAD_INPUT
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "fairweight"
        # A wrong choice is an error within an error: the outer one says it all.
        message = error.format_message().replace("Value error, ", "").rstrip(". \n")
        return _refused(f"{message}; see {command} --help.")
    told = str(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "start new thread" in told
    ):
        return _refused(f"there is not enough memory for this; {LESS_MEMORY}.")
    if "interrupted" in told.lower() or type(error).__name__ == "Abort":
        return _interrupted()  # DuckDB, or the parser, was asked to stop
    if isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        return _refused(f"{error.strerror or error}{place}.")
    if os.environ.get("FAIRWEIGHT_DEBUG"):
        raise error
    _say(
        f"internal error, please report it: {type(error).__name__}: {error} "
        "(FAIRWEIGHT_DEBUG=1 shows where)."
    )
    return OUR_ERROR
