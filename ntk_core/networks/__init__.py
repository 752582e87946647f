"""Networks: layers, compositions, graphs, sizes and shapes.

Names are imported on first use: sizes, shapes and choices are read where JAX does not run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
