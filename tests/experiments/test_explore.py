"""Explore: linear models beside networks, first answers of all pairs, sentences about ΔK."""

import gzip
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.charts.figure import Shown, shown_result
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.style import network_style
from linearity_lab.experiments import ExploreSpec
from linearity_lab.experiments.explore import compute, figures, pairs
from linearity_lab.experiments.explore.finding import change_finding
from linearity_lab.experiments.explore.point import ExploreResult
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.runs import load_data, run_to_end
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics import Loss, softmax_changes, train
from ntk_core.dynamics._models import UnderLosses
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

SMALL = with_settings(
    ExploreSpec(),
    {
        "widths": (6,),
        "num_seeds": 1,
        "num_inputs": 1,
        "dataset.num_samples": 6,
        "training.max_steps": 12,
        "training.num_records": 5,
        "architecture.activation": "tanh",
    },
)


@pytest.fixture(scope="module")
def small():
    """(spec, data, point) of a small run."""
    data = load_data(SMALL)
    return SMALL, data, compute.compute(SMALL, data, "width=6", Progress())


@pytest.mark.slow
@pytest.mark.parametrize("output", ["softmax", "swish"])
def test_linear_model_equals_that_in_weight_space(small, output):
    _, data, point = small
    run = next(each for each in point.of("linear" if output == "softmax" else output))
    net = FullyConnected(
        width=6, depth=1, num_outputs=3, activation="tanh", output=output, use_bias=True
    )
    params = net.init(initial_key(0, 6), data.input_shape)
    history = train(
        net,
        params,
        data.x,
        data.y,
        loss=Loss(output),
        learning_rate=run.learning_rate,
        max_steps=12,
        num_records=5,
        linear_route="weights",
        followed=list(point.followed),
    )
    assert run.steps == tuple(history.steps.tolist())
    np.testing.assert_allclose(run.loss_linear, history.linearized.loss, rtol=1e-4)
    np.testing.assert_allclose(run.loss, history.network.loss, rtol=1e-4)
    np.testing.assert_allclose(run.difference, history.difference.relative, rtol=2e-2, atol=1e-7)
    np.testing.assert_allclose(run.outputs_linear, history.linearized.outputs, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(run.outputs, history.network.outputs, rtol=2e-3, atol=1e-3)


def test_softmax_has_that_of_the_linear_model_beside_it(small):
    spec, data, point = small
    net = FullyConnected(width=6, depth=1, num_outputs=3, activation="tanh", use_bias=True)
    params = net.init(initial_key(0, 6), data.input_shape)
    at_start = empirical_ntk(net, params, data.x), net.apply(params, data.x), data.y
    (run,) = point.of("softmax")
    expected = softmax_changes(*at_start, run.learning_rate, run.steps)
    assert run.linear_model_change == pytest.approx(expected, rel=1e-3)
    others = (*point.of("linear"), *point.of("swish"))
    assert all(each.linear_model_change == () for each in others)
    shown = Shown(spec, (point,))
    for chart in (
        figures.change_against_width(shown),
        figures.training(shown, "softmax", 6, 0),
    ):
        assert any(LINEAR_MODEL_TITLE in (trace.name or "") for trace in chart.figure.data)


def test_large_kernels_have_no_softmax_of_a_linear_model(small, monkeypatch):
    spec, data, point = small
    assert point.of("softmax")[0].linear_model_change
    monkeypatch.setattr(compute, "MAX_ROWS", data.y.size - 1)
    again = compute.compute(spec, data, "width=6", Progress())
    assert again.of("softmax")[0].linear_model_change == ()


def test_all_trainings_of_a_width_share_one_program_of_steps(monkeypatch):
    traced = []

    def counted(self, *given):
        traced.append(self.losses)
        return usual(self, *given)

    usual = UnderLosses.loss_and_gradient
    monkeypatch.setattr(UnderLosses, "loss_and_gradient", counted)
    wider = with_settings(SMALL, {"widths": (7,), "num_seeds": 2, "num_inputs": 0})
    compute.compute(wider, load_data(wider), "width=7", Progress())
    assert traced == [(Loss("softmax"), Loss("swish"))]


def test_softmax_is_expanded_to_first_order():
    start = jax.random.normal(jax.random.key(0), (4, 3))
    along = jax.random.normal(jax.random.key(1), (4, 3))
    found = compute.expanded("softmax", start, jnp.stack([start, start + 2 * along]))
    p = np.asarray(jax.nn.softmax(start))
    slopes = np.einsum("ia,ab->iab", p, np.eye(3)) - p[:, :, None] * p[:, None, :]
    np.testing.assert_allclose(found[0], p, rtol=1e-6)
    expected = p + 2 * np.einsum("iab,ib->ia", slopes, np.asarray(along))
    np.testing.assert_allclose(found[1], expected, rtol=1e-4, atol=1e-5)


def test_hessian_norms_and_kernels_are_those_at_the_start(small):
    spec, data, point = small
    net = FullyConnected(width=6, depth=1, num_outputs=3, activation="tanh", use_bias=True)
    params = net.init(initial_key(0, 6), data.input_shape)
    flat, restore = jax.flatten_util.ravel_pytree(params)
    x = jnp.asarray(data.x[:1], jnp.float32)
    matrix = jax.hessian(lambda w: net.apply(restore(w), x)[0, 0])(flat)
    (run,) = point.of("linear")
    assert run.hessian == pytest.approx(float(np.linalg.norm(matrix, 2)), rel=1e-3)
    jacobian = jax.jacobian(lambda w: net.apply(restore(w), jnp.asarray(data.x)))(flat)
    kernel = np.einsum("iap,jap->ij", jacobian, jacobian) / 3
    drawn = compute.drawn_points(data, spec.num_drawn)
    first = next(each for each in point.kernels if each.output == "linear")
    np.testing.assert_allclose(first.initial, kernel[np.ix_(drawn, drawn)], rtol=6e-3, atol=1e-3)


def test_every_network_has_first_answers():
    found = pairs.pairs()
    assert {name.partition(".")[0] for name in found} == set(pairs.ARCHITECTURES)
    assert (
        found["convnet.mnist"].widths == pairs.sizes_of(found["convnet.mnist"].architecture).first
    )
    assert "convnet.gaussian-mixture" not in found


@pytest.mark.parametrize("dataset", ["mnist", "fashion-mnist", "digits"])
def test_first_answers_show_three_classes_of_images(dataset):
    spec = pairs.pair("fully-connected", dataset)
    assert spec is not None
    assert spec.dataset.classes == (0, 1, 2)


def test_resnet_of_a_first_answer_has_a_skip():
    spec = pairs.pairs()["resnet.gaussian-mixture"]
    assert spec.architecture.depth > spec.architecture.skip_every
    assert pairs.following({pairs.KIND: "fully-connected"})["architecture.depth"] == 1


def test_precomputed_answers_are_whole_and_small():
    specs = pairs.pairs()
    files = sorted(pairs.FOLDER.glob("*.json.gz"))
    assert {file.name.removesuffix(".json.gz") for file in files} == {*specs}
    for file in files:
        assert file.stat().st_size < 60_000
        result = ExploreResult.model_validate_json(gzip.decompress(file.read_bytes()))
        assert result.status == "completed"
        assert result.spec == specs[file.name.removesuffix(".json.gz")]
        for point in result.points:
            for run in point.of("softmax"):
                assert len(run.linear_model_change) == len(run.steps)


@pytest.mark.long  # compiles two sweeps
def test_part_of_a_first_answer_equals_its_own_run():
    changes = {"widths": (6, 8), "num_seeds": 2, "outputs": ("linear", "softmax", "swish")}
    whole = run_to_end(with_settings(SMALL, changes), scheduler="").result
    fewer = {"widths": (8,), "num_seeds": 1, "outputs": ("softmax", "linear")}
    spec = with_settings(SMALL, fewer)
    part = pairs.part_of(whole, spec)
    own = run_to_end(spec, scheduler="").result
    assert part.spec == spec
    for ours, theirs in zip(part.points, own.points, strict=True):
        assert ours.followed == theirs.followed
        assert ours.kernels == theirs.kernels
        for run, other in zip(ours.runs, theirs.runs, strict=True):
            assert (run.output, run.seed) == (other.output, other.seed)
            assert run.hessian == pytest.approx(other.hessian, rel=compute.TOLERANCE)
            numbers = {"steps", "change", "loss", "loss_linear", "difference", "outputs"}
            assert run.model_dump(include=numbers) == other.model_dump(include=numbers)
    assert pairs.part_of(own, whole.spec) is None
    assert pairs.part_of(whole, with_settings(spec, {"outputs": ("tanh",)})) is None


def test_preview_is_a_part_of_its_spec():
    spec = with_settings(ExploreSpec(), {"widths": (30, 100, 300, 1000, 10_000), "num_seeds": 9})
    small = pairs.preview_of(spec)
    assert small.widths == (30, 300, 1000)
    assert small.num_seeds == 2
    assert pairs.preview_of(ExploreSpec()) == ExploreSpec()
    full = pairs.in_full(ExploreSpec())
    assert max(full.widths) == 10_000
    assert pairs.in_full(full) == full


def _line(output, values):
    dots = [Dot(width, value, 0) for width, value in values.items()]
    return Line(network_style("fully-connected", output), dots)


def test_sentence_states_level_or_decrease_of_these_runs():
    lines = [
        _line("linear", {30: 0.4, 300: 0.1, 1000: 0.02}),
        _line("swish", {30: 0.91, 300: 0.9, 1000: 0.93}),
    ]
    sentence = change_finding(["linear", "swish"], lines)
    assert "falls from 0.4 to 0.02 with a linear output" in sentence
    assert "about 0.91 at every width with a swish output" in sentence
    large = change_finding(["linear"], [_line("linear", {4: 5.1, 12: 1.2, 36: 0.96})])
    assert "still 0.96 at m = 36" in large
    rising = change_finding(["linear"], [_line("linear", {30: 0.1, 300: 0.4})])
    assert "between 0.1 and 0.4" in rising
    assert "falls" not in rising


def test_sentence_is_absent_without_usable_runs():
    line = Line(network_style("fully-connected", "linear"), [Dot(30, 0.4, 0, "got stuck")])
    assert "falls" not in change_finding(["linear"], [line])
    assert change_finding([], []) == ""


@pytest.mark.slow  # compiles two widths
def test_next_width_compiles_few_programs(small, caplog):
    spec, data, _ = small
    compute.compute(spec, data, "width=6", Progress())
    with caplog.at_level("DEBUG", "jax._src.dispatch"):
        compute.compute(with_settings(spec, {"widths": (11,)}), data, "width=11", Progress())
    finished = re.compile(r"Finished XLA compilation of jit\((\w+)\)")
    found = filter(None, map(finished.match, caplog.messages))
    names = {each[1] for each in found}
    # The kernel, the steps of all outputs, two programs of ‖H‖ for all outputs; shapes are staged.
    assert names - {"stage"} == {"_pre_outputs_and_kernel", "advance", "_linearized", "_image"}


@pytest.mark.slow  # compiles a sweep
def test_resumed_and_whole_runs_agree():
    ended = run_to_end(SMALL, scheduler="")
    assert ended.status == "completed"
    assert len(ended.result.points[0].runs) == 3


def test_dead_network_is_named_in_its_figure():
    file = pairs.FOLDER / "bottleneck.sine.json.gz"
    result = ExploreResult.model_validate_json(gzip.decompress(file.read_bytes()))
    largest = result.points[-1]
    assert largest.of("linear")[0].outcome == "dead"
    chart = figures.logits(shown_result(result), "linear", largest.width, 0)
    texts = [each.text for each in chart.figure.layout.annotations]
    assert "no training: kernel 0 at the start" in texts
    (drawn,) = figures.kernels(shown_result(result), "linear", largest.width, 0)
    assert drawn.takeaway.endswith("The drawn entries are 0 at the start.")


def test_width_whose_first_output_has_not_ended_is_drawn(small):
    """Outputs are trained side by side and end in any order."""
    spec, _, point = small
    kept = {"runs": tuple(point.of("swish")), "kernels": ()}
    swish = [each for each in point.kernels if each.output == "swish"]
    begun = point.model_copy(update={**kept, "kernels": tuple(swish)})
    shown = Shown(spec, (point.model_copy(update={"width": 4}), begun))
    for figure in figures.FIGURES:
        if figure.has_data(shown):
            chosen = figure.initial_options(shown)
            charts = figure.charts(shown, *chosen)
            assert bool(charts) == (figure.name != "kernels")
