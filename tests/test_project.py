"""Rules of the project: safety, requirements, links, workflows, one version."""

import ast
import graphlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import grimp
import yaml
from packaging.requirements import Requirement

from linearity_lab.cli._main import COMMANDS
from ntk_core import __version__
from tests.documents import ROOT, documents

# Parts of the lab that need neither Streamlit nor Plotly.
LIBRARY = (
    "cli",
    "data",
    "networks",
    "runs",
    "settings",
    "environment.py",
    "files.py",
    "installation.py",
    "memory.py",
    "variables.py",
)
PRODUCT = ["app.py", "pages", "linearity_lab", "ntk_core", "benchmarks", "examples"]


def python_files(*places: str) -> list[Path]:
    """Every Python file of these top-level files and folders, existing or not, without repeats."""
    roots = [ROOT / place for place in places]
    return sorted(
        path for root in roots for path in ([root] if root.is_file() else root.rglob("*.py"))
    )


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=named(path))


def imported_modules(module: ast.AST) -> set[str]:
    """Full names of all modules imported in the file, also inside functions."""
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def unsafe_uses(module: ast.AST) -> Iterator[str]:
    """Uses that execute data as code: pickle and relatives, eval, exec, np.load with pickles."""
    pickles = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
    yield from (
        f"import {name}" for name in imported_modules(module) if name.partition(".")[0] in pickles
    )
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("eval", "exec", "compile", "__import__") or called.endswith(
            (".read_pickle", ".to_pickle")
        ):
            yield f"line {node.lineno}: {called}"
        if called in ("np.load", "numpy.load"):
            flags = [keyword.value for keyword in node.keywords if keyword.arg == "allow_pickle"]
            if [getattr(flag, "value", None) for flag in flags] != [False]:
                yield f"line {node.lineno}: {called} without allow_pickle=False"
        if any(
            k.arg == "shell" and getattr(k.value, "value", None) is not False for k in node.keywords
        ):
            yield f"line {node.lineno}: {called} through a shell"


def requirements(part: str) -> list[Requirement]:
    """Requirements of one part, parsed as in hatch_build.py,
    with comments on separate lines; never none.
    """
    lines = (
        line.strip()
        for line in (ROOT / f"requirements{part}.txt").read_text(encoding="utf-8").splitlines()
    )
    found = [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]
    assert found, part
    return found


def violations(paths: Iterable[Path], found: Callable[[Path], Iterable[object]]) -> list[str]:
    """Matches in these files, each with its file name; at least one file must exist."""
    looked_at = list(paths)
    assert looked_at
    return [f"{named(path)}: {each}" for path in looked_at for each in found(path)]


def test_no_code_runs_what_came_in_as_data() -> None:
    assert violations(python_files(*PRODUCT), lambda path: unsafe_uses(tree(path))) == []


def test_unsafe_code_is_recognized_and_safe_code_is_not() -> None:
    unsafe = (
        "import pickle",
        "from pickle import loads",
        "def f():\n    import joblib",
        "eval(text)",
        "np.load(a)",
        "np.load(path, allow_pickle=True)",
        "pd.read_pickle(a)",
        "subprocess.run(text, shell=True)",
    )
    assert [source for source in unsafe if not list(unsafe_uses(ast.parse(source)))] == []
    safe = (
        "import json\nnp.load(path, allow_pickle=False)\njax.eval_shape(f, "
        "x)\nre.compile(p)\nsubprocess.run([a])"
    )
    assert list(unsafe_uses(ast.parse(safe))) == []


# Streamlit imports app.py before it listens; imports of pages follow later, and JAX in workers.
STARTED = """
import sys
words = []
def hear(event, given):
    if event == "open" and str(given[0]).endswith(".md"):
        words.append(given[0])
sys.addaudithook(hear)
import app
print({"jax", "numpy", "pandas", "scipy", "sqlalchemy", "pydantic", "pyarrow"} & set(sys.modules))
from linearity_lab.words import pages
print(words)
import linearity_lab.dashboard.forms, linearity_lab.dashboard.run_panel
import linearity_lab.dashboard.export_menu
import importlib, linearity_lab.dashboard.navigation as navigation
from linearity_lab.page_modules import page_module
[page_module(page.name, "page") for page in navigation.PAGES]
from linearity_lab.runs import PRESETS, check_size, estimate
estimate(PRESETS["liu-fig1-left"].spec), check_size(PRESETS["liu-fig1-left"].spec)
print("jax" in sys.modules)
"""


def test_server_loads_nothing_heavy_no_words_and_no_jax() -> None:
    started = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert started.stdout.splitlines() == ["set()", "[]", "False"]


def test_every_requirement_has_a_lower_bound_that_is_met_here() -> None:
    for requirement in (
        each for part in ("-core", "-cli", "", "-cluster", "-dev") for each in requirements(part)
    ):
        bounds = sorted(bound.operator for bound in requirement.specifier)
        # A separate test explains the only upper bound, and when to raise it.
        assert bounds == (["<", ">="] if requirement.name == "streamlit" else [">="]), (
            f"{requirement}: one lower bound"
        )
        assert requirement.specifier.contains(importlib.metadata.version(requirement.name)), (
            requirement
        )


def test_every_import_is_a_stated_requirement() -> None:
    """The library's list has the core's requirements; a cluster's requirements are optional."""
    own = {path.stem for path in ROOT.iterdir()}
    providers = importlib.metadata.packages_distributions()
    library = [
        each for part in ("-core", "-cli", "-cluster", "-torch") for each in requirements(part)
    ]
    dashboard = library + requirements("")
    for wanted, places in (
        (library, ["ntk_core", *(f"linearity_lab/{part}" for part in LIBRARY)]),
        (dashboard, ["app.py", "pages", "linearity_lab"]),
    ):
        stated = {requirement.name.lower().replace("_", "-") for requirement in wanted}
        for path in python_files(*places):
            tops = (
                {name.partition(".")[0] for name in imported_modules(tree(path))}
                - own
                - sys.stdlib_module_names
            )
            for top in tops:
                provided_by = {name.lower().replace("_", "-") for name in providers.get(top, [top])}
                assert provided_by & stated, (
                    f"{named(path)} imports {top}, which its requirements do not state"
                )


def test_every_link_to_a_file_leads_somewhere() -> None:
    def broken(path: Path) -> list[str]:
        text = re.sub(
            r"<!--.*?-->|```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
            r"(?:src|srcset|href)=\"([^\"\s]+)\"", text
        )
        files = [
            target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)
        ]
        return [file for file in files if not (path.parent / file).exists()]

    assert violations(documents(), broken) == []


def test_workflows_run_existing_commands_with_few_rights() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {
        name
        for line in re.findall(r"^([a-z ]+):(?!=)", makefile, flags=re.MULTILINE)
        for name in line.split()
    }
    called = ""
    for path in ROOT.glob(".github/workflows/*.yaml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert 0 < job["timeout-minutes"] <= 90
            for step in job["steps"]:
                assert re.fullmatch(
                    r"(actions)/[\w-]+@v\d+\.\d+\.\d+", step.get("uses", "actions/own@v1.0.0")
                ), step
                called += step.get("run", "") + "\n"
    assert set(re.findall(r"\bmake ([a-z-]+)", called)) <= targets
    assert set(re.findall(r"(?:-m linearity_lab|linearity-lab) ([a-z]+)\b", called)) <= set(
        COMMANDS
    )
    for command in (".ci/run", "make wheel", "docker build", "make docs"):
        assert command in called
    assert "make check " in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_citation_and_changelog_have_one_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\](?: - (.+))?$", changes, flags=re.MULTILINE)
    assert versions[:2] == [("Unreleased", ""), (__version__, cited["date-released"])]
    assert cited["version"] == __version__


def circles(imports: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Sets of modules that import each other, directly or through others of the set."""
    sorter = graphlib.TopologicalSorter(imports)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        first: set[str] = set(error.args[1])
        # The same graph without the first of these modules may have further circles.
        left = {}
        for name, others in imports.items():
            if name != error.args[1][0]:
                left[name] = set(others) - {error.args[1][0]}
        return [first, *circles(left)]
    return []


def test_modules_do_not_import_each_other_in_circles():
    """Imports inside functions count; those for type checkers alone do not exist at run time."""
    graph = grimp.build_graph(
        "ntk_core", "linearity_lab", "pages", exclude_type_checking_imports=True
    )
    imports = {}
    for name in graph.modules:
        imports[name] = graph.find_modules_directly_imported_by(name)
    assert len(imports) > 400
    assert circles(imports) == []


def test_a_circle_of_modules_is_found():
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set(), "e": {"f"}, "f": {"e"}}
    assert [sorted(each) for each in circles(imports)] == [["a", "b", "c"], ["e", "f"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
