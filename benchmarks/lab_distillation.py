"""A training step beside a teacher, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

if TYPE_CHECKING:
    from torch import nn

    from fairweight.lab.batches import Examples

TITLE = "Distillation beside the plain step"
SETTING = (
    "One pass of the training loop over made images of 32 pixels, ResNet8x4 of a quarter of the "
    "width, batches of 64, one thread, nothing random. The teacher is another such network: its "
    "forward pass alone is timed beside it. Medians of processor time, taken in turns."
)
NEEDS = ("torch",)
BATCH = 64
ROUNDS = 9
STEPS = 4
OTHERS = ("at", "sp", "pkt")


def run(settings: Settings) -> list[Line]:
    from benchmarks.lab_images import made
    from fairweight.lab.measurement import torch_threads
    from fairweight.lab.models import build

    full = settings.full_size
    with torch_threads(1):
        data = made((STEPS if full else 1) * BATCH, size=32, channels=3)
        student, teacher = (
            build("resnet8x4", classes=10, channels=3, size=32, width=0.25) for _ in range(2)
        )
        jobs = {"plain": _epoch(student, data, None, teacher), "teacher": _forward(teacher, data)}
        jobs |= {name: _epoch(student, data, name, teacher) for name in ("kd", *OTHERS)}
        taken = interleaved(jobs, ROUNDS if full else settings.rounds, processor_seconds)
    parts = taken["plain"] + taken["teacher"]
    return [
        Line("KD", taken["kd"], "plain step", taken["plain"], target=1.6),
        Line("KD", taken["kd"], "plain step and teacher's forward", parts, target=1.6),
        *(Line(name.upper(), taken[name], "KD", taken["kd"], target=1.1) for name in OTHERS),
    ]


def _epoch(
    student: nn.Module, data: Examples, losses: str | None, teacher: nn.Module
) -> Callable[[], object]:
    from fairweight.lab.batches import scaling_of
    from fairweight.lab.distillation.distiller import Distiller, Teacher
    from fairweight.lab.loop import train
    from fairweight.specs.training import Distillation, Training

    spec = Training(epochs=1, batch_size=BATCH, lr=0.001, momentum=0.9)
    scaling = scaling_of(data.images)
    distiller = None
    if losses is not None:
        distiller = Distiller(Distillation(losses=losses), Teacher(teacher, scaling))
    return lambda: train(student, data, None, spec, scaling=scaling, distiller=distiller)


def _forward(teacher: nn.Module, data: Examples) -> Callable[[], object]:
    import torch

    from fairweight.lab.batches import model_input, scaling_of

    images = model_input(data.images, scaling_of(data.images))

    def forward() -> None:
        with torch.no_grad():
            for batch in images.split(BATCH):
                teacher(batch)

    teacher.eval()
    return forward
