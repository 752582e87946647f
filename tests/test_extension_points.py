"""The tutorial's experiment in a copy of the repository and as a distribution,
from its files alone.

The command line must list, estimate, run, store and resume it; it must have a page with a form, a
job, a chart with its words and an export, a card on the overview and a place in comparisons.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.documents import files_of, write_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
COMMANDS = """
import contextlib, io, json, sys
from pathlib import Path
from linearity_lab.cli import main

def printed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(list(arguments)) == 0, arguments
    return out.getvalue()

assert "toy-first" in printed("presets")
run = ("run", "toy-first", "--json", "--out", "out")
first, again = ([json.loads(line) for line in printed(*run).splitlines()] for _ in range(2))
kinds = [each["kind"] for each in first]
assert [kind for kind in kinds if kind in ("estimated", "ended")] == ["estimated", "ended"]
assert [each["resumed"] for each in again if each["kind"] == "point_finished"] == [True, True]
assert "‖w − w₀‖₂" in printed("show", "out") and "toy" in printed("list", "--experiment", "toy")
header, *rows = Path("out/points.csv").read_text().splitlines()
assert (header, len(rows)) == ("width,seed,distance,steps,outcome", 4)
printed("gallery", "toy-first", *sys.argv[1:])

from linearity_lab.charts.chart import comparison_of
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.overview.page import page_thumbnail
from linearity_lab.dashboard.pages.results.compared_runs import lines_of, measures_of, overlay

result = gallery_result("toy-first")
runs, how = [("A", result), ("B", result)], comparison_of(result.spec)
chart = overlay(runs, how.axes[0], measures_of(runs, how)[0], lines_of(runs, how)[0])
assert "‖w − w₀‖₂" in chart.takeaway and len(chart.rows) == 4  # two runs at two widths
(page,) = (page for page in PAGES if page.name == "toy")
assert "<path" in page_thumbnail(page)
"""
# Uses the gallery's result that the commands wrote.
PAGE = """
import time
from streamlit.testing.v1 import AppTest

from linearity_lab.page_modules import page_script
from linearity_lab.installation import TOP

app = AppTest.from_file(TOP / "app.py", default_timeout=60).run()
app.switch_page(page_script("toy"))
app.session_state["toy.all_settings"] = app.session_state["toy.distances.about"] = True
app.run()
assert not app.exception and len(app.get("plotly_chart")) == 2, app.exception
app.text_input(key="toy.widths").set_value("5").run()
app.button(key="toy.run").click().run()
deadline = time.monotonic() + 180
while time.monotonic() < deadline and not any("seed 0" in text.value for text in app.caption):
    time.sleep(0.5)
    app.run()
    if app.query_params.get("job") and not any("Stop" in button.label for button in app.button):
        break
assert not app.exception and len(app.get("plotly_chart")) == 2, app.exception
assert app.query_params["widths"] in ("5", ["5"]) and app.query_params["job"]
elements = (*app.caption, *app.markdown, *app.code, *app.error, *app.warning)
shown = [element.value for element in elements]
command = "linearity-lab run toy-first --set widths=5"
for words in ("Each line joins the means over seeds.", "order one", command):
    assert any(words in text for text in shown), words
assert "Numbers, CSV" in [link.proto.label for link in app.get("download_button")]
"""


def run_in(folder: Path, path: tuple[Path, ...], *arguments: str) -> None:
    """Run a program whose imports begin with these folders."""
    own = {
        "XDG_DATA_HOME": str(folder / "home"),
        "LINEARITY_LAB_STORE": f"sqlite:///{folder}/runs.db",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error:The experiment", "-c", *arguments],
        cwd=folder,
        env={
            **os.environ,
            **QUICK_ENVIRONMENT,
            **own,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-2000:]


@pytest.mark.long
def test_a_folder_a_line_and_a_script_add_an_experiment(tmp_path):
    """In a copy of the product."""
    for name in ("ntk_core", "linearity_lab", "pages", "gallery", ".streamlit"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".runs")
        )
    shutil.copy(ROOT / "app.py", tmp_path)
    experiment = tmp_path / "linearity_lab/experiments/toy"
    experiment.mkdir()
    for name, text in files_of("own-experiment.md").items():
        place = name.replace("toy_lab/", f"{experiment}/")
        place = str(tmp_path / "pages/toy.py") if name == "toy_lab/script.py" else place
        text = text.replace("toy_lab", "linearity_lab.experiments.toy")
        if name != "pyproject.toml":
            Path(place).write_text(text, encoding="utf-8")
    table = tmp_path / "linearity_lab/experiments/__init__.py"
    table.write_text(
        table.read_text().replace('    "early_time",\n', '    "early_time",\n    "toy",\n')
    )
    run_in(tmp_path, (tmp_path,), COMMANDS + PAGE)


@pytest.mark.long
def test_an_installed_distribution_adds_an_experiment(tmp_path):
    """Built as a wheel and installed without a network beside the lab.

    The wheel check opens its page.
    """
    source, target, empty = (tmp_path / name for name in ("source", "installed", "empty"))
    empty.mkdir()
    write_files("own-experiment.md", source)
    uv, offline = str(Path(sys.executable).with_name("uv")), {**os.environ, "UV_OFFLINE": "1"}
    subprocess.run(
        [uv, "build", "-q", "--wheel", "--out-dir", str(source), str(source)],
        env=offline,
        check=True,
    )
    install = [
        uv,
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--python",
        sys.executable,
        "--target",
        str(target),
    ]
    subprocess.run([*install, *map(str, source.glob("*.whl"))], env=offline, check=True)
    run_in(empty, (target, ROOT), COMMANDS, "--out", str(target / "toy_lab/gallery"))
