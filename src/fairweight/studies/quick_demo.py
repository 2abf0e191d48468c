"""Real predictions in seconds: one small classifier of digits and compressed copies of it.

Data, training and compression need only numpy. Every number follows from the data and the seed.

The default size and sparsities were chosen by looking at held-out accuracy, so that pruning
visibly hurts: an illustration of the audit, not evidence about pruning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.studies.digit_networks import Classifier, Floats, fit, prune, quantise, softmax
from fairweight.studies.digit_tables import DemoTables, check_whole, load

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.data import Images


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
    import pandas as pd

    check_whole("hidden", hidden, least=1)
    check_whole("epochs", epochs, least=1)
    halves = load(seed)
    pixels = _pixels(halves.train)
    dense = fit(pixels, halves.train.labels, seed=seed, hidden=hidden, epochs=epochs)
    variants: dict[str, Classifier] = {"dense": dense}
    variants |= {f"pruned-{100 * share:g}": prune(dense, share) for share in sparsities}
    variants["int8"] = quantise(dense, calibration=pixels)
    answers = [_answers(name, model, halves.test) for name, model in variants.items()]
    return halves.tables(pd.concat(answers, ignore_index=True))


def _pixels(images: Images) -> Floats:
    """(images, pixels), from 0 to 1."""
    pixels: Floats = images.images.reshape(len(images), -1) / 255.0
    return pixels


def _answers(variant: str, model: Classifier, images: Images) -> pd.DataFrame:
    import pandas as pd

    probabilities = softmax(model.logits(_pixels(images)))  # (images, classes)
    return pd.DataFrame(
        {
            "example_id": images.example_id,
            "variant": variant,
            "seed": 0,
            "label": images.labels,
            "prediction": probabilities.argmax(axis=1),
            "score": probabilities.max(axis=1),
        }
    )
