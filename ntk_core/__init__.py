"""Kernels, Hessians and training of wide neural networks: when and why a network becomes a linear model.

This module is the one door to the core. Names are imported when first used, so that reading a specification or a stored
result does not start JAX; ``__init__.pyi`` says where each comes from.
"""

import lazy_loader

from ntk_core._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
