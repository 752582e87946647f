"""Checks of the installed wheel:
the library alone, the dashboard, and by uvx, each in an empty folder.

The Python of the documents and the notebooks run there too; the tutorial's experiment is
installed beside the wheel.

``python .ci/wheel.py [FOLDER]`` builds into FOLDER, dist/ by default, and prints one line per claim
that was tried. Exit code 1: a claim does not hold, and which.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import nbformat  # noqa: E402

from tests.documents import SETTINGS, documents, program, scripts, write_files  # noqa: E402
from tests.examples.notebooks import FIGURE, NOTEBOOKS, shown_in, smaller  # noqa: E402

UV = str(Path(sys.executable).with_name("uv"))
PATIENCE_S = 120.0
OF_THE_APP = {"streamlit", "plotly", "segno"}
OF_THE_CLI = {"cyclopts", "filelock", "pandas", "pillow", "psutil", "sqlalchemy"}
# Modules that a bare library does not import.
OPTIONAL = {"", "dask", "distributed", "cyclopts", "filelock", "pandas", "psutil", "sqlalchemy"}
# Packages for clusters and databases are imported on use.
IMPORT_ALL = """
import importlib, pkgutil
parts = ("cli", "data", "experiments", "networks", "runs", "settings")
packages = ["ntk_core", *("linearity_lab." + part for part in parts)]
names = []
for package in packages:
    for each in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        *folder, last = each.name.split(".")
        is_page = "experiments" in folder[:-1] and last not in ("spec", "point", "compute")
        if last != "__main__" and not is_page:
            names.append(each.name)
missing = set()
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing.add(error.name)
print(len(names), ",".join(sorted(missing)))
"""
VERSIONS = """
import ntk_core, linearity_lab
assert linearity_lab.__version__ == ntk_core.__version__
assert "linearity_lab.compute" in linearity_lab.__doc__
print(ntk_core.__version__)
"""
ESTIMATE = """
import linearity_lab
spec = linearity_lab.presets()["liu-fig1-left"]
print(linearity_lab.estimate(spec).seconds > 0, len(linearity_lab.experiments.spec_digest(spec)))
"""
PAGES = """
from streamlit.testing.v1 import AppTest
from linearity_lab.installation import TOP
app = AppTest.from_file(TOP / "app.py", default_timeout=90).run()
for script in sorted((TOP / "pages").glob("*.py")):
    app.switch_page(f"pages/{script.name}").run()
    assert not app.exception, (script.name, app.exception)
    print(script.stem, len(app.get("plotly_chart")))
"""
JOB = """
import time, linearity_lab
from linearity_lab.dashboard.jobs import shared_jobs
settings = {"widths": [4, 8], "num_seeds": 1, "seed": 7, "training.max_steps": 20}
jobs = shared_jobs()
spec = linearity_lab.presets()["liu-fig1-left"]
job = jobs.submit(linearity_lab.experiments.with_settings(spec, settings))
while jobs.snapshot(job).active:
    time.sleep(0.2)
print(jobs.snapshot(job).status)
jobs.shutdown()
"""
COMPUTE = """
import linearity_lab
short = {"max_steps": 20}
result = linearity_lab.compute("liu-fig1-left", widths=(4, 8), num_seeds=1, training=short)
print(tuple(point.width for point in result.points), result.status)
"""
TOY = """
from streamlit.testing.v1 import AppTest
from linearity_lab.page_modules import page_script
from linearity_lab.installation import TOP
app = AppTest.from_file(TOP / "app.py", default_timeout=90).run()
app.switch_page(page_script("toy")).run()
assert not app.exception, app.exception
print(app.title[0].value)
"""
# Documents whose Python needs an extra; all others need only the library.
EXTRAS = {
    "docs/own-data-and-models.md": "cli",  # reads a CSV file
    "docs/cluster.md": "cluster",
    "docs/tutorials/cluster.md": "cluster",
}
METADATA = (
    "Author: ",
    "Classifier: ",
    "Project-URL: ",
    "Keywords: ",
    "License-Expression: MIT",
    "License-File: LICENSE",
    "License-File: linearity_lab/data/files/README.md",
)
# Module names that a user's folder may contain.
IN_THE_WAY = ("numpy.py", "dashboard.py", "app.py")
_BEGAN = time.monotonic()


class Untrue(Exception):
    """Error for a false claim."""


def claim(words: str, holds: object, seen: object = "") -> None:
    """One line of the log."""
    if not holds:
        raise Untrue(f"{words}: {seen}")
    print(f"{time.monotonic() - _BEGAN:6.1f} s  {words}", flush=True)


def done(command: list[str], folder: Path, environment: dict[str, str], code: int = 0) -> str:
    """Return a command's output; its stderr if that is all."""
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode != code:
        raise Untrue(f"{' '.join(command)} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout or ran.stderr


def built(folder: Path) -> Path:
    """Build the source distribution and, from it, the wheel; return the wheel."""
    for old in folder.glob("linearity_lab-*"):
        old.unlink()
    done([UV, "build", "--quiet", "--out-dir", str(folder)], ROOT, dict(os.environ))
    (wheel,) = folder.glob("*.whl")
    return wheel


def belonging() -> set[str]:
    """Return the names in the wheel of all required files of the checkout."""
    found = {
        f"linearity_lab/{name}" for name in ("app.py", ".streamlit/config.toml", "docs/truth.md")
    }
    for folder in ("ntk_core", "linearity_lab", "pages", "gallery"):
        files = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()]
        top = "linearity_lab/" if folder in ("pages", "gallery") else ""
        kept = [
            path
            for path in files
            if not any(part[0] == "." or part == "__pycache__" for part in path.parts)
        ]
        found |= {f"{top}{path.as_posix()}" for path in kept}
    return found


def metadata_of(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Return the median time of a command over five runs after a first one."""
    times = []
    for _ in range(6):
        begun = time.monotonic()
        done(command, folder, environment)
        times.append(time.monotonic() - begun)
    return median(times[1:])


def try_documents(extra: str, python: Path, empty: Path, environment: dict[str, str]) -> None:
    """Run the Python of documents from top to bottom in separate folders, two at a time."""

    def ran(path: Path) -> str:
        name = path.relative_to(ROOT).as_posix()
        (folder := empty / name).mkdir(parents=True, exist_ok=True)
        places = environment | SETTINGS.get(name, {}) | {"XDG_DATA_HOME": str(folder / "data")}
        done([str(python), "-c", program(path)], folder, places)
        return name

    wanted = (
        path for path in documents() if EXTRAS.get(path.relative_to(ROOT).as_posix(), "") == extra
    )
    with ThreadPoolExecutor(2) as both:
        for name in both.map(ran, (path for path in wanted if program(path))):
            claim(f"the Python of {name} runs in an empty folder", True)


def try_commands(python: Path, empty: Path, environment: dict[str, str]) -> None:
    """Run the shell blocks with only ``linearity-lab`` commands, after the document's Python."""
    found = {path: (empty / path.relative_to(ROOT).as_posix()) for path in documents()}
    for path, folder in found.items():
        folder.mkdir(parents=True, exist_ok=True)
        places = environment | {"XDG_DATA_HOME": str(folder / "data")}
        places["PATH"] = f"{python.parent}{os.pathsep}{places['PATH']}"
        for script in scripts(path, folder, folder / "data"):
            done(["bash", "-ec", script], folder, places)
            claim(f"{path.name}: {script.splitlines()[-1][:60]}", True)


def try_the_notebooks(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the notebooks of examples/ at small widths, in a kernel with only the wheel."""
    done(
        [UV, "pip", "install", "--quiet", "--python", str(python), "ipykernel", "nbclient"],
        ROOT,
        dict(os.environ),
    )
    folder.mkdir()
    for path in NOTEBOOKS:
        book = nbformat.read(path, as_version=4)
        for cell in book.cells:
            cell.source = smaller(cell.source)
            cell.outputs = []
        nbformat.write(book, folder / path.name)
    files = [path.name for path in NOTEBOOKS]
    places = {
        "LINEARITY_LAB_STORE": str(folder / "results.sqlite"),
        "PLOTLY_RENDERER": "plotly_mimetype",
    }
    done(
        [str(python.with_name("jupyter-execute")), "--inplace", *files],
        folder,
        environment | places,
    )
    for name in files:
        book = nbformat.read(folder / name, as_version=4)
        claim(f"{name} runs in an empty folder and shows its result", shown_in(book, "text/html"))
        wanted = name != "own_model.ipynb"
        claim(f"and {'a' if wanted else 'no'} figure", len(shown_in(book, FIGURE)) == wanted)


def try_the_tutorial(python: Path, empty: Path, environment: dict[str, str]) -> None:
    """Try the experiment of docs/tutorials/own-experiment.md as a distribution beside the wheel."""
    source = empty / "toy"
    lab = str(python.with_name("linearity-lab"))
    write_files("own-experiment.md", source)
    done(
        [UV, "build", "--quiet", "--wheel", "--out-dir", str(source / "dist"), str(source)],
        ROOT,
        dict(os.environ),
    )
    (toy,) = (source / "dist").glob("*.whl")
    done(
        [UV, "pip", "install", "--quiet", "--no-deps", "--python", str(python), str(toy)],
        ROOT,
        dict(os.environ),
    )
    output = done([lab, "run", "toy-first", "--no-json"], empty, environment)
    claim(
        "an experiment of another distribution runs from the command line",
        "‖w − w₀‖₂" in output,
        output,
    )
    output = done([str(python), "-P", "-c", TOY], empty, environment)
    claim("and has its page in the dashboard", "How far do the weights move?" in output, output)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start a dashboard until the block ends and yield its URL."""
    port = free_port()
    flags = ["app", "--port", str(port), "--host", "127.0.0.1", "--", "--server.headless=true"]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(
            [*command, *flags],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + PATIENCE_S
            url = f"http://127.0.0.1:{port}"
            while asked(f"{url}/_stcore/health") != "ok":
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise Untrue(f"{' '.join(command)} app does not answer: {log.read()[-2000:]}")
                time.sleep(0.2)
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(timeout=60)


def asked(url: str) -> str:
    """Return the response body for a browser; empty without a response."""
    request = urllib.request.Request(url, headers={"Accept": "text/html,*/*"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())
    except (OSError, urllib.error.URLError):
        return ""


def try_the_library(wheel: Path, python: Path, empty: Path, environment: dict[str, str]) -> None:
    """Try the library without the dashboard's packages."""
    lab = str(python.with_name("linearity-lab"))
    listed = json.loads(
        done([UV, "pip", "list", "--python", str(python), "--format=json"], ROOT, dict(os.environ))
    )
    names = {package["name"].lower() for package in listed}
    claim(
        f"the library brings {len(names) - 1} packages, none of them optional",
        not (OF_THE_APP | OF_THE_CLI) & names,
        names,
    )
    version = done([str(python), "-c", VERSIONS], empty, environment).strip()
    claim(
        f"import ntk_core and import linearity_lab work, version {version}",
        wheel.name.startswith(f"linearity_lab-{version}-"),
        wheel.name,
    )
    count, _, missing = (
        done([str(python), "-W", "ignore", "-c", IMPORT_ALL], empty, environment)
        .strip()
        .partition(" ")
    )
    found = set(missing.split(","))
    claim(
        f"all {count} modules load, but for the command line, a store and a cluster",
        found <= OPTIONAL,
        missing,
    )
    bare, whole = (
        seconds([str(python), "-c", f"import {name}"], empty, environment)
        for name in ("sys", "ntk_core")
    )
    claim(
        f"import ntk_core takes {1000 * (whole - bare):.0f} ms, beyond the {1000 * bare:.0f} ms of "
        "Python",
        True,
    )
    output = done([str(python), "-c", COMPUTE], empty, environment)
    claim("compute runs a preset", output.split() == ["(4,", "8)", "completed"], output)
    output = done([lab, "run", "liu-fig1-left"], empty, environment, code=1)
    claim(
        "linearity-lab names the missing extra",
        re.search(r"pip install '\S+\.whl\[cli\]'\n$", output),
        output,
    )
    output = done([lab, "app"], empty, environment, code=1)
    claim("and the dashboard", re.search(r"pip install '\S+\.whl\[app\]'\n$", output), output)
    output = done([str(python), "-c", ESTIMATE], empty, environment)
    claim("a run is estimated in Python", output.split() == ["True", "64"], output)


def try_the_command_line(python: Path, empty: Path, environment: dict[str, str]) -> None:
    """Try the command line with the extra ``cli``."""
    lab = str(python.with_name("linearity-lab"))
    claim(
        "linearity-lab presets lists the figures",
        "liu-fig1-left: " in done([lab, "presets"], empty, environment),
    )
    run = [
        lab,
        "run",
        "liu-fig1-left",
        "--set",
        "widths=4,8",
        "num_seeds=1",
        "training.max_steps=20",
        "--out",
        "results",
    ]
    done(run, empty, environment)
    claim(
        "linearity-lab run computes two widths",
        len((empty / "results/points.csv").read_text(encoding="utf-8").splitlines()) > 4,
    )
    claim("show prints them", "width" in done([lab, "show", "results"], empty, environment))
    done([lab, "export", "results", "--out", "numbers.csv"], empty, environment)
    claim(
        "export writes them",
        (empty / "numbers.csv").read_text(encoding="utf-8").startswith("width,"),
    )
    output = done([lab, "app"], empty, environment, code=1)
    claim(
        "linearity-lab app names the missing extra",
        re.search(r"pip install '\S+\.whl\[app\]'\n$", output),
        output,
    )
    output = done([lab, "site", "--out", "pages"], empty, environment, code=2)
    claim("and so does linearity-lab site", ".whl[app]" in output, output)


def try_the_dashboard(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Try the dashboard from a folder whose files only share names with its modules."""
    for name in IN_THE_WAY:
        (folder / name).write_text("raise SystemExit('taken from the folder')", encoding="utf-8")
    with serving([str(python.with_name("linearity-lab"))], folder, environment) as url:
        claim("linearity-lab app answers in a folder of its own", True)
        claim("its first page has the lab's name", "Linearity Lab" in asked(url))
        deadline = time.monotonic() + PATIENCE_S
        while not (ready := asked(f"{url}/api/ready")) and time.monotonic() < deadline:
            time.sleep(0.2)
        claim("its workers have started", '"ready":true' in ready, ready)
    drawn = dict(
        line.split()
        for line in done([str(python), "-P", "-c", PAGES], folder, environment).splitlines()
    )
    claim(
        f"all {len(drawn)} pages open",
        len(drawn) == len(list((ROOT / "pages").glob("*.py"))),
        drawn,
    )
    claim(
        "the page Kernel draws its figure from the gallery", int(drawn["kernel_change"]) > 0, drawn
    )
    output = done([str(python), "-P", "-c", JOB], folder, environment).strip()
    claim("a worker computes a run", output == "completed", output)
    site = Path(environment["HOME"]) / "site"
    done([str(python.with_name("linearity-lab")), "site", "--out", str(site)], folder, environment)
    claim(
        "linearity-lab site writes the lecture and the figures",
        len(list(site.glob("figures/*.html"))) > 100 and (site / "index.html").is_file(),
    )
    found = {path.name for path in folder.iterdir()}
    claim(
        "nothing was written to the folder, and nothing of it taken for a module",
        found == set(IN_THE_WAY),
        found,
    )


def main() -> int:
    """Build the wheel, install it and run all checks."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        home, empty, python = (
            Path(scratch) / name for name in ("home", "empty", "venv/bin/python")
        )
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home)}
        environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # compilation takes most of the time
        for each in (home, empty, empty / "library", empty / "dashboard"):
            each.mkdir()
        wheel = built(folder)
        with zipfile.ZipFile(wheel) as archive:
            inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        tops = {name.partition("/")[0] for name in inside}
        claim(
            "the wheel installs ntk_core and linearity_lab, nothing else",
            tops == {"ntk_core", "linearity_lab"},
            tops,
        )
        size = f"{wheel.stat().st_size / 1e6:.1f} MB"
        claim(
            f"{wheel.name} ({size}) holds every file of code, words, styles, data and gallery",
            inside == belonging(),
            sorted(inside ^ belonging())[:20],
        )
        missing = [each for each in METADATA if f"\n{each}" not in metadata_of(wheel)]
        claim(
            "its metadata name authors, keywords, classifiers and the licenses of code and data",
            not missing,
            missing,
        )
        install = [UV, "pip", "install", "--quiet", "--python", str(python)]
        done(
            [UV, "venv", "--quiet", "--python", sys.executable, str(python.parents[1])],
            ROOT,
            dict(os.environ),
        )
        done([*install, str(wheel)], empty, dict(os.environ))
        try_the_library(wheel, python, empty / "library", environment)
        try_documents("", python, empty / "documents", environment)
        done([*install, f"{wheel}[cli]"], empty, dict(os.environ))
        try_the_command_line(python, empty / "library", environment)
        try_documents("cli", python, empty / "documents", environment)
        done([*install, f"{wheel}[app]"], empty, dict(os.environ))
        try_commands(python, empty / "documents", environment)
        try_the_dashboard(python, empty / "dashboard", environment)
        try_the_notebooks(python, empty / "notebooks", environment)
        try_the_tutorial(python, empty / "library", environment)
        done([*install, f"{wheel}[cluster]"], empty, dict(os.environ))
        try_documents("cluster", python, empty / "documents", environment)
        uvx = [
            UV,
            "tool",
            "run",
            "--python",
            sys.executable,
            "--from",
            f"{wheel}[app]",
            "linearity-lab",
        ]
        with serving(
            uvx, empty / "dashboard", {**os.environ, **environment, "HOME": os.environ["HOME"]}
        ):
            claim("uvx --from 'WHEEL[app]' linearity-lab app answers", True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Untrue as error:
        sys.exit(f"NOT SO: {error}")
