"""The page *Results*: find, open, compare, export, import and delete stored runs."""

from __future__ import annotations

import io

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.jobs.profile import PROFILES
from linearity_lab.views.results import run_list, stored_runs
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS, ExperimentSpec, spec_digest
from ntk_core.runs.store import Mark, Store
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import address, checked, open_page, press, words


@pytest.fixture
def store(own_store) -> Store:
    return stored_runs.shared_store()


pytestmark = pytest.mark.usefixtures("gallery")


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
        raise InvalidInput("LINEARITY_LAB_STORE", "postgresql://host/lab", "a database that can be read")

    app = open_page("results")
    assert "No runs yet." in words(app)
    assert "Start with the kernel" in [link.proto.label for link in app.get("page_link")]
    monkeypatch.setattr(Store, "runs", fail)
    assert "The results cannot be read: LINEARITY_LAB_STORE" in words(checked(app.run()))


def test_runs_are_listed_in_words_and_filtered_by_the_url(store):
    saved(store, num_seeds=4)
    store.save_spec(PRESETS["zhu-fig2"].spec)
    app = open_page("results")
    assert "Kernel · 3 widths, 30 to 1,000" in texts(app)
    assert "**Seeds 4, Outputs φ linear output, softmax output**" in texts(app), "what differs from the defaults"
    assert "**Dropped edges: ΔK and ‖H‖ against in-degree**" in texts(app)
    assert "interrupted, 0 of" in texts(app)
    pictures = [drawn.proto.imgs[0].url for drawn in app.get("image")]
    assert len(set(pictures)) == 2, "points as the page draws them, and letters where there is none"
    app.selectbox(key="results.experiment").set_value("dag")
    checked(app.run())
    assert len(app.checkbox) == 1
    assert address(app) == {"experiment": "dag"}
    app.text_input(key="results.text").set_value("nowhere")
    assert "No matching runs." in words(checked(app.run()))
    assert len(open_page("results", text="softmax", status="completed").checkbox) == 1


def test_nonsense_in_the_url_does_no_harm(store):
    saved(store)
    app = open_page("results")
    for name, text in (
        ("experiment", "nothing"), ("status", "../.."), ("sheet", "-3"), ("sheet", "9" * 40), ("sheet", "999"),
        ("runs", "x,,0000000000000000,%"), ("text", "'; DROP TABLE lab_runs"),
    ):  # fmt: skip
        app.query_params = {name: text}
        assert len(checked(app.run()).checkbox) == (name != "text")
        assert store.runs().total == 1


def write(app: AppTest, run: str, part: str, text: str) -> AppTest:
    app.session_state[f"results.edit.{run}"] = True
    checked(app.run())
    (field,) = (each for each in (*app.text_input, *app.text_area) if each.key == f"results.{part}.{run}")
    field.set_value(text)
    return checked(app.run())


def test_name_note_and_star_follow_the_run(store):
    run, other = saved(store, num_seeds=4), saved(store)
    app = open_page("results")
    write(app, run, "name", "the *bold* one")
    write(app, run, "note", "for Monday: <b>compare</b>")
    press(app, f"results.star.{run}")
    again = open_page("results", text="monday")  # another browser
    assert [box.key for box in again.checkbox] == [f"results.box.{run}"]
    assert again.checkbox[0].label == r"**the \*bold\* one**"
    assert any(r"\<b\>compare\</b\>" in each.value for each in again.markdown)
    assert again.button(key=f"results.star.{run}").label == "★"
    stars = open_page("results", favorites="1")
    assert address(stars) == {"favorites": "1"}
    assert len(stars.checkbox) == 1
    both = "".join(each.proto.body for each in tick(open_page("results"), run, other).get("html"))
    assert (
        '<tr><th scope="row">Seeds</th><td data-label="A"><span>4</span></td><td data-label="B"><span>5</span>' in both
    )
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
    assert "2 chosen" in words(again)
    many = [saved(store, num_seeds=seeds) for seeds in (11, 12, 13)]
    tick(checked(app.run()), *many)
    assert "Up to four runs" in words(app)
    assert app.get("plotly_chart") == []
    store.save_spec(PRESETS["zhu-fig2"].spec)
    unfinished = spec_digest(PRESETS["zhu-fig2"].spec)
    assert "open it and press Run" in words(tick(open_page("results"), runs[0], unfinished))


def test_chosen_runs_are_deleted_after_a_question(store, jobs):
    gone, stays = saved(store), saved(store, num_seeds=9)
    app = tick(open_page("results"), gone)
    assert store.runs().total == 2
    press(app, "results.delete")
    assert "1 run deleted." in "".join(element.value for element in app.success)
    assert [run.digest for run in store.runs().runs] == [stays]
    assert address(app) == {}
    running = KernelChangeSpec(widths=(30, 100))
    store.save_spec(running)
    jobs.add(running)
    app = tick(checked(app.run()), spec_digest(running))
    assert "is still running; stop it first." in words(press(app, "results.delete"))
    assert store.runs().total == 2


def test_chosen_runs_are_exported_and_imported(store):
    run, stays = saved(store), saved(store, num_seeds=9)
    file = stored_runs.file_of_runs([run])
    store.delete(run)
    arrived = stored_runs.take_file(io.BytesIO(file + b"junk\n"))
    assert (arrived.digests, arrived.good) == ((run,), "1 run imported.")
    assert arrived.problems == ("Line 2: damaged; it is no JSON.",)
    assert {each.digest for each in store.runs().runs} == {run, stays}
    assert store.result(run) is not None
    refused = stored_runs.take_file(io.BytesIO(b"\x89PNG\r\n"))
    assert refused.good == ""
    assert len(refused.problems) == 1
    assert refused.problems[0].startswith("file: ")


def test_shared_server_refuses_imports_and_deletions(store, monkeypatch):
    monkeypatch.setattr(run_list, "profile", lambda: PROFILES["hosted"])
    run = saved(store)
    app = tick(open_page("results"), run)
    assert "every visitor would see imported results" in words(app)
    assert app.get("file_uploader") == []
    assert "on a shared server you can delete only runs on your own data" in words(press(app, "results.delete"))
    assert store.runs().total == 1


def test_private_run_is_listed_for_its_session_only(store, monkeypatch):
    monkeypatch.setattr(ExperimentSpec, "is_private", property(lambda self: getattr(self, "num_seeds", 0) == 9))
    private, _ = saved(store, num_seeds=9), saved(store)
    for query, count in (({}, 1), ({"text": private[:10]}, 0), ({"runs": private[:16]}, 2)):
        assert len(open_page("results", **query).checkbox) == count


def test_many_runs_come_twenty_at_a_time(store):
    for number in range(41):
        store.save_spec(KernelChangeSpec(seed=number))
    app = open_page("results")
    assert len(app.checkbox) == 20
    assert "1 to 20 of 41 runs" in words(app)
    press(app, "results.older")
    assert len(app.checkbox) == 20
    assert "21 to 40 of 41 runs" in words(app)
    assert address(app) == {"sheet": "2"}
