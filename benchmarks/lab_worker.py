"""A process that trains LeNet once for every line it is sent, and answers what it took."""

from __future__ import annotations

import sys

import torch

from benchmarks.lab_images import mnist
from benchmarks.lab_loops import our_loop
from benchmarks.measure import processor_seconds
from fairweight.lab.models import build


def main(batches: int, batch_size: int) -> None:
    torch.set_num_threads(1)
    data, _ = mnist(batches * batch_size)
    work = our_loop(build("lenet", classes=10, channels=1, size=28), data, batch_size)
    work()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(processor_seconds(work), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
