"""The lab: experiments that can be asked for, run, stored and shown.

``linearity-lab app`` starts the dashboard, and ``linearity-lab --help`` lists the other
commands. In Python and in notebooks, begin with ``linearity_lab.compute("liu-fig1-left")``. The
mathematics is in ``ntk_core``.

Names are imported on first use, so reading a spec or a stored result does not start JAX;
``__init__.pyi`` lists them. Further names are in the submodules ``data`` and ``experiments``.
"""

import lazy_loader

from ntk_core._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
