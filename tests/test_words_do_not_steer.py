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
    "reason",
    "given",
    "allowed",
    "message",
    "sentence",
    "takeaway",
    "caption",
    "description",
    "help",
    "claim",
    "title",
    "heading",
}
ERROR_NAMES = {"error", "refusal", "problem", "failure", "exception", "raised"}
SEARCHES = {
    "startswith",
    "endswith",
    "split",
    "partition",
    "rpartition",
    "find",
    "index",
    "count",
    "removeprefix",
    "removesuffix",
}
PATTERNS = {"search", "match", "fullmatch"}
# Names of settings, columns, figures and presets: what one of them is, a field states.
NAMES = {"name", "key", "field", "source"}
PARTS_OF_NAMES = {"startswith", "endswith", "removeprefix", "removesuffix"}
# (file, expression) with the reason.
NAMES_OF_OTHERS = {
    # Files in uploaded archives.
    ("linearity_lab/data/uploads/_images.py", "name.lower().endswith(ENDINGS)"),
    ("linearity_lab/data/uploads/_parse.py", "name.endswith('.npy')"),
    ("linearity_lab/data/uploads/_parse.py", "name.lower().endswith(ENDINGS)"),
    ("linearity_lab/data/uploads/_parse.py", "name.startswith('xl/')"),
    ("linearity_lab/data/uploads/_parse.py", "name.removesuffix('.npy')"),
    # Buffers in checkpoints of PyTorch, primitives and modules of JAX.
    ("linearity_lab/model_files/_weights.py", "name.endswith('num_batches_tracked')"),
    ("ntk_core/traced/_custom_rules.py", "name.startswith('jax.')"),
    ("ntk_core/traced/_derivatives.py", "eqn.primitive.name.startswith('custom_vjp_call')"),
    ("ntk_core/traced/_malformed_rules.py", "eqn.primitive.name.startswith('custom_vjp_call')"),
    ("ntk_core/traced/_overwrites.py", "eqn.primitive.name.startswith('scatter')"),
    # Environment variables.
    ("linearity_lab/variables.py", "name.upper().startswith(PREFIX)"),
    ("linearity_lab/variables.py", "name.removeprefix(PREFIX)"),
    ("linearity_lab/variables.py", "name.endswith('_PORT')"),
    # Groups of settings, by dotted paths.
    ("linearity_lab/experiments/linearity_report/point.py", "name.startswith('dataset.')"),
    ("linearity_lab/experiments/own_model/point.py", "name.removesuffix('.name')"),
    # The layer with this name is the last one of every architecture, also of its copies.
    ("ntk_core/early_time/_features.py", "name.endswith(_OUTPUT_LAYER)"),
    ("ntk_core/early_time/_training.py", "name.endswith(_OUTPUT_LAYER)"),
}
EXCEPTIONS = {
    # XLA has one exception class for all failures; its message begins with a status code.
    ("linearity_lab/runs/_this_process.py", "str(error).lstrip().startswith(_OUT_OF_MEMORY_CODE)"),
    # Shorter forms of titles, for display, and a search for typed words.
    (
        "linearity_lab/experiments/architectures/figures.py",
        "axis.title.rpartition(' ')",
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


def decisions_by_parts_of_names(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield expressions that ask how a name begins or ends; other names may form the part."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=searched, attr=attr), args=[part, *_]):
                if attr in PARTS_OF_NAMES and is_name(searched) and is_fixed(part):
                    yield node


def is_name(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=inner)):  # such as name.lower()
            return is_name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in NAMES
    return False


def is_fixed(node: ast.expr) -> bool:
    """Whether a part of a name contains letters that the code states."""
    match node:
        case ast.Constant(value=str(text)):
            return any(letter.isalpha() for letter in text)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.JoinedStr(values=[ast.Constant(value=text), *_]):
            return "." not in text
    return False


@pytest.mark.parametrize(
    "code",
    [
        "setting.name.endswith('seed')",
        "key.endswith(VEILED_KEY)",
        "column.name.endswith(f'_{other}')",
        "problem.field.endswith('.kind')",
        "preset.source.startswith('Measured here')",
        "key.removesuffix(VEILED_KEY)",
    ],
)
def test_decisions_by_parts_of_names_are_found(code):
    assert list(decisions_by_parts_of_names(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["setting.name.startswith(prefix)", "each.startswith(f'{name}.')", "text.startswith('- ')"],
)
def test_other_beginnings_and_endings_are_allowed(code):
    assert not list(decisions_by_parts_of_names(ast.parse(code)))


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
    by_words = set()
    by_names = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            by_words |= {(name, ast.unparse(node)) for node in decisions_by_words(tree)}
            by_names |= {(name, ast.unparse(node)) for node in decisions_by_parts_of_names(tree)}
    assert by_words == EXCEPTIONS
    assert by_names == NAMES_OF_OTHERS


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
