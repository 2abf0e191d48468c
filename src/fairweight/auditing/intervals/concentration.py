"""How few units bear the lost answers, against what chance alone would do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fairweight.base.types import Floats
from fairweight.errors import InputError

# Draws × units of the reference; the mean over few draws is exact enough where units are many.
_MOST_DRAWN = 10_000_000
_MOST_LOST = 2**53  # beyond, draws do not differ from their mean, and numpy draws no more


def share_of_top(
    values_per_unit: ArrayLike,
    shares: Sequence[float] = (0.01, 0.05, 0.10),
    *,
    exposure: ArrayLike | None = None,
    n_draws: int = 200,
    rng: np.random.Generator | None = None,
) -> tuple[Floats, Floats]:
    """Share of the total borne by the top x % of units, and the same under chance.

    Parameters
    ----------
    values_per_unit
        Lost (or gained) answers of each unit.
    shares
        The x: the top ceil(x · units) units are taken, at least one.
    exposure
        Examples of each unit; equal if not given.
    n_draws, rng
        Draws of the reference, and their source.

    Returns
    -------
    observed, reference
        One number per share. The reference is the mean over draws in which the same total falls
        on the units at random with rates in proportion to their exposure (Poisson, given the
        total). NaN where nothing was lost.

    Examples
    --------
    Ten units, one of which bears 6 of 10 losses:

    >>> observed, reference = share_of_top([6, 1, 1, 1, 1, 0, 0, 0, 0, 0], (0.1, 0.5),
    ...                                    rng=np.random.default_rng(0))
    >>> observed.tolist(), bool(reference[0] < 0.4)
    ([0.6, 1.0], True)
    """
    values = np.asarray(values_per_unit, dtype=np.float64)
    size = np.ones_like(values) if exposure is None else np.asarray(exposure, dtype=np.float64)
    if values.ndim != 1 or size.shape != values.shape:
        raise InputError(
            f"exposure has the shape {size.shape} and values_per_unit {values.shape}; "
            "give one number per unit in both."
        )
    total = values.sum()
    if values.size == 0 or not total > 0 or not size.sum() > 0:
        undefined = np.full(len(shares), np.nan)
        return undefined, undefined.copy()
    tops = [max(1, int(np.ceil(round(share * values.size, 9)))) for share in shares]
    rng = np.random.default_rng() if rng is None else rng
    draws = int(np.clip(_MOST_DRAWN // values.size, 5, n_draws))
    reference = np.zeros(len(shares))
    # A mean over members may be a fraction of one answer; weights may be astronomical.
    whole = max(1, round(min(total, _MOST_LOST)))
    for _ in range(draws):
        drawn = rng.multinomial(whole, size / size.sum())
        reference += _top(drawn.astype(np.float64), tops)
    return _top(values, tops), reference / draws


def _top(values: Floats, tops: list[int]) -> Floats:
    cumulative = np.cumsum(np.sort(values)[::-1])
    shares: Floats = cumulative[np.array(tops) - 1] / cumulative[-1]
    return shares
