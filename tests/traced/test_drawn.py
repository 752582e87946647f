"""Random numbers at which checks are repeated."""

import jax
import jax.numpy as jnp
import numpy as np

from ntk_core.traced import draws


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
