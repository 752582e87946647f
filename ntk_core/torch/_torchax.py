"""torchax as a calculator: PyTorch operations on JAX arrays.

There is no device that PyTorch knows of.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.machine import how_to_install
from ntk_core.torch._subgradients import PYTORCHS

# Elements; frozen weights are larger and would be copied by each operation.
LARGEST_CONSTANT = 2**20


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
    overload_of = torch._ops.OpOverloadPacket.__getattr__

    def overload_or_name(operation: Any, name: str) -> Any:
        """Return an overload; the name of one for named tensors, which PyTorch 2.12 removed."""
        try:
            return overload_of(operation, name)
        except AttributeError:
            if "dimname" not in name.lower() and "names" not in name:
                raise
            return f"{operation}.{name}"  # torchax uses it as a key of tables only

    try:
        with (
            patch.object(torch._ops.OpOverloadPacket, "__getattr__", overload_or_name),
            patch.object(torch.utils, "rename_privateuse1_backend", lambda name: None),
            patch.object(torch, "_register_device_module", lambda name, module: None),
            patch.dict(os.environ),
        ):
            tensors = importlib.import_module("torchax.tensor")
            importlib.import_module("torchax.decompositions")
    finally:
        torch.backends.mha.set_fastpath_enabled(fastpath)
    tensors.Tensor.device = property(lambda self: torch.device("cpu"))
    tensors.View.device = property(lambda self: torch.device("cpu"))


def _is_known(value: object, tensors: ModuleType) -> bool:
    """Whether this argument has no tensor, or a small one with values."""
    while isinstance(value, tensors.View):
        value = value.parent
    if not isinstance(value, tensors.Tensor):
        return True
    array = value.jax()
    return not isinstance(array, jax.core.Tracer) and array.size <= LARGEST_CONSTANT


def _environment_class() -> type[Any]:
    tensors = importlib.import_module("torchax.tensor")
    import torch

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
            kwargs = kwargs or {}
            name = _name_of(function)
            _refuse_arguments(name, args, kwargs)
            given = torch.utils._pytree.tree_leaves((args, kwargs))
            if all(_is_known(value, tensors) for value in given):
                with jax.ensure_compile_time_eval():
                    return super().dispatch(function, types, args, kwargs)
            own = PYTORCHS.get(name.removesuffix("_"))
            if own is None or not isinstance(args[0], tensors.Tensor | tensors.View):
                return super().dispatch(function, types, args, kwargs)
            operands, options = self.t2j_iso(self.v2t_iso((args, kwargs)))
            found = self.j2t_iso(own(*operands, **options))
            if not name.endswith("_"):
                return found
            with self:  # in place
                args[0].copy_(found)
            return args[0]

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


# Operation → name, place and default of an argument that torchax ignores.
_IGNORED = {
    "aten::embedding": ("scale_grad_by_freq", 3, False),
    "aten::_embedding_bag": ("padding_idx", 8, -1),
    "aten::_embedding_bag_forward_only": ("padding_idx", 8, -1),
}


def _name_of(function: Any) -> str:
    """Return the name of an operation of PyTorch's core, such as ``aten::add``, or an empty one."""
    return getattr(getattr(function, "overloadpacket", function), "_qualified_op_name", "")


def _refuse_arguments(qualified: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse arguments that torchax ignores, and whose effect an example need not show.

    Raises:
        InvalidInput: with the operation and the argument.
    """
    if qualified not in _IGNORED:
        return
    name, place, default = _IGNORED[qualified]
    value = kwargs.get(name, args[place] if len(args) > place else default)
    if value != default:
        label = qualified.removeprefix("aten::").removeprefix("_").removesuffix("_forward_only")
        raise InvalidInput("model", f"{label} with {name}={value}", f"{label} without {name}")


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
