"""What a graph is made of: groups of neurons, and edges between them."""

import math
from dataclasses import dataclass

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.settings.vocabulary import Term

INPUT, OUTPUT = "input", "output"
MAX_NAME = 40
MAX_SIZE = 10_000_000

EDGE_KINDS = {
    term.name: term
    for term in (
        Term("dense", "dense", "a weight of its own for each pair of neurons; some edges may be removed"),
        Term("shared", "shared weights", "the same weights at every position: a convolution with circular padding"),
        Term("skip", "fixed skip", "weight 1, never trained: the source is added after the activation"),
    )
}


@dataclass(frozen=True)
class Group:
    """Neurons with the same parents and the same activation: factor · m^power → their number at width m.

    Attributes:
        name: of the group; ``"input"`` and ``"output"`` are taken.
        size: number of neurons, the same at every width; None for ``factor · width^power``, rounded. Behind shared
            edges: the number of channels at each position.
        activation: one of ``ntk_core.networks.choices.ACTIVATIONS``; None for that of the network.
        factor: of the width m.
        power: of the width m; other than 1, in-degrees grow at different rates.

    Source: Zhu, Liu & Belkin 2022, Assumption 3.5; groups are our choice, docs/math/dag.md.
    """

    name: str
    size: int | None = None
    activation: str | None = None
    factor: float = 1.0
    power: float = 1.0

    def check(self) -> None:
        """Refuse what no graph can use, naming the group."""
        if not isinstance(self.name, str) or self.name in ("", INPUT, OUTPUT):
            raise InvalidInput("groups", self.name or "''", f"any name but {INPUT!r} and {OUTPUT!r}")
        if len(self.name) > MAX_NAME or any(not char.isprintable() or char in "<>" for char in self.name):
            raise InvalidInput("groups", self.name, f"names of up to {MAX_NAME} printable characters, without < and >")
        if self.name[0] in "=+-@":  # a spreadsheet would take it for a formula, in a table that was exported
            raise InvalidInput("groups", self.name, "names that begin with none of = + - @")
        field = f"groups.{self.name}"
        if self.size is not None:
            check_integer(f"{field}.size", self.size, MAX_SIZE)
        if self.activation is not None and self.activation not in ACTIVATIONS:
            raise InvalidInput(f"{field}.activation", self.activation, "one of " + ", ".join(ACTIVATIONS))
        check_number(f"{field}.factor", self.factor, 1000)
        check_number(f"{field}.power", self.power, 3)

    def size_at(self, width: int) -> int:
        """Number of neurons (channels, after shared edges) at this width."""
        return self.size if self.size is not None else max(1, round(self.factor * width**self.power))

    @property
    def growth(self) -> float:
        """The exponent with which the number of neurons grows with the width: 0 for a fixed size."""
        return 0.0 if self.size is not None else self.power


@dataclass(frozen=True)
class Edge:
    """All edges u → v from the neurons of one group to those of another: in(v)^(-1/2) Σ_{u→v} w_uv α_u.

    Attributes:
        source: the group, or ``"input"``, where they start.
        target: the group, or ``"output"``, where they end.
        drop_probability: with which each dense edge is removed, permanently.
        kind: ``"dense"``; ``"shared"``, weights shared by all positions of the input (a convolution, App. E); or
            ``"skip"``, fixed weights of 1 that add the source after the activation (App. D).
        kernel_size: of shared weights, along each axis of positions.

    Source: Zhu, Liu & Belkin 2022, Eq. 2, App. A, D and E.
    """

    source: str
    target: str
    drop_probability: float = 0.0
    kind: str = "dense"
    kernel_size: int = 3

    @property
    def trained(self) -> bool:
        """Whether the edge carries weights."""
        return self.kind != "skip"

    def check(self) -> None:
        """Refuse what no graph can use, naming both ends."""
        field = f"edges.{self.source}-{self.target}"
        if self.kind not in EDGE_KINDS:
            raise InvalidInput(f"{field}.kind", self.kind, "one of " + ", ".join(EDGE_KINDS))
        check_drop_probability(self.drop_probability, f"{field}.drop_probability")
        check_integer(f"{field}.kernel_size", self.kernel_size, 1024)
        if self.drop_probability and self.kind != "dense":
            raise InvalidInput(f"{field}.drop_probability", self.drop_probability, f"0 for {self.kind} edges")
        if self.kind == "skip" and self.target == OUTPUT:
            raise InvalidInput(f"{field}.kind", self.kind, "dense edges into 'output': its neurons have no activation")


def check_drop_probability(given: object, field: str = "drop_probability") -> None:
    """Refuse a probability outside [0, 1): at 1 no edge is left."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise InvalidInput(field, given, "a number from 0 up to, but not including, 1")


def check_integer(field: str, given: object, highest: int) -> None:
    """Refuse anything but an integer from 1 to ``highest``."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= highest:
        raise InvalidInput(field, given, f"an integer from 1 to {highest:,}")


def check_number(field: str, given: object, highest: float) -> None:
    """Refuse anything but a finite number above 0, up to ``highest``."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given) or given <= 0:
        raise InvalidInput(field, given, f"a number above 0, up to {highest:g}")
    if given > highest:
        raise InvalidInput(field, given, f"a number above 0, up to {highest:g}")
