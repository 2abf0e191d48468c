"""Models as people have them: quantised by torch, compiled, with gradients, of scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from torch import Tensor, nn

import fairweight as fw
from fairweight.errors import InputError
from fairweight.lab.loaders import digest_of_module

RANDOM = np.random.default_rng(1)
ROWS = RANDOM.normal(size=(60, 5)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.int64) + (ROWS[:, 1] > 0.5)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


def quantised(net: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: nn.Module = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, torch.qint8)
    return made


def predicted(table: Any, variant: str) -> list[str]:
    frame = table.to_pandas()
    return [str(value) for value in frame[frame["variant"] == variant]["prediction"]]


def expected(net: Any) -> list[str]:
    with torch.no_grad():
        return [str(int(place)) for place in net(torch.from_numpy(ROWS)).argmax(1)]


class WithGradients(nn.Module):
    """A forward pass that keeps its graph, whatever the caller says."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, rows: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            output: Tensor = self.inner(rows.clone())
        assert output.requires_grad
        return output


def test_modules_quantised_by_torch_predict_and_go_on(tmp_path: Path) -> None:
    net = network()
    models = {"dense": net, "int8": quantised(net)}
    table = fw.lab.predict(models, [(ROWS, LABELS)])
    for name, model in models.items():
        assert predicted(table, name) == expected(model)
    out = tmp_path / "p.parquet"
    assert fw.lab.predict(models, [(ROWS, LABELS)], out=out) == out
    # The digest by which a run goes on sees the packed weights.
    assert digest_of_module(quantised(net)) == digest_of_module(quantised(net))
    assert digest_of_module(quantised(net)) != digest_of_module(quantised(network(1)))


def test_modules_quantised_by_torchao_predict() -> None:
    torchao = pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    assert torchao
    net, copies = network(), [network(), network(), network(1)]
    for copy in copies:
        quantize_(copy, Int8WeightOnlyConfig())
    table = fw.lab.predict({"dense": net, "int8": copies[0]}, [(ROWS, LABELS)])
    assert predicted(table, "int8") == expected(copies[0])
    first, again, other = map(digest_of_module, copies)
    assert first == again != other


def test_outputs_with_gradients_and_compiled_modules_predict() -> None:
    net = network()
    compiled = torch.compile(net, backend="eager")
    table = fw.lab.predict(
        {"dense": net, "graph": WithGradients(), "compiled": compiled}, [(ROWS, LABELS)]
    )
    for name in ("dense", "graph", "compiled"):
        assert predicted(table, name) == expected(net)
    assert isinstance(
        fw.lab.compress(compiled, {"method": "global-magnitude", "sparsity": 0.5}), nn.Sequential
    )


@pytest.mark.parametrize(
    "names", [[0, 1, 2], [1, 2, 3], [5, 7, 11], ["a", "b", "c"], [0.0, 1.0, 2.0]]
)
def test_estimators_are_asked_by_the_values_they_were_fitted_on(names: list[Any]) -> None:
    values = np.array(names)[LABELS]
    shares, hard = LogisticRegression(C=3), LinearSVC()
    models = {"dense": shares.fit(ROWS, values), "svc": hard.fit(ROWS, values)}
    # Two batches, one of which lacks the last class.
    order = np.argsort(LABELS, kind="stable")
    rows, labels = ROWS[order], values[order]
    table = fw.lab.predict(models, [(rows[:30], labels[:30]), (rows[30:], labels[30:])])
    for name, model in models.items():
        frame = table.to_pandas().query("variant == @name")
        right = (frame["label"].astype(str) == frame["prediction"].astype(str)).mean()
        assert right == pytest.approx(model.score(rows, labels))
        assert frame["score"].isna().all() == (name == "svc")
    audit = fw.audit_table(table, n_boot=50)
    row = audit.overall.query("metric == 'accuracy'").iloc[0]
    assert row["baseline"] == pytest.approx(models["dense"].score(rows, labels))


def test_two_classes_called_false_and_true() -> None:
    values: NDArray[np.bool_] = LABELS > 0
    model = LogisticRegression().fit(ROWS, values)
    table = fw.lab.predict({"dense": model}, [(ROWS, values)]).to_pandas()
    assert (table["label"] == table["prediction"]).mean() == model.score(ROWS, values)
    assert table["score"].tolist() == pytest.approx(model.predict_proba(ROWS)[:, 1].tolist())


def test_what_is_no_fitted_classifier_says_what_to_do() -> None:
    batches = [(ROWS, LABELS)]
    for model in (LogisticRegression(), LinearRegression().fit(ROWS, LABELS)):
        with pytest.raises(InputError, match="without classes_"):
            fw.lab.predict({"dense": model}, batches)
    fitted = LogisticRegression().fit(ROWS, LABELS)
    with pytest.raises(InputError, match=r"\(60, 4\).*\(N, features\)"):
        fw.lab.predict({"dense": fitted}, [(ROWS[:, :4], LABELS)])
    with pytest.raises(InputError, match="scikit-learn classifier"):
        fw.lab.predict({"dense": 3}, batches)
