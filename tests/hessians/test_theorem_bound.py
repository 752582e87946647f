"""Layer quantities against automatic differentiation, and the bound of Theorem 3.1 above the measured norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_block_norms, hessian_norm, layer_quantities
from ntk_core.networks.architectures import Bottleneck, FullyConnected, ResNet

NETS = {
    "deep": FullyConnected(width=(6, 5, 7), depth=3, num_outputs=2, activation="tanh", use_bias=True),
    "lecun-bottleneck": Bottleneck(
        width=8,
        activation="gelu",
        bottleneck_width=1,
        bottleneck_activation="identity",
        parameterization="lecun",
        use_bias=False,
    ),
}


def drawn(net, seed):
    return net.init(jax.random.key(seed), (3,)), jax.random.normal(jax.random.key(seed + 50), (3,))


@pytest.mark.parametrize("name", NETS)
def test_bound_is_never_below_the_norm_over_many_random_networks(name):
    net = NETS[name]
    draws = [drawn(net, seed) for seed in range(12)]
    for (params, x), scale in zip(draws, np.geomspace(0.1, 5, len(draws)), strict=True):
        bound = layer_quantities(net, params, scale * x).bound
        assert bound >= hessian_norm(net, params, scale * x[None]).value[0]


def test_every_block_is_below_its_own_bound():
    net = NETS["deep"]
    for seed in range(5):
        params, x = drawn(net, seed)
        quantities = layer_quantities(net, params, x)
        blocks = hessian_block_norms(net, params, x)
        assert blocks.layers[:-1] == quantities.layers
        # a shallow block equals its bound, and single precision may round above it
        assert np.all(blocks.values <= quantities.block_bounds * (1 + 1e-5))
        assert quantities.bound == pytest.approx(quantities.block_bounds.sum())


def dense_layer(sigma, multiplier):
    """α(w, a) of one dense layer with biases, w flat with the weights first."""

    def layer(w, a):
        weight = w[: a.size * (w.size // (a.size + 1))].reshape(a.size, -1)
        return sigma(multiplier * a @ weight + w[weight.size :])

    return layer


def norm_221(tensor, seed=0, num_rounds=200):
    """Lower bound of sup over unit x, z of Σ_k |Σ_ij T_kij x_i z_j|: alternate signs and leading singular pair."""
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


def test_layer_quantities_are_those_of_the_layer_function(x64):
    net = NETS["deep"]
    params, x = drawn(net, 3)
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
    assert quantities.second_weight[1] == pytest.approx(norm_221(np.asarray(second_weight)), rel=1e-8)
    assert quantities.second_input[1] == pytest.approx(norm_221(np.asarray(second_input)), **tight)
    assert norm_221(np.asarray(mixed)) <= quantities.second_mixed[1]


def test_b_is_the_gradient_with_respect_to_the_activations(x64):
    net = NETS["deep"]
    params, x = drawn(net, 3)
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


def test_q_221_holds_every_product_that_its_definition_names(x64):
    net = NETS["deep"]
    q = layer_quantities(net, *drawn(net, 3))
    assert q.q_221 >= q.second_weight.max()
    assert q.q_221 >= q.weight_jacobian[0] * q.second_mixed[2]
    assert q.q_221 >= q.weight_jacobian[0] * q.weight_jacobian[1] * q.second_input[2]


def test_frozen_layers_have_no_block_in_the_bound():
    net = FullyConnected(width=6, depth=2, activation="tanh", trained="first", use_bias=False)
    blocks = layer_quantities(net, *drawn(net, 0)).block_bounds
    assert blocks[0, 0] > 0
    assert np.count_nonzero(blocks) == 1


@pytest.mark.parametrize(
    ("field", "net"),
    [
        ("net", ResNet(width=4, activation="tanh", use_bias=False)),
        ("output", FullyConnected(width=4, activation="tanh", output="softmax", use_bias=False)),
    ],
)
def test_networks_outside_the_theorem_are_refused(field, net):
    with pytest.raises(InvalidInput) as refused:
        layer_quantities(net, *drawn(net, 0))
    assert refused.value.field == field
