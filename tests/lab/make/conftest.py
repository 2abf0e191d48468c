"""One small trained model on the digits, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairweight.lab.training import Made, train
from fairweight.specs.data import Data
from fairweight.specs.training import Model, Training

DATA = Data(name="digits", test=0.3)
MODEL = Model(architecture="lenet")
TRAINING = Training(epochs=4, batch_size=64, optimizer="adam", lr=0.003, seed=1)


@pytest.fixture(scope="session")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return train(DATA, MODEL, TRAINING, tmp_path_factory.mktemp("models") / "dense-1")


@pytest.fixture
def model(dense: Made) -> Path:
    return dense.path
