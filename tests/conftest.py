"""Fixtures of all tests. JAX starts only for a test that asks for it."""

import collections
import functools
import gc
import itertools
import math
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import tests.typechecker  # noqa: F401  (found by its name, see pyproject.toml)
from tests.compiler_flags import QUICK_FLAGS
from tests.tiers import EXHAUSTIVE

# Property tests would miss their deadline on a loaded machine.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# Folders and files whose tests compare numbers within this process and measure no speed.
QUICK_PLACES = frozenset(
    {
        "cli",
        "curvature",
        "dashboard",
        "data",
        "dynamics",
        "early_time",
        "examples",
        "experiments",
        "hessians",
        "kernels",
        "linearity",
        "model_files",
        "networks",
        "runs",
        "test_all_arguments.py",
        "test_numbers_at_borders.py",
        "test_wrong_kinds.py",
        "traced",
    }
)
TESTS = Path(__file__).resolve().parent
_ENDED = itertools.count(1)  # tests
SPREAD = 0.9  # relative distance between browser test files, below 1 so that none runs last

# Read once, when JAX starts, so before any test module is imported.
os.environ["XLA_FLAGS"] = " ".join([*QUICK_FLAGS, os.environ.get("XLA_FLAGS", "")])

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sample grids, give each test its tier, then order the files.

    Run files with slow tests first, so that all processes end together, and spread
    browser tests between them.

    Simultaneous browsers slow each other down.
    """
    if not EXHAUSTIVE:
        _sample(config, items)
    _mark_later_cases(items, "first_cases", left_to="slow")
    _mark_later_cases(items, "long_after", left_to="long")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    in_browser = {item.path for item in items if item.get_closest_marker("browser")}
    # Keeps their order.
    files = sorted(dict.fromkeys(item.path for item in items), key=lambda path: path not in slow)
    others = [path for path in files if path not in in_browser]
    places = {path: float(place) for place, path in enumerate(others)}
    apart = SPREAD * len(others) / max(len(in_browser), 1)
    places |= {
        path: number * apart
        for number, path in enumerate(each for each in files if each in in_browser)
    }
    items.sort(key=lambda item: places[item.path])


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``@pytest.mark.sampled(n)``: keep n cases of a test, always the same ones, evenly spaced.

    ``EXHAUSTIVE=1`` keeps all.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for grid in cases.values():
        most = grid[0].get_closest_marker("sampled").args[0]
        kept = {index * len(grid) // most for index in range(most)}
        left_out.update(item for index, item in enumerate(grid) if index not in kept)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _mark_later_cases(items: list[pytest.Item], asked_by: str, left_to: str) -> None:
    """Mark the cases of a test after its first ones.

    ``@pytest.mark.first_cases(n)``: the fast tier takes the first n cases of each test,
    ``@pytest.mark.long_after(n)``: ``make check`` takes the first n.

    Cases that are marked by themselves do not count.
    """
    num_cases: collections.Counter[str] = collections.Counter()
    for item in items:
        mark = item.get_closest_marker(asked_by)
        if mark is None or item.get_closest_marker(left_to):
            continue
        test = item.nodeid.partition("[")[0]
        num_cases[test] += 1
        if num_cases[test] > mark.args[0]:
            item.add_marker(getattr(pytest.mark, left_to))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fix XLA's flags, the list of installed packages, and all imports so far."""
    _let_xla_read_its_flags()
    # Otherwise each test of a page reads the metadata of every package.
    if "streamlit" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        manifest_scanner.scan_component_manifests = functools.cache(
            manifest_scanner.scan_component_manifests
        )
    # Tracing makes many lasting objects; collection took a twentieth of the time.
    gc.set_threshold(100_000, 20, 50)


def _let_xla_read_its_flags() -> None:
    """Remove the flags once XLA has read them, so that started programs compile as for users."""
    if "jax" in sys.modules:
        import jax

        jax.devices()
    theirs = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if flag not in QUICK_FLAGS]
    os.environ.pop("XLA_FLAGS", None)
    if theirs:
        os.environ["XLA_FLAGS"] = " ".join(theirs)


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Compile with few optimizations if compilation dominates and speed is not measured."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session", autouse=True)
def _own_compiled_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Share compiled code between the programs that tests start, apart from the user's cache."""
    # Of this process; its parent belongs to all test processes.
    own = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "LINEARITY_LAB_CACHE",
            str((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "compiled"),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """By default, store runs and uploads of tests and of programs that they start
    in the temporary folder.

    The data directory as well, since some tests and programs remove the store from their
    environment.
    """
    own = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(own))
        patch.setenv("LINEARITY_LAB_STORE", str(own / "results.sqlite"))
        yield


@pytest.fixture(autouse=True, scope="module")
def _quickly(request: pytest.FixtureRequest) -> None:
    if request.path.relative_to(TESTS).parts[0] in QUICK_PLACES:
        request.getfixturevalue("quick_compilation")


@pytest.fixture(autouse=True)
def _let_compiled_programs_go() -> Iterator[None]:
    """Release compiled programs, since thousands of tests exceed the limit of one process."""
    yield
    # Counting them takes a hundredth of a second.
    if "jax" in sys.modules and next(_ENDED) % 20 == 0:
        from linearity_lab.runs.compiled_code import release_compiled

        release_compiled(most=8_000, most_bytes=math.inf)


@pytest.fixture
def x64() -> Iterator[None]:
    """Make float64 the default type, for comparisons with naive oracles."""
    import jax

    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium: BROWSER_PATH, else the first one on the PATH."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        if not os.access(named, os.X_OK):
            pytest.fail(f"BROWSER_PATH names no program: {named}")
        return named
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        pytest.skip(
            f"no Chromium: none of {', '.join(CHROMIUM_NAMES)} is on the PATH and BROWSER_PATH is "
            "not set"
        )
    return found
