"""Low-rank adapters in frozen dense networks, and assemblies of m small models."""

from __future__ import annotations

from ntk_core.errors import InvalidInput
from ntk_core.networks import graphs
from ntk_core.networks.graphs import Block, Composition
from ntk_core.networks.kinds import numbered
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, Settings

DENSE = ("fully-connected", "bottleneck", "resnet", "densenet")
BASES = {kind.name: kind for kind in numbered.KINDS if kind.name in DENSE}


def _adapted(settings: Settings, hidden: Hidden) -> Composition:
    """Freeze the base layers and add an update B A to the chosen ones."""
    rank: int | str = settings.adapter_rank
    if getattr(settings, "grows", "") == "rank":  # networks have all sizes as numbers
        rank = "m"
        hidden = tuple((settings.layer_width, bias) for _, bias in hidden)
    chosen = settings.adapted_layers or range(1, len(hidden) + 1)
    numbers = iter(range(1, len(hidden) + 1))

    def changed(block: Block) -> Block:
        if inner := getattr(block, "layers", ()):
            return block.model_copy(update={"layers": tuple(map(changed, inner))})
        if not isinstance(block, graphs.DenseBlock):
            return block
        frozen = graphs.FrozenDense.model_construct(width=block.width, bias=block.bias)
        if next(numbers) not in chosen:
            return frozen
        down = graphs.AdapterDown.model_construct(width=rank)
        up = graphs.AdapterUp.model_construct(
            width=block.width, rank=rank, exponent=settings.rank_exponent
        )
        return graphs.AdapterBlock.model_construct(layers=(frozen, down, up))

    layers = BASES[settings.base].write_out(settings, hidden).layers
    return Composition(tuple(map(changed, layers)))


def check(settings: Settings) -> None:
    """Require existing layers and something to train."""
    allowed = f"numbers from 1 to {settings.depth}, the hidden layers"
    if settings.adapted_layers is not None and not set(settings.adapted_layers) <= set(
        range(1, settings.depth + 1)
    ):
        raise InvalidInput("adapted_layers", settings.adapted_layers, allowed)
    if settings.base == "bottleneck":
        BASES[settings.base].check(settings)
    if settings.trained == "first":
        raise InvalidInput(
            "trained", settings.trained, "all (A, B and the output layer), hidden (A and B) or last"
        )


def _copies(settings: Settings, hidden: Hidden) -> Composition:
    """Return the copies, which the output layer sums."""
    width = getattr(settings, "width", "m")  # networks have their size as a number
    copies = graphs.CopiesBlock.model_construct(width=width, model=settings.sub_model)
    return Composition((graphs.FlattenInputBlock(), copies))


KINDS = (
    Kind(
        "adapted",
        "low-rank adapters",
        "z = (W + B A / r^s) a / √m, W frozen, A and B trained, B = 0 at w₀",
        write_out=_adapted,
        settings=(
            *LAYERED,
            "base",
            "adapted_layers",
            "adapter_rank",
            "rank_exponent",
            "grows",
            "layer_width",
        ),
        check=check,
        network=f"{NETWORKS}:Adapted",
    ),
    Kind(
        "assembly",
        "assembly",
        "f = m^(−½) Σ vᵢ g(wᵢ; x), m copies of one small model g",
        write_out=_copies,
        settings=("sub_model",),
        network=f"{NETWORKS}:Assembly",
    ),
)
