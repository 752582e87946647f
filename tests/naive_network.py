"""A network with one hidden layer of tanh in float64, written out: an oracle of trainings."""

import jax
import numpy as np

from linearity_lab.networks.build import build_network
from ntk_core.networks.keys import initial_key


class NaiveTanh:
    """A network with one hidden layer of tanh in float64, with its gradient written out."""

    def __init__(self, architecture, data, width, seed):
        net = build_network(architecture, width, data.num_outputs, "linear")
        leaves = jax.tree.leaves(net.init(initial_key(seed, width), data.input_shape))
        shapes = [(data.x.shape[1], width), (width,), (width, data.num_outputs)]
        self.start = []
        for shape in shapes:
            (found,) = [np.asarray(leaf, np.float64) for leaf in leaves if leaf.shape == shape]
            self.start.append(found)

    @staticmethod
    def hidden(w, x):
        return np.tanh(x @ w[0] / np.sqrt(x.shape[1]) + w[1])

    def outputs(self, w, x):
        return self.hidden(w, x) @ w[2] / np.sqrt(len(w[2]))

    def gradient(self, w, x, y):
        h = self.hidden(w, x)
        off = (self.outputs(w, x) - y) / len(x)
        back = off @ w[2].T / np.sqrt(len(w[2])) * (1 - h**2)
        return [x.T @ back / np.sqrt(x.shape[1]), back.sum(0), h.T @ off / np.sqrt(len(w[2]))]

    def trained(self, x, y, rate, num_steps):
        w = self.start
        for _ in range(num_steps):
            w = [each - rate * slope for each, slope in zip(w, self.gradient(w, x, y), strict=True)]
        return w

    def jacobian(self, w, x):
        """∂f/∂w of every output, (n, C, p)."""
        n, width = len(x), len(w[2])
        h = self.hidden(w, x)
        of_z = np.einsum("nm,mc->ncm", 1 - h**2, w[2]) / np.sqrt(width)  # ∂f/∂z, and ∂f/∂b
        of_first = np.einsum("nd,ncm->ncdm", x, of_z) / np.sqrt(x.shape[1])
        num_outputs = w[2].shape[1]
        of_last = np.einsum("nm,ce->ncme", h, np.eye(num_outputs)) / np.sqrt(width)
        parts = [of_first, of_z, of_last]
        return np.concatenate([part.reshape(n, num_outputs, -1) for part in parts], axis=2)
