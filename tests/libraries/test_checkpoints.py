"""Checkpoints of PyTorch modules, and the notebook on fine-tuning (make torch)."""

from __future__ import annotations

import pickle
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="make torch installs it")
if find_spec("torchax") is None:  # an import would register its device in PyTorch
    pytest.skip("make torch installs torchax", allow_module_level=True)
safetensors: Any = pytest.importorskip("safetensors.torch", reason="make torch installs it")
nbformat: Any = pytest.importorskip("nbformat", reason="make torch installs it")

from ntk_core import from_torch, linearity_report  # noqa: E402
from ntk_core.errors import InvalidInput  # noqa: E402
from ntk_core.own_models import read_checkpoint, with_checkpoints  # noqa: E402
from tests.examples.notebooks import WITH_TORCH, executed, shown_in  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # warnings of other libraries
X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def module(seed: int) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
    )


@pytest.fixture
def ends(tmp_path):
    before, after = module(0), module(1)
    torch.save(before.state_dict(), tmp_path / "before.pt")
    torch.save({"state_dict": after.state_dict(), "epoch": 3}, tmp_path / "after.pt")
    safetensors.save_file(after.state_dict(), tmp_path / "after.safetensors")
    return tmp_path


@pytest.mark.parametrize("name", ["after.pt", "after.safetensors"])
def test_checkpoints_report_what_the_modules_report(ends, name):
    read = [read_checkpoint(ends / each) for each in ("before.pt", name)]
    found = linearity_report(*with_checkpoints(module(2), *read, X), X)
    apply, params0 = from_torch(module(0), X)
    expected = linearity_report(apply, params0, from_torch(module(1), X)[1], X)
    assert found.output_error == pytest.approx(expected.output_error, rel=1e-5)
    assert found.kernel_change == pytest.approx(expected.kernel_change, rel=1e-5)
    assert [layer.name for layer in found.layers] == [
        "0.bias",
        "0.weight",
        "1.bias",
        "1.weight",
        "3.bias",
        "3.weight",
    ]


def test_other_running_averages_are_refused(ends):
    before = read_checkpoint(ends / "before.pt")
    after = {**before, "1.running_mean": before["1.running_mean"] + 1}
    with pytest.raises(InvalidInput, match=r"after: another 1\.running_mean, which is not trained"):
        with_checkpoints(module(2), before, after, X)


def test_foreign_pickles_are_refused_unexecuted(tmp_path):
    trace = tmp_path / "trace"

    class Hostile:
        def __reduce__(self):
            return Path.touch, (trace,)

    torch.save({"w": Hostile()}, tmp_path / "hostile.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Hostile()))
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "damaged.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    for name in ("hostile.pt", "plain.pt", "list.pt", "damaged.safetensors"):
        with pytest.raises(InvalidInput) as error:
            read_checkpoint(tmp_path / name)
        assert str(error.value).startswith(f"checkpoint: {name}")
        assert "\n" not in str(error.value)
    assert not trace.exists()


def measured(book) -> list[tuple[float, float]]:
    """(output error, ΔK) of small rate, large rate and adapter, as printed."""
    printed = book.cells[-2].outputs[0].text
    return [
        (float(a), float(b)) for a, b in re.findall(r"output error ([\d.]+), ΔK ([\d.]+)", printed)
    ]


def test_text_of_the_notebook_agrees_with_its_numbers(tmp_path):
    book = nbformat.read(WITH_TORCH[0], as_version=4)
    committed = measured(book)
    computed = executed(book, tmp_path)
    for small, large, adapter in (committed, measured(computed)):
        assert small[0] < 0.1
        assert min(large[0], adapter[0]) > 0.5
        assert adapter[1] > large[1] > small[1]
    assert measured(computed)[0] == pytest.approx(committed[0], rel=0.05)
    assert "num_params=192," in str(computed.cells[-4].outputs[-1].data["text/plain"])
    verdicts = [
        re.search(r"<p[^>]*>(\w+(?: \w+)*):", each) for each in shown_in(computed, "text/html")
    ]
    assert [each[1] for each in verdicts if each] == ["Linear", "Not linear", "Not linear"]
