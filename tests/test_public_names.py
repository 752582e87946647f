"""Public names: they import quickly, resolve, and have complete docstrings.

Describing work starts no JAX.
"""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import linearity_lab
import ntk_core
from linearity_lab.experiments import EXPERIMENTS
from ntk_core import traced
from ntk_core._moved import MOVED

ROOT = Path(__file__).resolve().parent.parent
MATHEMATICS = ("curvature", "dynamics", "early_time", "graphs", "hessians", "kernels", "networks")


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
    """Processor time in starts of Python, typically one.

    Then all modules of experiments except computation.
    """
    modules = ["linearity_lab.runs"]
    for package in ("ntk_core", "linearity_lab"):
        alone = sorted(path.stem for path in (ROOT / package).glob("*.py"))
        modules += [
            f"{package}.{name}"
            for name in alone
            if not name.startswith("__") and name != "usual_settings"  # of JAX
        ]
    for name in EXPERIMENTS:
        modules.append(f"linearity_lab.experiments.{name}.point")
        if (ROOT / "linearity_lab/experiments" / name / "spec.py").exists():
            modules.append(f"linearity_lab.experiments.{name}.spec")
    command = [sys.executable, "-c", STARTS, *modules]
    shown = [subprocess.check_output(command, cwd=ROOT, text=True).splitlines() for _ in range(2)]
    assert min(float(starts) for starts, *_ in shown) < 5
    assert shown[0][1:] == ["", "False"]


def test_every_public_name_is_on_a_page_of_the_api() -> None:
    """The site of documentation fails on such a name as well, long after the tests."""
    pages = "\n".join(path.read_text() for path in (ROOT / "docs/api").glob("*.md"))
    shown = set(re.findall(r"^\.\. auto\w+:: (\S+)", pages, re.MULTILINE))
    missing = []
    for package in (ntk_core, linearity_lab):
        for name in package.__all__:
            for each in _names_with_page(package, name):
                if each not in shown:
                    missing.append(each)
    assert missing == []


def _names_with_page(package: ModuleType, name: str) -> list[str]:
    """Return a public name, or for a submodule its names that the package itself lacks."""
    value = getattr(package, name)
    if not isinstance(value, ModuleType):
        return [f"{package.__name__}.{name}"]
    top = [getattr(package, each) for each in package.__all__]
    inner = list(getattr(value, "__all__", ()))
    return [
        f"{package.__name__}.{name}.{each}"
        for each in inner
        if all(getattr(value, each) is not known for known in top)
    ]


def test_every_public_name_resolves_and_no_other() -> None:
    names = dir(ntk_core)
    assert 30 < len(names) <= 60
    assert [name for name in names if not hasattr(ntk_core, name)] == []
    assert not hasattr(ntk_core, "nothing")


def test_moved_names_raise_with_their_new_name() -> None:
    for old, new in MOVED.items():
        assert old not in ntk_core.__all__
        with pytest.raises(ImportError, match=re.escape(f"ntk_core.{old} is now {new}")):
            getattr(ntk_core, old)
        assert pkgutil.resolve_name(new.partition(",")[0]) is not None
    ended = subprocess.run(
        [sys.executable, "-c", "from ntk_core import verdict"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.stderr.endswith(
        "ImportError: ntk_core.verdict is now ntk_core.graphs.graph_verdict\n"
    )


def public_names() -> list[tuple[str, str]]:
    """(module, name) of the top levels and of their public submodules,
    without the submodules themselves.
    """
    found = []
    for package in (ntk_core, linearity_lab):
        for name in package.__all__:
            place = getattr(package, name)
            if not isinstance(place, ModuleType):
                found.append((package.__name__, name))
            elif name in (*MATHEMATICS, "experiments"):
                found += [(place.__name__, each) for each in place.__all__]
    return found


def lacking(docstring: str) -> list[str]:
    """Missing parts of a public docstring; examples and code do not count as formulas."""
    words = re.sub(r"^>>> .*?(\n\n|\Z)|``.*?``", "", docstring, flags=re.DOTALL | re.MULTILINE)
    formula = re.search("[=‖Σ→↦←∂≤∝⊗]", words) is not None
    source = re.search(r"^Source: \S", docstring, flags=re.MULTILINE) is not None
    pages = [
        page for page in re.findall(r"docs/[\w/.-]+\.md", docstring) if not (ROOT / page).is_file()
    ]
    return ["formula or mapping"] * (not formula) + ["source"] * (not source) + pages


def public_objects() -> dict[str, Any]:
    return {name: getattr(importlib.import_module(module), name) for module, name in public_names()}


def test_every_public_docstring_has_formula_source_and_example() -> None:
    """A mapping counts as formula.

    Errors, which compute nothing, and classes of ``traced`` need an example only.
    """
    classes = {
        name: each for name in dir(traced) if isinstance(each := getattr(traced, name), type)
    }
    missing: dict[str, list[str]] = {}
    for name, each in {**classes, **public_objects()}.items():
        text = inspect.getdoc(each) or ""
        computes = name not in classes and not (
            isinstance(each, type) and issubclass(each, Exception)
        )
        missing[name] = ["example"] * (re.search(r"^ *>>> ", text, re.MULTILINE) is None)
        missing[name] += lacking(text) if computes else []
    assert {"Program", "TracedLayer", "Use", "Views", "empirical_ntk"} <= missing.keys()
    assert len(missing) > 80
    assert {name: what for name, what in missing.items() if what} == {}
    example = (
        "All.\n\n>>> f(a=1)\n1\n\nSee ``a → b`` and docs/math/nothing.md for its Source: none."
    )
    assert lacking(example) == ["formula or mapping", "source", "docs/math/nothing.md"]


def missing_sections(public: Any) -> list[str]:
    """Missing sections of a public docstring, and undocumented arguments of functions."""
    text = inspect.getdoc(public) or ""
    found = ["first line"] * (not 0 < len(text.partition("\n")[0].split()) <= 12)
    if isinstance(public, type):
        return found
    raises = re.search(r"^ +raise ", inspect.getsource(public), re.MULTILINE) is not None
    found += ["Returns"] * (re.search(r"^(?:Returns|Yields):", text, re.MULTILINE) is None)
    found += ["Raises"] * (raises and "Raises:" not in text)
    return found + [
        each
        for each in inspect.signature(public).parameters
        if not re.search(rf"^ +(?:[*\w]+, )*\*{{0,2}}{each}(?:, [*\w]+)*: ", text, re.MULTILINE)
    ]


def test_public_functions_document_arguments_and_returns() -> None:
    found = {name: missing_sections(each) for name, each in public_objects().items()}
    assert len(found) > 50
    assert {name: lacks for name, lacks in found.items() if lacks} == {}
