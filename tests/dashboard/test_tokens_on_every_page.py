"""Pages that take a network and data run attention and transformers on sequences, from URL to figures."""

from __future__ import annotations

import pytest

from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import EXPERIMENTS, run, spec_digest
from ntk_core.runs.events import PointFailed
from ntk_core.settings.grammar import InvalidSpec, settings, text_of, with_settings
from tests.dashboard.open_pages import checked, open_page
from tests.smallest import smallest


def kind_of(page: str) -> str:
    """The setting that names the first network of an experiment; empty where it takes none."""
    found = [each.name for each in settings(EXPERIMENTS[page].spec) if each.name.endswith("kind")]
    takes = getattr(EXPERIMENTS[page].spec.model_fields.get("dataset"), "annotation", None) is DatasetSpec
    return found[0] if found and takes else ""


PAGES = [page for page in EXPERIMENTS if kind_of(page)]
# The others take the same ways: kernel_change that of architectures, lazy and optimization that of dynamics.
TRIED = [page for page in PAGES if page not in ("kernel_change", "lazy", "optimization")]
DATA = (
    {"name": "induction", "num_tokens": 4, "num_symbols": 3, "input_dim": 3},
    {"name": "cifar2", "patch_size": 4},
    {"name": "random-sequences", "num_tokens": 3, "input_dim": 2},
)


@pytest.mark.slow
@pytest.mark.parametrize("page", TRIED)
def test_a_page_runs_and_draws_networks_of_tokens(page, jobs, gallery, through_the_menu, quick_compilation):
    """Kinds and data go around, so that each page meets one of each."""
    at = TRIED.index(page)
    kind, data = "transformer" if page == "architectures" else "attention", DATA[at % 3]
    group = kind_of(page).removesuffix("kind")
    chosen = {
        **smallest(EXPERIMENTS[page].presets[0].spec),
        **{f"{group}kind": kind, f"{group}width_is": "head_dim", f"{group}num_heads": 2},
        **({f"{group}num_blocks": 1} if kind == "transformer" else {}),
        **{f"dataset.{name}": value for name, value in data.items()},
        **({"outputs": ("linear",)} if "outputs" in EXPERIMENTS[page].spec.model_fields else {}),
    }
    query = {name.replace(".", "__"): text_of(value) for name, value in chosen.items()}
    app = open_page(page, **query)
    assert [error.value for error in app.error] == []
    checked(app.button(key=f"{page}.run").click().run())
    (spec,) = jobs.submitted
    assert spec.dataset.name == data["name"]
    events = list(run(spec, scheduler=""))
    assert [event.reason for event in events if isinstance(event, PointFailed)] == []
    result = events[-1].result
    assert len(result.points) == len(spec.point_keys())
    jobs.add(spec, status="completed", points=result.points, result=result, fraction=1.0)
    app = open_page(page, job=spec_digest(spec)[:16])
    assert app.get("plotly_chart")
    assert [error.value for error in app.error] == []


def test_unsupported_data_are_refused_by_architecture():
    assert len(PAGES) >= 7
    shapes = {"vectors": (10,), "images": (8, 8, 3), "tokens": (16, 12)}
    taken = {"attention": ["tokens"], "transformer": ["tokens"], "convnet": ["images"], "fully-connected": [*shapes]}
    for kind, expected in taken.items():
        for name, shape in shapes.items():
            if name in expected:
                ArchitectureSpec(kind=kind).check_inputs(shape)
                continue
            with pytest.raises(InvalidInput) as refusal:
                ArchitectureSpec(kind=kind).check_inputs(shape)
            assert refusal.value.field == "architecture.kind"
            assert ("patch_size" in refusal.value.allowed) == (expected == ["tokens"])
    with pytest.raises(InvalidSpec, match=r"architecture\.kind: attention .*dataset random-sequences"):
        with_settings(EXPERIMENTS["kernel_change"].spec(), {"architecture.kind": "attention"})
