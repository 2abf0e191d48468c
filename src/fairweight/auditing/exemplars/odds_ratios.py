"""The odds ratios of a part among exemplars of compression and of retraining, and their ratio."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Codes
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.odds import influences, linear, log_odds_ratio
from fairweight.auditing.exemplars.retrained import COMPRESSED, RETRAINED, Rates
from fairweight.auditing.intervals.two_way import Term, TwoWay, two_way

# Which parts of (compression, retraining) make up a quantity.
MATCHED, RETRAINING, RATIO = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)


@dataclass(frozen=True)
class Sampled:
    """What is drawn when examples are: clusters, or single examples.

    `live` are the places of the examples about which anybody differs; all others are never
    exemplars and enter as numbers only.
    """

    live: NDArray[np.intp]
    n_examples: int
    cluster: NDArray[np.int64] | None = None

    @cached_property
    def n_clusters(self) -> int:
        return 0 if self.cluster is None else int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def _by_cluster(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        assert self.cluster is not None
        of = self.cluster[self.live]
        order = np.argsort(of, kind="stable")
        present, start = np.unique(of[order], return_index=True)
        return order, start, present

    def sums(self, values: Floats) -> Floats:
        """Sums over the units of values of the live examples, along the last axis.

        Single examples are their own units; two more stand for those about which nobody differs,
        inside and outside a part.
        """
        if self.cluster is None:
            return np.concatenate([values, np.zeros((*values.shape[:-1], 2))], axis=-1)
        order, start, present = self._by_cluster
        total = np.zeros((*values.shape[:-1], self.n_clusters))
        if len(present):
            total[..., present] = np.add.reduceat(values[..., order], start, axis=-1)
        return total

    def sizes(self, inside: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Examples of every unit inside and outside a part, and how often the unit is repeated."""
        if self.cluster is None:
            here = inside[self.live].astype(float)
            dead = inside.sum() - here.sum(), (~inside).sum() - (1 - here).sum()
            return (
                np.concatenate([here, [1.0, 0.0]]),
                np.concatenate([1 - here, [0.0, 1.0]]),
                np.concatenate([np.ones(len(here)), dead]),
            )
        within = np.bincount(self.cluster[inside], minlength=self.n_clusters).astype(np.float64)
        everyone = np.bincount(self.cluster, minlength=self.n_clusters).astype(np.float64)
        return within, everyone - within, np.ones(self.n_clusters)

    def clusters_of(self, code: Codes, levels: int) -> NDArray[np.float64]:
        """Distinct clusters with an example in each level; NaN without clusters."""
        if self.cluster is None:
            return np.full(levels, np.nan)
        pairs = np.unique(np.stack([code.astype(np.int64), self.cluster]), axis=1)
        return np.bincount(pairs[0], minlength=levels).astype(float)


@dataclass(frozen=True)
class OddsRatios:
    """Log odds ratios of one part and one cut, with everything their variances are made of."""

    value: Floats  # (2,): COMPRESSED, RETRAINED
    left_out: tuple[Floats, ...]  # (units left out, 2)
    influence: Floats  # (2, units)
    left_out_influence: tuple[Floats, ...]  # (units left out, 2, units)
    pseudo: Floats  # (2,): the variance of the added halves
    repeated: Floats  # (units,)

    def estimate(self, quantity: tuple[float, float]) -> TwoWay:
        """A combination of both log odds ratios, with members and examples sampled.

        Members: the jackknife over units of members, (J − 1) / J Σ (T₋ⱼ − T̄)², which needs no
        formula for how a member moves a percentile cut. Examples: squared influences of examples
        (clusters) on both odds ratios at once, so what they share cancels. The part of single
        answers is in both and is taken off once, as for any mean over members and examples
        (`intervals/two_way.py`). Measured: docs/statistics.md.
        """
        mix = np.array(quantity)
        n = float(self.repeated.sum())
        moved = mix @ self.influence
        by_example = float(n / (n - 1) * (moved**2 * self.repeated).sum() + (mix**2) @ self.pseudo)
        members: list[Term] = []
        for values, parts in zip(self.left_out, self.left_out_influence, strict=True):
            j = len(values)
            scale = (j - 1) / j
            without = values @ mix
            spread = scale * ((without - without.mean()) ** 2).sum()
            apart = np.einsum("q,jqu->ju", mix, parts)
            apart = apart - apart.mean(axis=0)
            alone = (apart**2 * self.repeated).sum() - ((apart @ self.repeated) ** 2).sum() / n
            # Not the plain two-way sum: splits are drawn, and what their drawing adds to the spread
            # over members is in the part of single answers too, so the difference is free of it.
            members.append((max(spread - scale * alone, 0.0), j - 1))
        return two_way(float(mix @ self.value), members, (by_example, n - 1), [])


def odds_ratios(rates: Rates, cut: int, inside: NDArray[np.bool_], sampled: Sampled) -> OddsRatios:
    """Both log odds ratios of a part, from the mean chances of every example.

    The odds are those of the mean share over splits, not means of log odds: in a small part many
    splits have no exemplar at all, and the mean of their log odds says more about the ½ that is
    added than about the part.
    """
    here = inside[sampled.live]
    n_in, n_out = float(inside.sum()), float((~inside).sum())
    n_within, n_without, repeated = sampled.sizes(inside)

    def both(of: Floats) -> tuple[Floats, Floats]:
        """Exemplars inside and outside, (..., 2)."""
        chosen = of[..., cut, :].astype(np.float64)
        return (chosen * here).sum(axis=-1), (chosen * ~here).sum(axis=-1)

    counts = both(rates.mean)
    near = [
        linear(float(counts[0][q]), n_in, float(counts[1][q]), n_out)
        for q in (COMPRESSED, RETRAINED)
    ]

    def moved(of: Floats) -> Floats:
        chosen = of[..., cut, :].astype(np.float64)
        within, without = sampled.sums(chosen * here), sampled.sums(chosen * ~here)
        return np.stack(
            [
                influences(near[q], within[..., q, :], n_within, without[..., q, :], n_without)
                for q in (COMPRESSED, RETRAINED)
            ],
            axis=-2,
        )

    removed = [both(of) for of in rates.left_out]
    return OddsRatios(
        value=log_odds_ratio(counts[0], n_in, counts[1], n_out),
        left_out=tuple(log_odds_ratio(a, n_in, c, n_out) for a, c in removed),
        influence=moved(rates.mean),
        left_out_influence=tuple(moved(of) for of in rates.left_out),
        pseudo=np.array([one.pseudo for one in near]),
        repeated=repeated,
    )
