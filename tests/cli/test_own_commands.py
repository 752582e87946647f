"""The commands for data and models of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ntk_core.cli import main
from ntk_core.data import load_dataset
from tests.data.uploads.files import blobs, flowers, pets

MODEL = """
import jax, jax.numpy as jnp
def network(width, key):
    w, v = jax.random.normal(key, (10, width)), jax.random.normal(key, (width, 3))
    return lambda p, x: jnp.tanh(x @ p[0] / 3) @ p[1] / width**0.5, (w, v)
def wrong_shape(width, key):
    return lambda p, x: x @ p, jnp.ones((10, 2))
def broken(width, key):
    return lambda p, x: jnp.dot(x, p), jnp.ones((11, 3))
"""


@pytest.fixture(autouse=True)
def _own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_a_file_becomes_a_data_set_and_the_printed_command_uses_it(tmp_path, capsys):
    file = tmp_path / "flowers.csv"
    file.write_bytes(flowers())
    assert main(["data", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "60 samples, inputs 3, 3 outputs" in printed
    assert "rose: 20" in printed
    digest = printed.split("dataset.digest=")[1].split()[0]
    assert load_dataset("upload", digest=digest, num_samples=60).input_shape == (3,)
    assert f"--set dataset.name=upload dataset.digest={digest} dataset.num_samples=60" in printed


@pytest.mark.parametrize(
    ("data", "options", "shape", "outputs"),
    [
        (flowers(), ["--target", "size", "--task", "regression", "--features", "sepal,petal"], [2], 1),
        (flowers(), ["--target", "size", "--task", "regression", "--raw-targets"], [2], 1),
        (flowers(), ["--classes", "rose,iris"], [3], 2),
        (blobs(), [], [6, 6, 1], 4),
        (pets(), ["--side", "4", "--gray"], [4, 4, 1], 2),
    ],
)
def test_choices_are_options_of_the_command(tmp_path, capsys, data, options, shape, outputs):
    file = tmp_path / "file"
    file.write_bytes(data)
    assert main(["data", str(file), "--json", *options]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert (kept["input_shape"], kept["num_outputs"]) == (shape, outputs)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["data", "{folder}/none.csv"], "FILE: "),
        (["data", "{folder}/model.py"], "file: "),
        (["own", "{folder}/model.py:nothing", "--widths", "4"], "FILE.py:NAME: nothing cannot be used"),
        (["own", "{folder}/none.py:network", "--widths", "4"], "FILE.py:NAME: "),
        (["own", "{folder}/model.py:network", "--widths", "four"], "--widths: four cannot be used"),
        (["own", "{folder}/model.py:network", "--widths", "0"], "widths: 0 cannot be used"),
        (["own", "{folder}/model.py:network", "--widths", "4", "--dataset", "imagenet"], "name: imagenet"),
        (["own", "{folder}/model.py:network", "--widths", "4", "--digest", "0" * 64], "digest: 0000"),
        (["own", "{folder}/model.py:wrong_shape", "--widths", "4"], "model: outputs of shape (40, 2) cannot be used"),
        (["own", "{folder}/model.py:broken", "--widths", "4"], "model.py, line 9: TypeError: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(model, capsys, arguments, sentence):
    assert main([part.format(folder=model.parent) for part in arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


def test_a_model_in_a_file_is_swept_over_its_width(model, capsys, tmp_path):
    out = tmp_path / "own.json"
    options = ["--widths", "8,32", "--num-seeds", "2", "--num-samples", "6", "--max-steps", "200", "--num-inputs", "0"]
    assert main(["own", f"{model}:network", *options, "--loss-threshold", "0.05", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("converged") == 4
    assert "ΔK  ∝ m^(−".replace("−", "-") in printed
    assert [run["width"] for run in json.loads(out.read_text())["runs"]] == [8, 8, 32, 32]
    assert printed.count("structured") == 2  # both matrices
    assert "checked on 2 inputs: relative difference" in printed
    assert "Verdict: " in printed
