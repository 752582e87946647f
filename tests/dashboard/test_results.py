"""The page *Results*: find, open, compare, export, import and delete stored runs,
with no silent averages.
"""

import re
from typing import Any

import pytest
import sqlalchemy as sa
from streamlit.testing.v1 import AppTest

from linearity_lab.charts.chart import comparison_of
from linearity_lab.charts.style import network_style
from linearity_lab.dashboard import session
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.jobs.profile import PROFILES
from linearity_lab.dashboard.pages.results import run_list, stored_runs
from linearity_lab.dashboard.pages.results.compared_runs import lines_of, measures_of, overlay
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, ExperimentSpec, spec_digest
from linearity_lab.runs.store import Mark, Store
from linearity_lab.runs.store._database import RUNS
from linearity_lab.settings.grammar import with_settings
from linearity_lab.words.run_words import DEFAULT, labels, name_of, variation
from ntk_core.errors import InvalidInput
from tests.dashboard.made_results import make_points, make_result, make_run
from tests.dashboard.open_pages import address, checked, open_page, press, words
from tests.runs.store.made_runs import rewrite_settings


@pytest.fixture
def store(own_store, gallery) -> Store:
    return stored_runs.shared_store()


def saved(store: Store, **settings) -> str:
    result = make_result(make_points(), **settings)
    store.save_result(result)
    return spec_digest(result.spec)


def tick(app: AppTest, *runs: str) -> AppTest:
    for run in runs:
        app.checkbox(key=f"results.box.{run}").check()
        checked(app.run())
    return app


def texts(app: AppTest) -> str:
    return words(app) + "\n".join(box.label.replace("\\", "") for box in app.checkbox)


def test_empty_and_broken_stores_have_a_sentence(store, monkeypatch):
    def fail(*_, **__):
        raise InvalidInput(
            "LINEARITY_LAB_STORE", "postgresql://host/lab", "a database that can be read"
        )

    app = open_page("results")
    assert "No runs yet." in words(app)
    monkeypatch.setattr(Store, "runs", fail)
    assert "The results cannot be read: LINEARITY_LAB_STORE" in words(checked(app.run()))


def test_runs_are_listed_in_words_and_filtered_by_the_url(store):
    saved(store, num_seeds=4)
    store.save_spec(PRESETS["zhu-fig2"].spec)
    app = open_page("results")
    for part in (
        "Kernel · 3 widths, 30 to 1,000",
        "**Seeds 4, Outputs φ linear output, softmax output**",  # what differs from the defaults
        "interrupted, 0 of",
    ):
        assert part in texts(app)
    app.selectbox(key="results.experiment").set_value("dag")
    assert len(checked(app.run()).checkbox) == 1
    assert address(app) == {"experiment": "dag"}
    app.text_input(key="results.text").set_value("nowhere")
    assert "No matching runs." in words(checked(app.run()))
    assert len(open_page("results", text="softmax", status="completed").checkbox) == 1


def test_nonsense_in_the_url_does_no_harm(store):
    saved(store)
    app = open_page("results")
    for name, text in (
        ("experiment", "nothing"),
        ("status", "../.."),
        ("sheet", "-3"),
        ("sheet", "9" * 40),
        ("sheet", "999"),
        ("runs", "x,,0000000000000000,%"),
        ("text", "'; DROP TABLE lab_runs"),
    ):
        app.query_params = {name: text}
        assert len(checked(app.run()).checkbox) == (name != "text")
        assert store.runs().total == 1


def write(app: AppTest, run: str, part: str, text: str) -> AppTest:
    app.session_state[f"results.edit.{run}"] = True
    checked(app.run())
    (field,) = (
        each for each in (*app.text_input, *app.text_area) if each.key == f"results.{part}.{run}"
    )
    field.set_value(text)
    return checked(app.run())


def test_name_note_and_star_follow_the_run(store):
    run, _ = saved(store, num_seeds=4), saved(store)
    app = open_page("results")
    write(app, run, "name", "the *bold* one")
    write(app, run, "note", "for Monday: <b>compare</b>")
    press(app, f"results.star.{run}")
    again = open_page("results", text="monday")  # another browser
    assert [(box.key, box.label) for box in again.checkbox] == [
        (f"results.box.{run}", r"**the \*bold\* one**")
    ]
    assert any(r"\<b\>compare\</b\>" in each.value for each in again.markdown)
    assert again.button(key=f"results.star.{run}").label == "★"
    assert len(open_page("results", favorites="1").checkbox) == 1
    store.delete(run)
    assert store.marks() == {}


def test_long_name_is_refused_and_shared_names_are_per_session(store, monkeypatch):
    for mark, most in (({"name": "a" * 81}, 80), ({"note": "\ud800"}, 500)):
        with pytest.raises(InvalidInput, match=f"at most {most} printable letters"):
            Mark(**mark)
    monkeypatch.setattr(stored_runs, "profile", lambda: PROFILES["hosted"])
    run = saved(store)
    app = write(open_page("results"), run, "name", "mine")
    assert app.checkbox[0].label == "**mine**"
    assert store.marks() == {}
    assert open_page("results").checkbox[0].label != "**mine**"


def test_compared_runs_state_their_differences_or_why_not(store):
    runs = [saved(store, num_seeds=seeds) for seeds in (3, 7)]
    app = tick(open_page("results"), *runs)
    (chart,) = app.get("plotly_chart")
    assert "A: Seeds 3" in chart.proto.spec
    assert "B: Seeds 7" in chart.proto.spec
    assert address(app) == {"runs": ",".join(run[:16] for run in runs)}
    again = open_page("results", **address(app))  # another browser
    assert len(again.get("plotly_chart")) == 1
    store.save_spec(PRESETS["zhu-fig2"].spec)
    unfinished = spec_digest(PRESETS["zhu-fig2"].spec)
    assert "open it and press Run" in words(tick(open_page("results"), runs[0], unfinished))


def test_chosen_runs_are_deleted_unless_running(store, jobs):
    gone, stays = saved(store), saved(store, num_seeds=9)
    app = press(tick(open_page("results"), gone), "results.delete")
    assert "1 run deleted." in "".join(element.value for element in app.success)
    assert [run.digest for run in store.runs().runs] == [stays]
    assert address(app) == {}
    running = KernelChangeSpec(widths=(30, 100))
    store.save_spec(running)
    jobs.add(running)
    app = tick(checked(app.run()), spec_digest(running))
    assert "is still running; stop it first." in words(press(app, "results.delete"))
    assert store.runs().total == 2


def test_shared_server_refuses_imports_and_deletions(store, monkeypatch):
    as_visitor(monkeypatch, "ann")
    mine, theirs = saved(store), saved(store, num_seeds=9)
    store.add_owner(mine, "ann")
    store.add_owner(theirs, "bob")
    app = open_page("results")
    assert [box.key for box in app.checkbox] == [f"results.box.{mine}"]
    assert "Not available on a shared server" in words(app)
    assert app.get("file_uploader") == []
    # The run of another visitor is reached by its link, and stays.
    app = open_page("results", runs=f"{mine[:16]},{theirs[:16]}")
    assert len(app.get("plotly_chart")) == 1
    assert "it belongs to another visitor" in words(press(app, "results.delete"))
    assert [run.digest for run in store.runs().runs] == [theirs]


def test_run_of_two_visitors_stays_until_both_delete_it(store, monkeypatch):
    run = saved(store)
    for visitor in ("ann", "bob"):
        store.add_owner(run, visitor)
    for visitor, left in (("ann", 1), ("bob", 0)):
        as_visitor(monkeypatch, visitor)
        press(tick(open_page("results"), run), "results.delete")
        assert store.runs().total == left
        assert open_page("results").checkbox == [] or len(open_page("results").checkbox) == 0


def test_run_on_uploaded_data_is_listed_on_a_local_server(store, monkeypatch):
    monkeypatch.setattr(ExperimentSpec, "is_private", property(lambda self: self.num_seeds == 9))
    private = saved(store, num_seeds=9)
    app = open_page("results")
    assert [box.key for box in app.checkbox] == [f"results.box.{private}"]
    as_visitor(monkeypatch, "ann")
    assert len(open_page("results").checkbox) == 0
    store.add_owner(private, "ann")
    assert len(open_page("results").checkbox) == 1


def as_visitor(monkeypatch, name: str) -> None:
    """Visit a shared server."""
    for module in (run_list, stored_runs):
        monkeypatch.setattr(module, "profile", lambda: PROFILES["hosted"])
    monkeypatch.setattr(session, "visitor", lambda: name)


def test_many_runs_come_twenty_at_a_time(store):
    for number in range(21):
        store.save_spec(KernelChangeSpec(seed=number))
    app = open_page("results")
    assert len(app.checkbox) == 20
    assert "1 to 20 of 21 runs" in words(app)
    assert len(press(app, "results.older").checkbox) == 1
    assert address(app) == {"sheet": "2"}


def pair(name: str):
    """A gallery result as two runs with different base seeds."""
    result = gallery_result(name)
    other = result.model_copy(
        update={"spec": with_settings(result.spec, {"seed": result.spec.seed + 100})}
    )
    return list(zip(labels([result.spec, other.spec]), (result, other), strict=True))


# One preset per experiment, since its presets share axes and measures.
LAST = tuple({preset.spec.experiment: name for name, preset in PRESETS.items()}.values())


@pytest.mark.parametrize("name", [*LAST, "liu-lazy"])
def test_runs_of_every_experiment_are_drawn_on_every_axis(name):
    """Every axis with the first measure, and the last measure on the first axis."""
    runs = pair(name)
    how = comparison_of(runs[0][1].spec)
    measures, lines = measures_of(runs, how), lines_of(runs, how)
    charts = [overlay(runs, axis, measures[0], lines[0]) for axis in how.axes]
    for chart in (*charts, overlay(runs, how.axes[0], measures[-1], lines[0])):
        assert chart.takeaway
        drawn = [
            trace
            for trace in chart.figure.data
            if trace.name.startswith("B: First seed") and len(trace.x)
        ]
        assert bool(drawn) == bool(chart.rows)
    assert any(chart.rows for chart in charts)
    shown = [how.line_words(line) for line in lines]
    assert [words for words in shown if re.search(r"(^|, )[0-9.]+(,|$)", words)] == [], (
        "a number without a letter"
    )
    assert name != "liu-lazy" or any("ρ = 0" in words.split(", ") for words in shown)


def test_means_are_over_converged_runs_and_the_others_are_marked():
    point = make_points((30,), seeds=2, exponents={"linear": 0.0}, spread=0.0)[0]
    bad = make_run("linear", 7, 9.0, "over-budget")
    result = make_result((point.model_copy(update={"runs": (*point.runs, bad)}),))
    runs = list(zip(labels([result.spec] * 2), (result, result), strict=True))
    chart = overlay(runs, comparison_of(result.spec).axes[0], "sup_kernel_change", ("linear",))
    row, _ = chart.rows
    named = ("mean sup_kernel_change", "runs in the mean", "all runs")
    assert [row[name] for name in named] == pytest.approx([1.0, 2, 3])
    assert chart.takeaway.startswith("Kernel change ΔK against width m. A: 1 at m = 30")
    assert (
        "Excluded from the means: A did not converge at m = 30 (seed 7): 1 of 3 runs."
        in chart.caption
    )
    _, marked, first, *_ = chart.figure.data
    assert (list(first.y), list(marked.y)) == ([1.0], [1.0, 1.0, 9.0])
    symbol = first.marker.symbol
    assert list(marked.marker.symbol) == [symbol, symbol, f"{symbol}-open"]


def test_equal_networks_differ_in_color_dash_and_symbol():
    result = make_result(make_points())
    axis = comparison_of(result.spec).axes[0]
    drawn = overlay(
        [(letter, result) for letter in "ABCD"], axis, "sup_kernel_change", ("linear",)
    ).figure.data
    lines = [trace for trace in drawn if trace.mode == "lines+markers"]
    for style in (lambda t: t.line.color, lambda t: t.line.dash, lambda t: t.marker.symbol):
        assert len({style(trace) for trace in lines}) == 4


def test_runs_without_a_common_output_are_all_drawn_by_name():
    linear, swish = (
        make_result(make_points(exponents={output: -0.5})) for output in ("linear", "swish")
    )
    how = comparison_of(linear.spec)
    chart = overlay(
        [("A: linear output", linear), ("B: swish output", swish)],
        how.axes[0],
        "sup_kernel_change",
        None,
    )
    lines = [trace for trace in chart.figure.data if trace.mode == "lines+markers"]
    assert {"A: linear output", "B: swish output"} <= {row["run"] for row in chart.rows}
    colors = [network_style("fully-connected", output).color for output in ("linear", "swish")]
    assert [line.line.color for line in lines] == colors, "as on all other pages"


def test_labels_name_what_differs_and_nothing_else():
    base: Any = PRESETS["liu-fig1-left"].spec
    specs = [
        base,
        with_settings(base, {"num_seeds": 9}),
        with_settings(base, {"widths": list(range(10, 30))}),
    ]
    assert labels(specs[:2]) == [f"A: Seeds {base.num_seeds}", "B: Seeds 9"]
    assert len(labels(specs)[2]) < 80
    deep = {"architecture.depth": 3, "outputs": ["linear"]}
    narrow = {"architecture.kind": "bottleneck", "outputs": ["swish"], "num_seeds": 3}
    networks = [with_settings(base, deep), with_settings(base, deep | narrow)]
    assert labels(networks) == ["A: fully connected, linear output", "B: bottleneck, swish output"]


def test_run_is_named_by_its_changed_settings():
    titles = {preset.title for preset in PRESETS.values()}
    for name in LAST:
        preset = PRESETS[name]
        assert name_of(preset.spec) in titles, name
        assert variation(preset.spec) == next(
            other for other in PRESETS if PRESETS[other].spec == preset.spec
        )
        default = type(preset.spec)()
        assert name_of(with_settings(default, {"seed": 12345})) == "First seed 12345", name
        assert name_of(default) == DEFAULT or name_of(default) in titles
    spec = with_settings(
        PRESETS["liu-fig1-left"].spec, {"training.max_steps": 2000, "outputs": ["linear", "swish"]}
    )
    assert name_of(spec) == "Outputs φ linear output, swish output, Maximum steps 2,000"


@pytest.mark.parametrize(
    ("change", "words_of_it"),
    [
        ('"schema_version":3 → "schema_version":99', "of a newer version"),
        ('"schema_version":3 → "schema_version":1', "of an older version"),
        ('"kernel_change" → "kernel_gone"', "of another version"),
        ('"num_seeds" → "num_gone"', "of another version"),
    ],
)
def test_run_of_another_version_shows_its_numbers(store, change, words_of_it):
    run = saved(store, num_seeds=4)
    store.write_mark(run, Mark("my old run"))
    rewrite_settings(store, run, *change.split(" → "))
    app = open_page("results")
    assert words_of_it in texts(app)
    assert "damaged" not in texts(app)
    assert "**my old run**" in texts(app)
    tick(app, run)
    assert "cannot be drawn or resumed here" in words(app)
    assert "width=30 runs.0.output" in "".join(each.body for each in app.get("html"))


def test_run_with_damaged_settings_is_called_damaged(store):
    run = saved(store, num_seeds=4)
    store.do(lambda connection: connection.execute(sa.update(RUNS).values(spec='{"changed": 1}')))
    app = open_page("results")
    assert "settings damaged" in texts(app)
    assert "version" not in texts(app)
    tick(app, run)
    assert "The settings of this run are damaged." in words(app)
