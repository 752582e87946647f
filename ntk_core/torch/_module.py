"""PyTorch modules as functions of parameters, by torchax.

An extra (requirements-torch.txt), never in a page.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ntk_core.errors import InvalidInput, kind_of, reason_of
from ntk_core.machine import how_to_install
from ntk_core.torch._reference import (
    Reference,
    outputs_of,
    reference,
    unchanged,
)
from ntk_core.torch._torchax import as_array, call_on_arrays, torch_environment
from ntk_core.traced import EXPLAINED, Numbers, draws, perturbed

if TYPE_CHECKING:
    import torch

TorchFunction = Callable[[dict[str, Array], Array], Array]
# (parameters, x, mixture of outputs) ↦ outputs and gradients
Derived = Callable[[dict[str, Array], Array, np.ndarray], tuple[Array, dict[str, Array]]]
AGREEMENT = 1e-3  # of outputs and gradients in float32, relative to the largest output or the norm
# A parameter whose gradient is below this share of all gradients may differ: its gradient is
# rounding, as for the bias of attention keys, which cancels in the softmax.
NEGLIGIBLE = 1e-5


def from_torch(
    module: torch.nn.Module, example: ArrayLike
) -> tuple[TorchFunction, dict[str, Array]]:
    """Convert a PyTorch module to a JAX function with parameters.

    (apply, params) of a ``torch.nn.Module`` in eval mode; apply(params, x) = module(x) has shape
    (n, C) or (n, T, C).

    Registered parameters that require gradients are in ``params``, by name and once per tied
    tensor; parametrized weights (weight_norm, spectral_norm, LoRA) follow from theirs. Buffers
    (running averages), frozen parameters and other tensors are constants. Weights may share the
    module's memory (on a CPU, if aligned to 64 bytes as PyTorch does), so do not train the module
    in place afterwards. Models with ``logits`` (library transformers) return them. Outputs (n,)
    become (n, 1). The module keeps its modes, buffers and gradients.

    >>> import numpy as np, ntk_core
    >>> from torch import nn
    >>> x = np.ones((5, 3), np.float32)
    >>> apply, params = from_torch(nn.Linear(3, 2), x)
    >>> ntk_core.empirical_ntk(apply, params, x).shape
    (5, 5, 2, 2)

    Args:
        module: any module whose operations torchax supports.
        example: inputs (n, *input_shape), at least one row. On it, outputs are compared
            with PyTorch's, and so is the gradient of a random mixture of the outputs,
            parameter by parameter. The same follows at random parameters and inputs.
            Elsewhere, equal numbers in ``topk`` or ``sort`` may have slopes in another order.

    Returns:
        ``(apply, params)``: a JAX function and its parameters by name.

    Raises:
        InvalidInput: if torch or torchax is missing, the module fails on the example, an operation
            is not supported, outputs are not (n, C), (n,) or (n, T, C), or outputs or gradients
            differ between PyTorch and JAX (``torch.no_grad`` in a forward pass, custom
            ``autograd.Function``), with the parameter's name.

    Source: our choice, docs/decisions/0002-kernels-without-jacobians.md.
    """
    try:
        import torch
    except ImportError as error:
        raise InvalidInput(
            "model", f"a PyTorch module without {error.name}", how_to_install("torch")
        ) from None
    if not isinstance(module, torch.nn.Module):
        given = f"the class {module.__name__}" if isinstance(module, type) else kind_of(module)
        raise InvalidInput("model", given, "a torch.nn.Module")
    if isinstance(module, torch.jit.ScriptModule):
        raise InvalidInput(
            "model", "a module of TorchScript", "the torch.nn.Module that it was made of"
        )
    module = _unwrapped(module)
    torch_environment()
    _check_parameters(module)
    expected = reference(module, _as_rows(example))
    apply, params = _converted(module, _kind(expected.rows))
    derived = _compiled(apply)
    difference = _difference(derived, params, expected)
    if difference is not None:
        raise difference
    _compare_at_random(module, derived, params, expected.rows)
    return apply, params


def _unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside torch.compile, DataParallel and DistributedDataParallel."""
    import torch

    parallel = torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel
    while isinstance(module, parallel) or hasattr(module, "_orig_mod"):
        module = module.module if isinstance(module, parallel) else module._orig_mod
    return module


def _check_parameters(module: torch.nn.Module) -> None:
    """Refuse modules without trained parameters, and tensors without values."""
    import torch

    tensors = [*module.named_parameters(), *module.named_buffers()]
    for name, tensor in tensors:
        if torch.nn.parameter.is_lazy(tensor):
            allowed = "a module that was called once, which sets the shapes of lazy layers"
            raise InvalidInput("model", f"a module with {name} without a shape", allowed)
        if tensor.is_meta:
            given = f"a module with {name} on the device meta"
            raise InvalidInput(
                "model", given, "a module with values: module.to_empty and its weights"
            )
    for name, tensor in module.named_parameters():
        if tensor.requires_grad and not tensor.is_floating_point():
            kind = str(tensor.dtype).removeprefix("torch.")
            raise InvalidInput("model", f"the parameter {name} of type {kind}", "real parameters")
    if not any(each.requires_grad for each in module.parameters()):
        given = "a module without a parameter that requires gradients"
        raise InvalidInput(
            "model", given, "requires_grad_(True) for the parameters to differentiate"
        )


def _as_rows(example: Any) -> torch.Tensor:
    """Return the example as a tensor of its own.

    Raises:
        InvalidInput: for anything but finite numbers (n, *input_shape) with n > 0.
    """
    import torch

    allowed = "one array of numbers (n, *input_shape) with at least one row"
    try:
        if isinstance(example, torch.Tensor):
            rows = example.detach().clone().to("cpu")
        elif getattr(example, "dtype", None) == jnp.bfloat16:  # PyTorch reads no such NumPy array
            rows = torch.as_tensor(np.asarray(example, np.float32)).bfloat16()
        else:
            rows = torch.as_tensor(np.array(example))
    except Exception as error:  # lists of different lengths, dictionaries, sparse or meta tensors
        allowed = f"{allowed}; PyTorch reports: {reason_of(error)}"
        raise InvalidInput("example", kind_of(example), allowed) from error
    if rows.ndim == 0 or len(rows) == 0:
        raise InvalidInput("example", f"shape {tuple(rows.shape)}", allowed)
    if not bool(torch.isfinite(rows).all()):
        raise InvalidInput("example", "numbers that are not finite", allowed)
    return rows


def _kind(rows: torch.Tensor) -> jnp.dtype:
    """Return the type of the inputs in JAX."""
    return as_array(rows[:1].clone()).dtype


def _converted(module: torch.nn.Module, kind: jnp.dtype) -> tuple[TorchFunction, dict[str, Array]]:
    """Return (apply, params); apply keeps a copy of the module without its parameters."""
    import torch

    own = _copied(module).eval()
    params = {}
    kept = {name: as_array(buffer) for name, buffer in own.named_buffers()}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            params[name] = as_array(parameter)
        else:
            kept[name] = as_array(parameter)

    def call(tensors: Mapping[str, Any], x: Any) -> Any:
        with unchanged(own):
            return outputs_of(torch.func.functional_call(own, dict(tensors), (x,)))

    def apply(params: dict[str, Array], x: Array) -> Array:
        return call_on_arrays(call, {**kept, **params}, jnp.asarray(x, kind))

    return apply, params


def _copied(module: torch.nn.Module) -> torch.nn.Module:
    """Copy a module's structure and buffers; parameters stay where they are.

    Raises:
        InvalidInput: if it has parts that Python cannot copy.
    """
    import torch

    shared: dict[int, Any] = {id(each): each for each in module.parameters()}
    for each in module.modules():
        for leaf in jax.tree.leaves(vars(each)):
            # PyTorch refuses to copy results of operations, such as features kept by a module.
            if isinstance(leaf, torch.Tensor) and not leaf.is_leaf:
                shared[id(leaf)] = leaf.detach()
    try:
        return copy.deepcopy(module, shared)
    except Exception as error:  # locks, open files, generators
        allowed = f"a module that copy.deepcopy accepts; Python reports: {reason_of(error)}"
        raise InvalidInput("model", "a module that cannot be copied", allowed) from error


def _compiled(apply: TorchFunction) -> Derived:
    """Return (params, x, mixture) ↦ outputs and the gradient of ⟨mixture, outputs⟩."""

    def both(
        params: dict[str, Array], x: Array, mixture: np.ndarray
    ) -> tuple[Array, dict[str, Array]]:
        outputs, pull = jax.vjp(lambda moved: apply(moved, x), params)
        return outputs, pull(mixture.astype(outputs.dtype))[0]

    return jax.jit(both)


def _difference(
    derived: Derived, params: dict[str, Array], expected: Reference
) -> InvalidInput | None:
    """Return the refusal of the output or the parameter that differs most, or None.

    Raises:
        InvalidInput: if JAX fails.
    """
    try:
        with jax.default_matmul_precision("highest"):
            outputs, gradients = derived(params, as_array(expected.rows), expected.mixture)
    except InvalidInput:
        raise
    except Exception as error:  # any error of torchax or of JAX on what torchax wrote
        allowed = f"operations that torchax knows; it reports: {reason_of(error)}"
        raise InvalidInput("model", "a module that fails in JAX", allowed) from error
    tolerance = max(AGREEMENT, 16 * expected.precision)
    wide = {name: np.asarray(each, np.float64) for name, each in gradients.items()}
    of_outputs = _outputs_differ(np.asarray(outputs, np.float64), expected.outputs, tolerance)
    if of_outputs is not None:
        return of_outputs
    negligible = max(NEGLIGIBLE, 2 * expected.precision)
    return _gradients_differ(wide, expected.gradients, tolerance, negligible)


def _compare_at_random(
    module: torch.nn.Module, derived: Derived, params: dict[str, Array], rows: torch.Tensor
) -> None:
    """Compare at random parameters and inputs, since gates of zero hide what they multiply.

    There is no verdict where the module fails, or where rounding of the parameters explains a
    difference.

    Raises:
        InvalidInput: for the output or the parameter that differs most.
    """
    import torch

    for drawn, (x,) in draws(params, as_array(rows)):
        values = {name: _values(each) for name, each in drawn.items()}
        # Integers may be tokens with a meaning, such as the end of a text.
        inputs = torch.as_tensor(_values(x)).to(rows) if rows.is_floating_point() else rows
        try:
            expected = reference(module, inputs, values)
        except InvalidInput:  # outside of the domain of the module
            continue
        if not all(np.isfinite(each).all() for each in expected.gradients.values()):
            continue
        difference = _difference(derived, drawn, expected)
        if difference is None:
            return
        rounded = perturbed(values, expected.precision)
        if _agrees(reference(module, inputs, rounded), expected):
            raise difference


def _values(array: Numbers) -> np.ndarray:
    """Return an array in a type that PyTorch reads."""
    return np.array(array, np.float32 if array.dtype == jnp.bfloat16 else None)


def _agrees(moved: Reference, expected: Reference) -> bool:
    """Whether rounding of the parameters moves outputs and gradients too little to explain more."""
    tolerance = max(AGREEMENT, 16 * expected.precision) / EXPLAINED
    return (
        _outputs_differ(moved.outputs, expected.outputs, tolerance) is None
        and _gradients_differ(moved.gradients, expected.gradients, tolerance, NEGLIGIBLE) is None
    )


def _outputs_differ(
    found: np.ndarray, expected: np.ndarray, tolerance: float
) -> InvalidInput | None:
    if found.shape != expected.shape:
        given = f"outputs {found.shape} in JAX and {expected.shape} in PyTorch"
        return InvalidInput("model", given, "a module whose operations agree in both")
    scale = max(float(np.abs(expected).max()), 1e-30)
    difference = float(np.abs(found - expected).max()) / scale
    if difference <= tolerance:
        return None
    return InvalidInput(
        "model",
        f"outputs that differ by {difference:.1e} between PyTorch and JAX",
        "a module without random numbers in eval mode, whose operations agree in both",
    )


def _gradients_differ(
    found: dict[str, np.ndarray],
    expected: dict[str, np.ndarray],
    tolerance: float,
    negligible: float,
) -> InvalidInput | None:
    total = np.sqrt(sum(float(np.sum(each**2)) for each in expected.values()))
    worst = ""
    largest = 0.0  # difference relative to the tolerance
    for name, gradient in expected.items():
        if not np.isfinite(gradient).all():
            allowed = f"another example, or a module whose parameter {name} has finite gradients"
            return InvalidInput("model", "a gradient that is not finite in PyTorch", allowed)
        if not np.isfinite(found[name]).all():
            allowed = (
                "another example, or a module without functions like sinc at zero; "
                f"only PyTorch's gradient of {name} is finite there"
            )
            return InvalidInput("model", "a gradient that is not finite in JAX", allowed)
        bound = max(tolerance * float(np.linalg.norm(gradient)), negligible * total, 1e-30)
        difference = float(np.linalg.norm(found[name] - gradient)) / bound
        if difference > largest:
            worst = name
            largest = difference
    if largest <= 1:
        return None
    sizes = np.linalg.norm(expected[worst]), np.linalg.norm(found[worst])
    share = float(np.linalg.norm(found[worst] - expected[worst])) / float(max(sizes))
    return InvalidInput(
        "model",
        f"a gradient that differs from PyTorch's by {share:.0%}",
        f"a module whose parameter {worst} has one gradient in both. Use requires_grad_(False) "
        "for torch.no_grad and detach() for .data. Remove hooks on gradients, and each "
        "autograd.Function whose backward pass is another derivative",
    )
