"""Each row of docs/architecture.md is proved.

Its edits alone add one of its kind, and nothing else is touched.

Each test edits a copy of the product at these places alone, and opens it as a visitor would.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.copied_product import PACKAGES, ROOT, copy_product, edit, run

pytestmark = pytest.mark.slow

FOLDERS = (*PACKAGES, "pages", "gallery", ".streamlit")
LAZY = "linearity_lab/experiments/lazy"
PROFILE = "linearity_lab/dashboard/jobs/profile.py"
OPENED = """
from streamlit import config
from streamlit.testing.v1 import AppTest
from linearity_lab.installation import TOP
from linearity_lab.page_modules import page_script

app = AppTest.from_file(TOP / "app.py", default_timeout=120).run()

def opened(name, **state):
    app.switch_page(page_script(name))
    for key, value in state.items():
        app.session_state[key.replace("__", ".")] = value
    config.set_option("client.showErrorDetails", "full")
    app.run()
    assert not app.exception, [each.message for each in app.exception]
    return app
"""


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A copy of everything that the dashboard needs."""
    copy_product(tmp_path, FOLDERS)
    shutil.copy(ROOT / "app.py", tmp_path)
    return tmp_path


@pytest.mark.long
def test_one_field_and_its_name_add_a_setting_with_its_control(product: Path) -> None:
    field = '''    friction: float = Field(default=0.25, ge=0, le=1, title="Friction μ")
    """Slows every step down."""
    num_seeds: int = TrainedSweep.field('''
    edit(product, f"{LAZY}/point.py", "    num_seeds: int = TrainedSweep.field(", field)
    controls = "controls=COLUMN"
    edit(product, f"{LAZY}/page.py", controls, 'controls=(*COLUMN, "friction")')
    program = """
from linearity_lab.cli import main
from linearity_lab.experiments import LazySpec
from linearity_lab.runs import parse_spec, spec_digest
from linearity_lab.settings.grammar import InvalidSpec, settings

(field,) = [each for each in settings(LazySpec) if each.name == "friction"]
assert field.help.startswith("Slows every step down")
plain, changed = LazySpec(), parse_spec({"experiment": "lazy", "friction": 0.5})
assert spec_digest(plain) == DIGEST and spec_digest(changed) != DIGEST
try:
    parse_spec({"experiment": "lazy", "friction": 2})
except InvalidSpec as error:
    assert str(error.problems[0]).startswith("friction: 2"), error
else:
    raise AssertionError("a value above its bound is accepted")
page = opened("lazy")
(control,) = [each for each in page.main if getattr(each, "key", "") == "lazy.friction"]
assert control.label == "Friction μ" and "Slows every step" in control.help
control.set_value(0.5).run()
assert page.query_params["friction"] in ("0.5", ["0.5"]) and not page.exception
"""
    from linearity_lab.experiments import LazySpec
    from linearity_lab.runs import spec_digest

    run(product, f"DIGEST = {spec_digest(LazySpec())!r}\n" + OPENED + program)


@pytest.mark.long
def test_one_figure_adds_a_tab_on_the_page(product: Path) -> None:
    draw = """
def _copied(shown: Runs, richness: float, measure: str, output: str, start: str) -> Chart:
    return distances(shown.points, output, start)


FIGURES = (
    Figure("copied", "Once more", choices=[_choices], draw=_copied),
"""
    figures = f"{LAZY}/figures.py"
    edit(product, figures, "\nFIGURES = (\n", draw)
    words = product / LAZY / "words.md"
    text = words.read_text(encoding="utf-8")
    fields = "formula: $d=\\|w-w_0\\|$\nterms: lazy-training\n"
    added = f"# Chart: copied\n\n{fields}\n## How to read it\n\nEach line is one start.\n\n"
    added += "## Why is finite width different?\n\nNarrow networks go further.\n\n"
    words.write_text(text.replace("# Chart: dial\n", f"{added}# Chart: dial\n"), encoding="utf-8")
    program = """
page = opened("lazy")
shown = [*page.tabs, *page.subheader, *page.markdown]
words = [getattr(each, "label", "") or getattr(each, "value", "") for each in shown]
assert any("Each line is one start." in text for text in words), words
"""
    run(product, OPENED + program)


@pytest.mark.long
def test_one_entry_adds_a_glossary_term(product: Path) -> None:
    glossary = product / "linearity_lab/words/glossary.md"
    entry = (
        "# zeppelin-norm\n\ntitle: zeppelin norm\nsymbol: \\|z\\|\nformula: \\|z\\|=1\npage: lazy\n"
        "source: our choice\n\nThe length of an airship.\n\n"
    )
    text = glossary.read_text(encoding="utf-8")
    glossary.write_text(text.rstrip() + "\n\n" + entry, encoding="utf-8")
    program = """
from linearity_lab.words.pages import glossary

assert glossary()["zeppelin-norm"].title == "zeppelin norm"
page = opened("glossary")
shown = " ".join(each.value for each in page.markdown)
assert "airship" in shown
"""
    run(product, OPENED + program)


def test_one_number_changes_a_limit_of_a_profile(product: Path) -> None:
    path = product / PROFILE
    of_three = r"(max_memory_bytes: float = _limit\(\s*math\.inf, [^,]+, )[^,]+"
    changed, count = re.subn(of_three, r"\g<1>3 * 2**30", path.read_text())
    assert count == 1
    path.write_text(changed)
    program = """
import os
os.environ["LINEARITY_LAB_PROFILE"] = "hosted"
from linearity_lab.dashboard.jobs.profile import profile

assert profile().max_memory_bytes == 3 * 2**30
"""
    run(product, program)


@pytest.mark.long
def test_a_folder_and_a_script_add_a_page(product: Path) -> None:
    folder = product / "linearity_lab/dashboard/pages/greeting"
    folder.mkdir()
    example = product / "linearity_lab/dashboard/pages/glossary/__init__.py"
    (folder / "__init__.py").write_text(
        example.read_text().replace("Glossary", "Greeting").replace("glossary", "greeting")
    )
    (folder / "page.py").write_text(
        'import streamlit as st\n\n\ndef show():\n    st.write("Good morning")\n'
    )
    script = (product / "pages/glossary.py").read_text().replace("glossary", "greeting")
    (product / "pages/greeting.py").write_text(script)
    program = """
page = opened("greeting")
assert any("Good morning" in each.value for each in page.markdown)
"""
    run(product, OPENED + program)


def test_one_column_appears_in_every_table(product: Path) -> None:
    column = """
    Column("gain", "‖w − w₀‖ · ΔK", lambda _, run: run.distance * run.sup_change),
    Column("last_finite_step", ""),
"""
    edit(product, f"{LAZY}/point.py", '\n    Column("last_finite_step", ""),\n', column)
    program = """
from linearity_lab.charts.chart import comparison_of
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.runs.columns import table_rows
result = gallery_result("liu-lazy")
row = result.rows()[0]
assert row["gain"] == row["distance"] * row["sup_change"]
assert "gain" in result.csv()
assert "‖w − w₀‖ · ΔK" in table_rows(type(result).columns, result.points)[0]
assert comparison_of(result.spec).measures["gain"] == "‖w − w₀‖ · ΔK"
"""
    run(product, program)


@pytest.mark.long
def test_one_preset_opens_on_its_page(product: Path) -> None:
    preset = """
[one-narrow-network]
title = "One narrow network"
claim = "A narrow network moves."
source = "ours"
our_choice = "All of it."

[one-narrow-network.spec]
widths = [5]
num_seeds = 1
"""
    with (product / LAZY / "presets.toml").open("a", encoding="utf-8") as presets:
        presets.write(preset)
    program = """
from linearity_lab.runs import PRESETS
assert PRESETS["one-narrow-network"].spec.widths == (5,)
page = opened("lazy")
(chooser,) = [each for each in page.selectbox if "One narrow network" in each.options]
chooser.set_value("one-narrow-network").run()
assert not page.exception
assert page.query_params["preset"] in ("one-narrow-network", ["one-narrow-network"])
"""
    run(product, OPENED + program)


def test_one_look_changes_no_other(product: Path) -> None:
    from linearity_lab.charts.style import registry

    looks = "linearity_lab/charts/looks.toml"
    edit(product, looks, "\n[method]\n", '\nlog_cosh = ["green", "dot", "star"]\n\n[method]\n')
    before = {meaning: repr(look) for meaning, look in registry().items()}
    program = f"""
from linearity_lab.charts.style import COLORS, registry
now = {{meaning: repr(look) for meaning, look in registry().items()}}
(added,) = set(now) - set({sorted(before)!r})
assert added == "activation log_cosh"
assert registry()[added].color == COLORS["green"]
changed = {{each for each, look in {before!r}.items() if now[each] != look}}
assert not changed, changed
"""
    run(product, program)


@pytest.mark.long
def test_one_dialect_adds_a_database_for_the_store(tmp_path: Path) -> None:
    """The database is SQLite behind another dialect, which an installed package brings."""
    copy_product(tmp_path)
    database = "linearity_lab/runs/store/_database.py"
    # Where the new database is, and a statement in which it differs.
    edit(
        tmp_path,
        database,
        '        return url.set(drivername="postgresql+psycopg")\n',
        '        return url.set(drivername="postgresql+psycopg")\n'
        '    if url.drivername == "other":\n'
        '        return url.set(drivername="other+file")\n',
    )
    edit(
        tmp_path,
        database,
        "        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))\n",
        "        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))\n"
        '    if connection.dialect.name == "other":\n'
        '        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS alone (id INTEGER)"))\n',
    )
    (tmp_path / "requirements-other.txt").write_text("other-database\n")
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    entry = '    "torch": ("requirements-torch.txt",),\n'
    edit(
        tmp_path, "hatch_build.py", entry, entry + '    "other": ("requirements-other.txt", CLI),\n'
    )
    for file in ROOT.glob("requirements*.txt"):
        shutil.copy(file, tmp_path)
    _write_dialect(tmp_path)
    program = """
import contextlib, io, sqlite3
from pathlib import Path
import hatch_build
from linearity_lab.cli import main

def printed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(list(arguments)) == 0, arguments
    return out.getvalue()

sizes = ("widths=4", "num_seeds=1", "training.max_steps=2", "dataset.num_samples=6")
run = ("run", "liu-fig1-left", "--json", "--set", *sizes)
assert '"resumed":false' in printed(*run).replace(" ", "")
assert '"resumed":true' in printed(*run).replace(" ", "")
assert "kernel_change" in printed("list", "--json")
with contextlib.closing(sqlite3.connect("runs.other")) as file:
    tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
assert {"lab_results", "lab_points", "alone"} <= tables, tables
metadata = {}
hatch_build.RequirementFiles(".", {}).update(metadata)
assert "other-database" in metadata["optional-dependencies"]["other"]
"""
    location = f"other:///{tmp_path}/runs.other"
    run(tmp_path, f"import os; os.environ['LINEARITY_LAB_STORE'] = {location!r}\n{program}")


def _write_dialect(folder: Path) -> None:
    """Write an installed package with a dialect of SQLAlchemy."""
    (folder / "other_database.py").write_text(
        "from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite\n\n\n"
        "class Dialect(SQLiteDialect_pysqlite):\n"
        '    name = "other"\n'
        '    driver = "file"\n'
        "    supports_statement_cache = True\n"
    )
    about = folder / "other_database-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-database\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[sqlalchemy.dialects]\nother.file = other_database:Dialect\n"
    )
