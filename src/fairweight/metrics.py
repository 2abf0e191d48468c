"""Single metrics on plain arrays: `fw.metrics.recall(y_true, y_pred)`.

Every metric of the registry is here under its name, with the arguments that scikit-learn users
know; `names()` lists them, `help(fw.metrics.recall)` says what one means. A metric of your own is
one function of counts:

>>> from fairweight import metrics
>>> @metrics.register(name="doctest_share_wrong", kind="value", by=("overall", "group"),
...                   better="lower", low=0, high=1, summary="share of wrong answers",
...                   formula="1 - sum correct / n", source="example", undefined="no examples")
... def share_wrong(counts):
...     return 1 - counts.correct.sum(-1) / counts.n
>>> metrics.doctest_share_wrong([0, 1, 1, 1], [0, 1, 1, 0])
0.25
>>> metrics.unregister("doctest_share_wrong")
"""

from __future__ import annotations

from typing import Any

from fairweight.auditing import metrics
from fairweight.auditing.metrics.functions import offered, plain
from fairweight.errors import UnknownNameError

_FROM_REGISTRY = ("register", "unregister")


def names() -> tuple[str, ...]:
    """The metrics that can be called on arrays.

    >>> "recall" in names()
    True
    """
    return tuple(entry.name for entry in metrics.metrics() if offered(entry))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # Python asks modules for names such as __path__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _FROM_REGISTRY:
        return getattr(metrics, name)
    try:
        entry = metrics.metric(name)
    except UnknownNameError as error:
        raise AttributeError(str(error)) from None
    if not offered(entry):
        raise AttributeError(
            f"Metric '{name}' describes a whole audit; it is in the results of fw.audit(...)."
        )
    return plain(entry)


def __dir__() -> list[str]:
    return sorted(("names", *_FROM_REGISTRY, *names()))
