"""PyTorch modules as functions of parameters, by torchax; an extra (requirements-torch.txt), never in a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ntk_core.environment import how_to_install
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    import torch

AGREEMENT = 1e-3  # of float32 outputs, relative to the largest


def from_torch(
    module: torch.nn.Module, example: ArrayLike
) -> tuple[Callable[[dict[str, Array], Array], Array], dict[str, Array]]:
    """Convert a PyTorch module to a JAX function with parameters.

    (apply, params) of a ``torch.nn.Module`` in eval mode; apply(params, x) = module(x) has shape (n, C) or (n, T, C).

    Parameters that require gradients are in ``params`` by name; buffers (running averages) and frozen parameters are
    constants. Weights may share the module's memory (on a CPU, if aligned to 64 bytes as PyTorch does), so do not train
    the module in place afterwards. Models with ``logits`` (library transformers) return them. Outputs (n,) become
    (n, 1).

    >>> import numpy as np, ntk_core
    >>> from torch import nn
    >>> x = np.ones((5, 3), np.float32)
    >>> apply, params = from_torch(nn.Linear(3, 2), x)
    >>> ntk_core.empirical_ntk(apply, params, x).shape
    (5, 5, 2, 2)

    Args:
        module: any module whose operations torchax supports.
        example: inputs (n, *input_shape), at least one row; the outputs of both are compared on it.

    Returns:
        ``(apply, params)``: a JAX function and its parameters by name.

    Raises:
        InvalidInput: if torch or torchax is missing, an operation is not supported, outputs are not (n, C), (n,) or
            (n, T, C), or they differ between PyTorch and JAX.

    Source: our choice, docs/decisions/0002-kernels-without-jacobians.md.
    """
    try:
        import torch
        import torchax
    except ImportError as error:
        raise InvalidInput(
            "model", f"a PyTorch module without {error.name}", how_to_install("torch")
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise InvalidInput("model", type(module).__name__, "a torch.nn.Module")
    rows = torch.as_tensor(np.array(example))
    whole = _Outputs.around(module).eval()
    with torch.no_grad():
        expected = whole(rows)
    if (
        not isinstance(expected, torch.Tensor)
        or expected.ndim not in (2, 3)
        or len(expected) != len(rows)
    ):
        shape = getattr(expected, "shape", type(expected).__name__)
        raise InvalidInput(
            "model",
            f"outputs {tuple(shape)}",
            "outputs of shape (n, C), (n,) or (n, T, C), one row for each input",
        )
    states, function = torchax.extract_jax(whole)
    tensors = {**dict(whole.named_parameters()), **dict(whole.named_buffers())}
    states = {name: _in_place(tensors[name], each) for name, each in states.items()}
    moves = {name for name, each in whole.named_parameters() if each.requires_grad}
    params = {
        name.removeprefix(_Outputs.PREFIX): each for name, each in states.items() if name in moves
    }
    kept = {name: each for name, each in states.items() if name not in moves}

    def apply(params: dict[str, Array], x: Array) -> Array:
        named = {_Outputs.PREFIX + name: each for name, each in params.items()}
        return jnp.asarray(function({**kept, **named}, (jnp.asarray(x),)))

    try:
        found = np.asarray(jax.jit(apply)(params, jnp.asarray(rows.numpy())))
    except Exception as error:
        first = next(
            (line for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise InvalidInput("model", first, "operations that torchax knows") from error
    difference = np.abs(found - expected.numpy()).max() / max(float(np.abs(found).max()), 1e-30)
    if not difference <= AGREEMENT:
        raise InvalidInput(
            "model",
            f"outputs that differ by {difference:.1e} between PyTorch and JAX",
            "another module",
        )
    return apply, params


def _in_place(tensor: torch.Tensor, copied: Array) -> Array:
    """Return the tensor's memory as an array if JAX can read it, else the copy."""
    try:
        found = jax.dlpack.from_dlpack(tensor.detach())
    except Exception:  # type or device that DLPack or JAX does not support
        return copied
    return found if (found.shape, found.dtype) == (copied.shape, copied.dtype) else copied


class _Outputs:
    """Wrapper that returns a module's tensor of outputs."""

    PREFIX = "module."

    @staticmethod
    def around(module: torch.nn.Module) -> torch.nn.Module:
        import torch

        class Outputs(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.module = module

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                found = self.module(x)
                found = getattr(found, "logits", found)
                return found[:, None] if getattr(found, "ndim", 0) == 1 else found

        return Outputs()
