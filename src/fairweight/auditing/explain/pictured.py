"""A few images to look at: exemplars beside others of their class, and the tilt of a digit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.exemplars.in_turn import in_turn
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.streams import stream
from fairweight.data.dataset import Images
from fairweight.data.image_properties import tilt_line
from fairweight.data.png import png_uri
from fairweight.data.thumbnail import thumbnail_uri

if TYPE_CHECKING:
    import pandas as pd

Mask = NDArray[np.bool_]
PER_CLASS = 3  # pairs of an exemplar and another example
MOST = 6  # exemplars of all methods, and of one method only
TILTED = 0.9  # the quantile of |tilt| that is shown: clearly tilted, and no freak


def exemplar_images(
    answers: Answers,
    ranked: pd.DataFrame,
    masks: Mapping[str, Mask],
    images: Images,
    rows: NDArray[Any],
    random_state: int = 0,
    gallery: int = 200,
) -> pd.DataFrame:
    """The table `exemplar_images`.

    Parameters
    ----------
    ranked
        The table `exemplars`, the furthest apart first.
    masks
        Variant → its modal exemplars, (n,).
    images, rows
        The images, and the place of every example among them.
    gallery
        So many different exemplars to look through, of all variants in turn: small, and the modal
        ones first.
    """
    import pandas as pd

    assert answers.example_id is not None
    place = {str(name): i for i, name in enumerate(answers.example_id.tolist())}
    made: list[dict[str, Any]] = []

    def add(variant: str, part: str, i: int) -> None:
        encoded = thumbnail_uri if part == "gallery" else png_uri
        made.append(
            {
                "variant": variant,
                "task": answers.task,
                "part": part,
                "example_id": str(answers.example_id[i]),  # type: ignore[index]
                "label": answers.classes[answers.label[i]],
                "modal_baseline": _modal(answers, answers.baseline, i),
                "modal_compressed": _modal(answers, variant, i),
                "image": encoded(np.asarray(images.images[rows[i]])),
            }
        )

    everywhere = np.logical_and.reduce(list(masks.values())) if masks else np.zeros(0, dtype=bool)
    orders: dict[str, list[int]] = {}
    for variant, mask in masks.items():
        own = ranked[ranked["variant"] == variant]
        order = [place[str(name)] for name in own["example_id"].tolist()]
        others_last = [i for i in order if not mask[i]]
        order = [i for i in order if mask[i]]
        orders[variant] = order + others_last
        draw = stream(random_state, variant, "exemplar images")
        taken: Counter[int] = Counter()
        for i in order:
            label = int(answers.label[i])
            if taken[label] >= PER_CLASS:
                continue
            others = np.flatnonzero(~mask & (answers.label == label))
            if not len(others):
                continue
            taken[label] += 1
            add(variant, "exemplar", i)
            add(variant, "non-exemplar", int(draw.choice(others)))
        others_too = [other for name, other in masks.items() if name != variant]
        alone = mask & ~np.logical_or.reduce(others_too) if others_too else np.zeros_like(mask)
        for i in [i for i in order if everywhere[i]][:MOST]:
            add(variant, "shared", i)
        for i in [i for i in order if alone[i]][:MOST]:
            add(variant, "one-only", i)
    for i in in_turn(orders.values(), gallery):  # once, however many variants it is of
        add(next(variant for variant, order in orders.items() if i in order), "gallery", i)
    return pd.DataFrame(made, columns=list(COLUMNS["exemplar_images"]))


def tilt_example(
    answers: Answers, tilts: NDArray[np.float64], images: Images, rows: NDArray[Any]
) -> pd.DataFrame:
    """The table `tilt_example`: one clearly tilted image and its line."""
    import pandas as pd

    assert answers.example_id is not None
    size = np.abs(tilts)
    known = np.flatnonzero(np.isfinite(size))
    made: list[dict[str, Any]] = []
    if len(known):
        wanted = np.quantile(size[known], TILTED)
        i = int(known[np.argmin(np.abs(size[known] - wanted))])
        image = np.asarray(images.images[rows[i]])
        slope, intercept = tilt_line(image)
        made.append(
            {
                "image": png_uri(image),
                "width": image.shape[1],
                "height": image.shape[0],
                "slope": slope,
                "intercept": intercept,
                "example_id": str(answers.example_id[i]),
            }
        )
    return pd.DataFrame(made, columns=list(COLUMNS["tilt_example"]))


def _modal(answers: Answers, variant: str, i: int) -> str:
    """The most frequent answer of a variant's members, the first class of several."""
    votes = np.bincount(answers.of(variant)[:, i], minlength=len(answers.classes) + 1)
    best = int(votes.argmax())
    return answers.classes[best] if best < len(answers.classes) else "no answer"
