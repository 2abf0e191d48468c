"""What networks would take on a GPU: counted operations at an assumed rate, nothing measured."""

from __future__ import annotations

import math

# One GPU of a data centre sustains about this in 32 bits with networks of these kinds, and to start
# the kernels of one step takes about so long, however small the network is.
FLOPS = 1e13  # operations per second
STEP = 0.005  # seconds
BACKWARDS = 2  # times the operations forwards: for the weights and for the activations
ASKED_AT_ONCE = 512

ASSUMED = (
    f"{FLOPS / 1e12:.0f} TFLOP/s sustained, at least {1000 * STEP:.0f} ms a step; nothing measured"
)


def training_seconds(
    n: int, *, epochs: int, batch_size: int, flops: float, taught: bool = False
) -> float:
    """Of a training on `n` examples.

    Parameters
    ----------
    flops
        Operations forwards, for one example.
    taught
        Whether a teacher of the same size answers too.

    >>> training_seconds(1000, epochs=10, batch_size=100, flops=1e9)
    3.0
    >>> training_seconds(1000, epochs=10, batch_size=100, flops=1.0)  # 100 steps
    0.5
    """
    passes = 1 + BACKWARDS + (1 if taught else 0)
    return epochs * max(passes * n * flops / FLOPS, math.ceil(n / batch_size) * STEP)


def asking_seconds(n: int, flops: float) -> float:
    """Of answers to `n` examples."""
    return max(n * flops / FLOPS, math.ceil(n / ASKED_AT_ONCE) * STEP)
