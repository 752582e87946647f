"""Training of networks and their linear models.

Names are imported on first use, since settings of training work without JAX.
"""

import lazy_loader

__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)
__all__ = (
    "ClosedForm",
    "Loss",
    "Optimizer",
    "addition_error",
    "gauss_newton_product",
    "kernel_velocity",
    "linearize",
    "loss_hessian_product",
    "one_sample_catapult",
    "quadratic_model",
    "train",
)
