"""An audit that was made, by its folder or its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


def audit_file(given: str) -> Path:
    """The audit.json of a folder (or of its folder `audit`), or the file itself."""
    path = Path(given)
    if not path.is_dir():
        return path
    places = (path / "audit.json", path / "audit" / "audit.json")
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise InputError(
            f"'{given}' holds no audit.json; give the folder that fairweight audit wrote (--out), "
            "or the audit.json itself."
        )
    return found


def read_audit(given: str) -> AuditResult:
    """The audit that was given."""
    from fairweight.report.machine import from_json

    path = audit_file(given)
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"'{given}' does not exist; fairweight audit FILE... --out DIR writes one."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"'{given}' is not UTF-8 text; give an audit.json.") from None
