"""Which network is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Model:
    """A network; channels, size and outputs follow from the data.

    Parameters
    ----------
    architecture
        A registered name, or `module:function`.
    width
        Every layer's number of channels is multiplied by it.
    options
        Of the architecture, such as `{"stem": "imagenet"}`.
    """

    architecture: Annotated[str, Field(min_length=1)]
    width: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
