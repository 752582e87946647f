"""Compare a network with its linear model at two widths.

    PYTHONPATH=. python examples/true_and_linearized.py

Both are trained from the same w₀ by the same steps. The wider network stays closer to its
linear model. Training the linear model agrees with its closed form, one eigendecomposition
of the kernel at w₀.
"""

from __future__ import annotations

import jax
import numpy as np

from linearity_lab import load_dataset
from ntk_core import FullyConnected, empirical_ntk, train
from ntk_core.dynamics import ClosedForm


def main(width: int, num_steps: int = 500) -> tuple[float, float]:
    """Return the difference between network and linear model.

    It is the largest relative one, beside the closed form's largest error.
    """
    data = load_dataset("gaussian-mixture", num_samples=30, num_test=10)
    net = FullyConnected(
        width=width, num_outputs=data.num_outputs, activation="tanh", use_bias=True
    )
    params = net.init(jax.random.key(0), data.input_shape)
    history = train(
        net, params, data.x, data.y, max_steps=num_steps, x_test=data.x_test, y_test=data.y_test
    )
    linearized = history.linearized
    assert history.difference is not None
    assert linearized is not None
    assert data.x_test is not None

    form = ClosedForm(
        empirical_ntk(net, params, data.x),
        net.apply(params, data.x),
        data.y,
        other_kernel=empirical_ntk(net, params, data.x_test, data.x),
        other_start=net.apply(params, data.x_test),
    )
    _, test_outputs = form.descent(history.steps, history.learning_rate)
    assert test_outputs is not None
    error = float(np.abs(test_outputs - linearized.test_outputs).max())
    return float(history.difference.relative.max()), error


if __name__ == "__main__":
    for width in (30, 3000):
        difference, error = main(width)
        print(
            f"m = {width:,}: relative difference {difference:.1e}, closed form within {error:.0e} "
            "of training"
        )
