"""How linear custom models are: between two checkpoints, and against their width.

Names are imported on first use, since stored reports are read without JAX.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
