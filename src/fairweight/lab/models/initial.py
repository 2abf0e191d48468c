"""Initial weights of networks of rectified convolutions."""

from __future__ import annotations

from torch import nn


def initialise_convolutions(model: nn.Module) -> None:
    """He's normal initialisation by fan-out, as torchvision and RepDistiller do."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
