"""Checkpoints of PyTorch modules, and the notebook on fine-tuning (make torch)."""

from __future__ import annotations

import json
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

from linearity_lab.model_files import read_checkpoint, with_checkpoints  # noqa: E402
from ntk_core import from_torch, linearity_report  # noqa: E402
from ntk_core.errors import InvalidInput  # noqa: E402
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


def write_parts(folder: Path, state: dict[str, Any], ending: str) -> Path:
    """Write a state dictionary in two parts with their index, as Hugging Face does."""
    weight_map = {}
    for number, names in enumerate((list(state)[:3], list(state)[3:]), start=1):
        part = f"model-0000{number}-of-00002{ending}"
        tensors = {name: state[name].contiguous() for name in names}
        if ending == ".bin":
            torch.save(tensors, folder / part)
        else:
            safetensors.save_file(tensors, folder / part)
        weight_map.update(dict.fromkeys(names, part))
    index = folder / f"model{ending}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index


@pytest.mark.parametrize("ending", [".bin", ".safetensors"])
def test_checkpoints_in_parts_are_read_by_their_index(tmp_path, ending):
    state = module(1).state_dict()
    found = read_checkpoint(write_parts(tmp_path, state, ending))
    assert found.keys() == state.keys()
    for name, value in found.items():
        np.testing.assert_array_equal(value, state[name].numpy())


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ({"0.weight": "../model-00001-of-00002.bin"}, "a part elsewhere, ../model"),
        ({"0.weight": "model.py"}, "a part of another type, model.py"),
        ({"0.weight": "other.bin"}, "a part is missing, other.bin"),
        ({"more": "model-00001-of-00002.bin"}, "more is missing in"),
        ({"0.weight": "model-00002-of-00002.bin"}, "0.weight is not in the index but in"),
        (None, "no weight_map"),
    ],
)
def test_wrong_indices_of_parts_are_refused(tmp_path, change, given):
    index = write_parts(tmp_path, module(1).state_dict(), ".bin")
    content = json.loads(index.read_text())
    if change is None:
        content = {"tokens": 3}
    else:
        content["weight_map"].update(change)
    index.write_text(json.dumps(content))
    with pytest.raises(InvalidInput) as refused:
        read_checkpoint(index)
    assert given in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "module._orig_mod."])
@pytest.mark.parametrize("key", [None, "model", "state_dict", "model_state_dict"])
def test_state_dictionaries_of_training_loops_are_read(tmp_path, prefix, key):
    state = {prefix + name: each for name, each in module(1).state_dict().items()}
    others = {"epoch": 3, "optimizer": {"state": {}, "param_groups": []}}
    torch.save(state if key is None else {key: state, **others}, tmp_path / "w.pt")
    weights = read_checkpoint(tmp_path / "w.pt")
    apply, params, _ = with_checkpoints(module(1), weights, weights, X)
    expected = module(1).eval()(torch.as_tensor(X)).detach().numpy()
    np.testing.assert_allclose(apply(params, X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["bfloat16", "float64", "float16"])
@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_checkpoints_of_other_precisions_keep_their_values(tmp_path, kind, name):
    state = module(1).to(getattr(torch, kind)).state_dict()
    if name == "w.pt":
        torch.save(state, tmp_path / name)
    else:
        safetensors.save_file(state, tmp_path / name)
    for each, value in read_checkpoint(tmp_path / name).items():
        np.testing.assert_array_equal(value, state[each].double().numpy())


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


def errors_of_sums(book):
    """Return E of both pairs that the notebook prints."""
    printed = "".join(output.text for output in book.cells[-2].outputs)  # one output or several
    return [float(error) for error in re.findall(r"E ([\d.]+)", printed)]


def test_notebook_merges_a_pair_that_adds_and_one_that_does_not(tmp_path):
    book = nbformat.read(WITH_TORCH[1], as_version=4)
    committed = errors_of_sums(book)
    computed = executed(book, tmp_path)
    for small, large in (committed, errors_of_sums(computed)):
        assert small < 0.1
        assert large > 0.5
    assert errors_of_sums(computed)[0] == pytest.approx(committed[0], rel=0.05)
    shown = " ".join(shown_in(computed, "text/html"))
    assert "The 2 checkpoints add" in shown
    assert "The 2 checkpoints do not add" in shown
