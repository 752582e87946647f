"""PyTorch modules as JAX functions of their parameters; importing this starts JAX, not PyTorch."""

from ntk_core.torch._module import TorchFunction, from_torch

__all__ = ("TorchFunction", "from_torch")
