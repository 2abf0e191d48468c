"""Small files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairweight.errors import FairweightError, OutputError


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the place under a hidden name, then rename."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
        )
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn what the system says while writing into one sentence."""
    try:
        yield
    except FairweightError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        told = "there is no space left on that disk" if full else error.strerror or str(error)
        raise OutputError(
            f"'{target}' was not written: {told}; free space or choose another place."
        ) from error
