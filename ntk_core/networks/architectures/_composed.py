"""Networks put together from registered layers, on the same seam as all others."""

from dataclasses import dataclass

from ntk_core.networks.architectures._layered import Listed
from ntk_core.networks.architectures._layers import Scaling, Shape
from ntk_core.networks.architectures._settings import MAX_WIDTH, check_count
from ntk_core.networks.graphs import Composition, lay_out


@dataclass(frozen=True)
class Composed(Listed):
    """Network given by a composition of layers.

    The layers of a composition, then a dense output layer without bias, f = W α / √fan_in.

    Layers with weights are called ``hidden1``, ``hidden2``, … in the order in which they are applied, so that dense
    layers with activations between them take the parameters of :class:`FullyConnected`.

    >>> import jax, jax.numpy as jnp
    >>> from ntk_core.networks.graphs import composition_examples
    >>> net = Composed(composition_examples()["residual"], width=8, num_outputs=2)
    >>> net.apply(net.init(jax.random.key(0), (3,)), jnp.ones((5, 3))).shape
    (5, 2)

    Attributes:
        composition: what ``parse_composition`` makes of JSON.
        width: m, in which widths such as ``"2m"`` are stated.
        num_outputs, output, parameterization, trained, output_signs: as for other networks; ``"first"`` trains the
            layers that see nothing but the input.

    Raises:
        InvalidInput: for a setting outside its range; by ``init`` where the layers do not fit the inputs.

    Source: our choice, docs/own-data-and-models.md.
    """

    composition: Composition
    width: int = 512
    num_outputs: int = 1
    output: str = "linear"
    parameterization: str = "ntk"
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        check_count("width", self.width, MAX_WIDTH)
        super().__post_init__()

    @property
    def written_out(self) -> Composition:
        return self.composition

    @property
    def hidden_scaling(self) -> Scaling:
        return Scaling(self.parameterization, width=self.width)

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        lay_out(self.steps, self.width, tuple(input_shape))  # says where it does not fit, by its place
        return super().layer_input_shapes(input_shape)
