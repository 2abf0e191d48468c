"""What the pages share: the studies, what was read of them, and the annotations."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairweight.auditing.archive import load
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation
from fairweight.web.images import Pictures
from fairweight.web.items import Item
from fairweight.web.security import is_loopback
from fairweight.web.votes.builder import Builder, NotReadyError
from fairweight.web.votes.index import VoteIndex, open_index

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


# The last few things that were made, so that the next reader need not wait for them.

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """At most `most` values; what was asked for longest ago goes first.

    Two readers who ask for the same thing at once wait for one making of it; readers of other
    things do not wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not here."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            own = self._making.setdefault(key, threading.Lock())
        with own:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > self._most:
                        self._values.popitem(last=False)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value


# The annotations of a site; their file appears with the first verdict, not with a look.


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


# How the pages are served: where, to whom, and what may be written.

SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Settings:
    """What was decided before the first request.

    Parameters
    ----------
    token
        Who has it may look. Without one everybody on this machine may; an address that other
        machines can reach needs one.
    annotations
        The SQLite file of annotations; without one nothing can be annotated.
    max_body
        The most bytes of a request, an imported file included.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    read_only: bool = False
    annotations: Path | None = None
    max_body: int = 8_000_000

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"The address '{self.host}' can be reached from other machines and needs a token; "
                "leave --no-token out, or serve on 127.0.0.1."
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise InputError(
                f"The token has {len(self.token)} characters; give at least {SHORTEST_TOKEN}, or "
                "give none and one is made."
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise InputError("The token holds characters beyond printable ASCII; give another one.")

    @property
    def writable(self) -> bool:
        """Whether anything may be annotated."""
        return not self.read_only and self.annotations is not None


Made = TypeVar("Made")

AUDITS, PAGES, INDEXES = 4, 256, 32  # so many are held at once
PATIENCE = 1.0  # seconds that a reader waits for an index before a page says that it takes longer


class Site:
    """Everything that outlives a request; safe for several threads."""

    def __init__(self, items: Sequence[Item], settings: Settings) -> None:
        self.items = {item.key: item for item in items}
        self.settings = settings
        self.csrf = secrets.token_urlsafe(32)
        self.annotated = Annotated(settings.annotations, read_only=settings.read_only)
        self._audits: Kept[AuditResult] = Kept(AUDITS)
        self._pages: Kept[Any] = Kept(PAGES)
        self._indexes: Kept[VoteIndex] = Kept(INDEXES)
        self._builder = Builder()
        self._pictures: Kept[Pictures] = Kept(INDEXES)

    def item(self, key: str) -> Item:
        """What is looked at."""
        if key not in self.items:
            raise UnknownNameError("Study", key, self.items)
        return self.items[key]

    def audit(self, item: Item) -> AuditResult:
        """Its audit, read once."""
        path = item.audit_json
        if path is None:
            raise InputError(
                f"'{item.title}' has no audit; make one with fairweight audit, or look at its "
                "examples."
            )

        def read() -> AuditResult:
            result = load(path)
            self.kept(item, "tasks", lambda: bool(result.tasks))  # the tabs need not read it again
            return result

        return self._audits.get((item.key, _stamp(item)), read)

    def index(self, item: Item) -> VoteIndex:
        """Its votes; `NotReadyError` while they are indexed, if that takes long."""
        if item.tables is None:
            raise InputError(
                f"'{item.title}' has no table of predictions, so single examples are not known; "
                "open the folder that holds it."
            )

        def opened() -> VoteIndex:
            return open_index(self._builder.folder(item))

        try:
            return self._indexes.get(item.key, opened)
        except NotReadyError as early:
            if not early.wait(PATIENCE):
                raise
            return self._indexes.get(item.key, opened)

    def pictures(self, item: Item) -> Pictures:
        """Its images."""
        return self._pictures.get(item.key, lambda: Pictures(item))

    def close(self) -> None:
        """Let go of files and leave what is being built."""
        self._builder.close()
        self.annotated.close()

    def kept(self, item: Item, name: Hashable, make: Callable[[], Made]) -> Made:
        """What was made of the audit as it is now, made once."""
        made: Made = self._pages.get((item.key, _stamp(item), name), make)
        return made


def _stamp(item: Item) -> tuple[int, int] | None:
    """Changes when the audit is made again."""
    if item.audit_json is None:
        return None
    try:
        found = item.audit_json.stat()
    except OSError as error:
        raise InputError(
            f"The audit of '{item.title}' cannot be read ({error.strerror}); is it still there?"
        ) from None
    return found.st_mtime_ns, found.st_size
