"""The annotations of a site; their file appears with the first verdict, not with a look."""

from __future__ import annotations

import threading
from pathlib import Path

from fairweight.errors import InputError
from fairweight.tables.annotations.store import AnnotationStore
from fairweight.tables.annotations.verdict import Annotation


class Annotated:
    """What people said about the examples of each study."""

    def __init__(self, path: Path | None, *, read_only: bool) -> None:
        self._path, self._read_only = path, read_only
        self._lock = threading.Lock()
        self._store: AnnotationStore | None = None

    def store(self) -> AnnotationStore:
        """The file, made if need be: for writing."""
        if self._path is None or self._read_only:
            raise InputError("Nothing can be annotated here; start the server with --annotations.")
        found = self._opened(make=True)
        assert found is not None
        return found

    def current(self, key: str) -> list[Annotation]:
        """What everybody says now; nothing where there is no file."""
        store = self._opened(make=False)
        return [] if store is None else store.current(key)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def _opened(self, *, make: bool) -> AnnotationStore | None:
        with self._lock:
            if make and self._store is not None and self._store.lost:
                self._store.close()
                self._store = None
            if self._store is None and self._path is not None and (make or self._path.exists()):
                self._store = AnnotationStore(self._path, read_only=self._read_only)
            return self._store
