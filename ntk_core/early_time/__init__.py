"""Linear models that networks follow early in training.

Source: Hu, Xiao, Adlam & Pennington 2020.
"""

from ntk_core.early_time._features import (
    LinearFeatures,
    activation_constants,
    deep_features,
    kernel_norms,
    spectral_norm,
    two_layer_features,
    weighted_kernel,
)
from ntk_core.early_time._inputs import (
    TRAIN_STREAM,
    covariance_ratio,
    covariance_spectrum,
    draw_inputs,
    input_sizes,
    standardized_images,
)
from ntk_core.early_time._training import (
    InputSpan,
    LinearModel,
    batch_order,
    early_start,
    layer_rates,
    outputs_in_blocks,
)

__all__ = ("LinearModel", "activation_constants", "deep_features", "two_layer_features")
