"""Uploaded data and networks of tokens on every page with data, from URL to figures."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ntk_core.data.spec import DatasetSpec
from ntk_core.data.uploads import Choices, clean_upload, keep_upload, parse_upload, suggested_choices
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import EXPERIMENTS, load_data, run, spec_digest
from ntk_core.runs.events import PointFailed
from ntk_core.settings.grammar import settings, spec_from_texts, text_of
from tests.dashboard.open_pages import open_page, press
from tests.data.uploads.files import arrays, blobs, flowers, pets
from tests.smallest import smallest

PAGES = [
    name
    for name, each in EXPERIMENTS.items()
    if getattr(each.spec.model_fields.get("dataset"), "annotation", None) is DatasetSpec
]
FAST = ("kernel_change", "dynamics", "generalization")


def kind_of(page: str) -> str:
    """Name of the setting for the kind of the first network, or an empty string."""
    return next((each.name for each in settings(EXPERIMENTS[page].spec) if each.name.endswith("kind")), "")


# kernel_change shares its code with architectures; lazy and optimization share theirs with dynamics.
TRIED = [page for page in PAGES if kind_of(page) and page not in ("kernel_change", "lazy", "optimization")]
TOKENS: tuple[dict[str, Any], ...] = (
    {"name": "induction", "num_tokens": 4, "num_symbols": 3, "input_dim": 3},
    {"name": "cifar2", "patch_size": 4},
    {"name": "random-sequences", "num_tokens": 3, "input_dim": 2},
)


def numbers() -> str:
    """A table with a numeric target from two others."""
    table = parse_upload(flowers())
    return keep_upload(clean_upload(table, Choices(("sepal", "petal"), "size", "regression")))


def two_numbers() -> str:
    """Arrays with two numbers to be learned."""
    x = np.random.default_rng(0).normal(size=(20, 3))
    return keep_upload(clean_upload(parse_upload(arrays(x=x, y=x[:, :2] ** 2)), Choices(("x",), "y", "regression")))


def suggested(data: bytes) -> str:
    candidate = parse_upload(data)
    return keep_upload(clean_upload(candidate, suggested_choices(candidate)))


KINDS = {
    "numbers": numbers,
    "two numbers": two_numbers,
    "classes": lambda: suggested(flowers()),
    "arrays": lambda: suggested(blobs()),
    "images": lambda: suggested(pets()),
}


@pytest.fixture(autouse=True)
def _own_directory(gallery, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def runs_and_draws(page: str, jobs, settings: dict[str, Any]) -> Any:
    """Open the page with these settings, compute its run, draw its figures, and return the result."""
    texts = {name: value if isinstance(value, str) else text_of(value) for name, value in settings.items()}
    app = open_page(page, opened=False, **texts)
    assert [error.value for error in app.error] == []
    press(app, f"{page}.run")
    (spec,) = jobs.submitted
    events = list(run(spec, scheduler=""))
    assert [event.reason for event in events if isinstance(event, PointFailed)] == []
    result = events[-1].result
    assert len(result.points) == len(spec.point_keys())
    jobs.add(spec, status="completed", points=result.points, result=result, fraction=1.0)
    app = open_page(page, opened=False, job=spec_digest(spec)[:16])
    assert app.get("plotly_chart")
    assert [error.value for error in app.error] == []
    return result


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        # Pages do not depend on the kind of file, so two represent all. Three pages of one kind are fast.
        pytest.param(page, kind, marks=[] if kind == "numbers" and page in FAST else pytest.mark.slow)
        for page in PAGES
        for kind in KINDS
        if kind == "numbers" or page == "kernel_change" or (page, kind) == ("dynamics", "images")
    ],
)
def test_a_page_runs_and_draws_data_of_ones_own(page, kind, jobs):
    """The run uses the uploaded data from the URL with the page's default outputs."""
    upload = KINDS[kind]()
    # Default outputs are kept, because the data may not allow them.
    small = smallest(EXPERIMENTS[page].presets[0].spec, keep=("outputs",))
    result = runs_and_draws(page, jobs, {**small, "dataset.name": "upload", "dataset.digest": upload})
    spec = result.spec
    assert (spec.dataset.digest, spec.dataset.num_samples, spec.num_seeds) == (upload, 6, 1)
    assert bool(load_data(spec).class_names) == (kind not in ("numbers", "two numbers"))
    assert all(math.isfinite(value) for value in _losses(result))


@pytest.mark.slow
@pytest.mark.parametrize("page", TRIED)
def test_a_page_runs_and_draws_networks_of_tokens(page, jobs):
    """One data set of tokens per page, in rotation."""
    kind, data = "transformer" if page == "architectures" else "attention", TOKENS[TRIED.index(page) % 3]
    group = kind_of(page).removesuffix("kind")
    chosen = {
        **smallest(EXPERIMENTS[page].presets[0].spec),
        **{f"{group}kind": kind, f"{group}width_is": "head_dim", f"{group}num_heads": 2},
        **({f"{group}num_blocks": 1} if kind == "transformer" else {}),
        **{f"dataset.{name}": value for name, value in data.items()},
        **({"outputs": ("linear",)} if "outputs" in EXPERIMENTS[page].spec.model_fields else {}),
    }
    assert runs_and_draws(page, jobs, chosen).spec.dataset.name == data["name"]


def _losses(result) -> list[float]:
    """One loss or norm of every run, under the experiment's name for it."""
    found = []
    for each in itertools.chain.from_iterable(point.runs for point in result.points):
        parts = (getattr(each, "trained", None), getattr(each, "network", None), each)
        names = ("final_loss", "last_loss", "loss", "log_loss")
        value = next(loss for part in parts for name in names if (loss := getattr(part, name, None)))
        found.append(value[-1] if isinstance(value, tuple) else value)
    assert found
    return found


def test_address_keeps_the_data_that_refuse_its_other_settings():
    upload = numbers()
    given = {"dataset.name": "upload", "dataset.digest": upload, "dataset.num_samples": "12", "seed": "3"}
    for outputs in ({}, {"outputs": "softmax"}, {"outputs": "softmax,tanh"}):
        spec, problems = spec_from_texts({**given, **outputs}, KernelChangeSpec())
        assert (spec.dataset.digest, spec.dataset.num_samples, spec.seed) == (upload, 12, 3)
        assert spec.outputs == ("linear", "swish")
        assert [problem.field for problem in problems] == ["outputs"]
    few = suggested(pets())
    spec, problems = spec_from_texts({"dataset.name": "upload", "dataset.digest": few}, KernelChangeSpec())
    assert (spec.dataset.digest, spec.dataset.num_samples) == (few, 12)
    assert [problem.field for problem in problems] == ["dataset.num_samples"]
