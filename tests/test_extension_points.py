"""The tutorial's experiment in a copy of the repository and as a distribution, from its files alone.

The command line must list, estimate, run, store and resume it; it must have a page with a
form, a job, a chart with its words and an export, a card on the overview and a place in comparisons.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.tutorials import build_and_install, files_of, write_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
COMMANDS = """
import contextlib, io, json, sys
from ntk_core.cli import main

printed = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(arguments) == 0, arguments
    printed.append(out.getvalue())

from linearity_lab.charts.chart import comparison_of
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.navigation import PAGES
from linearity_lab.views.overview.page import page_thumbnail
from linearity_lab.views.results.compared_runs import lines_of, measures_of, overlay

result = gallery_result("toy-first")
runs, how = [("A", result), ("B", result)], comparison_of(result.spec)
chart = overlay(runs, how.axes[0], measures_of(runs, how)[0], lines_of(runs, how)[0])
(page,) = (page for page in PAGES if page.name == "toy")
print(json.dumps([printed, chart.takeaway, len(chart.rows), page_thumbnail(page).count("<path")]))
"""
PAGE = """
import json, time
from streamlit.testing.v1 import AppTest

from linearity_lab.view_modules import page_script
from ntk_core.environment import TOP

app = AppTest.from_file(TOP / "app.py", default_timeout=60).run()
app.switch_page(page_script("toy"))
app.session_state["toy.all_settings"] = app.session_state["toy.distances.about"] = True
app.run()
assert not app.exception, app.exception
first = [chart.proto.spec != "" for chart in app.get("plotly_chart")]
app.text_input(key="toy.widths").set_value("5").run()
app.button(key="toy.run").click().run()
deadline = time.monotonic() + 90
while time.monotonic() < deadline and not any("seed 0" in text.value for text in app.caption):
    time.sleep(0.5)
    app.run()
    if app.query_params.get("job") and not any("Stop" in button.label for button in app.button):
        break
assert not app.exception, app.exception
shown = [element.value for element in (*app.caption, *app.markdown, *app.code, *app.error, *app.warning)]
print(json.dumps([len(first), dict(app.query_params), len(app.get("plotly_chart")), shown,
                  [link.proto.label for link in app.get("download_button")]]))
"""


@dataclass(frozen=True)
class Place:
    """Location of the toy.

    Attributes:
        folder: working directory of programs.
        path: folders from which Python imports the lab and the toy.
        views: folder of its page.
        gallery: arguments of ``gallery`` that write the result into the page's gallery.
    """

    folder: Path
    path: tuple[Path, ...]
    views: Path
    gallery: tuple[str, ...] = ()


def in_a_repository(root: Path) -> Place:
    """Copy the product and add the toy: two folders, a line in a table and a script."""
    for name in ("ntk_core", "linearity_lab", "pages", "gallery", ".streamlit"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".runs"))
    shutil.copy(ROOT / "app.py", root)
    experiment, views = root / "ntk_core/experiments/toy", root / "linearity_lab/views/toy"
    experiment.mkdir()
    views.mkdir()
    for name, text in files_of("own-experiment.md").items():
        place = name.replace("toy_lab/views/", f"{views}/").replace("toy_lab/", f"{experiment}/")
        place = str(root / "pages/toy.py") if name == "toy_lab/views/script.py" else place
        text = text.replace("toy_lab.views", "linearity_lab.views.toy").replace("toy_lab", "ntk_core.experiments.toy")
        if name != "pyproject.toml":
            Path(place).write_text(text, encoding="utf-8")
    table = root / "ntk_core/experiments/__init__.py"
    table.write_text(table.read_text().replace('    "early_time",\n', '    "early_time",\n    "toy",\n'))
    return Place(root, (root,), views)


def installed(root: Path) -> Place:
    """Build the toy as a wheel and install it offline beside the lab."""
    (source := root / "source").mkdir()
    (empty := root / "empty").mkdir()
    write_files("own-experiment.md", source)
    build_and_install(source, target := root / "installed")
    package = target / "toy_lab"
    return Place(empty, (target, ROOT), package / "views", ("--out", str(package / "gallery")))


@pytest.fixture(scope="module", params=[in_a_repository, installed], ids=lambda make: make.__name__)
def place(request, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The toy in each of its two places."""
    return request.param(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def environment(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {
        **os.environ,
        **QUICK_ENVIRONMENT,
        "XDG_DATA_HOME": str(home),
        "LINEARITY_LAB_STORE": f"sqlite:///{home}/runs.db",
    }


def reported(place: Place, environment: dict[str, str], *arguments: str) -> str:
    """Run a program and return its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error:The experiment", *arguments],
        cwd=place.folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(map(str, place.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-2000:]
    return done.stdout


def test_commands_gallery_and_comparisons_know_a_new_experiment(place, environment, tmp_path):
    out = str(tmp_path / "out")
    run = ("run", "toy-first", "--json", "--out", out)
    gallery = ("gallery", "toy-first", *place.gallery)
    commands = json.dumps([("presets",), run, run, ("show", out), ("list", "--experiment", "toy"), gallery])
    printed, takeaway, num_rows, num_strokes = json.loads(reported(place, environment, "-c", COMMANDS, commands))
    presets, first, again, shown, listed, _ = printed
    assert "toy-first" in presets
    events, resumed = ([json.loads(line) for line in lines.splitlines()] for lines in (first, again))
    assert [event["kind"] for event in events if event["kind"] in ("estimated", "ended")] == ["estimated", "ended"]
    assert [event["resumed"] for event in resumed if event["kind"] == "point_finished"] == [True, True]
    assert "‖w − w₀‖₂" in shown
    assert "toy" in listed
    header, *rows = (Path(out) / "points.csv").read_text().splitlines()
    assert header == "width,seed,distance,steps,outcome"
    assert len(rows) == 4
    assert "‖w − w₀‖₂" in takeaway
    assert num_rows == 4  # two runs at two widths
    assert num_strokes >= 1


def test_new_page_has_form_job_chart_and_export(place, environment):
    """Uses the gallery's result that the commands wrote."""
    charts_at_first, query, charts, shown, downloads = json.loads(reported(place, environment, "-c", PAGE))
    assert charts_at_first == charts == 2
    assert query["widths"] in ("5", ["5"])
    assert query["job"]
    for words in ("A flat line.", "order one", "linearity-lab run toy-first --set widths=5"):
        assert any(words in text for text in shown)
    assert "Numbers, CSV" in downloads


def test_chart_without_words_is_refused(place, environment):
    words = place.views / "words.md"
    words.write_text(words.read_text().replace("# Chart: distances", "# Chart: lengths"))
    with pytest.raises(AssertionError, match="distances"):
        reported(place, environment, "-c", PAGE)
