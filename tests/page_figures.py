"""The figures that a report's page carries, unpacked as its script unpacks them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

PACKED = re.compile(r'(id="specs">)([^<]*)(</script>)')


def figures_of(page: str) -> dict[str, Any]:
    """The specifications of a page's figures by their anchors."""
    found = PACKED.search(page)
    assert found is not None
    unpacked: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[2])))
    return unpacked


def without_figures(page: str) -> str:
    """The page without its figures, which take a second each time that they are drawn."""
    empty = base64.b64encode(gzip.compress(b"{}")).decode()
    return PACKED.sub(rf"\g<1>{empty}\g<3>", page)
