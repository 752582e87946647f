"""The naive oracle: the full p × p Hessian of one output, and its eigenvalues."""

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from ntk_core.networks.architectures import merge


def full_hessian(net, params, x, output_index=0):
    """(H over all trained weights, flat; flatten) for one input without batch axis."""
    trained, fixed = net.partition(params)
    flat, unravel = ravel_pytree(trained)

    def output(flat):
        return net.apply(merge(unravel(flat), fixed), x[None])[0, output_index]

    return np.asarray(jax.jit(jax.hessian(output))(flat)), lambda tree: np.asarray(ravel_pytree(tree)[0])


def by_size(eigenvalues):
    """Eigenvalues by falling absolute value."""
    return eigenvalues[np.argsort(-np.abs(eigenvalues))]
