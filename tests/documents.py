"""Blocks of code in the project's Markdown, and the commands in them."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "examples", "benchmarks", "ntk_core", "linearity_lab")
SEPARATORS = {";", "&", "&&", "|", "||", "(", ")"}
KEYWORDS = {"do", "done", "then", "fi", "exec"}
# Variables that are set in documents but not on every machine.
SETTINGS = {"docs/cluster.md": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}}
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Commands that end, and need no cluster, terminal or network.
ENDING = {"presets", "run", "show", "list", "export", "data", "own", "report", "site"}


class Block(NamedTuple):
    """One fenced block: its document, first line, language and text."""

    document: str
    line: int
    language: str
    text: str

    @property
    def runs_alone(self) -> bool:
        """Whether all commands are ``linearity-lab`` ones, which the wheel check runs."""
        found = list(commands(self.text))
        return self.language == "sh" and all(
            not each.variables and each.words[:1] == ["linearity-lab"] and each.words[1] in ENDING
            for each in found
        )


class Command(NamedTuple):
    """One simple command of a shell: assigned variables, then program and arguments."""

    variables: dict[str, str]
    words: list[str]


def documents() -> list[Path]:
    """Every Markdown file of the project."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *below])


def blocks_of(path: Path) -> list[Block]:
    """Return every fenced block of a document, also indented ones."""
    name, found = path.relative_to(ROOT).as_posix(), []
    open_block: tuple[int, str, str, list[str]] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"\s*(`{3,}|~{3,})(.*)$", line)
        if open_block is None and fence:
            open_block = (number, fence[1], fence[2].strip(), [])
        elif open_block and line.strip() == open_block[1]:
            start, _, language, lines = open_block
            found.append(Block(name, start, language, textwrap.dedent("\n".join(lines)) + "\n"))
            open_block = None
        elif open_block:
            open_block[3].append(line)
    assert open_block is None, f"{name} ends inside a block"
    return found


def files_of(tutorial: str) -> dict[str, str]:
    """Path → text of every block of code whose caption is a path."""
    blocks = blocks_of(ROOT / "docs" / "tutorials" / tutorial)
    found = (
        re.fullmatch(r":caption: (\S+)\n\n(.*)", block.text, flags=re.DOTALL) for block in blocks
    )
    return {match[1]: match[2] for match in found if match}


def write_files(tutorial: str, folder: Path) -> None:
    """Write the files of a tutorial below a folder."""
    for name, text in files_of(tutorial).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def scripts(path: Path, folder: Path, data: Path) -> list[str]:
    """Return the shell blocks that run alone,
    after writing the models and uploads that they name.
    """
    blocks = blocks_of(path)
    for block in blocks:
        if block.language == "python" and "\ndef model(" in block.text:
            (folder / "model.py").write_text(block.text, encoding="utf-8")
    digest = next((each.stem for each in data.rglob("uploads/*.npz")), "SHA256")
    return [block.text.replace("SHA256", digest) for block in blocks if block.runs_alone]


def program(path: Path) -> str:
    """Return the Python blocks of a document as one program; empty without any."""
    return "\n".join(block.text for block in blocks_of(path) if block.language == "python")


def commands(text: str) -> Iterator[Command]:
    """Yield every simple command of a shell script,
    without redirections and here-document marks.
    """
    inner = re.findall(r"\$\(([^()]*)\)", text)
    text = re.sub(r"\$\([^()]*\)", "OUTPUT", text)
    text = re.sub(r"<<'(\w+)'(.*?)^\1$", r"\2", text, flags=re.DOTALL | re.MULTILINE).replace(
        "\\\n", " "
    )
    for line in [*text.splitlines(), *inner]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        words: list[str] = []
        for token in [*lexer, ";"]:
            if token not in SEPARATORS:
                words.append(token)
            elif words:
                yield from _command(words)
                words = []


def _command(words: list[str]) -> Iterator[Command]:
    variables = {}
    while words and (words[0] in KEYWORDS | {"export"} or ASSIGNMENT.fullmatch(words[0])):
        name, _, value = words[0].partition("=")
        if ASSIGNMENT.fullmatch(words[0]):
            variables[name] = value
        words = words[1:]
    if words or variables:
        yield Command(variables, words)
