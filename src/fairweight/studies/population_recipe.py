"""How the demo's population is made: which network, how it is trained, what is done to it.

The number of epochs and the sparsities were chosen by looking at held-out accuracy, so that the
milder pruning costs little and the stronger one visibly hurts: an illustration of the audit, not
evidence about pruning.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairweight.specs.compression import GlobalMagnitude
from fairweight.specs.data import Data
from fairweight.specs.model import Model
from fairweight.specs.quantization import Int8Static
from fairweight.specs.training import Training
from fairweight.studies.digit_tables import HELD_OUT

LENET = Model(architecture="lenet", options={"padding": 1})
TRAINING = Training(epochs=30, batch_size=64, optimizer="adam", lr=0.003)
FINETUNING = Training(epochs=5, batch_size=64, optimizer="adam", lr=0.001)
PRUNING, INT8_STATIC = "global-magnitude", "int8-static"  # names of methods
INT8 = "int8"  # the variant
CALIBRATED = Int8Static()


@dataclass(frozen=True)
class Recipe:
    """How every family is made: a dense network, and copies of it that are pruned or int8.

    The pruned ones are finetuned briefly; the int8 one is calibrated on the first 100 training
    examples.
    """

    seed: int = 0  # of the split; with the number of a member, of all that is random in it
    members: int = 8  # families
    model: Model = LENET
    training: Training = TRAINING
    finetuning: Training = FINETUNING
    sparsities: tuple[float, ...] = (0.8, 0.9)
    quantisation: Int8Static = CALIBRATED

    @property
    def data(self) -> Data:
        """Half to train on, half to predict; no epoch is chosen, so no example validates."""
        return Data(name="digits", validation=0, test=HELD_OUT, split_seed=self.seed)

    @property
    def pruning(self) -> dict[str, GlobalMagnitude]:
        """Pruned variants by their names.

        >>> list(Recipe().pruning)
        ['pruned-80', 'pruned-90']
        """
        return {
            f"pruned-{100 * share:g}": GlobalMagnitude(sparsity=share) for share in self.sparsities
        }

    @property
    def models(self) -> int:
        """How many there are in all."""
        return self.members * (1 + len(self.sparsities) + 1)
