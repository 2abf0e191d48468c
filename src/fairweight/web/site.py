"""What the pages share: the studies, what was read of them, and the annotations."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairweight.errors import InputError, UnknownNameError
from fairweight.web.annotated import Annotated
from fairweight.web.indexing import Builder, NotReadyError
from fairweight.web.item import Item
from fairweight.web.kept import Kept
from fairweight.web.settings import Settings

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult
    from fairweight.web.pictures import Pictures
    from fairweight.web.votes.opened import VoteIndex

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
        return self._audits.get((item.key, _stamp(item)), lambda: _read(path))

    def index(self, item: Item) -> VoteIndex:
        """Its votes; `NotReadyError` while they are indexed, if that takes long."""
        from fairweight.web.votes.opened import open_index

        if item.predictions is None:
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
        from fairweight.web.pictures import Pictures

        return self._pictures.get(item.key, lambda: Pictures(item))

    def close(self) -> None:
        """Let go of files and leave what is being built."""
        self._builder.close()
        self.annotated.close()

    def kept(self, item: Item, name: Hashable, make: Callable[[], Made]) -> Made:
        """What was made of the audit as it is now, made once."""
        made: Made = self._pages.get((item.key, _stamp(item), name), make)
        return made


def _read(path: Path) -> AuditResult:
    from fairweight.report.machine import from_json

    try:
        return from_json(path.read_text(encoding="utf-8"))
    except UnicodeError as error:  # bytes, or an escaped half of a character
        raise InputError(
            f"The audit '{path.name}' holds text that is no UTF-8; make it again."
        ) from error


def has_tasks(item: Item) -> bool:
    """Whether its audit is of several tasks; without the libraries that hold its tables."""
    if item.audit_json is None:
        return False
    try:
        return bool(json.loads(item.audit_json.read_bytes())["tasks"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False  # whoever opens the audit is told


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
