"""Report on a traced function: uses of each parameter, and the cost of each route to the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import Network
from ntk_core.traced._against_plain import Check
from ntk_core.traced._check import agree, checked
from ntk_core.traced._entrance import accepted, kind_of
from ntk_core.traced._layers import TracedLayer, num_positions
from ntk_core.traced._program import Apply, Program, whole_kernels
from ntk_core.traced._row_trees import Inputs
from ntk_core.traced._trainable import Trainable, restricted
from ntk_core.traced._uses import ADDED, MULTIPLIED
from ntk_core.usual_settings import with_usual_settings


@dataclass(frozen=True)
class LayerFound:
    """One parameter, or a part of it.

    Attributes:
        name: its path among the parameters, as ``enc.w``.
        kind: ``product``, ``convolution``, ``look-up`` (structured: no gradient of its size);
            ``addition`` and ``gain`` (biases, scales: their gradients have the parameter's size);
            ``jacobian`` for other uses.
        uses: equations that use it; 0 if not counted.
        positions: positions of all uses, for one input.
        blocks: its matrices (layers of a scan, experts, groups of a convolution).
        num_params: its number of entries.
        operations: operations that prevent the structured route.
        multiplications: for its part of the kernel of ``x`` with itself, by its route.
        jacobian_multiplications: by contraction of its Jacobian.
        num_bytes: stored values by its route.
        jacobian_bytes: of its Jacobian.

    >>> import jax.numpy as jnp
    >>> params, x = {"w": jnp.ones((3, 2))}, jnp.ones((5, 3))
    >>> (layer,) = layers_of(lambda p, x: jnp.tanh(x @ p["w"]), params, x).layers
    >>> layer.kind, layer.num_params
    ('product', 6)
    """

    name: str
    kind: str
    uses: int
    positions: int
    blocks: int
    num_params: int
    operations: tuple[str, ...]
    multiplications: int
    jacobian_multiplications: int
    num_bytes: int
    jacobian_bytes: int


@dataclass(frozen=True, repr=False)
class LayersFound:
    """All moving parameters of a function.

    Attributes:
        layers: in the order of the parameters.
        check: comparison of a small instance with plain derivatives; None without structured parts.

    >>> import jax.numpy as jnp
    >>> params, x = {"w": jnp.ones((3, 2))}, jnp.ones((5, 3))
    >>> found = layers_of(lambda p, x: jnp.tanh(x @ p["w"]), params, x)
    >>> found.fallbacks, found.check.num_inputs > 0
    ((), True)
    >>> print(found)
    LayersFound: 1 layer, 1 by uses
      w: product, 6 parameters
    """

    layers: tuple[LayerFound, ...]
    check: Check | None = field(default=None)

    def __repr__(self) -> str:
        """One line for each parameter: name, kind, size, and what prevents the structured route."""
        count = len(self.layers)
        structured = count - len(self.fallbacks)
        lines = [f"LayersFound: {count} layer{'s' * (count != 1)}, {structured} by uses"]
        for layer in self.layers:
            reason = f" ({', '.join(layer.operations)})" if layer.kind == "jacobian" else ""
            lines.append(f"  {layer.name}: {layer.kind}{reason}, {layer.num_params:,} parameters")
        return "\n".join(lines)

    @property
    def fallbacks(self) -> tuple[LayerFound, ...]:
        """Parameters that use Jacobians."""
        return tuple(layer for layer in self.layers if layer.kind == "jacobian")

    @property
    def multiplications(self) -> int:
        """Multiplications of the whole kernel, without the passes for views."""
        return sum(layer.multiplications for layer in self.layers)

    @property
    def jacobian_multiplications(self) -> int:
        return sum(layer.jacobian_multiplications for layer in self.layers)

    @property
    def num_bytes(self) -> int:
        """Bytes of all stored values."""
        return sum(layer.num_bytes for layer in self.layers)

    @property
    def jacobian_bytes(self) -> int:
        return sum(layer.jacobian_bytes for layer in self.layers)


@with_usual_settings
def layers_of(
    apply: Apply, params: PyTree, x: Inputs, *, trainable: Trainable = None
) -> LayersFound:
    """Report the layers that tracing finds in a function.

    The layers that ``empirical_ntk`` and ``hessian_norm`` find in
    ``apply(params, x) -> (n, C)``, and their costs.

    A parameter W that enters the program only by z_p = ⟨W, a_p⟩, possibly after reshaping,
    transposing, casting, slicing or scanning, is a layer: its gradient Σ_p a_p ⊗ ∂f/∂z_p is not
    formed. All others use Jacobians.

    >>> import jax.numpy as jnp
    >>> params = {"w": jnp.ones((3, 8)), "b": jnp.ones(8), "v": jnp.ones((8, 2))}
    >>> apply = lambda p, x: jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]
    >>> found = layers_of(apply, params, jnp.ones((5, 3)))
    >>> [(layer.name, layer.kind) for layer in found.layers]
    [('b', 'addition'), ('v', 'product'), ('w', 'product')]

    Args:
        apply: any function that treats each row of x separately.
        params: any tree of arrays; leaves that are not floating-point numbers are constant.
        x: inputs (n, *input_shape).
        trainable: the differentiated parameters, as for ``empirical_ntk``.

    Returns:
        The layers, by name, kind and cost; Jupyter shows them as a table.

    Raises:
        InvalidInput: if rows of x interact, with the operation, or if the program cannot be traced.
        TracingDisagrees: if the traced kernel differs from plain derivatives.

    Source: docs/math/traced-programs.md; Novak, Sohl-Dickstein & Schoenholz 2022, §4.
    """
    net, x, _ = accepted(restricted(apply, params, trainable), params, x)
    inputs = jnp.asarray(x)
    program = checked(net.apply if isinstance(net, Network) else net, params, inputs)
    if program is None:
        raise InvalidInput(
            "apply", kind_of(apply), "a function whose program can be read, outside of jax.jit"
        )
    if program.layers and "kernel" not in program.kept:
        rows = inputs[:2]
        agree(
            program,
            params,
            rows,
            None,
            whole_kernels(program, False, program.leaves(params), rows, None),
        )
    n = len(inputs)
    numbered = [(layer.leaf, _structured(program, layer, n)) for layer in program.layers]
    for leaf in (*program.others, *program.biases):
        numbered.append((leaf, _by_jacobian(program, leaf, n)))
    numbered.sort(key=lambda each: each[0])  # in the order of the parameters
    layers = [layer for _, layer in numbered]
    check = program.kept.get("kernel")
    return LayersFound(
        tuple(layers), check if program.layers and isinstance(check, Check) else None
    )


def _structured(program: Program, layer: TracedLayer, n: int) -> LayerFound:
    blocks, fan_in, features = layer.sizes
    outputs = program.num_outputs
    positions = layer.positions
    size = blocks * fan_in * features
    itemsize = program.avals[layer.leaf].dtype.itemsize
    dense = positions == 1
    by_positions = n**2 * positions**2 * (fan_in + outputs**2 * (features + (0 if dense else 1)))
    by_jacobian = fan_in * features * outputs * (n * positions + outputs * n**2)
    kept = sum(blocks * num_positions(use) for use in layer.uses) * (fan_in + outputs * features)
    taken = blocks * (by_positions if dense else min(by_positions, by_jacobian))
    costs = taken, outputs**2 * n**2 * size, n * kept * itemsize, n * outputs * size * itemsize
    return LayerFound(
        layer.name, layer.uses[0].kind, len(layer.uses), positions, blocks, size, (), *costs
    )


def _by_jacobian(program: Program, leaf: int, n: int) -> LayerFound:
    reasons = program.escapes[leaf]
    aval = program.avals[leaf]
    kind = "jacobian"
    if reasons <= ADDED:
        kind = "addition"
    elif reasons <= MULTIPLIED:
        kind = "gain"
    products = program.num_outputs**2 * n**2 * aval.size
    num_bytes = n * program.num_outputs * aval.size
    num_bytes *= aval.dtype.itemsize
    shown = tuple(sorted(reasons))
    return LayerFound(
        program.names[leaf],
        kind,
        0,
        0,
        1,
        aval.size,
        shown,
        products,
        products,
        num_bytes,
        num_bytes,
    )
