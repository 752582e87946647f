"""Public names: they import quickly, resolve, and have complete docstrings; describing work starts no JAX."""

import ast
import builtins
import functools
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import ntk_core
from ntk_core import traced
from ntk_core._moved import MOVED
from ntk_core.experiments import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
MATHEMATICS = ("dynamics", "early_time", "experiments", "graphs", "hessians", "kernels", "networks")


STARTS = """
import time
start = time.process_time()
import ntk_core
print((time.process_time() - start) / start)
import sys
print(*({"jax", "numpy", "scipy", "optax", "pydantic", "pandas", "sqlalchemy"} & set(sys.modules)))
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
print("jax" in sys.modules)
"""


def test_imports_are_quick_and_describing_work_starts_no_jax() -> None:
    """Processor time in starts of Python, typically one; then all modules of experiments except computation."""
    alone = [path.stem for path in (ROOT / "ntk_core").glob("*.py") if not path.stem.startswith("__")]
    folders = [f"experiments.{name}" for name in EXPERIMENTS]
    parts = [f"{folder}.{part}" for folder in folders for part in ("spec", "result")]
    there = [part for part in parts if (ROOT / "ntk_core" / f"{part.replace('.', '/')}.py").exists()]
    modules = [f"ntk_core.{name}" for name in ("runs", *sorted(alone), *folders, *there)]
    command = [sys.executable, "-c", STARTS, *modules]
    shown = [subprocess.check_output(command, cwd=ROOT, text=True).splitlines() for _ in range(2)]
    assert min(float(starts) for starts, *_ in shown) < 5
    assert shown[0][1:] == ["", "False"]


def test_every_public_name_resolves_and_no_other() -> None:
    names = dir(ntk_core)
    assert 40 < len(names) <= 60
    assert [name for name in names if not hasattr(ntk_core, name)] == []
    assert not hasattr(ntk_core, "nothing")


def test_moved_names_raise_with_their_new_name() -> None:
    for old, new in MOVED.items():
        assert old not in ntk_core.__all__
        with pytest.raises(ImportError, match=re.escape(f"ntk_core.{old} is now ntk_core.{new}")):
            getattr(ntk_core, old)
        assert functools.reduce(getattr, new.partition(",")[0].split("."), ntk_core) is not None
    ended = subprocess.run(
        [sys.executable, "-c", "from ntk_core import verdict"], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.stderr.endswith("ImportError: ntk_core.verdict is now ntk_core.graphs.graph_verdict\n")


@functools.cache
def statements(module: str) -> list[ast.stmt]:
    """Statements of a module, or of a package's stub; none for third-party modules."""
    place = ROOT / module.replace(".", "/")
    paths = (place / "__init__.pyi", place / "__init__.py", place.with_suffix(".py"))
    return next((ast.parse(path.read_text(encoding="utf-8")).body for path in paths if path.is_file()), [])


def imported_names(module: str) -> Iterator[tuple[str, str, str]]:
    """Yield (name here, module, name there) of imported names; not the modules of ``from . import``."""
    package = module if (ROOT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]
    for node in statements(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            origin = importlib.util.resolve_name("." * node.level + node.module, package)
            yield from ((alias.asname or alias.name, origin, alias.name) for alias in node.names)


def definition(module: str, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef] | None:
    """Find the definition of a class or function without imports; the last one of overloads."""
    nodes = [node for node in statements(module) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    if found := [node for node in nodes if node.name == name]:
        return module, found[-1]
    return next((definition(origin, there) for here, origin, there in imported_names(module) if here == name), None)


def public_names() -> list[tuple[str, str]]:
    """(module, name) of the top level and of the public submodules, without the submodules themselves."""
    places = {name: getattr(ntk_core, name) for name in ntk_core.__all__}
    modules = {name: place for name, place in places.items() if isinstance(place, ModuleType)}
    return [("ntk_core", name) for name in places if name not in modules] + [
        (place.__name__, each) for name, place in modules.items() if name in MATHEMATICS for each in place.__all__
    ]


def is_error(module: str, name: str) -> bool:
    """Whether a class derives from an exception."""
    if isinstance(builtin := getattr(builtins, name, None), type):
        return issubclass(builtin, BaseException)
    found = definition(module, name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return False
    return any(is_error(found[0], base.id) for base in found[1].bases if isinstance(base, ast.Name))


def lacking(docstring: str) -> list[str]:
    """Missing parts of a public docstring; examples and code do not count as formulas."""
    words = re.sub(r"^>>> .*?(\n\n|\Z)|``.*?``", "", docstring, flags=re.DOTALL | re.MULTILINE)
    formula = re.search("[=‖Σ→↦←∂≤∝⊗]", words) is not None
    source = re.search(r"^Source: \S", docstring, flags=re.MULTILINE) is not None
    pages = [page for page in re.findall(r"docs/[\w/.-]+\.md", docstring) if not (ROOT / page).is_file()]
    return ["formula or mapping"] * (not formula) + ["source"] * (not source) + pages


def test_every_public_docstring_has_a_formula_and_a_source() -> None:
    """A mapping counts as formula; submodules and errors are exempt, since they compute nothing."""
    missing = {}
    for module, name in public_names():
        if not is_error(module, name):
            found = definition(module, name)
            assert found, name
            missing[name] = lacking(ast.get_docstring(found[1]) or "")
    assert len(missing) > 80
    assert {name: what for name, what in missing.items() if what} == {}


def test_every_public_name_and_traced_class_has_an_example() -> None:
    """Including classes of the package ``traced``, which appear in reports and errors."""
    classes = [name for name in dir(traced) if isinstance(getattr(traced, name), type)]
    places = [*public_names(), *(("ntk_core.traced", name) for name in classes)]
    found = {name: place[1] for module, name in places if (place := definition(module, name))}
    assert {"Program", "TracedLayer", "Use", "Views", "empirical_ntk"} <= found.keys()
    assert [
        name for name, node in found.items() if not re.search(r"^ *>>> ", ast.get_docstring(node) or "", re.M)
    ] == []


def test_a_docstring_without_formula_and_source_is_recognized() -> None:
    example = "All.\n\n>>> f(a=1)\n1\n\nSee ``a → b`` and docs/math/nothing.md for its Source: none."
    assert lacking(example) == ["formula or mapping", "source", "docs/math/nothing.md"]
    assert lacking("x → y\n\nSource: docs/math/dag.md.") == []


def missing_sections(function: ast.FunctionDef) -> list[str]:
    """Missing sections of a public function's docstring, and undocumented arguments."""
    text = ast.get_docstring(function) or ""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    undocumented = [
        name for name in names if not re.search(rf"^ +(?:[*\w]+, )*{name}(?:, [*\w]+)*: ", text, re.MULTILINE)
    ]
    returns = bool(re.search(r"^(?:Returns|Yields):", text, re.MULTILINE))
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(function))
    first = text.partition("\n")[0]
    return [
        *undocumented,
        *["Returns"] * (not returns),
        *["Raises"] * (raises and "Raises:" not in text),
        *["first line"] * (not 0 < len(first.split()) <= 12),
    ]


def test_public_functions_document_arguments_and_returns() -> None:
    found = {}
    for module, name in public_names():
        if place := definition(module, name):
            node = place[1]
            if isinstance(node, ast.FunctionDef):
                found[name] = missing_sections(node)
            elif len((ast.get_docstring(node) or "").partition("\n")[0].split()) > 12:
                found[name] = ["first line"]
    assert len(found) > 50
    assert {name: lacks for name, lacks in found.items() if lacks} == {}


def test_a_function_without_sections_is_recognized() -> None:
    (node,) = ast.parse("def f(a, b):\n  'Add.\\n\\nArgs:\\n    a: one.'\n  raise ValueError").body
    assert isinstance(node, ast.FunctionDef)
    assert missing_sections(node) == ["b", "Returns", "Raises"]
