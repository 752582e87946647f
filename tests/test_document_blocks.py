"""Code blocks of documents.

Each is run by a test, or its commands, files and settings are checked here.

The wheel check runs the Python blocks and those shell blocks whose commands are all
``linearity-lab``; ``make docs`` and the tutorials' tests run the rest of the Python. Docker,
clusters, pip and other hosts are not run.
"""

import ast
import importlib.util
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from cyclopts import MissingArgumentError

import linearity_lab
import ntk_core
from hosting.start_nginx import DEFAULTS
from linearity_lab.cli import _main
from linearity_lab.cli._targets import assignment
from linearity_lab.variable_names import PREFIX
from linearity_lab.variables import Settings
from tests.documents import ROOT, Block, blocks_of, commands, documents

# Programs of a host, whose options are not checked.
OUTSIDE = {
    *(
        "apt-get",
        "buildah",
        "cat",
        "cd",
        "chown",
        "dask",
        "date",
        "debootstrap",
        "docker",
        "env",
        "for",
        "git",
        "hf",
        "ln",
    ),
    *("mkdir", "mktemp", "mount", "mv", "pip", "printf", "streamlit", "unshare"),
}
FOREIGN_VARIABLES = {"CUDA_VISIBLE_DEVICES", "PYTHONPATH", "XLA_PYTHON_CLIENT_PREALLOCATE", "root"}


def check_lab(words: list[str]) -> None:
    """The parser accepts the command; presets and settings exist."""
    _, bound, _ = _main._app().parse_args(words, exit_on_error=False, print_error=False)
    if words[0] == "run":
        spec = linearity_lab.presets()[bound.arguments["target"]]
        given = (each.replace("SHA256", "0" * 64) for each in bound.arguments.get("settings", ()))
        linearity_lab.experiments.with_settings(
            spec, dict(assignment(each, spec) for each in given)
        )


def check_make(words: list[str]) -> None:
    targets = re.findall(
        r"^([a-z -]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert {word for word in words if "=" not in word} <= {
        name for names in targets for name in names.split()
    }


def check_python(words: list[str]) -> None:
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]), words[1]
    else:
        # The image has the same folders.
        source = (ROOT / words[0].lstrip("/")).read_text(encoding="utf-8")
        assert [word for word in words if word.startswith("--") and f'"{word}"' not in source] == []


CHECKS = {
    "linearity-lab": check_lab,
    "make": check_make,
    "uvx": lambda words: check_lab(words[3:]),
    "python": check_python,
}


@cache
def known_variables() -> set[str]:
    """Settings of the lab, of nginx and of compose.yaml, and those of other programs."""
    compose = re.findall(
        r"\$\{(\w+)",
        "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("compose*.yaml")),
    )
    return {
        *(PREFIX + name.upper() for name in Settings.model_fields),
        *DEFAULTS,
        *FOREIGN_VARIABLES,
        *compose,
    }


def check_shell(text: str) -> None:
    """Raise if a program, option, file, setting or variable does not exist."""
    for command in commands(text):
        assert command.variables.keys() <= known_variables()
        program = command.words[0] if command.words else "env"
        assert program in CHECKS or program in OUTSIDE, program
        if program in CHECKS:
            CHECKS[program](command.words[1:])


def check_usage(text: str) -> None:
    """The synopsis lists every command and only existing options."""
    app, shown = _main._app(), {}
    for line in text.splitlines():
        _, name, *rest = line.split(maxsplit=2)
        shown[name] = set(re.findall(r"--[a-z-]+", " ".join(rest)))
    shown.pop("--version")
    assert list(shown) == list(_main.COMMANDS)
    for name, options in shown.items():
        known = {
            each for argument in app[name].assemble_argument_collection() for each in argument.names
        }
        assert options <= known, name


def check_block(block: Block) -> None:
    """Raise if a block has no known class or names something that does not exist."""
    match block.language:
        case "python":
            ast.parse(block.text)
        case "py":  # needs PyTorch
            names = re.findall(r"ntk_core\.(\w+)", block.text)
            assert names
            assert all(hasattr(ntk_core, name) for name in names)
        case "sh":
            check_shell(block.text)
        case "json":
            ntk_core.graphs.parse_composition(json.loads(block.text))
        case "toml":
            assert set(tomllib.loads(block.text)) <= known_variables()
        case "text" if block.document == "docs/command-line.md":
            check_usage(block.text)
        case language:  # make docs checks the directives
            assert language in ("text", "html") or language.startswith("{"), (
                f"no class of blocks: {language!r}"
            )


def sentences_of(path: Path) -> list[Block]:
    """Commands in the sentences of a document.

    Not of the changelog, whose commands are earlier ones.
    """
    text = re.sub(
        r"^\s*```.*?^\s*```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    shown = (
        re.findall(r"`((?:linearity-lab|make|python) [^`\n]+)`", text)
        if path.name != "CHANGELOG.md"
        else []
    )
    return [
        Block(path.name, 0, "sh", each)
        for each in shown
        if not re.search(r"[A-Z]{2,}|…|toy-first", each)
    ]


def test_every_block_and_command_of_a_document_is_checked() -> None:
    """Commands in sentences may omit arguments."""
    problems, blocks = (
        [],
        [block for path in documents() for block in (*blocks_of(path), *sentences_of(path))],
    )
    for block in blocks:
        try:
            check_block(block)
        except Exception as error:
            if block.line or not isinstance(error, MissingArgumentError):
                problems.append(
                    f"{block.document}:{block.line}: {block.text[:60]}: {type(error).__name__}: "
                    f"{error}"
                )
    assert problems == []
    assert len(blocks) > 90


@pytest.mark.parametrize(
    "text",
    [
        "linearity-lab run liu-fig1-left --widht 3",
        "linearity-lab run no-such-preset",
        "linearity-lab run liu-fig1-left --set widht=3",
        "make nothing",
        "python examples/nothing.py",
        "LINEARITY_LAB_NOTHING=1 linearity-lab presets",
        "curl example.org",
    ],
)
def test_wrong_commands_are_recognized(text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  (each program has an error of its own)
        check_shell(text)
