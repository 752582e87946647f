"""Networks: layers, compositions, graphs, sizes and shapes.

Names are imported on first use, since sizes, shapes and choices work without JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
