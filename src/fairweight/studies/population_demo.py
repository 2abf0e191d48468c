"""Real populations in a minute: small CNNs of digits with several seeds, and compressed copies.

Every dense member has pruned children and an int8 one, each written as `fairweight train` and
`fairweight compress` write models. The files are then asked: int8 runs in ONNX Runtime. All members
predict the same held-out examples; a member's seed decides its first weights and the order of its
training, nothing else.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pandas as pd

from fairweight.errors import FairweightError
from fairweight.specs.compression import GlobalMagnitude, Int8Static
from fairweight.specs.data import Data
from fairweight.specs.training import Model, Training
from fairweight.studies.demo import HELD_OUT, DemoTables, check_whole, load

# How the demo's population is made: which network, how it is trained, what is done to it.
#
# The number of epochs and the sparsities were chosen by looking at held-out accuracy, so that the
# milder pruning costs little and the stronger one visibly hurts: an illustration of the audit, not
# evidence about pruning.

LENET = Model(architecture="lenet", options={"padding": 1})
TRAINING = Training(epochs=30, batch_size=64, optimizer="adam", lr=0.003)
FINETUNING = Training(epochs=5, batch_size=64, optimizer="adam", lr=0.001)
PRUNING, INT8_STATIC = "global-magnitude", "int8-static"  # names of methods
INT8 = "int8"  # the variant
CALIBRATED = Int8Static()


@dataclass(frozen=True)
class FamilyRecipe:
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

        >>> list(FamilyRecipe().pruning)
        ['pruned-80', 'pruned-90']
        """
        return {
            f"pruned-{100 * share:g}": GlobalMagnitude(sparsity=share) for share in self.sparsities
        }

    @property
    def models(self) -> int:
        """The number of models in total."""
        return self.members * (1 + len(self.sparsities) + 1)


# Work in processes of their own, which all end when one of them fails or Ctrl-C is pressed.

Result = TypeVar("Result")


def in_processes(
    jobs: Sequence[Callable[[], Result]],
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run jobs in processes and return their results, in order.

    When this returns or raises, none of its processes is left, nor any temporary file of theirs.

    Parameters
    ----------
    jobs
        Functions that can be pickled.
    progress
        Called with the number of jobs that are done, and of all.
    """
    others = active_children()
    # Forking a process that has threads (DuckDB's, a progress bar's) can hang the copy.
    context = get_context("spawn")
    # Processes that are ended cannot tidy up: their temporary files are in ours.
    with (
        TemporaryDirectory(prefix="fairweight-") as folder,
        ProcessPoolExecutor(
            min(workers, len(jobs)),
            mp_context=context,
            initializer=_set_tempdir,
            initargs=(folder,),
        ) as pool,
    ):
        with _ignoring_interrupts():
            futures: list[Future[Result]] = [pool.submit(job) for job in jobs]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress is not None:
                    progress(done, len(jobs))
        except BaseException as error:
            # Nobody waits any more for what is being made.
            pool.shutdown(wait=False, cancel_futures=True)
            ours = [process for process in active_children() if process not in others]
            for process in ours:
                process.terminate()
            for process in ours:
                process.join()
            if isinstance(error, BrokenProcessPool):
                raise FairweightError(
                    "A process ended in the midst of its work: somebody killed it, or the machine "
                    "ran out of memory; nothing was written. Try again with more memory free."
                ) from error
            raise
    return [future.result() for future in futures]


def _set_tempdir(folder: str) -> None:
    tempfile.tempdir = folder


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started meanwhile go on ignoring them.

    Ctrl-C reaches every process of a terminal, and only one of them should speak.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change what signals do
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class DenseFamily:
    """A dense member and its copies: their predictions and measurements."""

    predictions: pd.DataFrame
    measured: tuple[dict[str, Any], ...]  # rows of the variants table


def populations(
    recipe: FamilyRecipe,
    models: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DemoTables:
    """Train dense members on one half of the digits, compress each, and predict the other half.

    Parameters
    ----------
    models
        A folder for the models: `dense/0`, `pruned-80/0`, `int8/0.onnx`, …
    workers
        Processes, by default one per core; the predictions do not depend on them.
    progress
        Called with the number of families that are done, and of all.

    Returns
    -------
    DemoTables
        The variants table names the parents.
    """
    check_whole("members", recipe.members, least=1)
    halves = load(recipe.seed)  # before any process is started: a wrong seed is refused at once
    # Not seed + member: members of neighbouring seeds would be the same models.
    seeds = range(recipe.seed * recipe.members, (recipe.seed + 1) * recipe.members)
    jobs = [partial(family, recipe, seed, models) for seed in seeds]
    families = in_processes(jobs, workers or os.cpu_count() or 1, progress)
    return halves.tables(
        pd.concat([made.predictions for made in families], ignore_index=True),
        pd.DataFrame([row for made in families for row in made.measured]),
    )


def family(recipe: FamilyRecipe, seed: int, models: Path) -> DenseFamily:
    """Train one dense member, compress it, and predict with the files that were written."""
    from fairweight import lab
    from fairweight.lab.measurement import torch_threads

    own = str(seed)
    with torch_threads(1):  # models this small are slower on several
        training, finetuning = (
            replace(spec, seed=seed) for spec in (recipe.training, recipe.finetuning)
        )
        dense = lab.train(recipe.data, recipe.model, training, models / "dense" / own)
        made = [dense]
        for name, spec in recipe.pruning.items():
            pruned = models / name / own
            made.append(
                lab.compress(dense.path, spec, out=pruned, training=finetuning, variant=name)
            )
        int8 = models / INT8 / f"{own}.onnx"
        made.append(lab.compress(dense.path, recipe.quantisation, out=int8, variant=INT8))
        held_out = load(recipe.seed).test
        answers = lab.predict(
            {model.card.variant: {seed: model.path} for model in made},
            [(held_out.images, held_out.labels, held_out.example_id)],
        )
    return DenseFamily(answers.to_pandas(), tuple(model.card.measured for model in made))
