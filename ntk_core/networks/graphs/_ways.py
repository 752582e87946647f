"""What each layer sees: the layer below, or others too, by the ways around layers; and which layers are trained."""

from dataclasses import dataclass

from ntk_core.networks.graphs._blocks import (
    AdapterBlock,
    AttentionBlock,
    Block,
    ConcatBlock,
    Nested,
    PositionsBlock,
    Trained,
)


@dataclass(frozen=True)
class Skip:
    """What layer ``start`` gives arrives at layer ``end`` past the layers between; 0 is the input, the last the output.

    ``"residual"``: it is added to what layer ``end`` gives. ``"concat"``: layer ``end`` sees it beside the layer below.
    ``"branch"``: layer ``end`` sees it and not the layer below. ``"attention"``: layer ``end`` sees values mixed by it.
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
    """From the input upwards; ``seen`` are the layers whose neurons are side by side at this step."""

    def __init__(self) -> None:
        self.number, self.skips, self.first = 0, list[Skip](), list[int]()
        self.mixing = set[int]()  # queries and keys

    def through(self, blocks: tuple[Block, ...], seen: set[int]) -> set[int]:
        for block in blocks:
            if isinstance(block, Trained):
                below, seen = self.number, self.reach(seen)
                if isinstance(block, PositionsBlock):
                    self.skips.append(Skip(below, self.number, "residual"))
            elif isinstance(block, AttentionBlock):
                seen = self.attend(seen)
            elif isinstance(block, AdapterBlock):
                seen = self.adapt(seen)
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
        kinds = {low: "attention" if low in self.mixing else "concat" for low in seen if low < self.number - 1}
        self.skips += [Skip(low, self.number, kind) for low, kind in sorted(kinds.items())]
        if seen == {0}:
            self.first.append(self.number)
        return {self.number}

    def attend(self, seen: set[int]) -> set[int]:
        """Queries, keys and values see the same; what comes next sees all three."""
        (queries,) = self.reach(seen)
        for _ in range(2):
            self.branch(seen)
        self.mixing |= {queries, queries + 1}
        return {queries, queries + 1, queries + 2}

    def adapt(self, seen: set[int]) -> set[int]:
        """A frozen layer; A sees what it sees, and what B gives is added."""
        (frozen,) = self.reach(seen)
        self.branch(seen)
        self.number += 1
        self.skips.append(Skip(frozen, self.number, "residual"))
        return {self.number}

    def branch(self, seen: set[int]) -> None:
        """The next layer sees these, and not the layer below."""
        self.number += 1
        self.skips += [Skip(low, self.number, "branch") for low in sorted(seen)]
        self.first += [self.number] if seen == {0} else []


def trains_hidden(trained: str, first: bool) -> bool:
    """Whether a hidden layer (one that sees nothing but the input, or another) is trained under this choice."""
    return trained in ("all", "hidden") or (trained == "first" and first)


def trains_output(trained: str) -> bool:
    """Whether the output layer is trained under this choice."""
    return trained in ("all", "last")
