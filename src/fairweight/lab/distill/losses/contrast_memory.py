"""What a contrastive loss takes of memory, and which way to its scores takes less."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairweight.lab.distill.memory import free_memory, require_memory

FLOAT, WHOLE = 4, 8  # bytes
# Per contrast of a step: places, as drawn and as found, and the floats of two scores with their
# losses and gradients. Measured: docs/reference/distillation.md.
PER_CONTRAST = 2 * WHOLE + 12 * FLOAT
MB = 1e6


@dataclass(frozen=True)
class ContrastMemory:
    """Bytes of two banks and of one step."""

    examples: int
    dimension: int
    negatives: int
    batch_size: int

    @property
    def banks(self) -> int:
        return 2 * FLOAT * self.examples * self.dimension

    @property
    def multiplies_whole_banks(self) -> bool:
        """Whether the products with all rows of a bank take less than copies of the chosen rows."""
        return self._whole_banks < self._chosen_rows

    @property
    def step(self) -> int:
        contrasts = self.batch_size * (self.negatives + 1)
        return min(self._whole_banks, self._chosen_rows) + PER_CONTRAST * contrasts

    @property
    def total(self) -> int:
        return self.banks + self.step

    @property
    def _whole_banks(self) -> int:
        # Copies of both banks outlive their update; the products of both and one gradient.
        return self.banks + 3 * FLOAT * self.batch_size * self.examples

    @property
    def _chosen_rows(self) -> int:
        return 2 * FLOAT * self.batch_size * (self.negatives + 1) * self.dimension

    def __str__(self) -> str:
        return (
            f"two banks of {self.examples:,} × {self.dimension:,} ({self.banks / MB:,.1f} MB) and "
            f"steps of {self.batch_size:,} × {self.negatives:,} negatives "
            f"({self.step / MB:,.1f} MB)"
        )

    def require(self) -> None:
        """Refuse what does not fit, with the number of negatives that would."""
        require_memory(self.total, f"The loss 'crd' with {self}", self._remedy())

    def _remedy(self) -> str:
        free, fewer = free_memory() or 0, self.negatives
        while fewer > 1 and replace(self, negatives=fewer).total > free:
            fewer //= 2
        if replace(self, negatives=fewer).total > free:
            return "the banks alone need more: train with fewer examples, or leave crd out"
        return f"use fewer negatives: options = {{crd = {{negatives = {fewer}}}}}"
