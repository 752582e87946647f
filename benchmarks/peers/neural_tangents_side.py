"""neural-tangents' empirical kernels and closed-form trajectories.

Imports nothing of this project but its neighbor. For trajectories it is started with
JAX_ENABLE_X64=1.
"""

import math

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from side import norm, serve, weights

IMPLEMENTATIONS = {
    "jacobian_contraction": nt.NtkImplementation.JACOBIAN_CONTRACTION,
    "ntvp": nt.NtkImplementation.NTK_VECTOR_PRODUCTS,
    "structured": nt.NtkImplementation.STRUCTURED_DERIVATIVES,
}


def dense(params, x):
    """The network as a plain function, which the library differentiates."""
    *hidden, last = params
    a = x.reshape(x.shape[0], -1)
    for weight in hidden:
        a = jax.nn.relu(a @ weight / np.sqrt(weight.shape[0]))
    return a @ last / np.sqrt(last.shape[0])


def convolutional(params, x):
    *hidden, last = params
    a = x
    for weight in hidden:
        size = weight.shape[0]
        low = (size - 1) // 2
        padded = jnp.pad(
            a, ((0, 0), (low, size - 1 - low), (low, size - 1 - low), (0, 0)), mode="wrap"
        )
        layout = ("NHWC", "HWIO", "NHWC")
        z = jax.lax.conv_general_dilated(padded, weight, (1, 1), "VALID", dimension_numbers=layout)
        a = jax.nn.relu(z / np.sqrt(np.prod(weight.shape[:3])))
    a = jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)
    return a @ last / np.sqrt(last.shape[0])


def kernel_of(apply, implementation="structured", traced=False):
    axes = (-1,) if traced else ()
    implementation = IMPLEMENTATIONS[implementation]
    return nt.empirical_ntk_fn(apply, trace_axes=axes, vmap_axes=0, implementation=implementation)


def kernels(request):
    x, params = weights(request, jnp.asarray)
    apply = {"dense": dense, "convnet": convolutional}[request["kind"]]

    def call(implementation):
        kernel = jax.jit(kernel_of(apply, implementation, request.get("traced_outputs", False)))
        return lambda: jax.block_until_ready(kernel(x, None, params))

    return {name: (call(name), norm) for name in request["implementations"]}


def changes(request):
    """Kernel change from two kernels in blocks of rows (nt.batch)."""
    (x, before), (_, after) = (weights(request, jnp.asarray, letter) for letter in "ab")
    x = np.asarray(x)
    kernel = kernel_of(dense)

    def call(rows):
        batched = nt.batch(kernel, batch_size=rows, store_on_device=False)

        def change():
            first, second = (np.asarray(batched(x, None, params)) for params in (before, after))
            return exact_norm(second - first) / exact_norm(first)

        return change

    # np.linalg.norm adds up hundreds of millions of squares in float32, off by 4e-3.
    def exact_norm(
        array,
    ):
        return math.sqrt(sum(float(np.vdot(row, row)) for row in array))

    def describe(found):
        return {"change": float(found)}

    return {f"blocks of {rows:,} rows": (call(rows), describe) for rows in request["rows"]}


def trajectories(request):
    """Gradient flow at all times in one call, eigendecomposition included."""
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
    {"kernels": kernels, "changes": changes, "trajectories": trajectories},
    ("neural-tangents", "jax", "jaxlib", "numpy"),
)
