"""Measurements for the tests of this folder, in a process with four virtual devices.

Prints JSON.
"""

from __future__ import annotations

import gc
import json
import os
from functools import partial

from tests.compiler_flags import QUICK_FLAGS

os.environ["XLA_FLAGS"] = " ".join(["--xla_force_host_platform_device_count=4", *QUICK_FLAGS])

import jax
import jax.numpy as jnp
import numpy as np

import linearity_lab
import ntk_core
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs.events import Ended, PointProgress
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start
from ntk_core.networks.architectures import merge
from ntk_core.traced import program_of_network, views_of

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)

FOUR = ntk_core.networks.width_mesh()
WIDTH, SAMPLES, STEPS = 256, 6, 5
NET = ntk_core.FullyConnected(width=WIDTH, depth=2, num_outputs=2, activation="tanh", use_bias=True)
LOSS = Loss("linear")
MODEL = NetworkModel(NET, LOSS)
trained = jax.jit(partial(advance, MODEL, Optimizer()))


def problem(shape=(5,)):
    x = jax.random.normal(jax.random.key(1), (SAMPLES, *shape))
    return x, jax.nn.one_hot(jnp.arange(SAMPLES) % 2, 2)


def measured(net, shape):
    """Kernel and parameters, as numbers."""
    x, _ = problem(shape)
    params = net.init(jax.random.key(0), shape)
    return jax.tree.map(np.asarray, [params, ntk_core.empirical_ntk(net, params, x)])


def everything():
    """Parameters, kernel, trained weights and Hessian norm as numbers,
    and the arrays on their devices.
    """
    x, y = problem()
    params = NET.init(jax.random.key(0), (5,))
    kernel = ntk_core.empirical_ntk(NET, params, x)
    norm = ntk_core.hessian_norm(NET, params, x[0]).value
    traced = program_of_network(NET, params, x[0])
    seen = views_of(traced, traced.leaves(params), x)
    moving, fixed = NET.partition(params)
    arguments = (
        start(MODEL, Optimizer(), jax.tree.map(jnp.copy, moving), SAMPLES),
        fixed,
        x,
        y,
        0.1,
        STEPS,
        -1.0,
    )
    program = trained.lower(*arguments).compile()
    memory = program.memory_analysis()
    state = program(*arguments)
    last = ntk_core.empirical_ntk(NET, merge(state.trained, fixed), x)
    between = ntk_core.kernel_change_between(
        NET, params, merge(state.trained, fixed), x, memory_limit=2**16
    )
    assert between.num_pairs > 1
    product = ntk_core.KernelOperator(NET, params, x).product(y)
    more = {"change": np.asarray(between.change), "product": product}
    numbers = {
        "params": params,
        "kernel": kernel,
        "norm": norm,
        "trained": state.trained,
        "last kernel": last,
    } | more
    arrays = {
        "params": params,
        "inputs": seen.inputs,
        "cotangents": seen.cotangents,
        "trained": state.trained,
    }
    return (
        jax.tree.map(np.asarray, numbers),
        arrays,
        memory.argument_size_in_bytes + memory.temp_size_in_bytes,
    )


def largest_share(tree):
    """The first device's share of the largest array."""
    largest = max(jax.tree.leaves(tree), key=lambda leaf: leaf.size)
    return largest.addressable_shards[0].data.size / largest.size


def largest_difference(one, other):
    """Largest difference relative to the largest number of each array."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def report():
    one, _, one_bytes = everything()
    with jax.set_mesh(FOUR):
        four, arrays, four_bytes = everything()
    small = {"width": 8, "depth": 1, "num_outputs": 2, "activation": "tanh", "use_bias": False}
    networks = {
        "convolution": (ntk_core.ConvNet(**small), (4, 4, 1)),
        "masks": (ntk_core.DenseNet(**small, drop_probability=0.3), (5,)),
        "odd width": (ntk_core.FullyConnected(**(small | {"width": 7, "num_outputs": 1})), (5,)),
    }
    others = {}
    for name, (net, shape) in networks.items():
        alone = measured(net, shape)
        with jax.set_mesh(FOUR):
            others[name] = largest_difference(alone, measured(net, shape))
    return {
        "differences": {name: largest_difference(one[name], four[name]) for name in one} | others,
        "shares": {name: largest_share(tree) for name, tree in arrays.items()},
        "bytes": four_bytes / one_bytes,
        "run": run_of_a_sweep(),
    }


def run_of_a_sweep():
    """Run one small sweep on four devices and on one: largest difference, and shares per device."""
    network = {"architecture.depth": 2, "architecture.activation": "tanh"}
    short = {"dataset.num_samples": 6, "training.max_steps": 20, "training.num_records": 3}
    few = {"widths": [64], "num_seeds": 1, "outputs": ["linear"]}
    spec = with_settings(KernelChangeSpec(), {**few, **network, **short})
    changes, shares = [], []
    for number in ("4", "1"):
        os.environ["LINEARITY_LAB_DEVICES"] = number
        met = set()
        for event in linearity_lab.run(spec, scheduler=""):
            if isinstance(event, PointProgress):
                weights = [array for array in jax.live_arrays() if array.shape[-2:] == (64, 64)]
                met |= {array.addressable_shards[0].data.size / array.size for array in weights}
        assert isinstance(event, Ended)
        assert event.status == "completed", event.reason
        changes.append(np.array([run.change for run in event.result.points[0].runs]))
        shares.append(sorted(met))
        gc.collect()
    return {
        "difference": float(np.abs(changes[1] - changes[0]).max() / changes[0].max()),
        "shares": shares,
    }


if __name__ == "__main__":
    print(json.dumps(report()))
