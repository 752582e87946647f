"""Code blocks of documents: each is run by a test, or its commands, files and settings are checked here.

The wheel check runs the Python blocks and those shell blocks whose commands are all ``linearity-lab``; ``make docs``
and the tutorials' tests run the rest of the Python. Docker, clusters and other hosts are not run.
"""

import ast
import importlib.util
import json
import re
import tomllib
from functools import cache
from itertools import pairwise

import pytest
from cyclopts import MissingArgumentError

import ntk_core
from hosting.start_nginx import DEFAULTS
from ntk_core.cli import _main
from ntk_core.cli._targets import assignment
from ntk_core.environment import PREFIX
from ntk_core.variables import Settings
from tests.documents import ROOT, Block, Command, blocks_of, commands, documents

BLOCKS = [block for path in documents() for block in blocks_of(path)]
# Programs of a host, whose options are not checked.
OUTSIDE = {
    *("apt-get", "buildah", "cat", "cd", "chown", "debootstrap", "docker buildx", "env", "for", "git", "hf", "ln"),
    *("dask", "mkdir", "mktemp", "mount", "mv", "printf", "streamlit", "unshare"),
}
FOREIGN_VARIABLES = {"CUDA_VISIBLE_DEVICES", "PYTHONPATH", "XLA_PYTHON_CLIENT_PREALLOCATE", "root"}
DOCKERFILE, MAKEFILE = ((ROOT / name).read_text(encoding="utf-8") for name in ("Dockerfile", "Makefile"))
COMPOSE = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("compose.yaml", "compose.gpu.yaml")}
EXTRAS = set(re.findall(r"^    \"(\w+)\": \(", (ROOT / "hatch_build.py").read_text(encoding="utf-8"), re.MULTILINE))
UPLOADED = "0" * 64


def after(words: list[str], *options: str) -> list[str]:
    """Return the words behind these options."""
    return [value for option, value in pairwise(words) if option in options]


def check_lab(words: list[str]) -> None:
    """The parser accepts the command; presets and settings exist."""
    _, bound, _ = _main._app().parse_args(words, exit_on_error=False, print_error=False)
    if words[0] == "run":
        spec = ntk_core.presets()[bound.arguments["target"]]
        changes = dict(
            assignment(each.replace("SHA256", UPLOADED), spec) for each in bound.arguments.get("settings", ())
        )
        assert ntk_core.experiments.with_settings(spec, changes) != spec or not changes


def check_make(words: list[str]) -> None:
    targets = re.findall(r"^([a-z -]+):(?!=)", MAKEFILE, flags=re.MULTILINE)
    assert {word for word in words if "=" not in word} <= {name for names in targets for name in names.split()}


def check_pip(words: list[str]) -> None:
    for name in after(words, "-r"):
        assert (ROOT / name).is_file(), name
    for extra in re.findall(r"(?:WHEEL|\.)\[(\w+)\]", " ".join(words)):
        assert extra in EXTRAS, extra


def check_python(words: list[str]) -> None:
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]), words[1]
    else:
        source = (ROOT / words[0].lstrip("/")).read_text(encoding="utf-8")  # the image has the same folders
        assert [word for word in words if word.startswith("--") and f'"{word}"' not in source] == []


def check_docker(words: list[str]) -> None:
    """Files, profiles, build arguments and stages exist."""
    files = [COMPOSE[name] for name in after(words, "-f") or ["compose.yaml"]]
    for option, pattern, texts in (
        ("--profile", r"profiles:\s+- (\w+)", files),
        ("--build-arg", r"^ARG (\w+)", [DOCKERFILE]),
        ("--target", r"^FROM \S+ AS (\w+)", [DOCKERFILE]),
    ):
        given = {each.partition("=")[0] for each in after(words, option)}
        assert given <= {each for text in texts for each in re.findall(pattern, text, re.M)}, option


def check_uvx(words: list[str]) -> None:
    check_pip(words[1:2])
    check_lab(words[3:])


CHECKS = {
    "linearity-lab": check_lab,
    "make": check_make,
    "pip": check_pip,
    "uvx": check_uvx,
    "python": check_python,
    "docker": check_docker,
    "buildah": check_docker,
}


@cache
def known_variables() -> set[str]:
    return {*(PREFIX + name.upper() for name in Settings.model_fields), *DEFAULTS, *FOREIGN_VARIABLES}


def check_command(command: Command) -> None:
    """Raise if program, options, files or settings do not exist."""
    if command.words:
        program = " ".join(command.words[: 2 if command.words[:2] == ["docker", "buildx"] else 1])
        assert program in CHECKS or program in OUTSIDE, program
        if program in CHECKS:
            CHECKS[program](command.words[1:])


def check_shell(block: Block) -> None:
    found = list(commands(block.text))
    in_compose = any(command.words[:2] == ["docker", "compose"] for command in found)
    known = set(re.findall(r"\$\{(\w+)", "".join(COMPOSE.values()))) if in_compose else known_variables()
    assert {name for command in found for name in command.variables} <= known
    for command in found:
        check_command(command)


def check_usage(block: Block) -> None:
    """The synopsis lists every command and only existing options."""
    app, shown = _main._app(), {}
    for line in block.text.splitlines():
        program, name, *rest = line.split(maxsplit=2)
        assert program == "linearity-lab"
        shown[name] = set(re.findall(r"--[a-z-]+", " ".join(rest)))
    shown.pop("--version")
    assert list(shown) == list(_main.COMMANDS)
    for name, options in shown.items():
        known = {each for argument in app[name].assemble_argument_collection() for each in argument.names}
        assert options <= known, name


def check_tree(block: Block) -> None:
    """Every path of the drawn folders exists."""
    folders: list[str] = []
    for line in block.text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}(?=[a-z])(?!\S+/)", line.strip(), maxsplit=1)[0]
        for name in re.split(r",?\s+", names):
            path = "/".join([*folders[:depth], name.partition("<")[0].rstrip("/")])
            assert (ROOT / path).exists(), path
        folders[depth:] = [names.rstrip("/")]


# Document → check of its blocks without code; None: a drawing, or a line for another program.
TEXTS = {
    "docs/architecture.md": check_tree,
    "docs/command-line.md": check_usage,
    "docs/jobs-and-results.md": None,
    "docs/hosting.md": None,
    "docs/decisions/0005-hessian-norms.md": None,
}


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
            check_shell(block)
        case "json":
            ntk_core.graphs.parse_composition(json.loads(block.text))
        case "toml":
            assert set(tomllib.loads(block.text)) <= known_variables()
        case "html":
            assert set(re.findall(r"figures/([\w-]+)\.html", block.text)) <= set(ntk_core.presets())
        case "text":
            if check := TEXTS[block.document]:
                check(block)
        case "{toctree}":
            folder = (ROOT / block.document).parent
            pages = [line for line in block.text.splitlines() if line and not line.startswith(":")]
            assert [
                each for each in pages if not list(folder.glob(f"{each.partition('<')[2].rstrip('>') or each}.md"))
            ] == []
        case "{eval-rst}":  # make docs fails on a name that does not exist
            assert re.match(r"\.\. auto\w+:: ntk_core\.", block.text)
        case language:
            assert re.fullmatch(r"\{code-block\} \w+", language), f"no class of blocks: {language!r}"
            assert block.text.startswith(":caption: "), "a file of a tutorial has its path as caption"


def test_every_block_of_a_document_is_checked() -> None:
    problems = []
    for block in BLOCKS:
        try:
            check_block(block)
        except Exception as error:
            problems.append(f"{block.document}:{block.line}: {type(error).__name__}: {error}")
    assert problems == []
    assert len(BLOCKS) > 90


def test_commands_in_sentences_are_accepted() -> None:
    """They may omit arguments and name a tutorial's preset; the changelog, with earlier commands, is not read."""
    problems = []
    for path in documents():
        if path.name == "CHANGELOG.md":
            continue
        text = re.sub(r"^\s*```.*?^\s*```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for shown in re.findall(r"`((?:linearity-lab|make|pip install|python) [^`\n]+)`", text):
            if re.search(r"[A-Z]{2,}|…|toy-first", shown):
                continue
            try:
                for command in commands(shown):
                    check_command(command)
            except MissingArgumentError:
                pass
            except Exception as error:
                problems.append(f"{path.relative_to(ROOT)}: {shown}: {type(error).__name__}: {error}")
    assert problems == []


@pytest.mark.parametrize(
    "text",
    [
        "linearity-lab run liu-fig1-left --widht 3",
        "linearity-lab run no-such-preset",
        "linearity-lab run liu-fig1-left --set widht=3",
        "make nothing",
        "pip install 'WHEEL[nothing]'",
        "python examples/nothing.py",
        "docker compose --profile nothing up",
        "LINEARITY_LAB_NOTHING=1 linearity-lab presets",
        "curl example.org",
    ],
)
def test_wrong_commands_and_languages_are_recognized(text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  (each program has an error of its own)
        check_shell(Block("README.md", 1, "sh", text))
    with pytest.raises(AssertionError, match="no class"):
        check_block(Block("README.md", 1, "bash", text))
