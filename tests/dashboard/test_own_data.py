"""Uploaded data: the page of uploads, and runs on every page with data, from URL to figures."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

import linearity_lab
import ntk_core
from linearity_lab.dashboard.own_data import Uploaded, wide_relu_kernels
from linearity_lab.dashboard.pages.own_data import figures as figures
from linearity_lab.dashboard.pages.own_data.page import example_file
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.data.uploads import (
    Choices,
    Cleaned,
    clean_upload,
    keep_upload,
    parse_upload,
    suggested_choices,
)
from linearity_lab.experiments.dynamics.point import DynamicsSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import EXPERIMENTS, load_data
from linearity_lab.settings.grammar import spec_from_texts, text_of, with_settings
from tests.dashboard.open_pages import checked, form_sentences, open_page, open_panels, press, words
from tests.data.uploads.files import archive, arrays, flowers, pets
from tests.running import result_of
from tests.smallest import smallest

PAGE = "own_data"


pytestmark = pytest.mark.usefixtures("gallery")


@pytest.fixture(autouse=True)
def data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "linearity-lab"


def kept(data: bytes, choices: Choices | None = None) -> str:
    """Digest of these data, stored with the choices or with the suggested ones."""
    candidate = parse_upload(data)
    return keep_upload(clean_upload(candidate, choices or suggested_choices(candidate)))


def uploaded(data: bytes, name: str) -> AppTest:
    app = open_page(PAGE)
    app.file_uploader[0].set_value((name, data, "application/octet-stream"))
    return checked(app.run())


def widget(app: AppTest, kind: str, name: str):
    """The widget of the uploaded file whose key has this ending."""
    (found,) = [each for each in app.get(kind) if each.key and each.key.endswith(f".{name}")]
    return found


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (flowers(), "flowers.csv", ["3", "3", "60"]),
        (pets(), "pets.zip", ["10 × 10 × 3", "2", "12"]),
        (example_file(), "spirals.csv", ["3", "3", "60"]),
    ],
)
def test_every_kind_of_file_shows_what_the_network_will_see(data, name, expected):
    app = uploaded(data, name)
    assert [metric.value for metric in app.metric] == expected
    assert app.get("plotly_chart")
    assert not app.error


def test_first_columns_of_a_wide_table_are_drawn():
    """A table of 4,000 columns, sent again at each rerun,
    took an eighth of a server's time under attack.
    """
    rows = [
        ",".join(f"c{column}" for column in range(120)),
        *[",".join("12"[row % 2] * 120) for row in range(4)],
    ]
    app = uploaded("\n".join(rows).encode(), "wide.csv")
    # The first one counts samples per class; that of types is behind a click.
    _, preview = app.dataframe
    assert list(preview.value.columns) == [f"c{column}" for column in range(50)]
    assert "4 rows, 120 columns, the first rows of the first 50:" in [
        each.value for each in app.caption
    ]


REFUSED = [
    (b"", "file: an empty file cannot be used"),
    (
        b"a,b,kind\n1,2,x\nNA,3,y\n3,4,x\n4,1,y\n5,5,y\n",
        "features: a (1 missing, the first in line 3) cannot be used",
    ),
]


def test_refusal_is_one_sentence_until_the_choice_is_mended():
    app = open_page(PAGE)
    for data, sentence in REFUSED:
        app.file_uploader[0].set_value(
            ("[bad](http://x) $f$.csv", data, "application/octet-stream")
        )
        (shown,) = [error.value.replace("\\", "") for error in checked(app.run()).error]
        assert shown.startswith(sentence)
        assert shown.endswith(".")
        assert any("No preview yet" in info.value for info in app.info)
        assert not [button for button in app.button if button.key == f"{PAGE}.run"]
    widget(app, "toggle", "drop_missing").set_value(True)
    assert not checked(app.run()).error
    assert [metric.value for metric in app.metric] == ["2", "2", "4"]


def test_undecided_first_row_is_chosen_on_the_page():
    data = "2019,2020,2021\n" + "".join(f"{i * 0.5},{i * i},{i % 2}\n" for i in range(12))
    app = uploaded(data.encode(), "years.csv")
    (shown,) = [error.value for error in app.error]
    assert "a first row (2019, 2020, 2021)" in shown.replace("\\", "")
    for chosen, num_rows in (("Column names", 12), ("A sample", 13)):
        (control,) = [each for each in app.get("button_group") if each.label == "First row"]
        control.set_value(chosen)
        app = checked(app.run())
        assert not [error for error in app.error if "first row" in error.value]
        assert any(f"{num_rows} rows, 3 columns" in each.value for each in app.caption)


def test_background_of_transparent_images_is_chosen_on_the_page():
    icons = {}
    for index in range(6):
        pixels = np.zeros((8, 8, 4), np.uint8)
        pixels[index:, :4, 3] = 255
        stream = io.BytesIO()
        Image.fromarray(pixels, "RGBA").save(stream, "PNG")
        icons[f"icons/{'ab'[index % 2]}/{index}.png"] = stream.getvalue()
    app = uploaded(archive(icons), "icons.zip")
    (shown,) = [error.value for error in app.error]
    assert "transparent in places" in shown
    widget(app, "button_group", "background").set_value("white")
    app = checked(app.run())
    assert not app.error
    assert "Transparent pixels show the background, white." in words(app)


def test_target_inputs_and_missing_values_are_in_words():
    rows = "".join(f"{i * 0.5},{'NA' if i == 3 else i * i},{i % 2}\n" for i in range(12))
    app = uploaded(f"x,y,label\n{rows}".encode(), "plane.csv")
    shown = words(app)
    assert "Target: label, a class, suggested because of its name." in shown
    assert "Inputs: x, y." in shown
    assert "Missing in y: 1 × NA." in shown


def test_a_number_to_be_learned_leads_to_the_linear_model(jobs):
    app = uploaded(flowers(), "flowers.csv")
    widget(app, "selectbox", "target").set_value("size")
    widget(app, "segmented_control", "task").set_value("regression")
    app = checked(app.run())
    widget(app, "multiselect", "features").set_value(["sepal", "petal"])
    widget(app, "number_input", "num_samples.60").set_value(40)
    press(checked(app.run()), f"{PAGE}.run")
    (spec,) = jobs.submitted
    assert isinstance(spec, DynamicsSpec)
    assert (spec.dataset.num_samples, spec.num_test) == (40, 20)
    # All rows are training data.
    for total, trained, test_points in (
        (40, 32, 8),
        (3, 2, 1),
        (1000, 980, 20),
    ):
        digest = kept(flowers(num_rows=total), Choices(("sepal", "petal"), "size", "regression"))
        dataset = DatasetSpec(name="upload", digest=digest, num_samples=total)
        first: Any
        page, first = Uploaded(dataset, "flowers", total, 0).first_look()
        assert (page, first.dataset.num_samples, first.num_test) == (
            "dynamics",
            trained,
            test_points,
        )


def houses() -> bytes:
    """Prices by area and year, with unequal units."""
    rng = np.random.default_rng(0)
    area, year = rng.normal(120, 40, 120), rng.uniform(1900, 2020, 120)
    price = 2500 * area + 300 * (year - 1900) + rng.normal(0, 15_000, 120)
    return arrays(x=np.stack([area, year], axis=1), y=price)


def customers() -> bytes:
    """Three overlapping segments by income and age."""
    rng = np.random.default_rng(0)
    segment = rng.integers(0, 3, 120)
    means = np.array([[20_000, 25], [45_000, 45], [90_000, 60]])[segment]
    return arrays(x=means + [15_000, 12] * rng.normal(size=(120, 2)), y=segment)


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "classes", "page"), [(houses(), 0, "dynamics"), (customers(), 3, "kernel_change")]
)
def test_the_first_run_on_unscaled_data_converges(data, classes, page):
    dataset = DatasetSpec(name="upload", digest=kept(data), num_samples=60, standardize="standard")
    found, spec = Uploaded(dataset, "mine", 120, classes).first_look()
    assert found == page
    result: Any = linearity_lab.compute(with_settings(spec, {"widths": [30, 300], "num_seeds": 1}))
    assert {run.outcome for point in result.points for run in point.runs} == {"converged"}


def test_kernels_of_the_threshold_are_those_of_the_core():
    x = np.random.default_rng(0).standard_normal((6, 5))
    x[1], x[2] = 2 * x[0], -x[0]
    net = ntk_core.FullyConnected(activation="relu")
    expected = (ntk_core.infinite_width_ntk(net, x), ntk_core.kernels.infinite_width_nngp(net, x))
    for found, kernel in zip(wide_relu_kernels(x), expected, strict=True):
        np.testing.assert_allclose(found, kernel, atol=1e-6)


def test_kept_data_are_offered_in_this_session_only(data_directory):
    app = press(uploaded(flowers(), "flowers.csv"), f"{PAGE}.keep")
    app.switch_page("pages/kernel_change.py")
    open_panels(app, "kernel_change")
    app = checked(app.run())
    app = checked(app.selectbox(key="kernel_change.dataset.name").set_value("upload").run())
    menu = app.selectbox(key="kernel_change.dataset.digest")
    assert menu.options == ["flowers.csv, 3"]
    assert form_sentences(app) == []
    other = open_page("kernel_change", dataset__name="upload")
    assert "flowers" not in "".join(
        widget.options[0] for widget in other.selectbox if widget.key.endswith("digest")
    )
    assert "upload the file again" in words(other)
    app.switch_page(f"pages/{PAGE}.py")
    (stored,) = (data_directory / "uploads").iterdir()
    press(checked(app.run()), f"{PAGE}.forget.{stored.stem}")
    assert not stored.exists(), "data can be forgotten"


def test_shared_link_opens_stored_data_and_names_missing_ones():
    digest = kept(flowers())
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
    data = Cleaned(
        x.astype(np.float32), np.arange(50) % 2, np.zeros((50, 0), np.float32), ("<b>a</b>", "b")
    )
    points, share = figures.projection(data)
    assert share == pytest.approx(1)
    distances, drawn = (np.linalg.norm(each[:, None] - each[None], axis=-1) for each in (x, points))
    np.testing.assert_allclose(drawn / drawn.max(), distances / distances.max(), atol=1e-5)
    assert figures.scatter(data).figure.data[0].name == "&lt;b&gt;a&lt;/b&gt;", (
        "names of classes are text"
    )


# kernel_change shares its code with architectures; lazy and optimization share theirs with
# dynamics.
SHARED = ("kernel_change", "lazy", "optimization")
PAGES = [
    name
    for name, each in EXPERIMENTS.items()
    if getattr(each.spec.model_fields.get("dataset"), "annotation", None) is DatasetSpec
    and name not in SHARED
]


TOKENS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "architectures",
        "architectures.0.",
        {"name": "induction", "num_tokens": 4, "num_symbols": 3, "input_dim": 3},
    ),
    ("hessian", "networks.0.", {"name": "cifar2", "patch_size": 4}),
    ("dynamics", "architecture.", {"name": "random-sequences", "num_tokens": 3, "input_dim": 2}),
)


def numbers() -> str:
    """A table with a numeric target from two others."""
    return kept(flowers(), Choices(("sepal", "petal"), "size", "regression"))


def runs_and_draws(page: str, jobs, settings: dict[str, Any]) -> Any:
    """Open the page with these settings, compute its run, draw its figures, and return the spec."""
    texts = {
        name: value if isinstance(value, str) else text_of(value)
        for name, value in settings.items()
    }
    app = open_page(page, opened=False, **texts)
    assert not app.error
    if not jobs.submitted:  # a preview, which begins without Run
        press(app, f"{page}.run")
    (spec,) = jobs.submitted
    result = result_of(spec, scheduler="")
    assert len(result.points) == len(spec.point_keys())
    app = open_page(
        page,
        opened=False,
        job=jobs.add(spec, status="completed", points=result.points, result=result),
    )
    assert app.get("plotly_chart")
    assert not app.error
    return spec


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "kind"), [*((page, "numbers") for page in PAGES), ("kernel_change", "images")]
)
def test_a_page_runs_and_draws_data_of_ones_own(page, kind, jobs):
    """The run uses the uploaded data from the URL with the page's default outputs."""
    upload = numbers() if kind == "numbers" else kept(pets())
    # Default outputs are kept, because the data may not allow them.
    small = smallest(EXPERIMENTS[page].presets[0].spec, keep=("outputs",))
    spec = runs_and_draws(page, jobs, {**small, "dataset.name": "upload", "dataset.digest": upload})
    assert (spec.dataset.digest, spec.dataset.num_samples, spec.num_seeds) == (upload, 6, 1)
    assert bool(load_data(spec).class_names) == (kind != "numbers")


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(("page", "group", "data"), TOKENS)
def test_a_page_runs_and_draws_networks_of_tokens(page, group, data, jobs):
    kind = "transformer" if page == "architectures" else "attention"
    chosen = {
        **smallest(EXPERIMENTS[page].presets[0].spec),
        **{f"{group}kind": kind, f"{group}width_is": "head_dim", f"{group}num_heads": 2},
        **({f"{group}num_blocks": 1} if kind == "transformer" else {}),
        **{f"dataset.{name}": value for name, value in data.items()},
        **({"outputs": ("linear",)} if "outputs" in EXPERIMENTS[page].spec.model_fields else {}),
    }
    assert runs_and_draws(page, jobs, chosen).dataset.name == data["name"]


def test_address_keeps_the_data_that_refuse_its_other_settings():
    given = {
        "dataset.name": "upload",
        "dataset.digest": numbers(),
        "dataset.num_samples": "12",
        "seed": "3",
    }
    for outputs in ({}, {"outputs": "softmax"}, {"outputs": "softmax,tanh"}):
        spec, problems = spec_from_texts({**given, **outputs}, KernelChangeSpec())
        assert (spec.dataset.digest, spec.dataset.num_samples, spec.seed) == (
            given["dataset.digest"],
            12,
            3,
        )
        assert spec.outputs == ("linear", "swish")
        assert [problem.field for problem in problems] == ["outputs"]
