"""Kernels, Hessians and training of wide neural networks: when and why a network becomes a linear model.

The public API of the core. Names are imported on first use, so reading a spec or a stored result does not start JAX;
``__init__.pyi`` lists them. Further names are in the submodules ``data``, ``dynamics``, ``early_time``,
``experiments``, ``graphs``, ``hessians``, ``kernels`` and ``networks``.
"""

import lazy_loader

from ntk_core._moved import checked
from ntk_core._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = checked(__getattr__)
