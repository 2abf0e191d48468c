"""The noise floor of a single quantity where compressed members are drawn like dense ones.

Whole audits (`populations_null`) have hundreds of quantities that move together, so a share over
them is known to a few points only. Here every quantity is alone: members' values are independent
and normal, and the draws, quantiles and relabellings are those of the audit.
"""

from __future__ import annotations

import numpy as np

from fairweight.auditing.compare.retraining import context, difference, retraining
from fairweight.auditing.pairing import pair_members

from .measured import Share, stored
from .populations import Design, members_of

DRAWS, QUANTITIES, SEED = 20, 2000, 1361


@stored
def floors(design: Design) -> dict[str, Share]:
    """Share of quantities above their floor, and with p <= .05."""
    members, k = members_of(design), design.n_dense
    pairing = pair_members(members[:k], members[k:], {})
    rng = np.random.default_rng([SEED, *design.key])
    above, small = [], []
    for _ in range(DRAWS):
        found = context(
            retraining(pairing, k, design.n_compressed, rng),
            difference(rng.standard_normal((len(members), QUANTITIES))),
        )
        above.append(np.mean(found["matched"] > found["noise_floor"]))
        small.append(np.mean(found["p_retraining"] <= 0.05))
    number = DRAWS * QUANTITIES
    return {
        "above the floor": Share(float(np.mean(above)), number),
        "p ≤ .05": Share(float(np.mean(small)), number),
    }
