"""The command ``report``: compares two checkpoints of a file's model, stores and displays the result."""

import hashlib
import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.cli import main
from ntk_core.errors import InvalidInput
from ntk_core.own_models import read_checkpoint
from ntk_core.runs import load_data, run
from ntk_core.runs.store import Store

MODEL = """
import jax, jax.numpy as jnp
def network(width, key):
    w, v = jax.random.normal(key, (10, width)), jax.random.normal(key, (width, 3))
    return lambda p, x: jnp.tanh(x @ p["w"] / 3) @ p["v"] / width**0.5, {"w": w, "v": v}
"""
SMALL = ["--set", "dataset.num_samples=6", "width=8"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
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
    (tmp_path / "model.py").write_text(MODEL)
    names = ("before", "after", "narrow", "half", "more", "infinite", "weights")
    return {name: str(tmp_path / f"{name}.npz") for name in names} | {"model": f"{tmp_path / 'model.py'}:network"}


def test_report_is_printed_stored_and_never_restarted(files, capsys):
    assert main(["report", files["model"], files["before"], files["after"], *SMALL]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Linear: the outputs follow the linear model at w₀ up to ")
    store = Store()
    (listed,) = store.runs(experiment="linearity_report").runs
    spec, result = store.spec(listed.digest), store.result(listed.digest)
    assert (listed.status, listed.num_points, listed.swept) == ("completed", 1, "1 report")
    assert spec.after_sha256 == hashlib.sha256(Path(files["after"]).read_bytes()).hexdigest()
    assert spec.command() == ("report", "model.py:network", "before.npz", "after.npz", *SMALL[:1], *reversed(SMALL[1:]))
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


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("before", "narrow", "after: w of shape (10, 4) cannot be used; use w of shape (10, 8), as in the model"),
        ("before", "half", "after: no v cannot be used; use v of shape (8, 3), as in the model"),
        ("more", "after", "before: b of shape (8, 3) cannot be used; use no b"),
        ("weights", "after", "checkpoint: weights.npz ("),
        ("model", "after", "checkpoint: "),
    ],
)
def test_bad_checkpoints_are_one_sentence(files, capsys, before, after, sentence):
    assert main(["report", files["model"], files[before], files[after], *SMALL]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(sentence)


@pytest.mark.parametrize(
    ("after", "words"), [("before", "these two are equal"), ("infinite", "w with numbers that are not finite")]
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
    with pytest.raises(InvalidInput, match=r"hostile\.npz \("):
        read_checkpoint(path)
    assert not trace.exists()
