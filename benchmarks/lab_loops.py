"""Three ways through the same images once: our loop, the bare step, and a usual DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from fairweight.lab.batches import Examples, Scaling, model_input, scaling_of
from fairweight.lab.loop import train
from fairweight.specs.training import Augment, Training

CROP = 2
RATE, MOMENTUM = 0.01, 0.9


def our_loop(model: nn.Module, data: Examples, batch_size: int) -> Callable[[], object]:
    spec = Training(
        epochs=1,
        batch_size=batch_size,
        lr=RATE,
        momentum=MOMENTUM,
        augment=Augment(crop=CROP, flip=True),
    )
    scaling = scaling_of(data.images)
    return lambda: train(model, data, None, spec, scaling=scaling, progress=_unseen)


def bare_step(model: nn.Module, data: Examples, batch_size: int) -> Callable[[], object]:
    """Forward, backward and update on tensors that are ready in memory: nothing is random."""
    images = model_input(data.images, scaling_of(data.images))
    batches = list(
        zip(torch.split(images, batch_size), torch.split(data.labels, batch_size), strict=True)
    )
    return lambda: _steps(model, batches)


def usual_loader(model: nn.Module, data: Examples, batch_size: int) -> Callable[[], object]:
    """One image at a time through PIL, collected to batches in this process."""
    single = SingleImages(data, scaling_of(data.images))
    return lambda: _steps(model, DataLoader(single, batch_size=batch_size, shuffle=True))


def _steps(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.train()
    # As in our loop, so that only the way of the images differs.
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, foreach=True)
    for images, labels in batches:
        loss = functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _unseen(numbers: dict[str, float], done: int, total: int) -> None:
    """A progress bar that is not drawn: what it would show is computed."""


class SingleImages(Dataset[tuple[Tensor, int]]):
    """What torchvision's RandomCrop, RandomHorizontalFlip, ToTensor and Normalize do to an image.

    Without the checks and calls around them, so that it is rather quicker than those.
    """

    def __init__(self, data: Examples, scaling: Scaling) -> None:
        self.data, self.scaling = data, scaling

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        pixels = self.data.images[index].numpy()
        height, width, channels = pixels.shape
        image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
        image = ImageOps.expand(image, border=CROP, fill=0)
        top = int(torch.randint(0, 2 * CROP + 1, (1,)).item())
        left = int(torch.randint(0, 2 * CROP + 1, (1,)).item())
        image = image.crop((left, top, left + width, top + height))
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(image, np.uint8)).view(height, width, channels)
        tensor = tensor.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
        mean = torch.as_tensor(self.scaling.mean).view(-1, 1, 1)
        std = torch.as_tensor(self.scaling.std).view(-1, 1, 1)
        return tensor.sub_(mean).div_(std), int(self.data.labels[index])
