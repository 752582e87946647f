"""Listed words and long test names do not return to the folders that are clean.

``CLEAN`` grows with every folder that is rewritten.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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
# Files and folders of prose; a generated page follows its generator.
CLEAN = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/README.md",
    "docs/*.md",
    "docs/tutorials",
    "docs/decisions",
    "docs/contributing",
    "docs/api",
    "docs/math",
    "linearity_lab/views",
    "linearity_lab/components",
    "linearity_lab/words",
)
# Packages whose docstrings, comments and strings are clean.
CLEAN_CODE = ("benchmarks", "linearity_lab", "ntk_core", "pages", "tests")
EXCEPT_CODE = ("tests/claims", "tests/test_english.py")  # quotations, and this list
GENERATED = ("docs/truth.md", "docs/benchmarks.md")


def prose_files() -> Iterator[Path]:
    """Yield every file of prose that is clean."""
    for pattern in CLEAN:
        path = ROOT / pattern
        found = sorted(path.rglob("*.md")) if path.is_dir() else sorted(ROOT.glob(pattern))
        assert found, pattern
        yield from (each for each in found if each.relative_to(ROOT).as_posix() not in GENERATED)


def prose(text: str) -> str:
    """Remove code, formulas and link targets."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ", text)


def old_words(text: str) -> list[str]:
    """Return each listed word of a text with its replacement."""
    return [
        f"{found[0]!r} → {better}"
        for words, better in WORDS.items()
        for found in re.finditer(rf"(?<!-)\b(?:{words})\b", text, flags=re.IGNORECASE)
    ]


def test_clean_prose_has_no_listed_word() -> None:
    text = {path: prose(path.read_text(encoding="utf-8")) for path in prose_files()}
    assert {path.relative_to(ROOT).as_posix(): found for path in text if (found := old_words(text[path]))} == {}


def code_prose(text: str) -> str:
    """Return the comments and string literals of a module, without quoted code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    prose_types = {tokenize.COMMENT, tokenize.STRING}  # a string without a space is a name
    words = "\n".join(token.string for token in tokens if token.type in prose_types and " " in token.string)
    return re.sub(r"``[^`]*``", " ", words)


def test_clean_code_has_no_listed_word() -> None:
    found = (path for folder in CLEAN_CODE for path in sorted((ROOT / folder).rglob("*.py")))
    paths = [path for path in found if not path.relative_to(ROOT).as_posix().startswith(EXCEPT_CODE)]
    assert len(paths) > 500
    words = {
        path.relative_to(ROOT).as_posix(): old_words(code_prose(path.read_text(encoding="utf-8"))) for path in paths
    }
    assert {path: each for path, each in words.items() if each} == {}


def script_prose(text: str) -> str:
    """Return the comments of a script or a style sheet."""
    return "\n".join(re.findall(r"(?:^|\s)//.*$|/\*.*?\*/", text, flags=re.MULTILINE | re.DOTALL))


def test_clean_scripts_have_no_listed_word() -> None:
    found = (path for suffix in ("js", "css") for path in sorted((ROOT / "linearity_lab").rglob(f"*.{suffix}")))
    comments = {path: script_prose(path.read_text(encoding="utf-8")) for path in found if ".min." not in path.name}
    assert sum(map(bool, comments.values())) > 30
    assert {path.relative_to(ROOT).as_posix(): words for path in comments if (words := old_words(comments[path]))} == {}


@pytest.mark.parametrize("sentence", ["No one waits any more.", "They go on.", "It says why."])
def test_listed_words_are_found(sentence: str) -> None:
    assert old_words(sentence)


def test_words_of_the_spell_check_are_found(tmp_path: Path) -> None:
    """``make static`` runs codespell with the words that do not return."""
    page = tmp_path / "page.md"
    for sentence, is_found in (("It is recomputed.", False), ("It is computed anew.", True), ("Nobody waits.", True)):
        page.write_text(sentence, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "codespell_lib", "--toml", str(ROOT / "pyproject.toml"), str(page)],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert (ended.returncode != 0) == is_found, ended.stderr


def comment_blocks(text: str) -> list[int]:
    """Return the first lines of comments that continue on the next line."""
    comments = [
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    ]
    return [line for line in comments if line + 1 in comments and line - 1 not in comments]


def test_comments_have_one_line() -> None:
    found = (path for folder in (*CLEAN_CODE, "examples", "hosting") for path in (ROOT / folder).rglob("*.py"))
    blocks = {path: comment_blocks(path.read_text(encoding="utf-8")) for path in found}
    assert len(blocks) > 500
    assert {path.relative_to(ROOT).as_posix(): lines for path, lines in blocks.items() if lines} == {}
    assert comment_blocks("x = 1  # one\n# two\n\n# four\n# five\n") == [4]


def test_names_of_tests_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and len(node.name) > MAX_NAME
    ]
    assert long == []


def test_docstrings_begin_with_no_relative_clause() -> None:
    """``Parsed file``, not ``What was read of a file``."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    paths = [path for folder in CLEAN_CODE for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 500
    assert [
        f"{path.relative_to(ROOT)}: {text[:60]}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
        and (text := ast.get_docstring(node) or "").startswith(("What ", "Those ", "Who"))
        and not text.startswith(("Whole", "Whose "))
    ] == []
