"""The commands for your own data, models and checkpoints."""

import hashlib
import json
import pickle
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from linearity_lab.cli import main
from linearity_lab.cli._targets import assignment
from linearity_lab.dashboard.export_formats import command_line
from linearity_lab.dashboard.own_data import Uploaded
from linearity_lab.data import data_fingerprint, load_dataset, uploads
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.linearity_report.point import LinearityReportSpec
from linearity_lab.experiments.own_model.point import OwnModelSpec
from linearity_lab.model_files import read_checkpoint
from linearity_lab.runs import PRESETS, canonical_json, load_data, run
from linearity_lab.runs.store import Store, read_runs
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import blobs, flowers, pets

MODEL = """
import jax, jax.numpy as jnp
def network(width, key):
    w, v = jax.random.normal(key, (10, width)), jax.random.normal(key, (width, 3))
    return lambda p, x: jnp.tanh(x @ p["w"] / 3) @ p["v"] / width**0.5, {"w": w, "v": v}
def wrong_shape(width, key):
    return lambda p, x: x @ p, jnp.ones((10, 2))
def broken(width, key):
    return lambda p, x: jnp.dot(x, p), jnp.ones((11, 3))
"""


@pytest.fixture(autouse=True)
def _own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "results.sqlite"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_uploaded_file_works_with_the_printed_command(tmp_path, capsys):
    file = tmp_path / "flowers.csv"
    file.write_bytes(flowers())
    assert main(["data", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "60 samples, inputs 3, 3 outputs" in printed
    assert "rose: 20" in printed
    digest = printed.split("dataset.digest=")[1].split()[0]
    assert load_dataset("upload", digest=digest, num_samples=60).input_shape == (3,)
    assert f"--set dataset.name=upload dataset.digest={digest} dataset.num_samples=60" in printed
    assert "Target: kind, a class, suggested because of its name." in printed


SMALL_SWEEP = ["widths=10,20", "num_seeds=1", "training.max_steps=5", "training.num_records=3"]


@pytest.mark.slow
@pytest.mark.first_cases(1)  # trains
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (flowers(), []),
        (flowers(), ["--target", "size", "--task", "regression"]),
        # Each computes a sweep.
        pytest.param(pets(), ["--side", "4"], marks=pytest.mark.slow),
        pytest.param(pets(), ["--side", "4", "--gray"], marks=pytest.mark.slow),
        pytest.param(blobs(), [], marks=pytest.mark.slow),
        pytest.param(flowers(), ["--classes", "rose,iris"], marks=pytest.mark.slow),
    ],
)
def test_printed_command_of_the_data_runs(tmp_path, capsys, data, options):
    file = tmp_path / "file"
    file.write_bytes(data)
    assert main(["data", str(file), *options]) == 0
    _, *command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert main([*command, *SMALL_SWEEP]) == 0
    assert "10" in capsys.readouterr().out


LOOKS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "classes": (flowers(), {}),
    "semicolons": (flowers(delimiter=";"), {"standardize": "raw", "seed": 3}),
    "numbers": (flowers(), {"target": "size", "task": "regression", "features": ("sepal",)}),
    "dropped classes": (flowers(), {"classes": ("rose", "iris")}),
    "gray arrays": (blobs(), {}),
    "tokens": (blobs(), {"tokens": True}),
    "images": (pets(), {"side": 4}),
    "gray images": (pets(), {"side": 4, "gray": True, "standardize": "unit-norm"}),
}


@pytest.mark.slow  # each computes a sweep
@pytest.mark.parametrize("kind", LOOKS)
def test_command_of_the_first_look_runs_it(tmp_path, capsys, monkeypatch, kind):
    """As the page "Own data" does it: file, choices, digest, first run, printed command."""
    data, chosen = LOOKS[kind]
    of_dataset = {name: chosen[name] for name in ("standardize", "seed") if name in chosen}
    of_choices = {name: value for name, value in chosen.items() if name not in of_dataset}
    candidate = uploads.parse_upload(data)
    choices = replace(uploads.suggested_choices(candidate), **of_choices)
    cleaned = uploads.clean_upload(candidate, choices)
    digest = uploads.keep_upload(cleaned)
    num_samples = len(cleaned.x) - 2
    dataset = DatasetSpec(name="upload", digest=digest, num_samples=num_samples, **of_dataset)
    kept = Uploaded(dataset, "file", len(cleaned.x), len(cleaned.class_names))
    _, look = kept.first_look()
    spec = with_settings(look, dict(assignment(each, look) for each in SMALL_SWEEP))

    monkeypatch.chdir(tmp_path)
    program, *command = shlex.split(command_line(spec))
    assert program == "linearity-lab"
    assert main(command) == 0
    assert (tmp_path / "results").is_dir()
    capsys.readouterr()
    assert main(["show", "results"]) == 0
    printed = capsys.readouterr().out
    (found,) = Store().runs().runs
    assert found.status == "completed"
    assert Store().spec(found.digest) == spec
    assert main(["show", found.digest]) == 0
    assert capsys.readouterr().out == printed


NAMES = ("-m", "--out", "--set", "two words", "it's", 'a"b', "$HOME", "*", "a;b", "#a", "x=y", "é")


def test_names_with_a_dash_are_no_options():
    own = OwnModelSpec(file="--out.py")
    assert own.command()[1] == "./--out.py:model"
    report = LinearityReportSpec(file="-m.py", before="-0.npz", after="-1.npz", others=("-2.npz",))
    assert report.command()[1:] == ("./-m.py:model", "./-0.npz", "./-1.npz", "./-2.npz")
    with pytest.raises(InvalidInput, match=r"`linearity-lab own 'two words.py'` in a terminal"):
        list(run(OwnModelSpec(file="two words.py")))


@pytest.mark.slow  # two commands for each name
@pytest.mark.parametrize("name", NAMES)
def test_printed_command_finds_files_of_every_name(tmp_path, capsys, monkeypatch, name):
    (tmp_path / f"{name}.py").write_text(MODEL)
    rng = np.random.default_rng(0)
    before = {"w": rng.standard_normal((10, 8)), "v": rng.standard_normal((8, 3))}
    np.savez(tmp_path / f"{name}.npz", **before)
    np.savez(tmp_path / f"{name} 2.npz", w=1.01 * before["w"], v=before["v"])
    model = f"{tmp_path / name}.py:network"
    checkpoints = [str(tmp_path / f"{name}{each}.npz") for each in ("", " 2")]
    small = ["--widths=4", "--num-seeds=1", "--max-steps=2", "--num-samples=5", "--num-inputs=0"]
    monkeypatch.chdir(tmp_path)
    for command in (["own", model, *small], ["report", model, *checkpoints, *SMALL]):
        kind = {"own": "own_model", "report": "linearity_report"}[command[0]]
        assert main(command) == 0
        (first,) = Store().runs(experiment=kind).runs
        _, *again = shlex.split(command_line(Store().spec(first.digest)))
        assert main(again) == 0
        (second,) = Store().runs(experiment=kind).runs
        assert second.digest == first.digest
    capsys.readouterr()


@pytest.mark.slow  # computes a sweep
def test_exported_command_of_uploaded_data_runs(tmp_path, capsys):
    file = tmp_path / "pets.zip"
    file.write_bytes(pets())
    assert main(["data", str(file), "--side", "4", "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    base = PRESETS["liu-fig1-left"].spec
    upload = ["dataset.name=upload", f"dataset.digest={digest}", "dataset.num_samples=8"]
    given = dict(assignment(each, base) for each in [*upload, *SMALL_SWEEP])
    spec = with_settings(base, given)
    program, *command = shlex.split(command_line(spec))
    assert program == "linearity-lab"
    assert main([*command[:-1], str(tmp_path / "results")]) == 0
    assert "10" in capsys.readouterr().out


def test_undecided_header_names_the_options(tmp_path, capsys):
    file = tmp_path / "years.csv"
    file.write_text("land,2019,2020\nA,1,2.5\nB,4,3\n")
    assert main(["data", str(file)]) == 2
    assert "--header or --no-header" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "options", "shape", "outputs"),
    [
        (
            flowers(),
            ["--target", "size", "--task", "regression", "--features", "sepal,petal"],
            [2],
            1,
        ),
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
        (["data", "{folder}/model.py"], "Line 4 has 7 values; the header has 2 columns"),
        (
            ["own", "{folder}/model.py:nothing", "--widths", "4"],
            "FILE.py:NAME: nothing cannot be used",
        ),
        (["own", "{folder}/none.py:network", "--widths", "4"], "FILE.py:NAME: "),
        (["own", "{folder}/model.py:network", "--widths", "four"], "widths: four cannot be used"),
        (["own", "{folder}/model.py:network", "--widths", "0"], "widths: 0 cannot be used"),
        (
            ["own", "{folder}/model.py:network", "--widths", "4", "--dataset", "imagenet"],
            "dataset.name: imagenet",
        ),
        (
            ["own", "{folder}/model.py:network", "--widths", "4", "--digest", "0" * 64],
            "digest: 0000",
        ),
        (
            ["own", "{folder}/model.py:wrong_shape", "--widths", "4"],
            "model: 2 outputs cannot be used; use 3",
        ),
        (["own", "{folder}/model.py:broken", "--widths", "4"], "model.py, line 9: TypeError: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(model, capsys, arguments, sentence):
    assert main([part.format(folder=model.parent) for part in arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


OPTIONS = [
    "--widths",
    "8,32",
    "--num-seeds",
    "2",
    "--num-samples",
    "6",
    "--max-steps",
    "200",
    "--num-inputs",
    "1",
]


@pytest.mark.long
def test_model_file_is_swept_stored_and_never_restarted(model, capsys, tmp_path):
    loaded = tmp_path / "loaded"
    model.write_text(f"from pathlib import Path\nPath({str(loaded)!r}).touch()\n{MODEL}")
    command = ["own", f"{model}:network", *OPTIONS, "--loss-threshold", "0.05"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert printed.count("converged") == 4
    assert "ΔK ∝ m^(−" in printed
    assert printed.count("structured") == 2  # both matrices
    assert "checked on 2 inputs: relative difference" in printed
    assert "Verdict: " in printed

    store = Store()
    (listed,) = store.runs(experiment="own_model").runs
    spec, result = store.spec(listed.digest), store.result(listed.digest)
    assert (listed.status, listed.num_points, listed.swept) == ("completed", 2, "2 widths, 8 to 32")
    assert (spec.file, spec.function, spec.widths) == ("model.py", "network", (8, 32))
    assert spec.sha256 == hashlib.sha256(model.read_bytes()).hexdigest()
    assert len(result.rows()) == 4
    assert all(row["hessian_norm"] > 0 for row in result.rows())
    assert result.provenance.data_sha256 == data_fingerprint(load_data(spec))
    assert "jnp" not in result.model_dump_json(), "no code is kept"
    assert sorted(spec.command()) == sorted(
        ["own", "model.py:network", *OPTIONS, "--loss-threshold", "0.05"]
    )
    assert main(["show", listed.digest[:8]]) == 0
    assert capsys.readouterr().out.startswith(printed.rstrip())

    loaded.unlink()
    file = tmp_path / "spec.json"
    file.write_text(canonical_json(spec))
    for started in (
        ["run", str(file)],
        ["run", str(file), "--out", str(tmp_path / "out")],
        ["resume", listed.digest],
    ):
        assert main(started) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(
            "experiment: own_model cannot be used; use `linearity-lab own model.py`"
        )
    runs = tmp_path / "runs.jsonl"
    assert main(["export", listed.digest, "--out", str(runs)]) == 0
    elsewhere = Store(tmp_path / "elsewhere.sqlite")
    with runs.open("rb") as exported:
        assert read_runs(elsewhere, exported).digests == (listed.digest,)
    assert elsewhere.result(listed.digest) == result.as_imported()
    assert not loaded.exists(), "the file was not run again"
    assert not (tmp_path / "out").exists()
    capsys.readouterr()
    assert main([*command, "--json"]) == 0  # the same file again, with both points from the store
    assert loaded.exists()
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event.get("resumed") for event in events] == [True, True, None]


SMALL = ["--set", "dataset.num_samples=6", "width=8"]


@pytest.fixture
def files(tmp_path: Path, model: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    before = {"w": rng.standard_normal((10, 8)), "v": rng.standard_normal((8, 3))}
    after = {name: 1.01 * each for name, each in before.items()}
    np.savez(tmp_path / "before.npz", **before)
    np.savez(tmp_path / "after.npz", **after)
    np.savez(tmp_path / "narrow.npz", w=before["w"][:, :4], v=before["v"])
    np.savez(tmp_path / "half.npz", w=before["w"])
    np.savez(tmp_path / "more.npz", **before, b=before["v"])
    np.savez(tmp_path / "infinite.npz", w=np.inf * before["w"], v=before["v"])
    (tmp_path / "weights.npz").write_bytes(pickle.dumps(before))
    names = ("before", "after", "narrow", "half", "more", "infinite", "weights")
    return {name: str(tmp_path / f"{name}.npz") for name in names} | {"model": f"{model}:network"}


def test_report_is_printed_stored_and_never_restarted(files, capsys):
    assert main(["report", files["model"], files["before"], files["after"], *SMALL]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Linear: the outputs follow the linear model at w₀ up to ")
    store = Store()
    (listed,) = store.runs(experiment="linearity_report").runs
    spec, result = store.spec(listed.digest), store.result(listed.digest)
    assert (listed.status, listed.num_points, listed.swept) == ("completed", 1, "1 report")
    assert spec.after_sha256 == hashlib.sha256(Path(files["after"]).read_bytes()).hexdigest()
    assert spec.command() == (
        "report",
        "model.py:network",
        "before.npz",
        "after.npz",
        *SMALL[:1],
        *reversed(SMALL[1:]),
    )
    ends = [dict(np.load(files[name])) for name in ("before", "after")]

    def apply(params, x):
        return jnp.tanh(x @ params["w"] / 3) @ params["v"] / 8**0.5

    data = load_data(spec)
    expected = ntk_core.linearity_report(apply, *jax.tree.map(np.float32, ends), data.x, data.y)
    (point,) = result.points
    assert point.output_error == pytest.approx(expected.output_error, rel=1e-3)
    assert point.kernel_change == pytest.approx(expected.kernel_change, rel=1e-3)
    assert [(row["name"], row["num_params"]) for row in result.rows()] == [("v", 24), ("w", 80)]
    assert result.rows()[0]["output_error"] == point.output_error
    assert type(result).model_validate_json(result.model_dump_json()) == result
    with pytest.raises(InvalidInput, match="only this command runs your own files"):
        list(run(spec))
    assert main(["show", listed.digest[:8]]) == 0
    assert capsys.readouterr().out.startswith(printed.rstrip())


def test_report_of_several_checkpoints_has_their_error_of_adding(files, capsys, tmp_path):
    before = dict(np.load(files["before"]))
    np.savez(tmp_path / "other.npz", w=0.9 * before["w"], v=before["v"])
    np.savez(tmp_path / "elsewhere.npz", w=before["w"][::-1], v=before["v"][::-1])
    command = ["report", files["model"], files["before"], files["after"]]
    assert main([*command, str(tmp_path / "other.npz"), *SMALL]) == 0
    assert "The 2 checkpoints add" in capsys.readouterr().out
    store = Store()
    (listed,) = store.runs(experiment="linearity_report").runs
    assert store.spec(listed.digest).others == ("other.npz",)
    (point,) = store.result(listed.digest).points
    assert 0 < point.addition_error < 0.1
    assert main([*command, str(tmp_path / "elsewhere.npz"), *SMALL]) in (1, 2)
    assert "do not share w₀" in capsys.readouterr().err


def test_report_of_another_start_warns_by_a_measurement(files, capsys, tmp_path):
    before = dict(np.load(files["before"]))
    np.savez(tmp_path / "elsewhere.npz", w=before["w"][::-1], v=before["v"][::-1])
    later = str(tmp_path / "elsewhere.npz")
    assert main(["report", files["model"], files["before"], later, *SMALL]) == 0
    printed = capsys.readouterr().out
    assert "Check that w₁ was trained from w₀" in printed
    assert "Correlation of w₁ with w₀" in printed
    assert main(["report", files["model"], files["before"], files["after"], *SMALL]) == 0
    assert "Check that" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            "before",
            "narrow",
            "after: w of shape (10, 4) cannot be used; use w of shape (10, 8), as in the model",
        ),
        ("before", "half", "after: no v cannot be used; use v of shape (8, 3), as in the model"),
        ("more", "after", "before: b of shape (8, 3) cannot be used; use no b"),
        ("weights", "after", "checkpoint: weights.npz cannot be used; use arrays by name in "),
        ("model", "after", "checkpoint: "),
    ],
)
def test_bad_checkpoints_are_one_sentence(files, capsys, before, after, sentence):
    assert main(["report", files["model"], files[before], files[after], *SMALL]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ("before", "these two are equal"),
        ("infinite", "infinite.npz: w with numbers that are not finite"),
    ],
)
def test_what_cannot_be_reported_ends_with_a_reason(files, capsys, after, words):
    assert main(["report", files["model"], files["before"], files[after], *SMALL]) in (1, 2)
    assert words in capsys.readouterr().err


def test_pickles_in_place_of_arrays_are_not_executed(tmp_path):
    trace = tmp_path / "trace"

    class Hostile:
        def __reduce__(self):
            return Path.touch, (trace,)

    path = tmp_path / "hostile.npz"
    np.savez(path, w=np.array([Hostile()], dtype=object))
    with pytest.raises(InvalidInput, match=r"hostile\.npz cannot be used; .*Python objects"):
        read_checkpoint(path)
    assert not trace.exists()
