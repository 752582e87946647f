"""The science of ``liu-fig1-left`` in plain JAX, without this project.

One hidden ReLU layer with biases in the NTK parameterization; the linear and the softmax output
share one set of parameters trained by cross-entropy, the swish output has its own, trained with
squares; the kernel by Jacobian contraction. ``benchmarks/whole_runs.py`` times it against
``linearity_lab.run`` and compares the numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np


def init(key, m, d, num_classes):
    hidden, output = jax.random.split(key, 2)
    w_key, b_key = jax.random.split(hidden)
    v_key, _ = jax.random.split(output)
    return {
        "w": jax.random.normal(w_key, (d, m)),
        "b": jax.random.normal(b_key, (m,)),
        "v": jax.random.normal(v_key, (m, num_classes)),
    }


def f(params, x):
    m = params["v"].shape[0]
    d = x.shape[1]
    return jax.nn.relu(x @ params["w"] / jnp.sqrt(d) + params["b"]) @ params["v"] / jnp.sqrt(m)


OUTPUTS = {"linear": lambda z: z, "softmax": jax.nn.softmax, "swish": jax.nn.swish}


def ntk(params, x, output):
    jacobians = jax.tree.leaves(jax.jacrev(lambda p: OUTPUTS[output](f(p, x)))(params))
    flat = [j.reshape(j.shape[0], j.shape[1], -1) for j in jacobians]
    return sum(jnp.einsum("iap,jbp->ijab", j, j) for j in flat)


def cross_entropy(params, x, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(f(params, x)) * y, -1))


def squares(params, x, y):
    return 0.5 * jnp.mean(jnp.sum((jax.nn.swish(f(params, x)) - y) ** 2, -1))


def train(loss, params, step, x, y, rate, until, threshold):
    def goes_on(state):
        _, step, value = state
        return (step < until) & (value > threshold)

    def one_step(state):
        params, step, _ = state
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradient), step + 1, value

    return jax.lax.while_loop(goes_on, one_step, (params, step, jnp.inf))


jit_ntk = jax.jit(ntk, static_argnums=2)
jit_train = jax.jit(train, static_argnums=0)


def sweep_widths(
    x, y, widths, num_seeds, threshold, max_steps, num_records, on_point=lambda width: None
):
    """Return {(width, output, seed): (sup kernel change, steps)} for three outputs."""
    n, num_classes = y.shape
    grid = sorted({round(s) for s in np.geomspace(1, max_steps, num_records)})
    found: dict[tuple, tuple] = {}
    for m in widths:
        for loss, outputs, curvature in (
            (cross_entropy, ("linear", "softmax"), 0.5),
            (squares, ("swish",), 1.0998**2),
        ):
            for seed in range(num_seeds):
                params = init(
                    jax.random.fold_in(jax.random.key(seed), m), m, x.shape[1], num_classes
                )
                first = {output: jit_ntk(params, x, output) for output in outputs}
                linear = first["linear"] if "linear" in first else jit_ntk(params, x, "linear")
                matrix = (
                    np.asarray(linear, np.float64)
                    .transpose(0, 2, 1, 3)
                    .reshape(n * num_classes, -1)
                )
                rate = 0.25 * 2 * n / (curvature * np.linalg.eigvalsh(matrix)[-1])
                sup = dict.fromkeys(outputs, 0.0)
                step = jnp.asarray(0)
                for until in grid:
                    params, step, _ = jit_train(loss, params, step, x, y, rate, until, threshold)
                    for output in outputs:
                        kernel = jit_ntk(params, x, output)
                        change = jnp.linalg.norm(kernel - first[output]) / jnp.linalg.norm(
                            first[output]
                        )
                        sup[output] = max(sup[output], float(change))
                    if float(loss(params, x, y)) <= threshold:
                        break
                found |= {(m, output, seed): (sup[output], int(step)) for output in outputs}
        on_point(m)
    return found
