"""Real predictions in seconds: one small classifier of digits and compressed copies of it.

Data, training and compression need only numpy and scikit-learn. Every number follows from the
data and the seed.

The default size and sparsities were chosen by looking at held-out accuracy, so that pruning
visibly hurts: an illustration of the audit, not evidence about pruning.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairweight.studies.digit_networks import Classifier, fit, prune, quantise, softmax
from fairweight.studies.digit_tables import Answer, DemoTables, check_whole, load


def predictions(
    seed: int = 0,
    *,
    sparsities: Sequence[float] = (0.8, 0.9),
    hidden: int = 1024,
    epochs: int = 30,
) -> DemoTables:
    """Train on one half of the digits, compress, and predict the other half.

    Parameters
    ----------
    seed
        Decides the split, the first weights and the order of training.
    sparsities
        Share of weights set to zero in each pruned copy, named `pruned-80` for 0.8.
    hidden, epochs
        Size of the hidden layer, and passes over the training half.

    Returns
    -------
    DemoTables
        Variants `dense`, one per sparsity, and `int8`.
    """
    check_whole("hidden", hidden, least=1)
    check_whole("epochs", epochs, least=1)
    digits = load(seed)
    pixels = digits.pixels(digits.train)
    dense = fit(pixels, digits.labels[digits.train], seed=seed, hidden=hidden, epochs=epochs)
    variants: dict[str, Classifier] = {"dense": dense}
    variants |= {f"pruned-{100 * share:g}": prune(dense, share) for share in sparsities}
    variants["int8"] = quantise(dense, calibration=pixels)
    held_out = digits.pixels(digits.test)
    return digits.tables(
        Answer(name, 0, softmax(variant.logits(held_out))) for name, variant in variants.items()
    )
