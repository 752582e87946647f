"""Listed words, long names of tests, long comments and clumsy docstrings do not return."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.documents import ROOT, documents

MAX_NAME, MAX_FIRST_LINE = 60, 12

# Phrases of earlier pages → what to write; single words are in .ci/words.txt, for codespell.
WORDS = {
    r"one's own": "your own, custom, uploaded",
    r"any more": "drop it",
    r"hardly": "barely, almost no",
    r"so many": "a number of",
    r"said|says": "report, emit, record, return, state",
    r"looks? at": "measures, records, checks",
    r"brought": "uploaded",
    r"(?:is|are) lost|thrown|comes? back": "diverges, catapults, recovers",
    r"seams?|the door|the house": "layer interface, public API, package",
    r"kinds? of networks?": "architecture",
    r"moves? as one|bends? as one|part ways": "coincide, diverge",
    r"(?:is|are|was|were) begun|goes on|go on": "starts, continues",
    r"holds with a correction": "holds, with a caveat",
    r"what there is of": "partial",
    r"falls like": "decreases as",
    r"besides": "also",
    r"rooms|room for|no room": "package, module, poll; space",
    r"in no mean|runs? that count": "excluded from means and fits, converged runs",
    r"of its (?:own )?way": "of its progress",
    r"what (?:was|is|were) (?:asked|given|kept|read)": "request, value, stored data, parsed file",
    r"a person|person's own|everybody": "user, custom, all users",
    r"under the hand|the hand": "pointer, user",
}
# Packages whose docstrings, comments and strings are clean.
CLEAN_CODE = ("benchmarks", "linearity_lab", "ntk_core", "pages", "tests")
# Generated pages follow their generators; the others are quotations, and this list.
EXCEPT = ("docs/truth.md", "docs/benchmarks.md", "tests/claims", "tests/test_english.py")


def prose(text: str) -> str:
    """Remove code, formulas and link targets."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ", text)


def code_prose(text: str) -> str:
    """Return the comments and string literals of a module, without quoted code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    prose_types = {tokenize.COMMENT, tokenize.STRING}  # a string without a space is a name
    words = "\n".join(token.string for token in tokens if token.type in prose_types and " " in token.string)
    return re.sub(r"``[^`]*``", " ", words)


def script_prose(text: str) -> str:
    """Return the comments of a script or a style sheet."""
    return "\n".join(re.findall(r"(?:^|\s)//.*$|/\*.*?\*/", text, flags=re.MULTILINE | re.DOTALL))


def old_words(text: str) -> list[str]:
    """Return each listed word of a text with its replacement."""
    return [
        f"{found[0]!r} → {better}"
        for words, better in WORDS.items()
        for found in re.finditer(rf"(?<!-)\b(?:{words})\b", text, flags=re.IGNORECASE)
    ]


def code_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


SCRIPTS = [
    path for kind in ("js", "css") for path in (ROOT / "linearity_lab").rglob(f"*.{kind}") if ".min." not in path.name
]


@pytest.mark.parametrize(
    ("paths", "words_of", "least"),
    [(documents(), prose, 80), (code_files(*CLEAN_CODE), code_prose, 500), (SCRIPTS, script_prose, 30)],
    ids=["documents", "code", "scripts"],
)
def test_clean_files_have_no_listed_word(paths: list[Path], words_of: Callable[[str], str], least: int) -> None:
    texts = {path.relative_to(ROOT).as_posix(): words_of(path.read_text(encoding="utf-8")) for path in paths}
    assert sum(map(bool, texts.values())) > least
    found = {name: old_words(text) for name, text in texts.items() if not name.startswith(EXCEPT)}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("sentence", ["No one waits any more.", "They go on.", "It says why."])
def test_listed_words_are_found(sentence: str) -> None:
    assert old_words(sentence)


def test_words_of_the_spell_check_are_found(tmp_path: Path) -> None:
    """``make static`` runs codespell with the words that do not return."""
    page = tmp_path / "page.md"
    page.write_text("It is recomputed.\nIt is computed anew.\nNobody waits.\n", encoding="utf-8")
    command = [sys.executable, "-m", "codespell_lib", "--toml", "pyproject.toml", str(page)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.findall(r"page\.md:(\d)", ended.stdout) == ["2", "3"], ended.stderr


def comment_blocks(text: str) -> list[int]:
    """Return the first lines of comments that continue on the next line."""
    comments = [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    ]
    return [line for line in comments if line + 1 in comments and line - 1 not in comments]


def test_comments_have_one_line() -> None:
    paths = code_files(*CLEAN_CODE, "examples", "hosting")
    blocks = {path: comment_blocks(path.read_text(encoding="utf-8")) for path in paths}
    assert len(blocks) > 500
    assert {path.relative_to(ROOT).as_posix(): lines for path, lines in blocks.items() if lines} == {}
    assert comment_blocks("x = 1  # one\n# two\n\n# four\n# five\n") == [4]


def test_names_of_tests_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in code_files("tests")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and len(node.name) > MAX_NAME
    ]
    assert long == []


def test_docstrings_begin_with_no_relative_clause() -> None:
    """``Parsed file``, not ``What was read of a file``."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    assert [
        f"{path.relative_to(ROOT)}: {text[:60]}"
        for path in code_files(*CLEAN_CODE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
        and (text := ast.get_docstring(node) or "").startswith(("What ", "Those ", "Who"))
        and not text.startswith(("Whole", "Whose "))
    ] == []
