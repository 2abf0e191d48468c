"""The stage functions of the tests can be imported, here and by processes that are started."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
