"""What the authors' own numbers say about their claims: counts they published, tables they printed."""

from __future__ import annotations

from fairweight.specs.claims import Claim
from fairweight.studies.estimates import ClaimedValue


def authors_numbers(claim: Claim) -> list[tuple[str, ClaimedValue]]:
    """A value with its interval per line; nothing where none can be computed."""
    return []
