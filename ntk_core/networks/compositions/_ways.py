"""What each layer sees: the layer below, or others besides, by the ways around layers; and which layers are trained."""

from dataclasses import dataclass

from ntk_core.networks.compositions._blocks import Block, ConcatBlock, Nested, Trained


@dataclass(frozen=True)
class Skip:
    """What layer ``start`` gives arrives at layer ``end`` past the layers between; 0 is the input, the last the output.

    ``"residual"``: it is added to what layer ``end`` gives. ``"concat"``: layer ``end`` sees it beside the layer below.
    """

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Ways:
    """Every skip, by the layer where it arrives, and the layers, counted from 1, that see nothing but the input."""

    skips: tuple[Skip, ...]
    first: tuple[int, ...]


def find_ways(layers: tuple[Block, ...]) -> Ways:
    """The ways through these blocks and an output layer after them."""
    walk = _Walk()
    walk.reach(walk.through(layers, {0}))
    return Ways(tuple(walk.skips), tuple(walk.first))


class _Walk:
    """From the input upwards; ``seen`` are the layers whose neurons stand side by side where the walk has come."""

    def __init__(self) -> None:
        self.number, self.skips, self.first = 0, list[Skip](), list[int]()

    def through(self, blocks: tuple[Block, ...], seen: set[int]) -> set[int]:
        for block in blocks:
            if isinstance(block, Trained):
                seen = self.reach(seen)
            elif isinstance(block, Nested):
                below, inner = self.number, self.through(block.layers, seen)
                if isinstance(block, ConcatBlock):
                    inner = seen | inner
                elif self.number > below:
                    self.skips.append(Skip(below, self.number, "residual"))
                seen = inner
        return seen

    def reach(self, seen: set[int]) -> set[int]:
        """The next layer sees these."""
        self.number += 1
        self.skips += [Skip(low, self.number, "concat") for low in sorted(seen) if low < self.number - 1]
        if seen == {0}:
            self.first.append(self.number)
        return {self.number}


def trains_hidden(trained: str, first: bool) -> bool:
    """Whether a hidden layer (one that sees nothing but the input, or another) is trained under this choice."""
    return trained in ("all", "hidden") or (trained == "first" and first)


def trains_output(trained: str) -> bool:
    """Whether the output layer is trained under this choice."""
    return trained in ("all", "last")
