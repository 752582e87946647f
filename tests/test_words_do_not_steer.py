"""Messages are for readers: no branch of the code depends on their words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from linearity_lab.runs import KINDS
from linearity_lab.settings.walk import settings

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("linearity_lab", "ntk_core", "pages")
# Attributes that contain sentences. ``field`` and ``cause`` are for programs.
SENTENCES = {
    "reason", "given", "allowed", "message", "sentence", "takeaway", "caption", "description", "help", "claim",
    "title", "heading",
}  # fmt: skip
ERROR_NAMES = {"error", "refusal", "problem", "failure", "exception", "raised"}
SEARCHES = {
    "startswith", "endswith", "split", "partition", "rpartition", "find", "index", "count", "removeprefix",
    "removesuffix",
}  # fmt: skip
PATTERNS = {"search", "match", "fullmatch"}
# (file, expression) with the reason.
EXCEPTIONS = {
    # XLA has one exception class for all failures; its message begins with a status code.
    ("linearity_lab/runs/_this_process.py", "str(error).lstrip().startswith(_OUT_OF_MEMORY_CODE)"),
    # Shorter forms of titles, for display, and a search for typed words.
    (
        "linearity_lab/experiments/architectures/figures.py",
        "GROWN_AXES[grown].title.rpartition(' ')",
    ),
    (
        "linearity_lab/experiments/hessian/network.py",
        "PARAMETERIZATIONS[self.parameterization].title.partition(' (')",
    ),
    ("linearity_lab/words/pages.py", "text.lower().strip() not in entry.title.lower()"),
    # cyclopts appends its list of commands to the message; ours is in the help.
    ("linearity_lab/cli/_main.py", "str(error).partition(' Available commands')"),
}


def is_sentence(node: ast.expr) -> bool:
    """Whether an expression is the text of an error, or an attribute with a sentence."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in ERROR_NAMES
        case ast.Call(func=ast.Attribute(value=inner)):  # such as str(error).lower()
            return is_sentence(inner)
        case ast.Attribute(value=ast.Name(id="trace"), attr="name"):  # in the legend
            return True
        case ast.Attribute(value=inner, attr="args"):
            return isinstance(inner, ast.Name) and inner.id in ERROR_NAMES
        case ast.Attribute(attr=name):
            return name in SENTENCES
        case ast.Subscript(value=inner):
            return is_sentence(inner)
        case ast.BoolOp(values=values):
            return any(is_sentence(value) for value in values)
    return False


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""
    )


def decisions_by_words(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield expressions that search a sentence or compare it with a text."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                if is_sentence(right):
                    yield node
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                if (is_sentence(left) and is_text(right)) or (is_sentence(right) and is_text(left)):
                    yield node
            case ast.Call(func=ast.Attribute(value=searched, attr=name), args=[_, *_] as given):
                # ``split()`` without a separator only joins lines.
                is_search = name in SEARCHES and is_sentence(searched)
                is_match = name in PATTERNS and any(is_sentence(each) for each in given)
                if is_search or is_match:
                    yield node


@pytest.mark.parametrize(
    "code",
    [
        "'mixes' in str(error)",
        "'mixes' not in str(error).lower()",
        "'memory' in event.reason",
        "OUT_OF_MEMORY in event.reason",
        "str(error).startswith('over')",
        "error.args[0].startswith('over')",
        "job.now.reason.split(':')",
        "error.given.split(' → ')",
        "re.search('a', error.allowed)",
        "_PATTERN.search(setting.info.description or '')",
        "repr(name) in error.given",
        "chart.takeaway == 'No point is finished.'",
        "f'{name} is absent' == error.reason",
        "'width' in self.title",
        "(trace.name or '').startswith('slope ')",
    ],
)
def test_decisions_by_words_are_found(code):
    assert list(decisions_by_words(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "error.field == 'width'",
        "event.cause is Cause.OVER_MEMORY",
        "name in names",
        "f'{error.reason}.'",
        "' '.join(str(error).split())",
        "not event.reason",
    ],
)
def test_other_uses_of_messages_are_allowed(code):
    assert not list(decisions_by_words(ast.parse(code)))


def test_no_code_decides_by_words():
    found = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for node in decisions_by_words(ast.parse(path.read_text(encoding="utf-8"))):
                found.add((name, ast.unparse(node)))
    assert found == EXCEPTIONS


def test_empty_inputs_show_what_their_help_states():
    when_empty = re.compile(r"[,;] ([^,;]+) when empty\.")
    for experiment in KINDS.values():
        for setting in settings(experiment.spec):
            stated = when_empty.search(setting.info.description or "")
            assert setting.when_empty == (stated[1] if stated else None), setting.name


def test_menus_of_outputs_do_not_repeat_their_title():
    for experiment in KINDS.values():
        for setting in settings(experiment.spec):
            labels = [setting.label(option) for option in setting.options]
            is_common = bool(labels) and all(label.endswith(" output") for label in labels)
            if setting.entry == "choices" and is_common:
                assert setting.common_ending == " output", setting.name
