"""Layer quantities against automatic differentiation,
and the bound of Theorem 3.1 above the measured norm.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import hessian_block_norms, hessian_norm, layer_quantities
from ntk_core.networks.architectures import Bottleneck, FullyConnected
from tests.plain_derivatives import drawn

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

NETS = {
    "deep": FullyConnected(
        width=(6, 5, 7), depth=3, num_outputs=2, activation="tanh", use_bias=True
    ),
    "lecun-bottleneck": Bottleneck(
        width=8,
        activation="gelu",
        bottleneck_width=1,
        bottleneck_activation="identity",
        parameterization="lecun",
        use_bias=False,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_norm_and_blocks_are_never_above_their_bounds(name):
    net = NETS[name]
    for seed, scale in enumerate(np.geomspace(0.1, 5, 4)):
        params, x = drawn(net, (3,), seed)
        quantities, blocks = (
            each(net, params, scale * x) for each in (layer_quantities, hessian_block_norms)
        )
        assert blocks.layers[:-1] == quantities.layers
        # a shallow block equals its bound, and single precision may round above it
        assert np.all(blocks.values <= quantities.block_bounds * (1 + 1e-5))
        assert quantities.bound == pytest.approx(quantities.block_bounds.sum())
        assert quantities.bound >= hessian_norm(net, params, scale * x).value


def dense_layer(sigma, multiplier):
    """α(w, a) of one dense layer with biases, w flat with the weights first."""

    def layer(w, a):
        weight = w[: a.size * (w.size // (a.size + 1))].reshape(a.size, -1)
        return sigma(multiplier * a @ weight + w[weight.size :])

    return layer


def norm_221(tensor, seed=0, num_rounds=200):
    """Lower bound of sup over unit x, z of Σ_k |Σ_ij T_kij x_i z_j|.

    Alternate signs and leading singular pair.
    """
    best = 0.0
    for round_key in jax.random.split(jax.random.key(seed), 8):
        signs = jnp.sign(jax.random.normal(round_key, tensor.shape[:1]))
        for _ in range(num_rounds):
            u, s, v = np.linalg.svd(np.tensordot(signs, tensor, 1))
            new = np.sign(np.einsum("kij,i,j->k", tensor, u[:, 0], v[0]))
            if np.array_equal(new, signs):
                break
            signs = new
        best = max(best, float(s[0]))
    return best


@pytest.mark.slow
def test_layer_quantities_are_those_of_the_layer_function(x64):
    net = NETS["deep"]
    params, x = drawn(net, (3,), 3)
    quantities = layer_quantities(net, params, x)
    first = net.layers["hidden1"].apply(params["hidden1"], x[None])
    a = jnp.tanh(first)[0]  # enters the second layer: 6 -> 5
    layer = dense_layer(jnp.tanh, 6**-0.5)
    w = jnp.concatenate([params["hidden2"]["weight"].ravel(), params["hidden2"]["bias"]])

    @jax.jit
    def derivatives(w, a):
        first = jax.jacobian(layer, (0, 1))
        return first(w, a), jax.jacfwd(first, (0, 1))(w, a)

    (by_weight, by_input), ((second_weight, mixed), (_, second_input)) = derivatives(w, a)
    tight = {"rel": 1e-3}  # norms in the quantities have a relative residual of 1e-3
    assert quantities.weight_jacobian[1] == pytest.approx(np.linalg.norm(by_weight, 2), rel=1e-10)
    assert quantities.input_jacobian[1] == pytest.approx(np.linalg.norm(by_input, 2), **tight)
    assert quantities.second_weight[1] == pytest.approx(
        norm_221(np.asarray(second_weight)), rel=1e-8
    )
    assert quantities.second_input[1] == pytest.approx(norm_221(np.asarray(second_input)), **tight)
    assert norm_221(np.asarray(mixed)) <= quantities.second_mixed[1]


def test_b_is_the_gradient_with_respect_to_the_activations(x64):
    net = NETS["deep"]
    params, x = drawn(net, (3,), 3)
    quantities = layer_quantities(net, params, x, 1)

    def from_activation(index, a):
        for name in net.layers:
            if name.startswith("hidden") and int(name[-1]) > index:
                a = jnp.tanh(net.layers[name].apply(params[name], a))
        return net.layers["output"].apply(params["output"], a)[0, 1]

    a = x[None]
    for index in (1, 2, 3):
        a = jnp.tanh(net.layers[f"hidden{index}"].apply(params[f"hidden{index}"], a))
        b = jax.grad(lambda a, index=index: from_activation(index, a))(a)
        assert quantities.b_max[index - 1] == pytest.approx(float(jnp.abs(b).max()), rel=1e-12)
        assert quantities.b_norm[index - 1] == pytest.approx(float(jnp.linalg.norm(b)), rel=1e-12)
    assert quantities.q_inf == quantities.b_max.max()
    assert quantities.q_l == quantities.weight_jacobian.max()
