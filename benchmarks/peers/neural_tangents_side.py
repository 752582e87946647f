"""neural-tangents' empirical kernels and closed-form trajectories, in an environment with the JAX that it needs.

Imports nothing of this project but its neighbor. For trajectories it is started with JAX_ENABLE_X64=1.
"""

import math

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from side import serve, weights


def dense(hidden_layers):
    """The network as a plain function; the library differentiates through it as it would through any."""

    def apply(params, x):
        a = x.reshape(x.shape[0], -1)
        for weight in params[:hidden_layers]:
            a = jax.nn.relu(a @ weight / np.sqrt(weight.shape[0]))
        return a @ params[hidden_layers] / np.sqrt(params[hidden_layers].shape[0])

    return apply


def convolutional(hidden_layers):
    def apply(params, x):
        a = x
        for weight in params[:hidden_layers]:
            size = weight.shape[0]
            low = (size - 1) // 2
            padded = jnp.pad(a, ((0, 0), (low, size - 1 - low), (low, size - 1 - low), (0, 0)), mode="wrap")
            z = jax.lax.conv_general_dilated(
                padded, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            a = jax.nn.relu(z / np.sqrt(np.prod(weight.shape[:3])))
        a = jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)
        return a @ params[hidden_layers] / np.sqrt(params[hidden_layers].shape[0])

    return apply


IMPLEMENTATIONS = {
    "jacobian_contraction": nt.NtkImplementation.JACOBIAN_CONTRACTION,
    "ntvp": nt.NtkImplementation.NTK_VECTOR_PRODUCTS,
    "structured": nt.NtkImplementation.STRUCTURED_DERIVATIVES,
}


def kernels(request):
    x, params = weights(request, jnp.asarray)
    apply = {"dense": dense, "convnet": convolutional}[request["kind"]](request["hidden_layers"])

    def call(implementation):
        kernel = jax.jit(nt.empirical_ntk_fn(apply, trace_axes=(), vmap_axes=0, implementation=implementation))
        return lambda: jax.block_until_ready(kernel(x, None, params))

    def norm(kernel):
        return {"norm": float(np.linalg.norm(np.asarray(kernel, np.float64)))}

    return {name: (call(IMPLEMENTATIONS[name]), norm) for name in request["implementations"]}


def changes(request):
    """How far the kernel moves between two weights, from kernels in blocks of rows (nt.batch), both held."""
    (x, before), (_, after) = (weights(request, jnp.asarray, letter) for letter in "ab")
    x = np.asarray(x)
    kernel = nt.empirical_ntk_fn(
        dense(len(before) - 1), trace_axes=(), vmap_axes=0, implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES
    )

    def call(rows):
        batched = nt.batch(kernel, batch_size=rows, store_on_device=False)

        def change():
            first, second = (np.asarray(batched(x, None, params)) for params in (before, after))
            return norm(second - first) / norm(first)

        return change

    def norm(array):  # np.linalg.norm adds up hundreds of millions of squares in float32, off by 4e-3
        return math.sqrt(sum(float(np.vdot(row, row)) for row in array))

    return {
        f"blocks of {rows:,} rows": (call(rows), lambda found: {"change": float(found)}) for rows in request["rows"]
    }


def trajectories(request):
    """Gradient flow at all times in one call, the eigendecomposition included; the outputs go into a file."""
    with np.load(request["file"], allow_pickle=False) as arrays:
        given = {name: jnp.asarray(arrays[name]) for name in arrays.files}

    def work():
        predict = nt.predict.gradient_descent_mse(given["kernel"], given["targets"], trace_axes=())
        found = predict(given["times"], given["start"], given["other_start"], given["other_kernel"])
        return jax.block_until_ready(found)

    def keep(found):
        np.savez(request["answer"], train=np.asarray(found[0]), other=np.asarray(found[1]))
        return {"dtype": str(found[0].dtype)}

    return {"neural-tangents": (work, keep)}


serve(
    lambda request: {"kernels": kernels, "changes": changes, "trajectories": trajectories}[request["what"]](request),
    ("neural-tangents", "jax", "jaxlib", "numpy"),
)
