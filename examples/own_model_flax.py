"""Analyze a Flax model.

It has the tangent kernel of a small network, and the share of its largest eigenvalue.

PYTHONPATH=. python examples/own_model_flax.py

A model is a callable ``apply(params, x) -> (n, C)`` and a tree of parameter arrays.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import ntk_core


class Classifier(nn.Module):
    """One convolution, global average, one dense layer."""

    channels: int
    num_classes: int = 3

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.gelu(nn.Conv(self.channels, (3, 3), padding="CIRCULAR")(x))
        return nn.Dense(self.num_classes)(x.mean(axis=(1, 2)))


def main(channels: int = 64) -> np.ndarray:
    """Return the eigenvalues of the kernel matrix, descending.

    The matrix is over all images and classes.
    """
    model = Classifier(channels)
    params_key, data_key = jax.random.split(jax.random.key(0))
    x = jax.random.normal(data_key, (10, 8, 8, 3))
    params = model.init(params_key, x)
    # (10, 10, 3, 3)
    kernel = ntk_core.empirical_ntk(
        lambda params, x: jnp.asarray(model.apply(params, x)), params, x
    )
    num_rows = x.shape[0] * model.num_classes
    matrix = jnp.transpose(kernel, (0, 2, 1, 3)).reshape(num_rows, num_rows)
    eigenvalues = np.linalg.eigvalsh(np.asarray(matrix))[::-1]
    print(
        f"{channels} channels: largest eigenvalue {eigenvalues[0]:.3g}, "
        f"{eigenvalues[0] / eigenvalues.sum():.0%} of all"
    )
    return eigenvalues


if __name__ == "__main__":
    main()
