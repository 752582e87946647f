"""The kernel of every layer against the Gram matrix of its Jacobian."""

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk, generic_ntk
from ntk_core.networks.architectures import Convolution, Layer, MaskedDense, Network, Scaling
from ntk_core.networks.architectures._convolution import Gain
from ntk_core.traced import _contractions as contractions
from tests.cases import FAST_COMPILE, random_layer

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

# Those that tests/kernels/test_empirical.py leaves out.
LAYERS = {
    "masked-standard": (MaskedDense(6, ((None, 0.8), (3, 0.1)), scaling=Scaling("standard")), (7,)),
    "zero-1d-even": (Convolution(4, 2, "zero", 1), (6, 3)),
    "strided-2d": (Convolution(4, 3, "zero", stride=2), (5, 4, 2)),
    "strided-circular": (Convolution(4, 3, "circular", 1, stride=2), (7, 2)),
    "many-channels": (Convolution(40, 3, "circular", use_bias=True), (3, 3, 4)),  # by positions
    "many-channels-even": (Convolution(40, 2, "zero", 1), (3, 8)),  # by positions
    "gain": (Gain(scaling=Scaling("lecun", 1.0, 4)), (3, 5)),
}


@pytest.mark.parametrize("name", ["zero-1d-even", "many-channels", "many-channels-even"])
def test_products_of_patches_are_those_of_their_features(name, x64):
    layer, shape = LAYERS[name]
    assert isinstance(layer, Convolution)
    params = random_layer(layer, shape, np.random.default_rng(0))
    one, two = (layer.features(params, normal(seed, 3 + seed, *shape)) for seed in (0, 1))
    found = layer.patch_products(shape, one, two)
    np.testing.assert_allclose(found, jnp.einsum("ipk,jqk->ipjq", one, two), rtol=1e-12, atol=1e-12)


fast = functools.partial(jax.jit, compiler_options=FAST_COMPILE)


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


@pytest.fixture(params=LAYERS, name="case")
def _case(request, x64):
    layer, shape = LAYERS[request.param]
    a = normal(1, 5, *shape)
    return layer, random_layer(layer, shape, np.random.default_rng(0)), a


@dataclass(frozen=True)
class Alone(Network):
    """A network with one layer and two nonlinear sums, so that cotangents depend on the input."""

    layer: Layer
    output: str = "linear"

    @property
    def layers(self):
        return {"layer": self.layer}

    def body(self, call, x):
        z = call("layer", x).reshape(len(x), -1)
        return jnp.tanh(z) @ np.random.default_rng(2).standard_normal((z.shape[-1], 2))


@pytest.mark.long_after(2)
@pytest.mark.parametrize(("same", "block_entries"), [(True, 2**23), (False, 40)])
def test_kernel_is_the_gram_matrix_of_the_jacobian(case, same, block_entries, monkeypatch):
    monkeypatch.setattr(contractions, "BLOCK_ENTRIES", block_entries)
    layer, drawn, a1 = case
    net, params = Alone(layer), {"layer": drawn}
    assert fast(layer.apply)(drawn, a1).shape == (5, *layer.output_shape(a1.shape[1:]))
    sides = (a1,) if same else (a1, 0.5 + a1[:3])
    expected = fast(lambda p: generic_ntk(net.apply, p, *sides))(params)
    kernel = fast(lambda p: empirical_ntk(net, p, *sides))(params)
    np.testing.assert_allclose(kernel, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_a_masked_layer_scales_by_its_actual_in_degree(x64):
    layer = MaskedDense(200, 0.9)
    params = layer.init(jax.random.key(0), (12,))
    in_degree = np.asarray(params["mask"]).sum(axis=0)
    assert in_degree.min() == 1  # (1 - 0.1)^12 = 28 % of the neurons would have had none
    ones = {**params, "weight": params["mask"].astype(float)}
    np.testing.assert_allclose(
        layer.apply(ones, jnp.ones((1, 12)))[0], np.sqrt(in_degree), rtol=1e-12
    )


def test_masked_edges_have_no_gradient(x64):
    layer = MaskedDense(6, 0.5)
    params = layer.init(jax.random.key(0), (7,))
    a = normal(1, 3, 7)
    gradient = jax.grad(lambda w: jnp.sum(layer.apply({**params, "weight": w}, a) ** 2))(
        params["weight"]
    )
    assert np.all((np.asarray(gradient) != 0) == (np.asarray(params["mask"]) == 1))
