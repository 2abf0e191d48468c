"""Types that more than one layer names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Limits: TypeAlias = tuple[Floats, Floats]
Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, steps done, steps in all
