"""Settings of JAX's context managers, carried into other threads."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

# JAX keeps it apart for each thread: attribute of jax.config → name of the manager in jax.
_JAX_CONTEXTS = {
    "jax_enable_x64": "enable_x64",
    "jax_default_device": "default_device",
    "jax_default_matmul_precision": "default_matmul_precision",
    "jax_default_prng_impl": "default_prng_impl",
    "jax_threefry_partitionable": "threefry_partitionable",
    "jax_numpy_rank_promotion": "numpy_rank_promotion",
    "jax_numpy_dtype_promotion": "numpy_dtype_promotion",
    "jax_disable_jit": "disable_jit",
    "jax_debug_nans": "debug_nans",
    "jax_debug_infs": "debug_infs",
    "jax_check_tracer_leaks": "checking_leaks",
    "jax_log_compiles": "log_compiles",
    "jax_transfer_guard_host_to_device": "transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_device": "transfer_guard_device_to_device",
    "jax_transfer_guard_device_to_host": "transfer_guard_device_to_host",
}
_WITHOUT_VALUE = {"checking_leaks"}  # managers that only switch on


def jax_contexts() -> dict[str, Any]:
    """Return what JAX's context managers have set in this thread; empty before JAX is imported."""
    jax = sys.modules.get("jax")
    if jax is None:
        return {}
    found = {name: getattr(jax.config, name) for name in _JAX_CONTEXTS}
    found["mesh"] = jax.sharding.get_mesh()
    return found


@contextlib.contextmanager
def entered(contexts: dict[str, Any]) -> Iterator[None]:
    """Context in which JAX has these settings in this thread too; only different ones are set."""
    jax = sys.modules.get("jax")
    if jax is None or not contexts:
        yield
        return
    here = jax_contexts()
    with contextlib.ExitStack() as stack:
        for name, value in contexts.items():
            if value == here[name]:
                continue
            if name == "mesh":
                stack.enter_context(jax.set_mesh(value))
                continue
            manager = getattr(jax, _JAX_CONTEXTS[name])
            if _JAX_CONTEXTS[name] in _WITHOUT_VALUE:
                stack.enter_context(manager())
            else:
                stack.enter_context(manager(value))
        yield
