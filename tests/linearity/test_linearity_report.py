"""Two checkpoints: identities, naive oracles in float64, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core import InvalidInput, linearity_report

X = np.random.default_rng(0).standard_normal((5, 4))
Y = np.random.default_rng(1).standard_normal((5, 2))


def two_layers(params, x):
    return jnp.tanh(x @ params["first"]["w"] + params["first"]["b"]) @ params["last"]


def checkpoint(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    shapes = {"first": {"w": (4, 6), "b": (6,)}, "last": (6, 2)}
    return jax.tree.map(
        lambda shape: scale * rng.standard_normal(shape),
        shapes,
        is_leaf=lambda each: isinstance(each, tuple),
    )


W0 = checkpoint(2)
W1 = jax.tree.map(np.add, W0, checkpoint(3, 0.2))


def jacobian(apply, params):
    """Naive Jacobian by leaf, (n C, size)."""
    leaves = jax.tree.leaves(jax.jit(jax.jacrev(lambda w: apply(w, X)))(params))
    return [np.asarray(leaf).reshape(X.shape[0] * leaf.shape[1], -1) for leaf in leaves]


def test_report_equals_explicit_jacobians_and_hessians(x64):
    found = linearity_report(two_layers, W0, W1, X, Y)
    flat0, restore = jax.flatten_util.ravel_pytree(W0)
    flat1, _ = jax.flatten_util.ravel_pytree(W1)
    delta = np.asarray(flat1 - flat0)
    j0, j1 = (np.concatenate(jacobian(two_layers, w), axis=1) for w in (W0, W1))
    f0, f1 = (np.asarray(two_layers(w, X)).ravel() for w in (W0, W1))
    hessian = np.asarray(jax.jit(jax.hessian(lambda w: two_layers(restore(w), X).ravel()))(flat0))
    second = 0.5 * np.einsum("opq,p,q->o", hessian, delta, delta)
    linear = j0 @ delta
    norm = np.linalg.norm
    k0, k1 = j0 @ j0.T, j1 @ j1.T
    targets = np.asarray(Y)

    def loss(outputs):
        return np.sum((outputs.reshape(5, 2) - targets) ** 2) / 10

    assert found.output_error == pytest.approx(norm(f1 - f0 - linear) / norm(f1 - f0), rel=1e-10)
    assert found.second_order_share == pytest.approx(norm(second) / norm(linear), rel=1e-10)
    assert found.derivative_change == pytest.approx(
        norm(j1 @ delta - linear) / norm(linear), rel=1e-10
    )
    assert found.output_change == pytest.approx(norm(f1 - f0) / norm(f0), rel=1e-10)
    assert found.kernel_change == pytest.approx(norm(k1 - k0) / norm(k0), rel=1e-10)
    assert found.kernel_distance == pytest.approx(
        1 - np.sum(k0 * k1) / norm(k0) / norm(k1), rel=1e-8
    )
    assert (found.loss, found.linear_loss) == pytest.approx(
        (loss(f1), loss(f0 + linear)), rel=1e-10
    )
    jitter = 1e-6 * np.trace(k0) / 10 * np.eye(10)
    regression = f0 + k0 @ np.linalg.solve(k0 + jitter, targets.ravel() - f0)
    assert found.regression_loss == pytest.approx(loss(regression), rel=1e-4, abs=1e-12)
    assert [layer.name for layer in found.layers] == ["first.b", "first.w", "last"]
    starts = np.cumsum([0, 6, 24, 12])
    for layer, part, low, high in zip(
        found.layers, jacobian(two_layers, W0), starts[:-1], starts[1:], strict=True
    ):
        share = np.dot(part @ delta[low:high], linear) / norm(linear) ** 2
        assert layer.num_params == high - low
        assert layer.output_share == pytest.approx(share, rel=1e-9)
        assert layer.kernel_share == pytest.approx(np.sum(part**2) / np.trace(k0), rel=1e-10)
        assert layer.distance == pytest.approx(
            norm(delta[low:high]) / norm(np.asarray(flat0)[low:high]), rel=1e-10
        )


class InUnits:
    """The two layers with outputs in other units."""

    def __init__(self, unit):
        self.unit = unit

    def __call__(self, params, x):
        return two_layers(params, x) * jnp.asarray(self.unit, x.dtype)


def report_in_units(unit, dtype):
    before, after = (
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), weights)
        for weights in (checkpoint(0), near(checkpoint(0)))
    )
    return linearity_report(InUnits(unit), before, after, jnp.asarray(X, dtype))


def near(weights):
    """Weights after a step of a tenth."""
    return jax.tree.map(lambda w, step: w + 0.1 * step, weights, checkpoint(1))


def ratios(report):
    """All ratios of a report, which do not depend on the units of the outputs."""
    shares = [(layer.output_share, layer.kernel_share) for layer in report.layers]
    return [
        report.output_change,
        report.output_error,
        report.second_order_share,
        report.derivative_change,
        report.kernel_change,
        report.kernel_distance,
        *np.ravel(shares),
    ]


# The largest errors are those of rounding, relative to the changes of these outputs.
UNITS = [
    ("float32", 1e37, 1e-4),
    ("float32", 1e-30, 1e-4),
    ("float32", 1e-34, 1e-4),
    ("float16", 1e4, 0.05),
    ("float16", 1e-3, 0.05),
    ("bfloat16", 1e37, 0.4),
    ("bfloat16", 1e-30, 0.4),
]


@pytest.mark.slow  # compiles reports of several types
@pytest.mark.parametrize(("dtype", "unit", "tolerance"), UNITS)
def test_reports_do_not_depend_on_the_units_of_outputs(dtype, unit, tolerance, x64):
    found = ratios(report_in_units(unit, dtype))
    np.testing.assert_allclose(found, ratios(report_in_units(1.0, "float64")), rtol=tolerance)


@pytest.mark.parametrize(("dtype", "unit"), [("float32", 1e-37), ("float16", 1e-7)])
def test_outputs_near_the_least_number_are_refused(dtype, unit):
    with pytest.raises(InvalidInput, match=r"apply: outputs of at most .* at both checkpoints"):
        report_in_units(unit, dtype)


def test_linear_model_reports_zero(x64):
    found = linearity_report(lambda w, x: jnp.sin(x) @ w, Y[:4], Y[:4] + 1, X)
    assert (found.second_order_share, found.derivative_change, found.kernel_change) == (0, 0, 0)
    assert found.output_error < 1e-14
    assert str(found).startswith(found.verdict)
    assert found.verdict.startswith("Linear:")


def test_network_reports_what_its_function_reports(x64):
    net = ntk_core.FullyConnected(width=8, depth=1, num_outputs=2, activation="tanh")
    w0, w1 = (net.init(jax.random.key(seed), (4,)) for seed in (0, 1))
    one, other = linearity_report(net, w0, w1, X, Y), linearity_report(net.apply, w0, w1, X, Y)
    assert one.output_error == pytest.approx(other.output_error, rel=1e-10)
    assert one.kernel_change == pytest.approx(other.kernel_change, rel=1e-8)
    assert [layer.name for layer in one.layers] == [layer.name for layer in other.layers]


@pytest.mark.slow
def test_estimates_cover_exact_values(x64):
    x, y = np.random.default_rng(4).standard_normal((40, 4)), np.zeros((40, 2))
    exact = linearity_report(two_layers, W0, W1, x)
    estimated = linearity_report(two_layers, W0, W1, x, y, kernel="estimated")
    assert exact.kernel_interval == 0 < estimated.kernel_interval
    assert abs(estimated.kernel_change - exact.kernel_change) <= estimated.kernel_interval
    assert estimated.regression_loss is None
    assert " ± " in str(estimated)


def test_many_outputs_estimate_the_kernel_shares(x64):
    rng = np.random.default_rng(5)
    w0 = {"a": rng.standard_normal((4, 30)), "b": rng.standard_normal((30, 40))}
    w1 = jax.tree.map(lambda w: 1.1 * w, w0)

    def apply(params, x):
        return jnp.tanh(x @ params["a"]) @ params["b"]

    found = linearity_report(apply, w0, w1, X)
    squares = [np.sum(part**2) for part in jacobian(apply, w0)]
    for layer, square in zip(found.layers, squares, strict=True):
        # 5 rows of 16 random signs.
        assert layer.kernel_share == pytest.approx(square / sum(squares), abs=0.1)


def test_tiny_moves_have_no_verdict():
    w0 = jax.tree.map(np.float32, W0)
    w1 = {**w0, "last": np.nextafter(w0["last"], np.float32(np.inf))}
    found = linearity_report(two_layers, w0, w1, X.astype(np.float32))
    assert found.verdict.startswith("No verdict:")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"first": {"w": jnp.ones((4, 7)), "b": W0["first"]["b"]}, "last": W0["last"]},
            "params1: first.w of shape (4, 7) cannot be used; "
            "use first.w of shape (4, 6), as before",
        ),
        (
            {"first": {"w": W0["first"]["w"]}, "last": W0["last"]},
            "params1: no first.b cannot be used; use first.b of shape (6,), as before",
        ),
        (
            {**W0, "more": jnp.ones(3)},
            "params1: more of shape (3,) cannot be used; use no more, as before",
        ),
        (
            {**W0, "last": np.nan * W0["last"]},
            "params1: last with numbers that are not finite cannot be used; use a checkpoint with "
            "finite weights",
        ),
        (
            W0,
            "params1: the weights of w₀ cannot be used; use another checkpoint: these two "
            "are equal",
        ),
    ],
)
def test_bad_checkpoints_are_refused_in_one_sentence(changed, words):
    with pytest.raises(InvalidInput) as error:
        linearity_report(two_layers, W0, changed, X)
    assert str(error.value) == words


def test_integers_that_differ_are_refused():
    def apply(params, x):
        return x @ params["w"] * params["count"]

    before = {"w": jnp.ones((4, 1)), "count": jnp.array(1)}
    with pytest.raises(InvalidInput, match="other integers in count"):
        linearity_report(apply, before, {"w": jnp.zeros((4, 1)), "count": jnp.array(2)}, X)


def test_kernels_of_token_ids_are_compared():
    """Integer inputs stay integers, also while the block size is planned."""
    ids = np.random.default_rng(6).integers(0, 4, (3, 5))
    before = {"words": jnp.ones((4, 6)), "head": jnp.ones((6, 2))}

    def apply(params, x):
        return jnp.tanh(params["words"][x].mean(1)) @ params["head"]

    found = linearity_report(apply, before, jax.tree.map(lambda w: 1.1 * w, before), ids)
    kernels = [
        ntk_core.empirical_ntk(apply, jax.tree.map(lambda w, f=f: f * w, before), ids)
        for f in (1.0, 1.1)
    ]
    assert found.kernel_change == pytest.approx(
        float(ntk_core.kernel_change(kernels[1], kernels[0])), rel=1e-4
    )


@pytest.mark.slow
def test_outputs_per_token_count_as_outputs(x64):
    def tokens(params, x):
        return jnp.stack([two_layers(params, x), two_layers(params, 2 * x)], axis=1)

    def flat(params, x):
        return tokens(params, x).reshape(len(x), -1)

    y = np.stack([Y, -Y], axis=1)
    found, expected = (
        linearity_report(f, W0, W1, X, y.reshape(s))
        for f, s in ((tokens, (5, 2, 2)), (flat, (5, 4)))
    )
    assert found.output_error == pytest.approx(expected.output_error, rel=1e-10)
    assert (found.loss, found.regression_loss) == pytest.approx(
        (expected.loss, expected.regression_loss), rel=1e-6
    )


def merged(*later):
    return jax.tree.map(lambda w0, *w: w0 + sum(each - w0 for each in w), W0, *later)


def test_several_checkpoints_report_their_error_of_adding(x64):
    w2, w3 = (jax.tree.map(np.add, W0, checkpoint(seed, 0.2)) for seed in (4, 5))
    found = linearity_report(two_layers, W0, W1, X, others=[w2, w3])
    at = [np.asarray(two_layers(w, X)) for w in (W0, W1, w2, w3, merged(W1, w2, w3))]
    parts = sum(each - at[0] for each in at[1:4])
    expected = np.linalg.norm(at[4] - at[0] - parts) / np.linalg.norm(parts)
    assert found.addition_error == pytest.approx(expected, rel=1e-10)
    assert found.num_added == 3
    assert "3 checkpoints" in found.verdict
    assert ("Error of adding 3 checkpoints", ntk_core.numbers.percent(expected)) in (
        found.number_rows()
    )
    alone = linearity_report(two_layers, W0, W1, X)
    assert alone.addition_error is None
    assert found.verdict.startswith(alone.verdict)


def test_checkpoints_of_linear_models_add(x64):
    weights = np.random.default_rng(6).standard_normal((4, 2))
    found = linearity_report(
        lambda w, x: jnp.sin(x) @ w, weights, weights + 1, X, others=[2 * weights]
    )
    assert found.addition_error < 1e-14
    assert "The 2 checkpoints add" in found.verdict


def wide(seed):
    rng = np.random.default_rng(seed)
    return {"w": rng.standard_normal((4, 200)), "v": rng.standard_normal((200, 2))}


@pytest.mark.parametrize(
    ("others", "field", "words"),
    [
        ([wide(1)], "others[0]", "do not share w₀"),
        ([{**wide(0), "v": wide(1)["v"]}, wide(2)], "others[1]", "do not share w₀"),
        ([wide(0)], "others[0]", "these two are equal"),
        ([{"w": wide(0)["w"]}], "others[0]", ""),
        ([{**wide(0), "v": np.full((200, 2), np.nan)}], "others[0]", "not finite"),
    ],
)
def test_checkpoints_from_other_starts_are_named(others, field, words):
    def apply(params, x):
        return jnp.tanh(x @ params["w"]) @ params["v"]

    later = jax.tree.map(lambda w: w + 0.1, wide(0))
    with pytest.raises(InvalidInput) as caught:
        linearity_report(apply, wide(0), later, X, others=others)
    assert caught.value.field.startswith(field)
    assert words in str(caught.value)


def test_first_checkpoint_of_another_start_is_named():
    def apply(params, x):
        return jnp.tanh(x @ params["w"]) @ params["v"]

    later = jax.tree.map(lambda w: w + 0.1, wide(0))
    with pytest.raises(InvalidInput, match="params1"):
        linearity_report(apply, wide(0), wide(3), X, others=[later])
    assert linearity_report(apply, wide(0), later, X, others=[later]).addition_error >= 0


def test_single_checkpoint_of_another_start_is_measured():
    """Two checkpoints alone cannot show the start: the report warns, by a correlation."""

    def apply(params, x):
        return jnp.tanh(x @ params["w"]) @ params["v"]

    before, elsewhere = wide(0), wide(3)
    found = linearity_report(apply, before, elsewhere, X)
    matrices = [np.concatenate([each.ravel() for each in w.values()]) for w in (before, elsewhere)]
    assert found.start_correlation == pytest.approx(np.corrcoef(matrices)[0, 1], abs=5e-3)
    assert "Check that w₁ was trained from w₀" in found.verdict
    assert "Correlation of w₁ with w₀" in dict(found.number_rows())

    moved = jax.tree.map(lambda w: w + 0.1, before)
    far = jax.tree.map(lambda w, other: w + 3 * other, before, elsewhere)
    for later in (moved, far):  # three times as far as w₀ is long, a part of w₀ stays
        found = linearity_report(apply, before, later, X)
        assert found.start_correlation is None
        assert "Check" not in found.verdict


def test_few_weights_do_not_show_their_start():
    one, two = np.random.default_rng(0).standard_normal((2, 4, 2))
    assert linearity_report(lambda w, x: x @ w, one, two, X).start_correlation is None
