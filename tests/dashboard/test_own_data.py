"""The upload page: every kind of file, and refusals beside the choices that cause them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import ntk_core
from linearity_lab.components.own_data import Uploaded, wide_relu_kernels
from linearity_lab.views.own_data import figures as figures
from linearity_lab.views.own_data.page import example_file
from ntk_core.data.spec import DatasetSpec
from ntk_core.data.uploads import Choices, Cleaned, clean_upload, keep_upload, parse_upload, suggested_choices
from ntk_core.experiments.dynamics import DynamicsSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import checked, form_sentences, open_page, open_panels, words
from tests.data.uploads.files import blobs, flowers, pets

PAGE = "own_data"


pytestmark = pytest.mark.usefixtures("gallery")


@pytest.fixture(autouse=True)
def data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "linearity-lab"


def uploaded(data: bytes, name: str) -> AppTest:
    app = open_page(PAGE)
    app.file_uploader[0].set_value((name, data, "application/octet-stream"))
    return checked(app.run())


def widget(app: AppTest, kind: str, name: str):
    """The widget of the uploaded file whose key has this ending."""
    (found,) = [each for each in app.get(kind) if each.key and each.key.endswith(f".{name}")]
    return found


def pressed(app: AppTest, name: str) -> AppTest:
    return checked(app.button(key=f"{PAGE}.{name}").click().run())


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (flowers(), "flowers.csv", ["3", "3", "60"]),
        (blobs(), "blobs.npz", ["6 × 6 × 1", "4", "40"]),
        (pets(), "pets.zip", ["10 × 10 × 3", "2", "12"]),
        (example_file(), "spirals.csv", ["3", "3", "60"]),
    ],
)
def test_every_kind_of_file_shows_what_the_network_will_see(data, name, expected):
    app = uploaded(data, name)
    assert [metric.value for metric in app.metric] == expected
    assert app.get("plotly_chart")
    assert not app.error


REFUSED = [
    (b"", "file: an empty file cannot be used"),
    (b"a,b,kind\n1,2,x\n4,5\n", "Line 3 has 2 values; the header has 3 columns."),
    (pets(**{"pets/ape/1.png": b"no image"}), "file: pets/ape/1.png, which cannot be read as an image"),
    (b"a,b,kind\n1,2,x\nNA,3,y\n3,4,x\n4,1,y\n5,5,y\n", "features: a (1 missing, the first in line 3) cannot be used"),
]


def test_refusal_is_one_sentence_until_the_choice_is_mended():
    app = open_page(PAGE)
    for data, sentence in REFUSED:
        app.file_uploader[0].set_value(("[bad](http://x) $f$.csv", data, "application/octet-stream"))
        (shown,) = [error.value.replace("\\", "") for error in checked(app.run()).error]
        assert shown.startswith(sentence)
        assert shown.endswith(".")
        assert any("No preview yet" in info.value for info in app.info)
        assert not [button for button in app.button if button.key == f"{PAGE}.run"]
    widget(app, "toggle", "drop_missing").set_value(True)
    assert not checked(app.run()).error
    assert [metric.value for metric in app.metric] == ["2", "2", "4"]


def test_one_press_keeps_the_data_and_runs_kernel_change(jobs, data_directory):
    app = pressed(uploaded(flowers(), "flowers.csv"), "run")
    (spec,) = jobs.submitted
    assert isinstance(spec, KernelChangeSpec)
    assert spec.is_private
    assert (data_directory / "uploads" / f"{spec.dataset.digest}.npz").exists()
    app.switch_page("pages/kernel_change.py")  # as the page does in a browser
    open_panels(app, "kernel_change")
    checked(app.run())
    assert app.selectbox(key="kernel_change.dataset.name").value == "upload"
    assert app.selectbox(key="kernel_change.dataset.digest").value == spec.dataset.digest


def test_a_number_to_be_learned_leads_to_the_linear_model(jobs):
    app = uploaded(flowers(), "flowers.csv")
    widget(app, "selectbox", "target").set_value("size")
    widget(app, "segmented_control", "task").set_value("regression")
    app = checked(app.run())
    widget(app, "multiselect", "features").set_value(["sepal", "petal"])
    widget(app, "number_input", "num_samples.60").set_value(40)
    pressed(checked(app.run()), "run")
    (spec,) = jobs.submitted
    assert isinstance(spec, DynamicsSpec)
    assert (spec.dataset.num_samples, spec.num_test) == (40, 20)
    for total, trained, test_points in ((40, 32, 8), (3, 2, 1), (1000, 980, 20)):  # all rows are training data
        data = clean_upload(parse_upload(flowers(num_rows=total)), Choices(("sepal", "petal"), "size", "regression"))
        dataset = DatasetSpec(name="upload", digest=keep_upload(data), num_samples=total)
        page, first = Uploaded(dataset, "flowers", total, 0).first_look()
        assert page == "dynamics"
        assert isinstance(first, DynamicsSpec)
        assert (first.dataset.num_samples, first.num_test) == (trained, test_points)


def houses() -> bytes:
    """Prices in hundreds of thousands, with features between 1 and 20,000."""
    rng = np.random.default_rng(0)
    area, year, distance = rng.uniform(30, 250, 120), rng.integers(1900, 2020, 120), rng.exponential(5000, 120)
    price = 2500 * area * (1 - distance / 60_000) + 300 * (year - 1900) + rng.normal(0, 15_000, 120)
    return table_of("area,year,distance,price", area, year, distance, price)


def customers() -> bytes:
    """Three overlapping segments by age and by income in ten thousands."""
    rng = np.random.default_rng(0)
    segment = rng.integers(0, 3, 120)
    income = np.array([20_000, 45_000, 90_000])[segment] + rng.normal(0, 15_000, 120)
    age = np.array([25, 45, 60])[segment] + rng.normal(0, 12, 120)
    return table_of("income,age,segment", income, age, np.array(list("abc"))[segment])


def table_of(header: str, *columns) -> bytes:
    rows = zip(*(column if column.dtype.kind == "U" else column.round(1) for column in columns), strict=True)
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode()


def first_look(data: bytes) -> tuple[str, Any]:
    """The page and the spec of the first run on these data."""
    candidate = parse_upload(data)
    cleaned = clean_upload(candidate, suggested_choices(candidate))
    dataset = DatasetSpec(name="upload", digest=keep_upload(cleaned), num_samples=60, standardize="standard")
    return Uploaded(dataset, "mine", 120, len(cleaned.class_names)).first_look()


@pytest.mark.slow
@pytest.mark.parametrize(("data", "page"), [(houses(), "dynamics"), (customers(), "kernel_change")])
def test_the_first_run_on_unscaled_data_converges(data, page):
    found, spec = first_look(data)
    assert found == page
    result: Any = ntk_core.compute(with_settings(spec, {"widths": [30, 300], "num_seeds": 1}))
    assert {run.outcome for point in result.points for run in point.runs} == {"converged"}


def test_the_threshold_is_chosen_from_the_data():
    overlapping, separate, number = (
        first_look(data)[1].training.loss_threshold for data in (customers(), flowers(), houses())
    )
    assert overlapping < separate < np.log(3), "labels without a pattern stop earlier"
    assert number == 0.01


def test_kernels_of_the_threshold_are_those_of_the_core():
    x = np.random.default_rng(0).standard_normal((6, 5))
    x[1], x[2] = 2 * x[0], -x[0]
    net = ntk_core.FullyConnected(activation="relu")
    kernel, covariance = wide_relu_kernels(x)
    np.testing.assert_allclose(kernel, ntk_core.infinite_width_ntk(net, x), atol=1e-6)
    np.testing.assert_allclose(covariance, ntk_core.kernels.infinite_width_nngp(net, x), atol=1e-6)


def test_kept_data_are_offered_in_this_session_only(data_directory):
    app = pressed(uploaded(flowers(), "flowers.csv"), "keep")
    app.switch_page("pages/kernel_change.py")
    open_panels(app, "kernel_change")
    app = checked(app.run())
    app = checked(app.selectbox(key="kernel_change.dataset.name").set_value("upload").run())
    menu = app.selectbox(key="kernel_change.dataset.digest")
    assert menu.options == ["flowers.csv, 3"]
    assert form_sentences(app) == []
    other = open_page("kernel_change", dataset__name="upload")
    assert "flowers" not in "".join(widget.options[0] for widget in other.selectbox if widget.key.endswith("digest"))
    assert "upload the file again" in words(other)
    app.switch_page(f"pages/{PAGE}.py")
    (kept,) = (data_directory / "uploads").iterdir()
    checked(checked(app.run()).button(key=f"{PAGE}.forget.{kept.stem}").click().run())
    assert not kept.exists(), "data can be forgotten"


def test_shared_link_opens_stored_data_and_names_missing_ones():
    candidate = parse_upload(flowers())
    digest = keep_upload(clean_upload(candidate, suggested_choices(candidate)))
    app = open_page("hessian", dataset__name="upload", dataset__digest=digest, networks="1")
    assert form_sentences(app) == []
    assert app.selectbox(key="hessian.dataset.digest").options == [f"from the link ({digest[:8]}…)"]
    app = open_page("kernel_change", dataset__name="upload", dataset__digest="0" * 64)
    (sentence,) = form_sentences(app)
    assert sentence.startswith("Your data: 0000")
    assert "upload the file again on the page Your data" in sentence
    assert app.button(key="kernel_change.run").disabled


def test_projection_keeps_distances_of_a_plane_and_plain_names():
    x = np.random.default_rng(0).normal(size=(50, 2)) @ np.array([[3.0, 0, 1, 2], [0, 1, -1, 0]])
    data = Cleaned(x.astype(np.float32), np.arange(50) % 2, np.zeros((50, 0), np.float32), ("<b>a</b>", "b"))
    points, share = figures.projection(data)
    assert share == pytest.approx(1)
    distances, drawn = (np.linalg.norm(each[:, None] - each[None], axis=-1) for each in (x, points))
    np.testing.assert_allclose(drawn / drawn.max(), distances / distances.max(), atol=1e-5)
    assert figures.scatter(data).figure.data[0].name == "&lt;b&gt;a&lt;/b&gt;", "names of classes are text"
