"""Kernels, Hessians and training of wide neural networks.

When and why a network becomes a linear model.

The public API of the mathematics: arrays in, arrays out. Names are imported on first use, so
importing the package does not start JAX; ``__init__.pyi`` lists them. Further names are in the
submodules ``dynamics``, ``early_time``, ``graphs``, ``hessians``, ``kernels`` and ``networks``.
Experiments, presets and data sets are in ``linearity_lab``.
"""

import lazy_loader

from ntk_core._moved import checked
from ntk_core._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = checked(__getattr__)
