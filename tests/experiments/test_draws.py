"""Seeds draw an independent network at every width."""

import jax
import numpy as np

from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.build import initial_key


def largest_weights(key_of):
    """‖v‖_∞ at two neighboring widths with 400 seeds each."""

    def largest(width):
        net = FullyConnected(width=width, use_bias=False)
        return jax.vmap(lambda seed: abs(net.init(key_of(seed, width), (3,))["output"]["weight"]).max())

    return [np.asarray(largest(width)(np.arange(400))) for width in (100, 130)]


def test_draws_at_neighboring_widths_are_independent():
    narrow, wide = largest_weights(initial_key)
    # Standard error 1/√400 = 0.05; with the seed's key alone, the wide draw begins with the narrow one.
    assert abs(np.corrcoef(narrow, wide)[0, 1]) < 0.2
    narrow, wide = largest_weights(lambda seed, width: jax.random.key(seed))
    assert np.corrcoef(narrow, wide)[0, 1] > 0.5
