"""Outputs and gradients of a module by PyTorch itself, with the module left as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ntk_core.errors import InvalidInput, kind_of, reason_of
from ntk_core.torch._torchax import without_fastpath

if TYPE_CHECKING:
    import torch


class Reference(NamedTuple):
    """Outputs and gradients that PyTorch computes for some inputs and parameters.

    Attributes:
        outputs: (n, C) or (n, T, C), in float64.
        mixture: random weights R like the outputs, of norm about 1.
        gradients: ∂⟨R, f⟩/∂w of each parameter w that requires gradients, by name, in float64.
        rows: the inputs in the type that the module accepts.
        precision: relative rounding of the coarsest type among outputs and parameters.
    """

    outputs: np.ndarray
    mixture: np.ndarray
    gradients: dict[str, np.ndarray]
    rows: torch.Tensor
    precision: float


def reference(
    module: torch.nn.Module,
    example: torch.Tensor,
    values: Mapping[str, np.ndarray] | None = None,
) -> Reference:
    """Evaluate a module and one backward pass of a random mixture of its outputs.

    Args:
        values: of trained parameters by name, in place of the module's own.

    Raises:
        InvalidInput: if the module fails on the example, writes to its parameters or has
            no suitable outputs.
    """
    import torch

    moving = {name: each for name, each in module.named_parameters() if each.requires_grad}
    # An Embedding with max_norm rescales its table in the forward pass, for example.
    before = {name: each._version for name, each in moving.items()}
    kept = {name: each.detach().clone() for name, each in moving.items()}
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    # cuDNN has no backward pass of recurrent layers in evaluation mode.
    with (
        torch.random.fork_rng(devices=devices),
        torch.backends.cudnn.flags(enabled=False),
        without_fastpath(),
        torch.inference_mode(False),
        torch.enable_grad(),
        unchanged(module),
        _replaced(moving, values or {}),
    ):
        _evaluation_mode(module)
        found, rows = _called(module, example)
        outputs = outputs_of(found)
        _check_outputs(outputs, found, len(rows))
        rng = np.random.default_rng(0)
        mixture = rng.standard_normal(tuple(outputs.shape)) / np.sqrt(outputs.numel())
        gradients = _gradients(outputs, mixture, moving)
    for name, parameter in moving.items():
        if parameter._version != before[name]:
            _restore(parameter, kept[name])
            raise InvalidInput(
                "model",
                f"a module that writes to its parameter {name} in its forward pass",
                "a module that only reads its parameters, such as an Embedding without max_norm",
            )
    types = [outputs.dtype, *(each.dtype for each in moving.values())]
    return Reference(
        outputs=_wide(outputs),
        mixture=mixture,
        gradients=gradients,
        rows=rows.detach(),
        precision=max(torch.finfo(each).eps for each in types),
    )


@contextlib.contextmanager
def _replaced(
    moving: Mapping[str, torch.nn.Parameter], values: Mapping[str, np.ndarray]
) -> Iterator[None]:
    """Give parameters other values for a while; their own memory is not written to."""
    import torch

    own = {name: moving[name].data for name in values}
    try:
        for name, value in values.items():
            moving[name].data = torch.as_tensor(value).to(own[name])
        yield
    finally:
        for name, data in own.items():
            moving[name].data = data


def _evaluation_mode(module: torch.nn.Module) -> None:
    """Put a module into evaluation mode.

    Raises:
        InvalidInput: if this changes its parameters, as for adapters that are merged into weights.
    """
    import torch

    plain = torch.nn.Module.train
    if all(type(each).train is plain and "train" not in vars(each) for each in module.modules()):
        module.eval()
        return
    before = {name: each.detach().clone() for name, each in module.named_parameters()}
    module.eval()
    changed = []
    for name, parameter in module.named_parameters():
        if name in before and not torch.equal(parameter, before[name]):
            _restore(parameter, before[name])
            changed.append(name)
    if changed:
        raise InvalidInput(
            "model",
            f"a module whose eval() changes its parameter {changed[0]}",
            "a module that keeps its parameters, such as one with adapters that are not merged",
        )


@contextlib.contextmanager
def unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Restore modes, attributes, hooks and buffers of a module and its submodules afterwards."""
    attributes = []  # (dictionary, a shallow copy of it)
    for each in module.modules():
        attributes.append((each.__dict__, dict(each.__dict__)))
        for part in ("_parameters", "_buffers", "_modules"):
            attributes.append((each.__dict__[part], dict(each.__dict__[part])))
    buffers = []  # (buffer, its version, a copy)
    for buffer in module.buffers():
        buffers.append((buffer, _version(buffer), buffer.detach().clone()))
    try:
        yield
    finally:
        for live, saved in attributes:
            live.clear()
            live.update(saved)
        for buffer, version, values in buffers:
            if _version(buffer) != version:
                _restore(buffer, values)


def outputs_of(found: Any) -> Any:
    """Return the logits of a Hugging Face output, else the outputs; (n,) becomes (n, 1)."""
    outputs = getattr(found, "logits", found)
    return outputs[:, None] if getattr(outputs, "ndim", 0) == 1 else outputs


def _version(tensor: torch.Tensor) -> int:
    """Count of writes; a tensor of inference mode has none and cannot be written to here."""
    return 0 if tensor.is_inference() else tensor._version


def _restore(tensor: torch.Tensor, values: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        tensor.copy_(values)


def _called(module: torch.nn.Module, example: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """Return (what the module returns, the example in the first type that it accepts)."""
    weights = next(module.parameters())
    first: Exception | None = None  # the error for the example as it was given
    for kind in _types(example, weights.dtype):
        rows = example.to(device=weights.device, dtype=kind)
        try:
            return module(rows), rows
        except Exception as error:  # any error of a module on an unsuitable example
            first = first or error
    assert first is not None  # at least one type is tried
    shape = tuple(example.shape)
    raise InvalidInput(
        "example",
        f"shape {shape} and type {str(example.dtype).removeprefix('torch.')}",
        f"inputs (n, *input_shape) that the module accepts; PyTorch reports: {reason_of(first)}",
    ) from first


def _types(example: torch.Tensor, weights: torch.dtype) -> list[torch.dtype]:
    """Types to try, in order: integers may be tokens or, for a module of floats, pixels."""
    import torch

    if example.is_complex():
        return [example.dtype]
    if example.is_floating_point():
        # NumPy makes float64 by default, where a module of float32 is meant.
        given = torch.float32 if example.dtype == torch.float64 else example.dtype
        tried = [weights, given] if weights == torch.float64 else [given, weights]
    else:
        tried = [example.dtype, torch.int64, weights]
    return list(dict.fromkeys(tried))


def _check_outputs(outputs: Any, found: Any, num_rows: int) -> None:
    import torch

    allowed = "outputs of shape (n, C), (n,) or (n, T, C), one row for each input"
    if not isinstance(outputs, torch.Tensor):
        raise InvalidInput("model", f"outputs that are {kind_of(found)}", allowed)
    shape = tuple(outputs.shape)
    if outputs.ndim not in (2, 3) or len(outputs) != num_rows or not outputs.numel():
        raise InvalidInput("model", f"outputs {shape} for {num_rows} inputs", allowed)
    if not outputs.is_floating_point():
        kind = str(outputs.dtype).removeprefix("torch.")
        raise InvalidInput("model", f"outputs of type {kind}", "real floating-point outputs")
    if not bool(torch.isfinite(outputs).all()):
        raise InvalidInput(
            "example", "inputs with outputs that are not finite", "inputs that the module can take"
        )


def _gradients(
    outputs: torch.Tensor, mixture: np.ndarray, moving: dict[str, torch.nn.Parameter]
) -> dict[str, np.ndarray]:
    import torch

    if not outputs.requires_grad:  # no parameter reaches the outputs
        return {name: np.zeros(tuple(each.shape)) for name, each in moving.items()}
    seed = torch.as_tensor(mixture).to(outputs)
    try:
        found = torch.autograd.grad(outputs, list(moving.values()), seed, allow_unused=True)
    except Exception as error:  # an operation without a backward pass, for example
        raise InvalidInput(
            "model",
            "a module without gradients in PyTorch",
            f"a module that PyTorch can train; PyTorch reports: {reason_of(error)}",
        ) from error
    gradients = {}
    for (name, parameter), gradient in zip(moving.items(), found, strict=True):
        known = torch.zeros_like(parameter) if gradient is None else gradient
        gradients[name] = _wide(known.to_dense() if known.is_sparse else known)
    return gradients


def _wide(tensor: torch.Tensor) -> np.ndarray:
    return np.asarray(tensor.detach().double().numpy(force=True))
