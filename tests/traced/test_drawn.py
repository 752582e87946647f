"""Random numbers at which checks are repeated."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ntk_core import empirical_ntk
from ntk_core.traced import draws, quickly
from ntk_core.traced._independence import _both_ways


def test_drawn_numbers_are_bound_to_the_device_of_the_given_ones():
    """Programs that are compiled for one kind of arrays are compiled again for the other."""
    device = jax.devices()[0]
    free = {"w": jnp.ones((3, 2)), "ids": jnp.arange(4), "mask": jnp.ones(3, bool)}
    bound = jax.device_put(free, device)
    for given, expected in ((free, False), (bound, True)):
        for params, rows in draws(given, given["w"], given["ids"]):
            drawn = [*jax.tree.leaves(params), *rows]
            assert [each.committed for each in drawn] == [expected] * len(drawn)
    (first, *_), (of_numpy, *_) = (list(draws(each)) for each in (bound, {"w": np.ones((3, 2))}))
    assert first[0]["w"].sharding == bound["w"].sharding
    assert not of_numpy[0]["w"].committed


def test_rows_of_bound_inputs_are_compared_by_one_program():
    bound = jax.device_put(
        ({"w": jnp.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])}, jnp.arange(15.0).reshape(5, 3)),
        jax.devices()[0],
    )
    compiled: Any = quickly(_both_ways)
    before = compiled._cache_size()
    # No equation proves that a product with the identity keeps rows apart.
    empirical_ntk(lambda params, x: jnp.tanh(jnp.eye(len(x)) @ x @ params["w"]), *bound)
    assert compiled._cache_size() == before + 1
