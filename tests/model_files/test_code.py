"""Models in Python files: names that exist, and errors as one sentence with their line."""

import numpy as np
import pytest

from linearity_lab.model_files import OwnModelError, load_model, their_errors
from ntk_core import InvalidInput, sweep_widths

X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.random.default_rng(1).normal(size=(8, 1))

FILE = """
import jax.numpy as jnp
def network(width, key):
    return lambda p, x: x @ p, jnp.ones((3, 1))
def broken(width, key):
    raise KeyError("weights\\nof the second layer")
def stops(width, key):
    raise SystemExit(3)
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("own.py", "a file that exists"),
        ("own.txt:network", "a Python file and a name in it"),
        ("{folder}/own.py:nothing", "one of network, broken, stops"),
        ("{folder}/own.py:number", "number, int"),
    ],
)
def test_a_target_that_is_no_model_is_refused(file, target, words):
    with pytest.raises(InvalidInput, match=words):
        load_model(target.format(folder=file.parent))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:\n", "own.py, line 1: SyntaxError: "),
        (
            "x = 1\nimport nothing_of_that_name\n",
            "own.py, line 2: ModuleNotFoundError: No module named",
        ),
        (
            FILE.replace("network", "unused").replace("broken", "network"),
            "own.py, line 6: KeyError: 'weights",
        ),
        (
            FILE.replace("network", "unused").replace("stops", "network"),
            "own.py, line 8: SystemExit: 3",
        ),
    ],
)
def test_error_in_a_file_or_model_is_one_sentence_with_its_line(file, text, sentence):
    file.write_text(text)

    def swept():
        own, path, _ = load_model(f"{file}:network")
        with their_errors(path):
            sweep_widths(own, [4], X, Y)

    with pytest.raises(OwnModelError) as error:
        swept()
    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)
