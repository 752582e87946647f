"""A user's program, checked by mypy --strict and pyright, and run."""

import jax
import jax.numpy as jnp
from jax import Array

import ntk_core
from ntk_core.experiments import HessianSpec, KernelChangeSpec
from ntk_core.graphs import example_graphs, graph_verdict


def measured(width: int) -> tuple[float, float]:
    """Kernel change and Hessian norm of one trained network."""
    net = ntk_core.FullyConnected(width=width, depth=1, num_outputs=1, activation="tanh")
    x = jax.random.normal(jax.random.key(1), (5, 3))
    y = jnp.sin(x[:, :1])
    params = net.init(jax.random.key(0), 3)
    history = ntk_core.train(net, params, x, y, max_steps=20, learning_rate=0.1)
    before: Array = ntk_core.empirical_ntk(net, params, x)
    after = ntk_core.empirical_ntk(net, history.params, x)
    change = ntk_core.kernel_change(after, before)
    norms = ntk_core.hessian_norm(net, params, x)
    assert bool(norms.converged.all())
    return float(change), float(norms.value.mean())


def model(params: dict[str, Array], x: Array) -> Array:
    """A custom function."""
    return jnp.tanh(x @ params["w"]) @ params["v"]


def main() -> None:
    """Use the main functions once."""
    narrow, wide = measured(8), measured(128)
    assert wide[0] < narrow[0]

    weights = {"w": jnp.ones((3, 4)), "v": jnp.ones((4, 1))}
    kernel = ntk_core.empirical_ntk(model, weights, jnp.ones((2, 3)))
    assert kernel.shape == (2, 2, 1, 1)
    line = ntk_core.linearize(model, weights)
    assert line(weights, jnp.ones((2, 3))).shape == (2, 1)

    result = ntk_core.compute("liu-fig1-left", widths=(4, 8), num_seeds=1, training={"max_steps": 3})
    steps: int = result.spec.training.max_steps
    widths = [point.width for point in result.points]
    assert (steps, widths) == (3, [4, 8])
    spec = KernelChangeSpec(widths=(4,), num_seeds=1)
    assert ntk_core.estimate(spec).num_points == 1
    hessian: HessianSpec = ntk_core.experiments.preset("liu-table1").spec
    assert hessian.point_keys()

    data = ntk_core.load_dataset("sine", num_samples=8)
    assert data.x.shape == (8, 1)
    verdicts = {name: graph_verdict(graph, 100, (5,)).becomes_linear for name, graph in example_graphs().items()}
    assert any(verdicts.values())
    try:
        ntk_core.compute("liu-fig1-left", widths=(0,))
    except ntk_core.InvalidSpec as error:
        print(error.problems[0])


if __name__ == "__main__":
    main()
