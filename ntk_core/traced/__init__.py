"""Uses of parameters in any function ``apply(params, x)`` (docs/math/traced-programs.md)."""

from ntk_core.traced._against_plain import Check, TracingDisagrees
from ntk_core.traced._channels_last import ChannelsLast, has_convolutions
from ntk_core.traced._check import agree, checked, compared_once
from ntk_core.traced._derivatives import (
    NonlinearRule,
    derivative_along,
    is_reverse_only,
    linearized,
    value_and_derivative,
    value_and_slope,
)
from ntk_core.traced._drawn import Numbers, draws
from ntk_core.traced._entrance import (
    ModelFails,
    accepted,
    accepted_input,
    accepted_targets,
    axes_of,
    check_model,
    checked_array,
    like_params,
    like_rows,
)
from ntk_core.traced._independence import treats_rows_apart
from ntk_core.traced._layers import TracedLayer, arranged, is_narrow_type, least_normal, wide
from ntk_core.traced._malformed_rules import MalformedRule, NoSecondDerivative
from ntk_core.traced._messages import compiling, name_of
from ntk_core.traced._names import leaf_name, leaf_names
from ntk_core.traced._of_network import program_of_network
from ntk_core.traced._positions import features_at, positions_of
from ntk_core.traced._precision import EXPLAINED, perturbed, refuse_imprecise, rounded_otherwise
from ntk_core.traced._program import (
    Apply,
    Model,
    Program,
    Rows,
    Views,
    kernels_of,
    summed_kernels,
    through_output,
    views_of,
    whole_kernels,
)
from ntk_core.traced._quickly import quick_options, quickly
from ntk_core.traced._report import LayerFound, LayersFound, layers_of
from ntk_core.traced._row_axes import CALLS, ELEMENTWISE
from ntk_core.traced._row_trees import (
    Inputs,
    is_tree,
    layout_of,
    num_rows,
    of_same_rows,
    packed_rows,
    takes_trees,
)
from ntk_core.traced._symmetry import AsymmetricHessian, random_weights, refuse_asymmetric
from ntk_core.traced._trace import (
    Frozen,
    freeze,
    moving_leaves,
    refuse_loops,
    refuse_no_curvature,
    same_program,
    trace,
    traced,
)
from ntk_core.traced._trainable import Route, Trainable, restricted
from ntk_core.traced._uses import Use
from ntk_core.traced._views import aval_of, shape_of
from ntk_core.usual_settings import with_usual_settings
