"""Which arrays handed over as parameters are none.

Running averages, caches, counters of Flax and Equinox.
"""

import sys
from collections.abc import Mapping

import jax
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput

# Collections of Flax Linen that its layers write to; an optimizer never sees them.
NOT_TRAINED = ("batch_stats", "cache", "intermediates", "perturbations", "spectral_stats")
LINEN = (
    'params = variables["params"] and apply = lambda params, x: '
    'model.apply({**variables, "params": params}, x)'
)
EQUINOX = "the arrays of the model alone, with its State, in inference mode, inside of apply"
NNX = "graphdef, params, rest = nnx.split(model, nnx.Param, ...), with rest inside of apply"


def check_collections(net: object, params: PyTree) -> None:
    """Refuse state of modules of Flax or Equinox among the parameters.

    Raises:
        InvalidInput: with the name of the collection (Linen), or of the type of
            variables (NNX, Equinox).
    """
    _check_linen(params, _is_method_of_linen(net))
    _check_nnx(params)
    _check_equinox(params)


def _check_linen(params: PyTree, is_method: bool) -> None:
    """Look for collections beside "params", at any depth of dictionaries, lists and tuples."""
    if isinstance(params, list | tuple):
        for each in params:
            _check_linen(each, is_method)
    if not isinstance(params, Mapping):
        return
    has_params = isinstance(params.get("params"), Mapping)
    for name, each in params.items():
        is_known = name in NOT_TRAINED and (has_params or name == "batch_stats")
        # model.apply takes variables by collection: all except "params" are state.
        is_other = is_method and has_params and name != "params"
        if (is_known or is_other) and isinstance(each, Mapping) and jax.tree.leaves(each):
            raise InvalidInput("params", f"the collection {name}, which is not trained", LINEN)
        _check_linen(each, is_method)


def _is_method_of_linen(net: object) -> bool:
    linen = sys.modules.get("flax.linen")
    return linen is not None and isinstance(getattr(net, "__self__", None), linen.Module)


def _check_nnx(params: PyTree) -> None:
    nnx = sys.modules.get("flax.nnx")
    if nnx is None:
        return
    state = nnx.BatchStat, nnx.Cache, nnx.Intermediate, nnx.RngState
    variables = jax.tree.leaves(params, is_leaf=lambda each: isinstance(each, nnx.Variable))
    for variable in variables:
        if isinstance(variable, state):
            kind = type(variable).__name__
            raise InvalidInput("params", f"variables of type {kind}, which are not trained", NNX)


def _check_equinox(params: PyTree) -> None:
    nn = sys.modules.get("equinox.nn")
    if nn is None:
        return
    for each in jax.tree.leaves(params, is_leaf=lambda each: isinstance(each, nn.State)):
        if isinstance(each, nn.State):
            given = "a State of Equinox, such as running averages, which is not trained"
            raise InvalidInput("params", given, EQUINOX)
