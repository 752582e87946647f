"""Listed words, long names of tests, long comments and clumsy docstrings do not return.

Sentences on screen are short.

A formula, a link and a quoted name count as one word; sources in parentheses do not count.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from linearity_lab.words.markdown import Section, read
from linearity_lab.words.pages import READ, SEE
from tests.documents import ROOT, documents

MAX_SENTENCE, MAX_BESIDE = 20, 60  # words

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
    words = "\n".join(
        token.string for token in tokens if token.type in prose_types and " " in token.string
    )
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
    path
    for kind in ("js", "css")
    for path in (ROOT / "linearity_lab").rglob(f"*.{kind}")
    if ".min." not in path.name
]


@pytest.mark.parametrize(
    ("paths", "words_of", "least"),
    [
        (documents(), prose, 80),
        (code_files(*CLEAN_CODE), code_prose, 500),
        (SCRIPTS, script_prose, 30),
    ],
    ids=["documents", "code", "scripts"],
)
def test_clean_files_have_no_listed_word(
    paths: list[Path], words_of: Callable[[str], str], least: int
) -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): words_of(path.read_text(encoding="utf-8"))
        for path in paths
    }
    assert sum(map(bool, texts.values())) > least
    found = {name: old_words(text) for name, text in texts.items() if not name.startswith(EXCEPT)}
    assert {name: words for name, words in found.items() if words} == {}
    assert old_words("No one waits any more.")


# Pattern in the text of a module → what it shows.
PATTERNS = {
    r"^ *(?:async )?def test_\w{56,}": "a name of a test beyond 60 characters",
    r'^ *"""(?:What|Those|Who) .*': "a docstring that begins with a relative clause",
}


def test_names_and_docstrings_are_short() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {what}: {each}"
        for path in code_files(*CLEAN_CODE, "examples", "hosting")
        for pattern, what in PATTERNS.items()
        for each in re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]
    assert found == []


SCREEN = ROOT / "linearity_lab"
# Fields of front matter with sources or lists.
NOT_SENTENCES = {"source", "terms", "steps", "formula", "gallery"}


def num_words(text: str) -> int:
    text = re.sub(r"\([^()]*\b(?:19|20)\d\d[^()]*\)", "", text)  # (Yang & Hu 2021, §3)
    text = re.sub(r"\$\$?[^$]*\$\$?|`[^`]*`|\{\{\w+\}\}|“[^”]*”", "formula", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return len([word for word in text.split() if re.search(r"\w", word)])


def long_sentences(text: str) -> list[str]:
    """Return the long sentences, list items and paragraphs of a text."""
    text = re.sub(r"\$\$[^$]*\$\$", "\n\n", text)
    lines = (" ".join(each.split()) for each in re.split(r"\n\s*\n|\n(?=- |\d\. )", text))
    lines = (re.sub(r"\b(App|Fig|Eq)\. ", r"\1.", line) for line in lines)
    sentences = (
        each for line in lines for each in re.split(r"(?<=[.!?])[”*)]*\s+(?=[A-Z“*$\[Δ‖{])", line)
    )
    return [each for each in sentences if num_words(each) > MAX_SENTENCE]


def sections(section: Section, heading: str = "") -> Iterator[tuple[str, Section]]:
    """Yield (heading, section) of a file and all its subsections except notes for speakers."""
    yield heading, section
    for name, below in section.sections.items():
        if name != "Notes":
            yield from sections(below, name)


def strings(source: str) -> Iterator[str]:
    """Yield the visible strings of a module.

    Literals and help texts, without docstrings, HTML and CSS.
    """
    tree = ast.parse(source)
    owners = (
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    )
    hidden = {
        id(node.body[0].value)
        for node in owners
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values}
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "value"
                for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            text = node.value
        else:
            continue
        if not re.search(r"</|<!|\{ ", text):
            yield text


def test_sentences_on_screen_are_short() -> None:
    """Of pages and of code: captions, help, errors.

    And the text beside figures or in steps of the lecture.
    """
    found, beside = {}, {}
    for path in sorted(set(SCREEN.rglob("*.md")) - set((SCREEN / "data").rglob("*.md"))):
        for heading, section in sections(read(path)):
            fields = [value for name, value in section.fields.items() if name not in NOT_SENTENCES]
            place = f"{path.relative_to(SCREEN)}: {section.place}"
            found[place] = [*map(long_sentences, [section.text, *fields])]
            if heading in (SEE, READ) or (
                path.parent.name == "steps" and heading in ("", "Answer")
            ):
                beside[place] = num_words(re.sub(r"\$\$[^$]*\$\$", "", section.text))
    for path in code_files("linearity_lab", "ntk_core"):
        found[str(path)] = [*map(long_sentences, strings(path.read_text(encoding="utf-8")))]
    assert len(beside) > 80
    assert sum(map(len, found.values())) > 2000
    assert {
        place: long
        for place, texts in found.items()
        if (long := [each for text in texts for each in text])
    } == {}
    assert {place: count for place, count in beside.items() if count > MAX_BESIDE} == {}
    assert num_words("At $m = 30$ it moves (Yang & Hu 2021, §3).") == 4
    assert len(long_sentences(f"One. {'Two ' * 21}.\n- item\n- {'item ' * 30}")) == 2
