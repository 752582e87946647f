"""Adding networks: the error against explicit weights in float64, tasks of a data set,
and refusals.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.charts.figure import Shown, shown_result
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.adding.compute import compute, parts_of, sums_of
from linearity_lab.experiments.adding.figures import FIGURES, added_functions, lines_of
from linearity_lab.experiments.adding.point import AddingSpec
from linearity_lab.networks.build import build_network
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import PRESETS, load_data
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.dynamics import addition_error
from ntk_core.errors import InvalidInput
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from tests import running
from tests.naive_network import NaiveTanh

SMALL = {"widths": [8], "num_seeds": 1, "num_test": 5, "architectures": 1, "outputs": ["linear"]}


def result_of(**settings):
    return running.result_of(with_settings(AddingSpec(), {**SMALL, **settings}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_tasks", "scale"),
    [(2, 2.0), (2, -1.0), (5, 1.0), (3, -0.5)],
    ids=["scaled", "negated", "five tasks", "all"],
)
def test_error_is_that_of_weights_trained_in_float64(num_tasks, scale):
    settings = {"num_tasks": num_tasks, "scale": scale, "training.learning_rate": 0.3}
    settings |= {"training.max_steps": 40, "training.loss_threshold": 1e-9}
    spec = with_settings(AddingSpec(), {**SMALL, **settings})
    result = running.result_of(spec)
    (run,) = result.points[0].runs
    data = load_data(spec)
    naive = NaiveTanh(spec.architectures[0], data, 8, spec.seed)
    x = np.asarray(data.x_test, np.float64)
    at_start = naive.outputs(naive.start, x)
    vectors = []
    for part in parts_of(data, num_tasks):
        w = naive.trained(data.x[part].astype(float), data.y[part].astype(float), 0.3, 40)
        vectors.append([end - start for end, start in zip(w, naive.start, strict=True)])
    parts = []  # F(w₀ + τ_k)
    total = [np.zeros_like(each) for each in naive.start]  # Σ τ_k
    errors = []
    for vector in vectors:
        moved = [start + step for start, step in zip(naive.start, vector, strict=True)]
        parts.append(naive.outputs(moved, x) - at_start)
        total = [a + b for a, b in zip(total, vector, strict=True)]
        moved = [start + scale * step for start, step in zip(naive.start, total, strict=True)]
        whole = naive.outputs(moved, x) - at_start
        summed = scale * sum(parts)
        errors.append(np.linalg.norm(whole - summed) / np.linalg.norm(summed))
    # At λ = 1 the first task alone has E = 0 up to rounding.
    np.testing.assert_allclose(run.error, errors, rtol=2e-3, atol=1e-6)
    assert run.outcome != "converged"
    assert run.steps == (40,) * num_tasks
    kept = np.asarray(run.together)
    np.testing.assert_allclose(kept, at_start + whole, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(run.summed, at_start + summed, rtol=1e-3, atol=1e-5)


def plain_outputs(kind, output):
    """Return F(w, x) of a network of tanh, written out."""

    def layer(w, h, update=0.0):
        return jnp.tanh(h @ (w["weight"] + update) / np.sqrt(h.shape[1]) + w["bias"])

    def outputs(w, x):
        h = layer(w["hidden1"], x)
        if kind == "bottleneck":
            h = layer(w["hidden3"], layer(w["hidden2"], h))
        if kind == "adapted":
            a, b = w["hidden3"]["weight"], w["hidden4"]["weight"]
            h = layer(w["hidden2"], h, a @ b / np.sqrt(a.shape[1]))
        f = h @ w["output"]["weight"] / np.sqrt(h.shape[1])
        return f / (1 + jnp.exp(-f)) if output == "swish" else f

    return outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "letter", "output", "width", "rate", "moved"),
    [
        ("adding-networks", "A", "swish", 8, 0.3, ("hidden1", "output")),
        ("adding-networks", "B", "linear", 8, 0.3, ("hidden1", "hidden2", "hidden3", "output")),
        ("adding-adapters", "A", "linear", 2, 0.2, ("hidden3", "hidden4")),
    ],
    ids=["swish", "bottleneck", "adapters"],
)
def test_error_of_the_controls_is_that_of_float64(preset, letter, output, width, rate, moved):
    changes = {"widths": [width], "num_seeds": 1, "num_test": 5, "draws": "network"}
    changes |= {"training.learning_rate": rate, "training.loss_threshold": 1e-9}
    spec: Any = with_settings(PRESETS[preset].spec, {**changes, "training.max_steps": 30})
    points = running.result_of(spec).points
    (point,) = [each for each in points if each.network == letter]
    (run,) = point.of(output)
    data = load_data(spec)
    architecture = spec.networks[letter]
    net = build_network(architecture, width, data.num_outputs, output)
    start = net.init(initial_key(spec.seed, width), data.input_shape)  # in float32, as the runs
    outputs = plain_outputs(architecture.kind, output)
    with jax.enable_x64(True):
        start = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), start)
        test = jnp.asarray(np.asarray(data.x_test, np.float64))

        def trained(x, y):
            def loss(part):
                return 0.5 * jnp.sum((outputs({**start, **part}, x) - y) ** 2) / len(x)

            slope = jax.jit(jax.grad(loss))
            part = {name: start[name] for name in moved}
            for _ in range(30):
                part = jax.tree.map(lambda w, g: w - rate * g, part, slope(part))
            return part

        begin = {name: start[name] for name in moved}
        at_start = outputs(start, test)
        merged = begin
        summed = jnp.zeros_like(at_start)
        for rows in parts_of(data, 2):
            x, y = (jnp.asarray(np.asarray(each[rows], np.float64)) for each in (data.x, data.y))
            end = trained(x, y)
            summed = summed + outputs({**start, **end}, test) - at_start
            merged = jax.tree.map(lambda so_far, w, w0: so_far + w - w0, merged, end, begin)
        whole = outputs({**start, **merged}, test) - at_start
        vectors = jax.tree.map(jnp.subtract, merged, begin)
        _, linear = jax.jvp(lambda part: outputs({**start, **part}, test), (begin,), (vectors,))
        error = float(jnp.linalg.norm(whole - summed) / jnp.linalg.norm(summed))
        apart = float(jnp.linalg.norm(whole - linear) / jnp.linalg.norm(linear))
    assert run.error[1] == pytest.approx(error, rel=2e-3)
    np.testing.assert_allclose(run.together, at_start + whole, rtol=1e-3, atol=1e-5)
    assert run.linear == pytest.approx(apart, rel=2e-3)


def test_figures_draw_the_scale_and_the_number_of_tasks():
    """The controls of the page change what is drawn, and the words beside it."""
    drawn = {}
    for num_tasks, scale in ((2, 1.0), (2, -1.0), (4, 1.0)):
        result = result_of(num_tasks=num_tasks, scale=scale)
        shown = Shown(result.spec, result.points)
        (run,) = result.points[0].runs
        (line,) = lines_of(shown, [("A", "linear")])
        assert [dot.value for dot in line.dots] == [run.error[-1]]
        (added,) = added_functions(shown, "A", "linear", 8)
        words = f"{num_tasks} tasks from the same start"
        assert any(f"{words}, times λ = -1" in each for each in added.caption) == (scale == -1)
        assert any(words in each.lower() for each in added.caption)
        drawn[num_tasks, scale] = run
        has_count = FIGURES[2].has_data(shown)
        assert has_count == (num_tasks > 2)
    once, negated, four = drawn.values()
    assert negated.error[-1] != once.error[-1]
    assert negated.together != once.together
    # The start and the vectors are the same: f(w₀) + F and f(w₀) − F have the mean f(w₀).
    start = np.add(once.summed, negated.summed) / 2
    tasks = np.subtract(once.summed, start)
    np.testing.assert_allclose(np.subtract(start, tasks), negated.summed, atol=2e-5)
    assert len(four.error) == 4


def test_one_task_alone_adds_and_a_linear_model_adds_all():
    run = result_of(num_tasks=2).points[0].runs[0]
    assert run.error[0] == 0  # λ = 1: one task is its own sum
    assert run.error[1] > 0
    # Training the last layer alone is linear in the weights.
    linear = result_of(**{"architectures.0.trained": "last"}).points[0].runs[0]
    assert linear.error[1] < 1e-4
    assert linear.linear < 1e-4


def test_tasks_that_diverge_are_named_and_excluded():
    settings = {"training.learning_rate": 1e4, "training.max_steps": 20}
    result = result_of(**settings)
    (run,) = result.points[0].runs
    assert run.outcome == "diverged"
    (line,) = lines_of(Shown(result.spec, result.points), [("A", "linear")])
    assert not line.means
    assert not line.law


def test_runs_are_shown_as_they_end():
    spec = with_settings(AddingSpec(), {**SMALL, "num_seeds": 2, "outputs": ["linear", "swish"]})
    partial: list[Any] = []
    (key,) = spec.point_keys()
    compute(spec, load_data(spec), key, Progress(on_point=partial.append))
    assert [len(point.runs) for point in partial] == [1, 2, 3, 4]
    begun = Shown(spec, (partial[0],))
    _, tasks, _ = FIGURES
    assert tasks.draw(begun, "A", "linear", 8)
    assert tasks.draw(begun, "A", "swish", 8) == []


def test_linear_model_of_sums_is_a_difference_quotient():
    data = load_data(AddingSpec())
    net = build_network(ArchitectureSpec(activation="tanh"), 8, data.num_outputs, "swish")
    start = net.init(initial_key(0, 8), data.input_shape)
    vector = net.init(initial_key(1, 8), data.input_shape)
    found = sums_of(net, start, [vector], data.x[:4], 2.0)

    def outputs(step):
        moved = jax.tree.map(lambda w, t: w + step * t, start, vector)
        return np.asarray(net.apply(moved, data.x[:4]), np.float64)

    slope = (outputs(1e-2) - outputs(-1e-2)) / 2e-2
    np.testing.assert_allclose(found.of_linear, outputs(0) + 2 * slope, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(found.together[0], outputs(2), rtol=1e-5)


def test_tasks_share_no_point_and_curves_are_cut_into_intervals():
    for settings in ({}, {"dataset.name": "sine", "outputs": ["linear"]}):
        data = load_data(with_settings(AddingSpec(), settings))
        parts = parts_of(data, 5)
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(data.x)))
    ends = [(data.x[part].min(), data.x[part].max()) for part in parts]
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(ends))


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"scale": 0}, "scale"),
        ({"num_tasks": 7, "dataset.num_samples": 6}, "num_tasks"),
        ({"num_tasks": 2, "dataset.num_samples": 1}, "dataset.num_samples: 1 .* at least 2"),
        ({"architectures.0.kind": "convnet"}, "architectures.0.kind"),
    ],
)
def test_tasks_that_do_not_fit_are_refused_by_name(settings, field):
    with pytest.raises(InvalidSpec, match=field):
        with_settings(AddingSpec(), settings)


def test_addition_error_refuses_other_shapes_and_no_parts():
    one, two = np.ones(1), np.ones(2)
    assert np.isnan(addition_error(one, [one, -one]))
    with pytest.raises(InvalidInput, match="parts"):
        addition_error(one, [])
    with pytest.raises(InvalidInput, match="parts"):
        addition_error(one, [two])


def test_ranks_are_chosen_and_named_as_ranks():
    """A click on a rank chooses it in the figure of added functions."""
    spec = PRESETS["adding-adapters"].spec
    assert isinstance(spec, AddingSpec)
    shown = shown_result(gallery_result("adding-adapters"))
    error, tasks, _ = FIGURES
    (chart,) = error.initial_charts(shown)
    (choice,) = tasks.choices[1](shown, "A", "linear")
    assert choice.axis == chart.figure.layout.meta["cursor"] == "r"
    assert choice.words(16) == "r = 16"
    (added,) = tasks.initial_charts(shown)
    assert f"at r = {spec.widths[-1]}" in added.sentence
    names = [trace.name for trace in chart.figure.data if trace.name]
    assert any(name.startswith("A: layers of 64 neurons ∝") for name in names)
