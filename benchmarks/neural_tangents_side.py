"""The peer: neural-tangents' empirical kernels, in an environment of its own with the JAX that it needs.

Reads one JSON request a line (case and weights file, or "time"), answers one JSON line. Started by
``benchmarks/against_neural_tangents.py``; imports nothing from this project.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np


def dense(case, weights):
    """The network of the case as a plain function; the library differentiates through it as it would through any."""
    depth = case["hidden_layers"]

    def apply(params, x):
        a = x.reshape(x.shape[0], -1)
        for weight in params[:depth]:
            a = jax.nn.relu(a @ weight / np.sqrt(weight.shape[0]))
        return a @ params[depth] / np.sqrt(params[depth].shape[0])

    return apply


def convolutional(case, weights):
    depth = case["hidden_layers"]

    def apply(params, x):
        a = x
        for weight in params[:depth]:
            size = weight.shape[0]
            low = (size - 1) // 2
            padded = jnp.pad(a, ((0, 0), (low, size - 1 - low), (low, size - 1 - low), (0, 0)), mode="wrap")
            z = jax.lax.conv_general_dilated(
                padded, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            a = jax.nn.relu(z / np.sqrt(np.prod(weight.shape[:3])))
        a = jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)
        return a @ params[depth] / np.sqrt(params[depth].shape[0])

    return apply


IMPLEMENTATIONS = {
    "jacobian_contraction": nt.NtkImplementation.JACOBIAN_CONTRACTION,
    "ntvp": nt.NtkImplementation.NTK_VECTOR_PRODUCTS,
    "structured": nt.NtkImplementation.STRUCTURED_DERIVATIVES,
}


def main():
    kernels = {}
    x = params = None
    for line in sys.stdin:
        request = json.loads(line)
        if "case" in request:
            with np.load(request["file"], allow_pickle=False) as arrays:
                x = jnp.asarray(arrays["x"])
                params = [jnp.asarray(arrays[f"w{index}"]) for index in range(len(arrays.files) - 1)]
            make = convolutional if request["case"]["kind"] == "convnet" else dense
            apply = make(request["case"], params)
            kernels = {
                name: jax.jit(nt.empirical_ntk_fn(apply, trace_axes=(), vmap_axes=0, implementation=implementation))
                for name, implementation in IMPLEMENTATIONS.items()
                if name in request["implementations"]
            }
            print(json.dumps({"jax": jax.__version__, "neural_tangents": nt.__version__}), flush=True)
            continue
        began = time.perf_counter()
        kernel = jax.block_until_ready(kernels[request["time"]](x, None, params))
        seconds = time.perf_counter() - began
        print(json.dumps({"s": seconds, "norm": float(np.linalg.norm(np.asarray(kernel, np.float64)))}), flush=True)


main()
