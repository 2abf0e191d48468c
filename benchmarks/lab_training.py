"""The training loop beside the bare torch step and a usual DataLoader."""

from __future__ import annotations

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

TITLE = "Training beside torch"
SETTING = (
    "One pass over the images, batches of 32, one thread, random crops and flips. The usual way: "
    "torch's DataLoader (no workers) over single images, each through PIL (padded, cropped, "
    "flipped, made a tensor, scaled). The bare step: forward, backward and update on scaled "
    "tensors that are ready in memory, channels last, nothing random. SGD with momentum is the "
    "same in all. Medians of processor time, taken in turns, so that a busy machine favours none."
)
NEEDS = ("torch", "PIL")
BATCH = 32
# Short jobs and many rounds: a busy moment then meets all of them alike.
LENET_ROUNDS, RESNET_ROUNDS = 25, 9


def run(settings: Settings) -> list[Line]:
    from benchmarks.lab_images import made, mnist
    from benchmarks.lab_loops import bare_step, our_loop, usual_loader
    from fairweight.lab.measurement import torch_threads
    from fairweight.lab.models import build

    full = settings.full_size
    lines: list[Line] = []
    with torch_threads(1):
        data, name = mnist(50 * BATCH if full else 2 * BATCH)
        net = build("lenet", classes=10, channels=1, size=28)
        jobs = {"ours": our_loop, "usual": usual_loader, "bare": bare_step}
        taken = interleaved(
            {key: job(net, data, BATCH) for key, job in jobs.items()},
            LENET_ROUNDS if full else settings.rounds,
            processor_seconds,
        )
        what = f"LeNet, {name}, {len(data):,} examples"
        lines += [
            Line(what, taken["ours"], "usual DataLoader", taken["usual"], target=2.0, faster=True),
            Line(what, taken["ours"], "bare step", taken["bare"], target=0.85, faster=True),
            Line(f"{what}: usual DataLoader", taken["usual"], "bare step", taken["bare"],
                 faster=True),
        ]  # fmt: skip
        for width, steps in ((0.25, 6), (1.0, 1)) if full else ((0.25, 1),):
            data = made(steps * BATCH, size=32, channels=3)
            net = build("resnet18", classes=10, channels=3, size=32, width=width)
            taken = interleaved(
                {"ours": our_loop(net, data, BATCH), "bare": bare_step(net, data, BATCH)},
                RESNET_ROUNDS if full else settings.rounds,
                processor_seconds,
            )
            what = f"ResNet-18, width {width:g}, 32 pixels, {len(data):,} examples"
            lines.append(
                Line(what, taken["ours"], "bare step", taken["bare"], target=0.95, faster=True)
            )
    return lines
