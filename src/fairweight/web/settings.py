"""How the pages are served: where, to whom, and what may be written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairweight.errors import InputError
from fairweight.web.security.hosts import is_loopback

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
