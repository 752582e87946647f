"""Sentences on screen have at most 20 words, and the text beside a figure at most 60.

A formula, a link and a quoted name count as one word; sources in parentheses do not count.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from linearity_lab.words.markdown import Section, read
from linearity_lab.words.pages import SEE

SCREEN = Path(__file__).resolve().parent.parent / "linearity_lab"
MAX_SENTENCE, MAX_BESIDE = 20, 60
STEPS = "views/lecture/steps"
# Fields of front matter with sources or lists, and notes for speakers.
NOT_SENTENCES = {"source", "terms", "steps", "formula", "gallery"}
UNSEEN = {"Notes"}


def words(text: str) -> list[str]:
    """Return the words of a text."""
    text = re.sub(r"\([^()]*\b(?:19|20)\d\d[^()]*\)", "", text)  # (Yang & Hu 2021, §3)
    text = re.sub(r"\$\$?[^$]*\$\$?|`[^`]*`|\{\{\w+\}\}|“[^”]*”", "formula", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences, list items and paragraphs of a text."""
    text = re.sub(r"\$\$[^$]*\$\$", "\n\n", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=- |\d\. )", text):
        line = " ".join(paragraph.split()).replace("App. ", "App.").replace("Fig. ", "Fig.").replace("Eq. ", "Eq.")
        yield from re.split(r"(?<=[.!?])[”*)]*\s+(?=[A-Z“*$\[Δ‖{])", line)


def sections(section: Section, heading: str = "") -> Iterator[tuple[str, Section]]:
    """Yield (heading, section) of a file and all its subsections."""
    yield heading, section
    for name, below in section.sections.items():
        if name not in UNSEEN:
            yield from sections(below, name)


def shown(section: Section) -> Iterator[str]:
    """Yield each text of a section: its prose and its fields."""
    yield section.text
    yield from (value for name, value in section.fields.items() if name not in NOT_SENTENCES)


def strings(source: str) -> Iterator[str]:
    """Yield the visible strings of a module: literals and help texts, without docstrings, HTML and CSS."""
    tree = ast.parse(source)
    owners = (node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    hidden = {id(node.body[0].value) for node in owners if node.body and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            text = node.value
        else:
            continue
        if not re.search(r"</|<!|\{ ", text):
            yield text


PAGES = sorted(SCREEN.rglob("*.md"))
CODE = [path for folder in ("linearity_lab", "ntk_core") for path in sorted((SCREEN.parent / folder).rglob("*.py"))]


def long_sentences(path: Path) -> list[str]:
    return [
        f"{path.relative_to(SCREEN)}: {len(words(sentence))}: {sentence}"
        for _, section in sections(read(path))
        for text in shown(section)
        for sentence in sentences(text)
        if len(words(sentence)) > MAX_SENTENCE
    ]


def test_sentences_on_screen_have_at_most_20_words() -> None:
    assert len(PAGES) > 35
    assert [each for path in PAGES for each in long_sentences(path)] == []


def test_sentences_in_code_have_at_most_20_words() -> None:
    """Captions, help, errors and sentences about results; inserted values count as one word."""
    texts = {path: list(strings(path.read_text(encoding="utf-8"))) for path in CODE}
    assert sum(" " in text for found in texts.values() for text in found) > 1000
    assert {
        f"{path.relative_to(SCREEN.parent)}: {sentence}"
        for path, found in texts.items()
        for text in found
        for sentence in sentences(text)
        if len(words(sentence)) > MAX_SENTENCE
    } == set()


def test_text_beside_a_figure_has_at_most_60_words() -> None:
    """Margin text of pages; text and answer of the lecture's steps."""
    found = {}
    for path in PAGES:
        for heading, section in sections(read(path)):
            of_a_step = path.parent.as_posix().endswith(STEPS) and heading in ("", "Answer")
            if heading == SEE or of_a_step:
                text = re.sub(r"\$\$[^$]*\$\$", "", section.text)
                found[f"{path.relative_to(SCREEN)}: {section.place}"] = len(words(text))
    assert len(found) > 80
    assert {place: count for place, count in found.items() if count > MAX_BESIDE} == {}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("At $m = 30$ it moves (Yang & Hu 2021, §3).", [4]),
        ("One. Two three.", [1, 2]),
        ("- first item\n- second item of four", [2, 4]),
    ],
)
def test_words_of_a_sentence_are_counted(text: str, counts: list[int]) -> None:
    assert [len(words(each)) for each in sentences(text)] == counts
