"""Real populations in a minute: classifiers of digits trained with several seeds, and children.

Every dense member has one pruned and one 8-bit child. All members predict the same held-out
examples; a member's seed decides its first weights and the order of its training, nothing else.
Like `quick_demo`, an illustration of the audit, not evidence about pruning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from fairweight.studies.digit_networks import Classifier, fit, prune, quantise, softmax
from fairweight.studies.digit_tables import Answer, DemoTables, check_whole, load

if TYPE_CHECKING:
    import pandas as pd

DENSE, INT8 = "dense", "int8"


@dataclass(frozen=True)
class Recipe:
    """How every family (a dense member and its children) is made."""

    seed: int = 0
    sparsity: float = 0.8
    hidden: int = 1024
    epochs: int = 30

    @property
    def pruned(self) -> str:
        return f"pruned-{100 * self.sparsity:g}"


@dataclass(frozen=True)
class Model:
    """A row of the variants table."""

    variant: str
    seed: int
    parent: str | None
    method: str
    sparsity: float
    n_params: int
    n_nonzero: int


@dataclass(frozen=True)
class Family:
    """A dense member and its children: what they answer, and what they are."""

    answers: tuple[Answer, ...]
    models: tuple[Model, ...]


def populations(
    recipe: Recipe | None = None,
    *,
    members: int = 10,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DemoTables:
    """Train dense members on one half of the digits, compress each, and predict the other half.

    Parameters
    ----------
    recipe
        The seed decides the split and, with the number of a member, all that is random in it.
    members
        How many dense members; each has a pruned and an 8-bit child.
    workers
        Processes, by default one per core; the numbers do not depend on them.
    progress
        Called with the number of families that are done, and of all.

    Returns
    -------
    DemoTables
        Variants `dense`, `pruned-80` and `int8`, and a variants table that names the parents.
    """
    recipe = recipe or Recipe()
    check_whole("members", members, least=1)
    check_whole("hidden", recipe.hidden, least=1)
    check_whole("epochs", recipe.epochs, least=1)
    digits = load(recipe.seed)  # before any process is started: a wrong seed is told at once
    families = _families(recipe, members, workers or os.cpu_count() or 1, progress)
    by_variant = [kin for kind in zip(*(f.answers for f in families), strict=True) for kin in kind]
    made = digits.tables(by_variant)
    return replace(made, variants=_variants_table(families))


def _families(
    recipe: Recipe, members: int, workers: int, progress: Callable[[int, int], None] | None
) -> list[Family]:
    """Every family in the order of its number, made in processes of one thread each."""
    from multiprocessing import active_children, get_context

    others = active_children()
    # Forking a process that has threads (DuckDB's, a progress bar's) can hang the copy.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(workers, members), mp_context=context) as pool:
        with _ignoring_interrupts():
            jobs: list[Future[Family]] = [pool.submit(family, recipe, i) for i in range(members)]
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                job.result()
                if progress is not None:
                    progress(done, members)
        except BaseException:
            # Nobody waits any more for the models that are being trained.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                if process not in others:
                    process.terminate()
            raise
    return [job.result() for job in jobs]


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started meanwhile go on ignoring them.

    Ctrl-C reaches every process of a terminal, and only one of them should speak.
    """
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change what signals do
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def family(recipe: Recipe, member: int) -> Family:
    """Train one dense member and compress it."""
    import numpy as np

    digits = load(recipe.seed)
    pixels = digits.pixels(digits.train)
    # Not seed + member: members of neighbouring seeds would be the same models.
    own_seed = int(np.random.SeedSequence((recipe.seed, member)).generate_state(1)[0])
    dense = fit(
        pixels,
        digits.labels[digits.train],
        seed=own_seed,
        hidden=recipe.hidden,
        epochs=recipe.epochs,
    )
    made: list[tuple[str, str, float, Classifier]] = [
        (DENSE, "none", 0.0, dense),
        (recipe.pruned, "magnitude pruning", recipe.sparsity, prune(dense, recipe.sparsity)),
        (INT8, "8-bit weights and inputs", 0.0, quantise(dense, calibration=pixels)),
    ]
    held_out = digits.pixels(digits.test)
    return Family(
        tuple(Answer(name, member, softmax(model.logits(held_out))) for name, *_, model in made),
        tuple(
            Model(
                variant=name,
                seed=member,
                parent=None if name == DENSE else f"{DENSE}:{member}",
                method=method,
                sparsity=sparsity,
                n_params=sum(part.size for part in model.parameters),
                n_nonzero=sum(int(np.count_nonzero(part)) for part in model.parameters),
            )
            for name, method, sparsity, model in made
        ),
    )


def _variants_table(families: list[Family]) -> pd.DataFrame:
    import pandas as pd

    kinds = zip(*(family.models for family in families), strict=True)
    return pd.DataFrame([asdict(model) for kind in kinds for model in kind])
