"""torchax as a calculator: PyTorch operations on JAX arrays,
without a device that PyTorch knows of.

Importing torchax registers an accelerator named "jax" in PyTorch, for the whole process and for
good. Afterwards ``torch.compile``, ``DataParallel`` and pinned memory look for that device and
fail. Nothing here needs it: tensors of this module report the device "cpu", and every tensor that a
module creates in its forward pass becomes a JAX array.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.machine import how_to_install

LARGEST_CONSTANT = (
    2**20
)  # elements; frozen weights are larger and would be copied by each operation


@functools.cache
def torch_environment() -> Any:
    """Return the environment in which PyTorch operations run on JAX arrays.

    Raises:
        InvalidInput: if PyTorch or torchax is missing or torchax does not know the installed
            PyTorch.
    """
    try:
        _import_torchax()
    except ImportError as error:
        raise InvalidInput(
            "model", f"a PyTorch module without {error.name}", how_to_install("torch")
        ) from error
    except Exception as error:  # torchax looks for operations that other versions of PyTorch lack
        import torch

        raise InvalidInput(
            "model",
            f"torchax with PyTorch {torch.__version__} ({type(error).__name__})",
            f"the versions of {how_to_install('torch')}",
        ) from error
    return _environment_class()()


def _import_torchax() -> None:
    """Import torchax; PyTorch keeps its devices, its settings and the variables of the process.

    A torchax that was imported elsewhere has registered its device already and is used as it is.
    """
    import torch

    if "torchax" in sys.modules:
        importlib.import_module("torchax")
        return
    fastpath = torch.backends.mha.get_fastpath_enabled()
    try:
        with (
            patch.object(torch.utils, "rename_privateuse1_backend", lambda name: None),
            patch.object(torch, "_register_device_module", lambda name, module: None),
            patch.dict(os.environ),
        ):
            tensors = importlib.import_module("torchax.tensor")
    finally:
        torch.backends.mha.set_fastpath_enabled(fastpath)
    tensors.Tensor.device = property(lambda self: torch.device("cpu"))
    tensors.View.device = property(lambda self: torch.device("cpu"))


def _environment_class() -> type[Any]:
    tensors = importlib.import_module("torchax.tensor")
    import torch

    def is_known(value: object) -> bool:
        """Whether this argument has no tensor, or a small one with values."""
        while isinstance(value, tensors.View):
            value = value.parent
        if not isinstance(value, tensors.Tensor):
            return True
        array = value.jax()
        return not isinstance(array, jax.core.Tracer) and array.size <= LARGEST_CONSTANT

    class JaxOnly(tensors.Environment):  # type: ignore[name-defined]  # torchax has no types
        """Environment whose tensors are JAX arrays, whatever device their creator names."""

        def _should_use_torchax_tensor(self, device: object) -> bool:
            return True

        def _is_same_device(self, tensor: object, device: object) -> bool:
            return True

        def dispatch(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
            """Compute small constants, such as masks and positions, while JAX traces.

            Python code of a module may then branch on their values, as it does in PyTorch.
            """
            if all(map(is_known, torch.utils._pytree.tree_leaves((args, kwargs)))):
                with jax.ensure_compile_time_eval():
                    return super().dispatch(function, types, args, kwargs)
            return super().dispatch(function, types, args, kwargs)

        def t2j_iso(self, values: Any) -> Any:
            """Unwrap JAX arrays; other tensors, such as attributes of a module, are constants."""

            def constant(tensor: torch.Tensor) -> Any:
                if isinstance(tensor, tensors.Tensor | tensors.View):
                    return tensor
                if tensor.ndim == 0:  # like a Python number, it does not widen the other operand
                    return tensor.item()
                return tensors.Tensor(as_array(tensor), self)

            constants = torch.utils._pytree.tree_map_only(torch.Tensor, constant, values)
            return super().t2j_iso(constants)

    return JaxOnly


@contextlib.contextmanager
def without_fastpath() -> Iterator[None]:
    """Run transformer layers operation by operation, as PyTorch does in training mode.

    Their fused form exists in eval mode only. JAX does not have it, and it reads ``linear1.weight``
    even where an adapter without a weight has taken the place of ``linear1``.
    """
    import torch

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def call_on_arrays(
    call: Callable[[Mapping[str, Any], Any], Any], tensors: Mapping[str, Array], x: Array
) -> Array:
    """Return ``call(tensors, x)``, whose PyTorch operations are traced by JAX."""
    import torch

    environment = torch_environment()
    # The caller may have entered torch.no_grad or torch.inference_mode.
    with without_fastpath(), torch.inference_mode(False), torch.enable_grad(), environment:
        found = call(environment.j2t_iso(dict(tensors)), environment.j2t_iso(x))
        return jnp.asarray(environment.t2j_iso(found))


def as_array(tensor: Any) -> Array:
    """Return a tensor as a JAX array, without a copy where both libraries can read the memory."""
    import torch

    values = tensor.detach().resolve_conj().resolve_neg()
    try:
        found = jax.dlpack.from_dlpack(values)
    except Exception:  # type, alignment or device that DLPack or JAX does not support
        found = None
    if found is not None and found.dtype == jax.dtypes.canonicalize_dtype(found.dtype):
        return jnp.asarray(found)
    if values.dtype == torch.bfloat16:  # NumPy has no such type; float32 contains it
        return jnp.asarray(values.float().numpy(force=True), jnp.bfloat16)
    return jnp.asarray(np.array(values.numpy(force=True)))
