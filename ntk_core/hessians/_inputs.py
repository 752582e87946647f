"""One input or a batch, one seed or several."""

from typing import NamedTuple

import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels import refuse_traced
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted,
    accepted_input,
    axes_of,
    checked_array,
    is_tree,
    restricted,
)


class InputRows(NamedTuple):
    """A model with inputs and parameters.

    Attributes:
        net: the model, with outputs (n, C).
        seeds: parameters of every seed.
        inputs: inputs without a batch axis.
        num_outputs: C.
        lead: shape of the measured values: (), (n,), (num_seeds,) or (num_seeds, n).
    """

    net: Model
    seeds: list[PyTree]
    inputs: list[Array]
    num_outputs: int
    lead: tuple[int, ...]


def accepted_rows(
    net: Model,
    params: PyTree,
    x: Inputs,
    batched: bool | None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> InputRows:
    """Return single inputs and the parameters of every seed.

    A list is one tree if a function accepts it.

    Raises:
        InvalidInput: for incompatible inputs, or if ``x`` is ambiguous and ``batched`` is None.
    """
    refuse_traced((params, x), "x")
    if not isinstance(params, list):
        return _rows(restricted(net, params, trainable, route), params, x, batched)
    refused = None
    if not isinstance(net, Network):
        try:
            return _rows(restricted(net, params, trainable, route), params, x, batched)
        except InvalidInput as error:
            refused = error
    if not params:
        raise refused or InvalidInput("params", "nothing", "at least one")
    try:
        found = _rows(restricted(net, params[0], trainable, route), params[0], x, batched)
    except InvalidInput as error:
        raise refused or error from None
    return found._replace(seeds=params, lead=(len(params), *found.lead))


def _rows(net: Model, params: PyTree, x: Inputs, batched: bool | None) -> InputRows:
    reasons = []
    readings = []
    for is_batch in (False, True) if batched is None else (batched,):
        try:
            readings.append(_read(net, params, x, is_batch))
        except InvalidInput as error:
            reasons.append(error)
        # Scalars are inputs only if nothing else fits.
        if readings and not is_tree(x) and checked_array(x, "x").ndim < 2:
            break
    if not readings:
        raise reasons[0]
    if len(readings) == 2 and axes_of(readings[0].net) and not axes_of(readings[1].net):
        return readings[1]  # a function of single rows that accepts any leading axes
    if len(readings) == 2:
        num_inputs = len(readings[1].inputs)
        if num_inputs == 1:  # equal in both readings: a batch of one
            return readings[1]
        shape = "a tree of arrays" if is_tree(x) else f"shape {checked_array(x, 'x').shape}"
        given = f"{shape}, which fits as one input and as {num_inputs} inputs"
        raise InvalidInput("x", given, "batched=False for one input, batched=True for a batch")
    return readings[0]


def _read(net: Model, params: PyTree, x: Inputs, is_batch: bool) -> InputRows:
    if not is_batch:
        model, one, num_outputs = accepted_input(net, params, x)
        return InputRows(model, [params], [one], num_outputs, ())
    if not is_tree(x) and 0 in checked_array(x, "x").shape[:1]:
        raise InvalidInput("x", "nothing", "at least one input")
    model, inputs, num_outputs = accepted(net, params, x)
    rows = [accepted_input(model, params, row).x for row in np.asarray(inputs)]
    return InputRows(model, [params], rows, num_outputs, (len(rows),))
