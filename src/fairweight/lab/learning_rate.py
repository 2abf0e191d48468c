"""The learning rate as a function of the time that has passed, in epochs."""

from __future__ import annotations

import math

from fairweight.specs.training import Training


def learning_rate(spec: Training, at: float) -> float:
    """The rate after `at` epochs (fractions are steps within an epoch).

    >>> spec = Training(epochs=10, lr=0.4, schedule="cosine", warmup_epochs=2)
    >>> [round(learning_rate(spec, at), 3) for at in (0, 1, 2, 6, 10)]
    [0.0, 0.2, 0.4, 0.2, 0.0]
    >>> steps = Training(epochs=9, lr=1.0, schedule="step", milestones=(3, 6))
    >>> [round(learning_rate(steps, at), 3) for at in (2.9, 3, 6)]
    [1.0, 0.1, 0.01]
    """
    if at < spec.warmup_epochs:
        return spec.lr * at / spec.warmup_epochs
    if spec.schedule == "cosine":
        passed = (at - spec.warmup_epochs) / max(spec.epochs - spec.warmup_epochs, 1e-12)
        return spec.lr * (1 + math.cos(math.pi * min(passed, 1.0))) / 2
    if spec.schedule == "step":
        return spec.lr * spec.gamma ** sum(at >= milestone for milestone in spec.milestones)
    return spec.lr
