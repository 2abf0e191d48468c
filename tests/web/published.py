"""An experiment as studies describe it."""

from __future__ import annotations

from fairweight.specs.data import Data, DrawnBackdoor
from fairweight.specs.study import Experiment
from fairweight.specs.training import Model, Training

EXPERIMENT = Experiment(
    name="blond",
    data=Data(
        name="celeba",
        options={"size": 32},
        tasks=("Blond_Hair",),
        backdoor=DrawnBackdoor(kind="grayscale", task="Blond_Hair", train=(0.1, 0.9)),
    ),
    model=Model(architecture="resnet8x4"),
    training=Training(epochs=1),
    groups=("Male",),
    cluster="identity",
    positive="1",
)
