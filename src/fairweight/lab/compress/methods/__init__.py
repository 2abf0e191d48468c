"""One file per method; importing this package registers all of them."""

from fairweight.lab.compress.methods import (
    global_magnitude,
    l1_structured,
    l1_unstructured,
    l2_structured,
    linf_structured,
    n_of_m,
    random_structured,
    random_unstructured,
)

__all__ = [
    "global_magnitude",
    "l1_structured",
    "l1_unstructured",
    "l2_structured",
    "linf_structured",
    "n_of_m",
    "random_structured",
    "random_unstructured",
]
